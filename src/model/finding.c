/* A finding: one fact about a package that a reviewer should weigh; see finding.h. */
#include "model/finding.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

static const aq_rule rules[AQ_RULE_COUNT] = {
#define AQ_RULE(id, name, layer, adversary, severity, title, why, fix)                             \
    [AQ_RULE_##id] = {name, AQ_LAYER_##layer, adversary, severity, title, why, fix},
#include "model/rules.def"
#undef AQ_RULE
};

static const struct {
    const char *name, *title;
} layers[AQ_LAYER_COUNT] = {
#define AQ_LAYER(id, name, title) [AQ_LAYER_##id] = {name, title},
#include "model/layers.def"
#undef AQ_LAYER
};

static const char *const adversaries[] = {
#define AQ_ADVERSARY(number, title, how) [number] = title,
#include "model/adversaries.def"
#undef AQ_ADVERSARY
};

const aq_rule *aq_rule_get(aq_rule_id id)
{
    return &rules[id];
}

int aq_rule_find(const char *name, aq_rule_id *ret)
{
    for (size_t i = 0; i < AQ_RULE_COUNT; i++) {
        if (strcmp(rules[i].name, name) == 0) {
            *ret = (aq_rule_id)i;
            return 0;
        }
    }
    return -ENOENT;
}

const char *aq_layer_name(aq_layer layer)
{
    return layers[layer].name;
}

const char *aq_layer_title(aq_layer layer)
{
    return layers[layer].title;
}

const char *aq_severity_name(aq_severity severity)
{
    static const char *const names[] = {
        [AQ_INFO] = "info", [AQ_REVIEW] = "review", [AQ_REJECT] = "reject"};

    return names[severity];
}

const char *aq_adversary_title(unsigned number)
{
    return number < sizeof adversaries / sizeof *adversaries ? adversaries[number] : NULL;
}

aq_findings *aq_findings_new(aq_arena *a)
{
    aq_findings *f = aq_arena_alloc(a, sizeof *f);

    f->arena = a;
    return f;
}

static aq_finding *append(aq_findings *f, aq_rule_id rule)
{
    aq_finding *item;

    aq_findings_settle(f);
    if (f->per_rule[rule] < UINT32_MAX)
        f->per_rule[rule]++;
    if (f->per_rule[rule] > AQ_FINDINGS_PER_RULE) {
        item = &f->newest;
        f->unsettled = true;
    } else {
        if (f->count == f->cap) {
            size_t cap = f->cap ? 2 * f->cap : 16;
            aq_finding *items = aq_arena_alloc(f->arena, cap * sizeof *items);
            if (f->count)
                memcpy(items, f->items, f->count * sizeof *items);
            f->items = items;
            f->cap = cap;
        }
        item = &f->items[f->count++];
    }
    *item = (aq_finding){.rule = rule};
    return item;
}

/* Noted for the list too, so that a flood of its rule cannot hide it. */
static void mark_incomplete(aq_findings *f, aq_finding *item)
{
    item->incomplete = f->incomplete = f->layer_incomplete[rules[item->rule].layer] = true;
}

enum {
    FILE_ROOM = 4096 + 8, /* an ellipsis and a NUL more */
    MESSAGE_ROOM = AQ_FINDING_MESSAGE + 8,
};

/* Of a rule whose share is full only one text is at hand at a time: a flood of findings must not
 * take memory for each. */
static void set_texts(aq_findings *f, aq_finding *item, const char *file, const char *message)
{
    if (item != &f->newest) {
        item->file = file ? aq_arena_strdup(f->arena, file) : NULL;
        item->message = aq_arena_strdup(f->arena, message);
        return;
    }
    if (!f->room)
        f->room = aq_arena_alloc(f->arena, FILE_ROOM + MESSAGE_ROOM);
    snprintf(f->room, FILE_ROOM, "%s", file ? file : "");
    snprintf(f->room + FILE_ROOM, MESSAGE_ROOM, "%s", message);
    item->file = file ? f->room : NULL;
    item->message = f->room + FILE_ROOM;
    item->room = f->room;
}

__attribute__((format(printf, 4, 0))) static aq_finding *
add(aq_findings *f, aq_rule_id rule, const char *file, const char *fmt, va_list ap)
{
    aq_finding *item = append(f, rule);
    aq_auto_buf b = {0}, name = {0}, message = {0};

    if (file)
        aq_text_quote_max(&name, file, strlen(file), 4096);
    aq_buf_addv(&b, fmt, ap);
    aq_text_quote_max(&message, aq_buf_str(&b), b.len, AQ_FINDING_MESSAGE);
    set_texts(f, item, file ? aq_buf_str(&name) : NULL, aq_buf_str(&message));
    return item;
}

aq_finding *aq_findings_add(aq_findings *f, aq_rule_id rule, const char *file, const char *fmt, ...)
{
    aq_finding *item;
    va_list ap;

    va_start(ap, fmt);
    item = add(f, rule, file, fmt, ap);
    va_end(ap);
    return item;
}

aq_finding *aq_findings_add_incomplete(aq_findings *f, aq_rule_id rule, const char *file,
                                       const char *fmt, ...)
{
    aq_finding *item;
    va_list ap;

    va_start(ap, fmt);
    item = add(f, rule, file, fmt, ap);
    va_end(ap);
    mark_incomplete(f, item);
    return item;
}

void aq_findings_keep(aq_findings *to, const aq_findings *from, aq_severity least)
{
    bool has[AQ_RULE_COUNT];

    for (size_t i = 0; i < AQ_RULE_COUNT; i++)
        has[i] = to->per_rule[i] > 0;
    for (size_t i = 0; i < from->count; i++) {
        const aq_finding *f = &from->items[i];
        aq_finding *item;
        if (has[f->rule] || rules[f->rule].severity < least)
            continue;
        item = append(to, f->rule);
        item->line = f->line;
        item->column = f->column;
        item->span = f->span;
        set_texts(to, item, f->file, f->message);
        if (f->incomplete)
            mark_incomplete(to, item);
    }
}

uint32_t aq_findings_extra(const aq_findings *f, aq_rule_id rule)
{
    return f->per_rule[rule] > AQ_FINDINGS_PER_RULE ? f->per_rule[rule] - AQ_FINDINGS_PER_RULE : 0;
}

aq_severity aq_finding_severity(const aq_finding *f)
{
    return rules[f->rule].severity;
}

aq_severity aq_findings_worst(const aq_findings *f)
{
    aq_severity worst = AQ_INFO;

    for (size_t i = 0; i < AQ_RULE_COUNT; i++)
        if (f->per_rule[i] && rules[i].severity > worst)
            worst = rules[i].severity;
    return worst;
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare(const void *a, const void *b)
{
    const aq_finding *x = a, *y = b;
    int r;

    if (rules[x->rule].severity != rules[y->rule].severity)
        return rules[x->rule].severity > rules[y->rule].severity ? -1 : 1;
    if (x->incomplete != y->incomplete)
        return x->incomplete ? -1 : 1;
    if (rules[x->rule].layer != rules[y->rule].layer)
        return rules[x->rule].layer < rules[y->rule].layer ? -1 : 1;
    r = strcmp(rules[x->rule].name, rules[y->rule].name);
    if (r == 0)
        r = compare_text(x->file, y->file);
    if (r == 0 && x->line != y->line)
        r = x->line < y->line ? -1 : 1;
    if (r == 0 && x->column != y->column)
        r = x->column < y->column ? -1 : 1;
    return r ? r : compare_text(x->message, y->message);
}

void aq_findings_settle(aq_findings *f)
{
    aq_finding *last = NULL;
    char *room;

    if (!f->unsettled)
        return;
    f->unsettled = false;
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].rule == f->newest.rule && (!last || compare(&f->items[i], last) > 0))
            last = &f->items[i];
    if (!last || compare(&f->newest, last) >= 0)
        return;
    room = last->room; /* of the one that goes: for the next one that comes */
    *last = f->newest;
    f->room = room;
}

void aq_findings_sort(aq_findings *f)
{
    aq_findings_settle(f);
    if (f->count)
        qsort(f->items, f->count, sizeof *f->items, compare);
}

int aq_findings_take(aq_findings *to, aq_findings *from, aq_layer layer, aq_err *err)
{
    aq_findings_settle(from);
    for (size_t i = 0; i < AQ_RULE_COUNT; i++)
        if (from->per_rule[i] && rules[i].layer != layer)
            return aq_fail(err, -EINVAL, "a finding of rule %s in %s", rules[i].name,
                           layers[layer].name);
    for (size_t i = 0; i < from->count; i++)
        *append(to, from->items[i].rule) = from->items[i];
    aq_findings_settle(to);
    for (size_t i = 0; i < AQ_RULE_COUNT; i++) {
        uint32_t extra = aq_findings_extra(from, (aq_rule_id)i);
        to->per_rule[i] =
            to->per_rule[i] > UINT32_MAX - extra ? UINT32_MAX : to->per_rule[i] + extra;
    }
    to->incomplete = to->incomplete || from->incomplete;
    to->layer_incomplete[layer] = to->layer_incomplete[layer] || from->layer_incomplete[layer];
    return 0;
}

static void set_string(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, value ? json_string(value) : json_null());
}

json_t *aq_finding_canonical(const aq_finding *f)
{
    const aq_rule *rule = &rules[f->rule];
    json_t *o = json_object();

    set_string(o, "rule", rule->name);
    set_string(o, "layer", layers[rule->layer].name);
    set_string(o, "severity", aq_severity_name(rule->severity));
    json_object_set_new(o, "incomplete", json_boolean(f->incomplete));
    set_string(o, "file", f->file);
    json_object_set_new(o, "line", json_integer(f->line));
    json_object_set_new(o, "column", json_integer(f->column));
    json_object_set_new(o, "span", json_integer(f->span));
    set_string(o, "message", f->message);
    return o;
}

json_t *aq_finding_json(const aq_finding *f)
{
    const aq_rule *rule = &rules[f->rule];
    json_t *o = aq_finding_canonical(f);
    char adversary[8];

    snprintf(adversary, sizeof adversary, "A%u", rule->adversary);
    set_string(o, "adversary", rule->adversary ? adversary : NULL);
    set_string(o, "title", rule->title);
    set_string(o, "why", rule->why);
    set_string(o, "fix", rule->fix);
    set_string(o, "match_hash", f->match_hash);
    return o;
}

static int read_u32(const json_t *from, const char *key, uint32_t *ret, aq_err *err)
{
    int64_t v = aq_json_int(from, key, 0);

    if (v < 0 || v > UINT32_MAX)
        return aq_fail(err, -EBADMSG, "finding: %s out of range", key);
    *ret = (uint32_t)v;
    return 0;
}

int aq_finding_read(aq_findings *to, aq_layer layer, const json_t *from, aq_err *err)
{
    const char *name = aq_json_str(from, "rule");
    const char *message = aq_json_str(from, "message"), *file = aq_json_str(from, "file");
    aq_auto_buf text = {0}, name_text = {0};
    aq_finding f = {0};
    aq_finding *item;
    aq_rule_id rule;
    int r;

    if (!name || aq_rule_find(name, &rule) < 0 || rules[rule].layer != layer)
        return aq_fail(err, -EBADMSG, "finding: %.60s is no rule of %s", name ? name : "(none)",
                       layers[layer].name);
    if (!message)
        return aq_fail(err, -EBADMSG, "finding: message missing");
    if ((r = read_u32(from, "line", &f.line, err)) < 0 ||
        (r = read_u32(from, "column", &f.column, err)) < 0 ||
        (r = read_u32(from, "span", &f.span, err)) < 0)
        return r;
    item = append(to, rule);
    if (json_is_true(json_object_get(from, "incomplete")))
        mark_incomplete(to, item);
    item->line = f.line;
    item->column = f.column;
    item->span = f.span;
    /* The text was quoted once by its maker; a second pass would double its backslashes. A
     * hostile maker could send raw control characters, so those are replaced. */
    aq_text_printable_max(&text, message, AQ_FINDING_MESSAGE + 4);
    if (file)
        aq_text_printable_max(&name_text, file, 4100);
    set_texts(to, item, file ? aq_buf_str(&name_text) : NULL, aq_buf_str(&text));
    return 0;
}
