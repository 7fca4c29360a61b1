/* The reviewer's checklist: at most AQ_CHECKLIST lines, worst risk first: what rejects, grave
 * lines, what runs by itself, what needs review, what was not read, places to look, shares.
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
    FINDINGS = 4,       /* lines of findings while the survey wants the others */
    BESIDE_LOOKS = 5,   /* and when it does not: more would push its own off the first screen */
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

/* How many lines of at least `weight` the first `room` looks show. */
static uint64_t shown_lines(const aq_survey *s, size_t room, uint32_t weight)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < s->look_count && i < room; i++) {
        bool again = false;
        for (size_t n = 0; n < i; n++)
            again = again || (s->looks[n].line == s->looks[i].line &&
                              strcmp(s->looks[n].file, s->looks[i].file) == 0);
        lines += !again && s->looks[i].weight >= weight;
    }
    return lines;
}

/* "12 more lines to look at, 3 of them grave; 22 in all, in 9 files" */
static void add_more_looks(json_t *list, const aq_survey *s, size_t room)
{
    uint64_t shown = shown_lines(s, room, AQ_LOOK_LEAST);
    uint64_t grave = shown_lines(s, room, AQ_LOOK_GRAVE);
    uint64_t more_grave = s->grave_lines > grave ? s->grave_lines - grave : 0;
    aq_auto_buf b = {0};

    aq_part_plural(&b, s->look_lines - shown, "more line to look at", "more lines to look at");
    if (more_grave) {
        aq_buf_adds(&b, ", ");
        aq_part_count(&b, more_grave);
        aq_buf_adds(&b, " of them grave");
    }
    aq_buf_adds(&b, "; ");
    aq_part_count(&b, s->look_lines);
    aq_buf_adds(&b, " in all, in ");
    aq_part_plural(&b, s->look_files, "file", "files");
    add_line(list, more_grave ? "grave" : "look", &b, NULL, 0, NULL);
}

/* Places to look in at most `room` lines; when some are left out the last one counts them. */
static void add_looks(json_t *grave, json_t *other, const aq_survey *s, size_t room)
{
    aq_auto_buf b = {0};
    size_t shown = s->look_count < room ? s->look_count : room;

    if (room && s->look_lines > shown_lines(s, shown, AQ_LOOK_LEAST) && shown == room)
        shown--;
    for (size_t i = 0; i < shown; i++) {
        bool is_grave = s->looks[i].weight >= AQ_LOOK_GRAVE;
        aq_part_sentence(&b, s->looks[i].why);
        add_line(is_grave ? grave : other, is_grave ? "grave" : "look", &b, s->looks[i].file,
                 s->looks[i].line, s->looks[i].text);
    }
    if (room && s->look_lines > shown_lines(s, shown, AQ_LOOK_LEAST))
        add_more_looks(shown_lines(s, shown, AQ_LOOK_GRAVE) < s->grave_lines ? grave : other, s,
                       shown);
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

/* The members of a collection that nobody gated. */
static void add_members(json_t *list, const aq_manifest *m)
{
    aq_auto_buf b = {0};

    if (m->members < 2)
        return;
    aq_buf_addf(&b, "L0 gated the first of %llu members only; validate their folders one by one",
                (unsigned long long)m->members);
    add_line(list, "unread", &b, m->file, 0, NULL);
}

typedef struct share {
    const char *name;
    uint64_t files, bytes;
} share;

/* "71% binary (logo.png, adder.wasm and 3 more)" */
static void add_share(aq_buf *b, const aq_survey *s, size_t which, const share *of)
{
    size_t named = 0;

    aq_buf_addf(b, "%u%% %s (", aq_part_percent(of->bytes, s->bytes), of->name);
    while (named < AQ_SHARE_NAMES && named < of->files && s->largest[which][named])
        named++;
    for (size_t i = 0; i < named; i++)
        aq_buf_addf(b, "%s%s",
                    i == 0                                 ? ""
                    : i + 1 == named && named == of->files ? " and "
                                                           : ", ",
                    s->largest[which][i]);
    if (named && of->files > named)
        aq_buf_addf(b, " and %llu more", (unsigned long long)(of->files - named));
    else if (!named)
        aq_part_plural(b, of->files, "file", "files");
    aq_buf_adds(b, ")");
}

/* That a survey did not finish is a finding; here its shares are only called what they are. */
static void add_shares(json_t *list, const aq_survey *s)
{
    /* In the order in which the largest files are kept. */
    const share shares[AQ_SHARES] = {{"binary", s->binary_files, s->binary_bytes},
                                     {"vendored", s->vendored_files, s->vendored_bytes},
                                     {"minified", s->minified_files, s->minified_bytes},
                                     {"generated", s->generated_files, s->generated_bytes}};
    aq_auto_buf b = {0}, none = {0};
    bool begun = false;
    size_t zeros = 0, nth = 0;

    if (s->files == 0)
        return;
    if (!s->complete)
        aq_buf_adds(&b, "Of what was surveyed, ");
    aq_part_plural(&b, s->files, "file", "files");
    aq_buf_adds(&b, ", ");
    aq_part_bytes(&b, s->bytes);
    aq_buf_adds(&b, ": ");
    for (size_t i = 0; i < AQ_SHARES; i++)
        zeros += shares[i].bytes == 0;
    for (size_t i = AQ_SHARES; i-- > 0;) {
        if (shares[i].bytes == 0) {
            nth++;
            aq_buf_addf(&none, "%s%s",
                        nth == 1       ? ""
                        : nth == zeros ? " or "
                                       : ", ",
                        shares[i].name);
            continue;
        }
        aq_buf_adds(&b, begun ? ", " : "");
        add_share(&b, s, i, &shares[i]);
        begun = true;
    }
    if (none.len)
        aq_buf_addf(&b, "%snothing %s", begun ? "; " : "", aq_buf_str(&none));
    add_line(list, "share", &b, NULL, 0, NULL);
}

/* Moves the lines of one risk from `from` to the end of `list`. */
static void take_risk(json_t *list, json_t *from, const char *risk, bool is)
{
    const json_t *row;
    size_t i;

    json_array_foreach (from, i, row)
        if ((strcmp(aq_part_str(row, "risk", ""), risk) == 0) == is)
            json_array_append(list, (json_t *)(uintptr_t)row);
}

/* Findings take what the survey does not want, and a share of their own in any case. */
static size_t findings_room(size_t room, size_t wanted, size_t looks)
{
    if (looks == 0)
        return room;
    if (looks < room && room - looks > FINDINGS)
        return BESIDE_LOOKS;
    if (room <= wanted + 1)
        return 1;
    return room - wanted < FINDINGS ? room - wanted : FINDINGS;
}

json_t *aq_checklist(const aq_report_in *in)
{
    aq_auto_free group *groups = aq_alloc((AQ_RULE_COUNT + 1) * sizeof *groups);
    aq_auto_json json_t *unread = json_array(), *last = json_array(), *starts = json_array(),
                        *found = json_array(), *grave = json_array(), *looks = json_array();
    size_t count = group_findings(in->findings, groups), graded = 0, unfinished, wanted, room;
    json_t *list = json_array();

    while (graded < count && aq_finding_severity(groups[graded].first) > AQ_INFO)
        graded++;
    /* The sort puts what is incomplete before the rest of its severity. */
    for (unfinished = 0; graded + unfinished < count && groups[graded + unfinished].incomplete;)
        unfinished++;
    add_unread(unread, in->package, in->findings);
    add_unfinished(unread, groups + graded, untold(groups + graded, unfinished, in));
    add_members(unread, in->manifest);
    add_starts(starts, in->manifest);
    add_shares(last, in->survey);
    add_stages(last, in->stages); /* the headline and the walk have said so, too */
    room = AQ_CHECKLIST - json_array_size(last) - json_array_size(unread) - json_array_size(starts);
    wanted = in->survey->look_count < RESERVED_LOOKS ? in->survey->look_count : RESERVED_LOOKS;
    add_findings(found, groups, graded, findings_room(room, wanted, in->survey->look_count));
    add_looks(grave, looks, in->survey, room - json_array_size(found));
    take_risk(list, found, "reject", true);
    json_array_extend(list, grave);
    json_array_extend(list, starts);
    take_risk(list, found, "reject", false);
    json_array_extend(list, unread);
    json_array_extend(list, looks);
    json_array_extend(list, last);
    return list;
}
