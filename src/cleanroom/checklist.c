/* The reviewer's checklist: at most AQ_CHECKLIST lines, worst risk first.
 *
 * A package can be made to produce thousands of findings; a reader has a minute (A10). So findings
 * of one rule share a line, and no sort of line can push out another sort altogether: what was not
 * checked, where to look first, what runs by itself and how much is machine-made always keep their
 * place. No fact is told twice. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/report.h"
#include "cleanroom/report_parts.h"

enum {
    RESERVED_LOOKS = 3, /* lines that the survey keeps however many findings there are */
    BEFORE_LOOKS = 4,   /* lines of findings before them: more would push them off the screen */
    STARTS = 2,         /* lines of what runs by itself */
    COVERED = 1000,     /* unread places that are looked for among the findings */
    TEXT = 700,         /* bytes of one line: nothing that a rule says is cut */
    FILE_NAME = 4100,
};

/* Findings of one rule: where it starts in the sorted list and how many there are of it. */
typedef struct group {
    const aq_finding *first;
    uint64_t count, files;
    bool incomplete;
} group;

static json_t *line(const char *risk, const char *text, const char *file, uint32_t number,
                    const char *excerpt)
{
    json_t *o = json_object();

    json_object_set_new(o, "risk", json_string(risk));
    json_object_set_new(o, "text", json_string(text));
    json_object_set_new(o, "file", file ? json_string(file) : json_null());
    json_object_set_new(o, "line", json_integer(number));
    json_object_set_new(o, "excerpt", excerpt ? json_string(excerpt) : json_null());
    return o;
}

static void add_line(json_t *list, const char *risk, aq_buf *text, const char *file,
                     uint32_t number, const char *excerpt)
{
    aq_auto_arena a = aq_arena_new();
    const char *safe = aq_text_printable(a, aq_buf_str(text), TEXT);

    if (file)
        file = aq_text_printable(a, file, FILE_NAME);
    if (excerpt)
        excerpt = aq_text_printable(a, excerpt, TEXT);
    json_array_append_new(list, line(risk, safe, file, number, excerpt));
    aq_buf_clear(text);
}

static int by_risk(const void *a, const void *b)
{
    const group *x = a, *y = b;
    aq_severity sx = aq_finding_severity(x->first), sy = aq_finding_severity(y->first);
    int r;

    if (sx != sy)
        return sx > sy ? -1 : 1;
    if (x->incomplete != y->incomplete)
        return x->incomplete ? -1 : 1;
    if (aq_rule_get(x->first->rule)->layer != aq_rule_get(y->first->rule)->layer)
        return aq_rule_get(x->first->rule)->layer < aq_rule_get(y->first->rule)->layer ? -1 : 1;
    r = strcmp(aq_rule_get(x->first->rule)->name, aq_rule_get(y->first->rule)->name);
    return r;
}

/* One group a rule that has findings, worst first. `groups` holds AQ_RULE_COUNT. */
static size_t group_findings(const aq_findings *f, group *groups)
{
    aq_auto_free const char **last = aq_alloc(AQ_RULE_COUNT * sizeof *last);
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++) {
        const aq_finding *item = &f->items[i];
        group *g = &groups[item->rule];
        const char *file = item->file ? item->file : "";
        if (!g->first)
            g->first = item;
        if (!last[item->rule] || strcmp(last[item->rule], file) != 0)
            g->files++;
        last[item->rule] = file;
        g->incomplete = g->incomplete || item->incomplete;
    }
    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++) {
        if (!groups[i].first)
            continue;
        groups[i].count = f->per_rule[i];
        groups[count] = groups[i];
        if (count++ != i)
            groups[i] = (group){0};
    }
    qsort(groups, count, sizeof *groups, by_risk);
    return count;
}

static void add_group(json_t *list, const group *g, const char *risk)
{
    const aq_rule *rule = aq_rule_get(g->first->rule);
    aq_auto_buf b = {0};

    if (g->count == 1) {
        aq_buf_addf(&b, "%s: ", rule->title);
        aq_part_sentence(&b, g->first->message);
    } else {
        aq_buf_addf(&b, "%s, ", rule->title);
        aq_part_plural(&b, g->count, "time", "times");
        if (g->files > 1) {
            aq_buf_adds(&b, g->count > AQ_FINDINGS_PER_RULE ? " in at least " : " in ");
            aq_part_plural(&b, g->files, "file", "files");
        }
        aq_buf_adds(&b, "; first: ");
        aq_part_sentence(&b, g->first->message);
    }
    add_line(list, risk, &b, g->first->file, g->first->line, NULL);
}

/* Reject and review findings in at most `room` lines; the last says what did not fit. */
static void add_findings(json_t *list, const group *groups, size_t count, size_t room)
{
    uint64_t rest = 0;
    aq_auto_buf b = {0};

    for (size_t i = 0; i < count; i++) {
        if (i + 1 < room || (i + 1 == room && count == room))
            add_group(list, &groups[i], aq_severity_name(aq_finding_severity(groups[i].first)));
        else
            rest += groups[i].count;
    }
    if (!rest)
        return;
    aq_part_plural(&b, rest, "more finding", "more findings");
    aq_buf_adds(&b, " of ");
    aq_part_plural(&b, count - room + 1, "other rule", "other rules");
    aq_buf_adds(&b, ": read the list of findings");
    add_line(list, aq_severity_name(aq_finding_severity(groups[room - 1].first)), &b, NULL, 0,
             NULL);
}

static bool in_findings(const aq_findings *f, const char *place, aq_severity least)
{
    for (size_t i = 0; i < f->count; i++)
        if (aq_finding_severity(&f->items[i]) >= least && f->items[i].file &&
            strcmp(f->items[i].file, place) == 0)
            return true;
    return false;
}

/* Places that were not read, but for those of which a finding above has said so already. */
static void add_unread(json_t *list, const aq_package *p, const aq_findings *f)
{
    const aq_unread *first = NULL;
    aq_auto_buf b = {0};
    uint64_t bytes = 0, count = 0;

    for (size_t i = 0; i < p->unread_count; i++) {
        if (i < COVERED && in_findings(f, p->unread[i].place, AQ_REVIEW))
            continue;
        first = first ? first : &p->unread[i];
        bytes += p->unread[i].bytes;
        count++;
    }
    if (!count)
        return;
    if (count > 1)
        aq_part_plural(&b, count, "places were not read", "places were not read");
    else
        aq_buf_adds(&b, "Not read");
    if (bytes) {
        aq_buf_adds(&b, " (");
        aq_part_bytes(&b, bytes);
        aq_buf_adds(&b, ")");
    }
    aq_buf_addf(&b, count > 1 ? "; first: %s" : ": %s", first->reason);
    add_line(list, "unread", &b, first->place, 0, NULL);
}

/* Was everything that these findings call unfinished told as an unread place? */
static bool told(const group *g, const aq_findings *f, const aq_package *p)
{
    for (size_t i = 0; i < f->count; i++) {
        bool found = false;
        if (f->items[i].rule != g->first->rule || !f->items[i].incomplete)
            continue;
        for (size_t n = 0; n < p->unread_count && n < COVERED && !found; n++)
            found = f->items[i].file && strcmp(p->unread[n].place, f->items[i].file) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* Drops the groups that add_unread speaks for. */
static size_t untold(group *groups, size_t count, const aq_report_in *in)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!told(&groups[i], in->findings, in->package))
            groups[kept++] = groups[i];
    return kept;
}

static void add_unfinished(json_t *list, const group *groups, size_t count)
{
    aq_auto_buf b = {0};
    uint64_t all = 0;

    for (size_t i = 0; i < count; i++)
        all += groups[i].count;
    if (count == 1)
        add_group(list, &groups[0], "unread");
    if (count <= 1)
        return;
    aq_part_plural(&b, all, "finding says", "findings say");
    aq_buf_addf(&b, " that something was not read to its end; first: %s: %s",
                aq_rule_get(groups[0].first->rule)->title, groups[0].first->message);
    add_line(list, "unread", &b, groups[0].first->file, groups[0].first->line, NULL);
}

static void add_stages(json_t *list, const aq_stage_result *stages)
{
    aq_auto_buf b = {0};

    for (size_t i = 0; i < AQ_LAYER_COUNT; i++) {
        if (stages[i].decision != AQ_STAGE_NOT_RUN && stages[i].decision != AQ_STAGE_INCONCLUSIVE)
            continue;
        aq_buf_adds(&b, b.len ? ", " : "Not checked: ");
        aq_buf_adds(&b, aq_layer_title(stages[i].layer));
        if (stages[i].decision == AQ_STAGE_INCONCLUSIVE)
            aq_buf_adds(&b, " (could not finish)");
    }
    if (b.len)
        add_line(list, "unread", &b, NULL, 0, NULL);
}

/* Lines of weight in the file of looks[at] that none of the first `room` looks shows; told once, by
 * the last of them. */
static uint64_t left_out(const aq_survey *s, size_t at, size_t room)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < s->look_count && i < room; i++) {
        bool again = false;
        if (strcmp(s->looks[i].file, s->looks[at].file) != 0)
            continue;
        if (i > at)
            return 0;
        for (size_t n = 0; n < i; n++)
            again = again || (s->looks[n].line == s->looks[i].line &&
                              strcmp(s->looks[n].file, s->looks[i].file) == 0);
        lines += !again && s->looks[i].weight > 0;
    }
    return s->looks[at].in_file > lines ? s->looks[at].in_file - lines : 0;
}

static void add_looks(json_t *list, const aq_survey *s, size_t room)
{
    aq_auto_buf b = {0};

    for (size_t i = 0; i < s->look_count && i < room; i++) {
        uint64_t more = left_out(s, i, room);
        aq_part_sentence(&b, s->looks[i].why);
        if (more) {
            aq_buf_adds(&b, "; and ");
            aq_part_plural(&b, more, "more line in ", "more lines in ");
            aq_buf_adds(&b, s->looks[i].file);
        }
        add_line(list, s->looks[i].weight >= AQ_LOOK_GRAVE ? "grave" : "look", &b, s->looks[i].file,
                 s->looks[i].line, s->looks[i].text);
    }
}

/* What the package has started without anybody's asking. */
static void add_starts(json_t *list, const aq_manifest *m)
{
    aq_auto_buf b = {0};
    size_t count = 0, shown = 0;

    for (size_t i = 0; i < m->entry_point_count; i++)
        count += aq_part_automatic(m->entry_points[i].role);
    for (size_t i = 0; i < m->entry_point_count && shown < STARTS; i++) {
        const aq_entry_point *e = &m->entry_points[i];
        if (!aq_part_automatic(e->role))
            continue;
        shown++;
        if (shown == STARTS && count > STARTS) {
            aq_part_count(&b, count - STARTS + 1);
            aq_buf_adds(&b, " more things run by themselves; next: ");
        } else {
            aq_part_starts(&b, e->role, e->matcher);
            aq_buf_adds(&b, ": ");
        }
        aq_buf_adds(&b, e->command ? e->command : "?");
        add_line(list, "starts", &b, e->file, e->line, NULL);
    }
}

static void add_share(aq_buf *b, const char *before, uint64_t bytes, uint64_t whole,
                      const char *what)
{
    aq_buf_addf(b, "%s%u%% %s", before, aq_part_percent(bytes, whole), what);
}

static void add_shares(json_t *list, const aq_survey *s)
{
    aq_auto_buf b = {0};

    if (!s->complete)
        aq_buf_adds(&b, "The survey did not finish; so far: ");
    aq_part_plural(&b, s->files, "file", "files");
    aq_buf_adds(&b, ", ");
    aq_part_bytes(&b, s->bytes);
    aq_buf_adds(&b, ": ");
    if (s->generated_bytes + s->vendored_bytes + s->minified_bytes + s->binary_bytes == 0) {
        aq_buf_adds(&b, "nothing generated, vendored, minified or binary");
    } else {
        add_share(&b, "", s->generated_bytes, s->bytes, "generated");
        add_share(&b, ", ", s->vendored_bytes, s->bytes, "vendored");
        add_share(&b, ", ", s->minified_bytes, s->bytes, "minified");
        add_share(&b, ", ", s->binary_bytes, s->bytes, "binary");
    }
    add_line(list, s->complete ? "share" : "unread", &b, NULL, 0, NULL);
}

json_t *aq_checklist(const aq_report_in *in)
{
    aq_auto_free group *groups = aq_alloc((AQ_RULE_COUNT + 1) * sizeof *groups);
    aq_auto_json json_t *unread = json_array(), *last = json_array();
    size_t count = group_findings(in->findings, groups), graded = 0, unfinished, looks, room;
    json_t *list = json_array();

    while (graded < count && aq_finding_severity(groups[graded].first) > AQ_INFO)
        graded++;
    /* The sort puts what is incomplete before the rest of its severity. */
    for (unfinished = 0; graded + unfinished < count && groups[graded + unfinished].incomplete;)
        unfinished++;
    add_unread(unread, in->package, in->findings);
    add_unfinished(unread, groups + graded, untold(groups + graded, unfinished, in));
    add_starts(last, in->manifest);
    add_shares(last, in->survey);
    add_stages(last, in->stages); /* the headline and the walk have said so, too */
    looks = in->survey->look_count < RESERVED_LOOKS ? in->survey->look_count : RESERVED_LOOKS;
    room = AQ_CHECKLIST - json_array_size(last) - json_array_size(unread);
    room = room > looks + 2 ? room - looks : 2;
    if (looks && room > BEFORE_LOOKS)
        room = BEFORE_LOOKS;
    add_findings(list, groups, graded, room);
    json_array_extend(list, unread);
    add_looks(list, in->survey, AQ_CHECKLIST - json_array_size(last) - json_array_size(list));
    json_array_extend(list, last);
    return list;
}
