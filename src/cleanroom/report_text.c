/* The report for a terminal. The first screen (24 lines of 80 columns) has verdict, reason and
 * checklist; findings and what all this rests on follow; the verdict is the last line again, for
 * whoever scrolled. In a file or pipe nothing is cut. No line is wider than asked, measured in
 * columns and not in bytes; nothing that a package wrote can move the cursor or colour the text. */
#include <string.h>
#include <utf8proc.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/report.h"
#include "cleanroom/report_parts.h"

enum {
    SCREEN = 24,
    NARROWEST = 20,
    NARROW = 40,  /* below, the rows of a text go on under their label */
    LABEL = 11,   /* columns before the text of a row: space, risk, space */
    PLACE = 34,   /* columns of a file name and line in the checklist */
    WHOLE = 9000, /* more than any has */
    DIGEST = 40,  /* a run of hexadecimal digits that is never cut */
    BRIEF = 20,   /* findings listed without --verbose */
    LONG_LINE = 1 << 20,
    UNREAD = 100, /* places that were not read, listed one by one */
};

typedef struct writer {
    aq_buf *out;
    unsigned width;
    bool colour, whole;
    unsigned rows; /* lines written */
} writer;

static const struct {
    const char *name, *word, *colour;
} looks[] = {
    {"pass", "PASS", "1;32"},     {"review", "REVIEW", "1;33"},
    {"reject", "REJECT", "1;31"}, {"inconclusive", "INCONCLUSIVE", "1;35"},
    {"unread", "unread", "35"},   {"grave", "grave", "31"},
    {"look", "look", "36"},       {"starts", "starts", "1;33"},
    {"share", "share", "2"},      {"info", "info", "2"},
};

static const char *colour_of(const char *name)
{
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (strcmp(looks[i].name, name) == 0)
            return looks[i].colour;
    return "0";
}

static const char *word_of(const char *name)
{
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (strcmp(looks[i].name, name) == 0)
            return looks[i].word;
    return name;
}

static unsigned char_columns(const char *s, size_t *len)
{
    const unsigned char *p = (const unsigned char *)s, *from = p;
    int32_t c = aq_utf8_next(&p, from + strnlen(s, 4));
    int columns = c < 0 ? 1 : utf8proc_charwidth(c);

    *len = (size_t)(p - from);
    return columns < 0 ? 0 : (unsigned)columns;
}

static unsigned columns(const char *s)
{
    unsigned sum = 0;

    for (size_t len; *s; s += len)
        sum += char_columns(s, &len);
    return sum;
}

/* How many bytes of `s` fit into `room` columns. */
static size_t fitting(const char *s, unsigned room)
{
    unsigned used = 0;
    size_t done = 0, len;

    while (s[done]) {
        used += char_columns(s + done, &len);
        if (used > room)
            break;
        done += len;
    }
    return done;
}

static void shown(aq_buf *out, const char *text)
{
    size_t used;

    while ((used = aq_part_show(out, text)))
        text += used;
    aq_buf_str(out);
}

static void newline(writer *w)
{
    aq_buf_addc(w->out, '\n');
    w->rows++;
}

static void spaces(writer *w, unsigned count)
{
    while (count--)
        aq_buf_addc(w->out, ' ');
}

/* Where to break `s` so that it fits: behind the last space, unless that leaves half the row. */
static size_t row_break(const char *s, unsigned room)
{
    size_t fit = fitting(s, room), at = fit;

    if (!s[fit] || s[fit] == ' ')
        return fit;
    while (at > 0 && s[at - 1] != ' ')
        at--;
    return at > fit / 2 ? at : fit > 0 ? fit : strlen(s);
}

/* Writes text from `column` on, in at most `rows` rows (0 = any number), the next ones indented;
 * what does not fit ends in an ellipsis. Ends the line. */
static void flow(writer *w, unsigned column, unsigned indent, unsigned rows, const char *text)
{
    aq_auto_buf b = {0};
    const char *s;

    shown(&b, text);
    for (s = aq_buf_str(&b);; rows -= rows > 0) {
        unsigned room = w->width - column;
        size_t end, last;
        if (columns(s) <= room) {
            aq_buf_adds(w->out, s);
            newline(w);
            return;
        }
        if (rows == 1) {
            aq_buf_add(w->out, s, fitting(s, room - 1));
            aq_buf_adds(w->out, "…");
            newline(w);
            return;
        }
        end = row_break(s, room);
        for (last = end; last > 0 && s[last - 1] == ' ';)
            last--;
        aq_buf_add(w->out, s, last);
        newline(w);
        for (s += end; *s == ' ';)
            s++;
        spaces(w, indent);
        column = indent;
    }
}

static void painted(writer *w, const char *name, const char *word)
{
    if (w->colour)
        aq_buf_addf(w->out, "\x1b[%sm%s\x1b[0m", colour_of(name), word);
    else
        aq_buf_adds(w->out, word);
}

static void heading(writer *w, const char *text)
{
    if (columns(text) > w->width) {
        flow(w, 0, 1, 0, text);
        return;
    }
    if (w->colour)
        aq_buf_addf(w->out, "\x1b[1m%s\x1b[0m", text);
    else
        aq_buf_adds(w->out, text);
    newline(w);
}

/* " review    " */
static void label(writer *w, const char *risk)
{
    unsigned used = columns(risk);

    aq_buf_addc(w->out, ' ');
    painted(w, risk, risk);
    spaces(w, used + 2 < LABEL ? LABEL - 1 - used : 1);
}

/* "deep/in/file.py:12", its middle left out when it is longer than `room`. */
static void place(aq_buf *out, const char *file, int64_t line, unsigned room)
{
    aq_auto_buf b = {0};
    const char *s;
    size_t tail;

    shown(&b, file);
    if (line > 0)
        aq_buf_addf(&b, ":%lld", (long long)line);
    s = aq_buf_str(&b);
    if (columns(s) > room) {
        aq_buf_adds(out, "…");
        tail = fitting(s, columns(s) - room + 1);
        while (columns(s + tail) > room - 1)
            tail += fitting(s + tail, 1) ? fitting(s + tail, 1) : fitting(s + tail, 2);
        s += tail;
    }
    aq_buf_adds(out, s);
}

static void write_head(writer *w, const json_t *report)
{
    const char *verdict = aq_part_str(report, "verdict", "inconclusive");
    aq_auto_buf what = {0}, why = {0};

    aq_buf_addc(w->out, ' ');
    painted(w, verdict, word_of(verdict));
    aq_buf_adds(w->out, "  ");
    aq_part_what(report, &what);
    flow(w, 3 + columns(word_of(verdict)), 1, 0, aq_buf_str(&what));
    aq_part_reason(report, &why);
    aq_buf_addc(w->out, ' ');
    flow(w, 1, 1, 0, aq_buf_str(&why));
    newline(w);
}

static void write_stages(writer *w, const json_t *report)
{
    aq_auto_buf b = {0};
    const json_t *stage;
    size_t i;

    json_array_foreach (json_object_get(report, "stages"), i, stage) {
        const char *title = aq_part_str(stage, "title", "?");
        const char *decision = aq_part_str(stage, "decision", "?");
        aq_auto_buf left_open = {0};
        aq_part_stage_note(report, stage, &left_open);
        aq_buf_addf(&b, "%s%.*s %s", i ? " › " : "", (int)strcspn(title, " "), title,
                    strcmp(decision, "not-run") == 0 ? "not run" : decision);
        if (left_open.len)
            aq_buf_addf(&b, " (%s)", aq_buf_str(&left_open));
    }
    aq_buf_addc(w->out, ' ');
    flow(w, 1, 1, 0, aq_buf_str(&b));
    newline(w);
}

/* The text of one row: where, and what about it. */
static void row_text(const writer *w, const json_t *row, aq_buf *out)
{
    const char *file = aq_part_str(row, "file", NULL);

    if (file) {
        place(out, file, aq_json_int(row, "line", 0), w->whole ? WHOLE : PLACE);
        aq_buf_adds(out, "  ");
    }
    aq_buf_adds(out, aq_part_str(row, "text", ""));
}

/* The line itself, which stands below; false when there is none. */
static bool row_excerpt(const json_t *row, aq_buf *out)
{
    const char *excerpt = aq_part_str(row, "excerpt", NULL);

    if (excerpt)
        aq_buf_addf(out, "‹%s›", excerpt);
    return excerpt != NULL;
}

static unsigned indent_of(const writer *w, unsigned column)
{
    return w->width < NARROW ? 2 : column;
}

static unsigned rows_wanted(const writer *w, unsigned column, const char *text)
{
    aq_auto_buf b = {0};
    const char *s;
    unsigned rows = 1;

    shown(&b, text);
    for (s = aq_buf_str(&b); columns(s) > w->width - column; rows++) {
        s += row_break(s, w->width - column);
        while (*s == ' ')
            s++;
        column = indent_of(w, LABEL);
    }
    return rows;
}

/* A digest that is cut cannot be compared with anything. */
static bool has_digest(const char *text)
{
    while (*text) {
        size_t n = strspn(text, "0123456789abcdef");
        if (n >= DIGEST)
            return true;
        text += n ? n : 1;
    }
    return false;
}

/* The rows that a line of the checklist gets, and its excerpt below. */
typedef struct rows_of {
    unsigned text, excerpt;
} rows_of;

/* Only what is mild may be cut. */
static bool mild(const char *risk)
{
    return strcmp(risk, "starts") == 0 || strcmp(risk, "share") == 0;
}

/* Rows that a line needs at least: a reason is never cut, nor is a digest or anything serious. */
static rows_of rows_needed(const writer *w, const json_t *row)
{
    const char *text = aq_part_str(row, "text", ""), *risk = aq_part_str(row, "risk", "");
    rows_of rows = {.text = 1};
    aq_auto_buf b = {0};

    rows.excerpt = aq_part_str(row, "excerpt", NULL) ? 1 : 0;
    if (!rows.excerpt && mild(risk) && !has_digest(text) && !w->whole)
        return rows;
    row_text(w, row, &b);
    rows.text = rows_wanted(w, LABEL, aq_buf_str(&b));
    return rows;
}

/* More rows for a text, as far as it wants them and the screen has them. */
static void grow(const writer *w, unsigned column, const char *text, unsigned *rows, unsigned *used)
{
    unsigned more = rows_wanted(w, column, text) - *rows,
             room = *used < SCREEN ? SCREEN - *used : 0;

    if (more > 2)
        more = 2;
    if (more > room)
        more = room;
    *rows += more;
    *used += more;
}

/* What is left of the screen beyond what every line needs goes to the first place to look, then to
 * the others in order. */
static void share_rows(const writer *w, const json_t *list, rows_of *rows)
{
    size_t count = json_array_size(list), first = count, i;
    unsigned used = w->rows + 1;
    const json_t *row;

    json_array_foreach (list, i, row) {
        rows[i] = rows_needed(w, row);
        used += rows[i].text + rows[i].excerpt;
        if (first == count && rows[i].excerpt)
            first = i;
    }
    for (size_t n = 0; n <= count; n++) {
        aq_auto_buf text = {0}, excerpt = {0};
        i = n == 0 ? first : n - 1;
        if (i >= count || (n > 0 && i == first))
            continue;
        row_text(w, json_array_get(list, i), &text);
        grow(w, LABEL, aq_buf_str(&text), &rows[i].text, &used);
        if (row_excerpt(json_array_get(list, i), &excerpt))
            grow(w, indent_of(w, LABEL), aq_buf_str(&excerpt), &rows[i].excerpt, &used);
    }
}

static void write_checklist(writer *w, const json_t *report)
{
    const json_t *list = json_object_get(report, "checklist"), *row;
    unsigned indent = indent_of(w, LABEL);
    rows_of rows[AQ_CHECKLIST];
    size_t i;

    if (json_array_size(list) > AQ_CHECKLIST)
        return;
    heading(w, " Look at this first");
    share_rows(w, list, rows);
    json_array_foreach (list, i, row) {
        aq_auto_buf text = {0}, excerpt = {0};
        label(w, aq_part_str(row, "risk", "info"));
        row_text(w, row, &text);
        flow(w, LABEL, indent, w->whole ? 0 : rows[i].text, aq_buf_str(&text));
        if (!row_excerpt(row, &excerpt))
            continue;
        spaces(w, indent);
        flow(w, indent, indent, w->whole ? 0 : rows[i].excerpt, aq_buf_str(&excerpt));
    }
    newline(w);
}

static void note(writer *w, const char *text)
{
    spaces(w, indent_of(w, LABEL));
    flow(w, indent_of(w, LABEL), indent_of(w, LABEL), 0, text);
}

static void write_finding(writer *w, const json_t *f, bool verbose)
{
    aq_auto_buf b = {0};
    const char *file = aq_part_str(f, "file", NULL), *adversary = aq_part_str(f, "adversary", NULL);
    const char *message = aq_part_str(f, "message", "");
    const char *severity = aq_part_str(f, "severity", "info");

    if (file) {
        place(&b, file, aq_json_int(f, "line", 0), verbose || w->whole ? WHOLE : PLACE);
        aq_buf_adds(&b, "  ");
    }
    if (verbose)
        aq_buf_addf(&b, "%s: ", aq_part_str(f, "title", "?"));
    aq_part_sentence(&b, message);
    if (!verbose)
        aq_buf_addf(&b, " [%s]", aq_part_str(f, "rule", "?"));
    label(w, severity);
    flow(w, LABEL, indent_of(w, LABEL), 0, aq_buf_str(&b));
    if (!verbose)
        return;
    aq_buf_clear(&b);
    aq_buf_addf(&b, "Why: %s", aq_part_str(f, "why", ""));
    note(w, aq_buf_str(&b));
    aq_buf_clear(&b);
    aq_buf_addf(&b, "Do:  %s", aq_part_str(f, "fix", ""));
    note(w, aq_buf_str(&b));
    aq_buf_clear(&b);
    aq_buf_addf(&b, "%s%s%s", aq_part_str(f, "rule", "?"), adversary ? ", " : "",
                adversary ? adversary : "");
    note(w, aq_buf_str(&b));
}

/* Behind the last listed finding of a rule: how many more of it there are. */
static void write_more(writer *w, const json_t *report, const json_t *f, const json_t *next)
{
    const char *rule = aq_part_str(f, "rule", "");
    uint64_t more = aq_part_more(report, rule);
    aq_auto_buf b = {0};

    if (!more || (next && strcmp(aq_part_str(next, "rule", ""), rule) == 0))
        return;
    aq_buf_adds(&b, "and ");
    aq_part_count(&b, more);
    aq_buf_addf(&b, " more of this rule (%s), counted and not listed", rule);
    note(w, aq_buf_str(&b));
}

static void write_findings(writer *w, const json_t *report, bool verbose)
{
    const json_t *list = json_object_get(report, "findings"), *row;
    uint64_t all = aq_part_findings(report, NULL), listed = 0, shown = 0;
    aq_auto_buf b = {0};
    size_t i;

    aq_buf_addc(&b, ' ');
    aq_part_findings_title(report, &b);
    heading(w, aq_buf_str(&b));
    json_array_foreach (list, i, row) {
        if (aq_part_basis(row))
            continue;
        if (verbose || listed < BRIEF) {
            write_finding(w, row, verbose);
            write_more(w, report, row, json_array_get(list, i + 1));
            shown++;
        }
        listed++;
    }
    if (listed > shown) {
        aq_buf_clear(&b);
        aq_buf_adds(&b, "and ");
        aq_part_count(&b, all - shown);
        aq_buf_adds(&b, " more, ");
        aq_part_count(&b, listed - shown);
        aq_buf_adds(&b, " of them in the whole list (--verbose)");
        note(w, aq_buf_str(&b));
    }
    newline(w);
}

static void fact(writer *w, const char *name, const char *value)
{
    aq_buf_addc(w->out, ' ');
    aq_buf_adds(w->out, name);
    spaces(w, columns(name) + 1 < LABEL + 4 ? LABEL + 4 - 1 - columns(name) : 1);
    flow(w, LABEL + 4, indent_of(w, LABEL + 4), 0, value);
}

static void write_declared(writer *w, const json_t *report)
{
    json_t *declared = json_object_get(json_object_get(report, "package"), "capabilities");
    const json_t *patterns, *p;
    const char *key;
    size_t i;

    if (!json_is_object(declared)) {
        fact(w, "declares", "no capabilities");
        return;
    }
    if (json_object_size(declared) == 0)
        fact(w, "declares", "that it needs nothing");
    json_object_foreach (declared, key, patterns) {
        aq_auto_buf b = {0};
        aq_buf_addf(&b, "%s: ", key);
        json_array_foreach (patterns, i, p)
            aq_buf_addf(&b, "%s%s", i ? ", " : "",
                        json_string_value(p) ? json_string_value(p) : "?");
        if (json_array_size(patterns) == 0)
            aq_buf_adds(&b, "none");
        fact(w, "declares", aq_buf_str(&b));
    }
}

static void write_says(writer *w, const json_t *report)
{
    const json_t *package = json_object_get(report, "package"), *row;
    size_t i;

    heading(w, " What it declares and starts");
    write_declared(w, report);
    json_array_foreach (json_object_get(package, "entry_points"), i, row) {
        const char *role = aq_part_str(row, "role", "?");
        aq_auto_buf b = {0};
        if (aq_part_automatic(role))
            aq_part_starts(&b, role, aq_part_str(row, "matcher", NULL));
        else
            aq_buf_addf(&b, "Has an entry point (%s)", role);
        aq_buf_addf(&b, ": %s", aq_part_str(row, "command", "?"));
        fact(w, "starts", aq_buf_str(&b));
    }
    if (json_array_size(json_object_get(package, "entry_points")) == 0)
        fact(w, "starts", "nothing that its manifest names");
    newline(w);
}

static bool in_findings(const json_t *report, const char *place)
{
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "findings"), i, row)
        if (strcmp(aq_part_str(row, "file", ""), place) == 0)
            return true;
    return false;
}

/* Places that were not read, but for those that the findings have named. */
static void write_unread(writer *w, const json_t *report)
{
    const json_t *row;
    size_t i, rest = 0;
    aq_auto_buf b = {0};

    json_array_foreach (json_object_get(json_object_get(report, "coverage"), "unread"), i, row) {
        if (i >= UNREAD) {
            rest++;
            continue;
        }
        if (in_findings(report, aq_part_str(row, "place", "?")))
            continue;
        aq_buf_clear(&b);
        aq_buf_addf(&b, "%s: %s", aq_part_str(row, "place", "?"), aq_part_str(row, "reason", "?"));
        fact(w, "not read", aq_buf_str(&b));
    }
    if (!rest)
        return;
    aq_buf_clear(&b);
    aq_part_plural(&b, rest, "more place", "more places");
    fact(w, "not read", aq_buf_str(&b));
}

/* What nearly every package lacks: told here, once. */
static void write_basis(writer *w, const json_t *report)
{
    aq_auto_buf signature = {0}, names = {0};
    const json_t *row;
    size_t i;

    aq_part_signature(report, &signature);
    fact(w, "signature", aq_buf_str(&signature));
    aq_part_names(report, &names);
    fact(w, "names", aq_buf_str(&names));
    json_array_foreach (json_object_get(report, "findings"), i, row)
        if (aq_part_basis(row) && strcmp(aq_part_str(row, "rule", ""), "intake.unsigned") != 0)
            fact(w, "attributes", aq_part_str(row, "message", ""));
}

static void write_facts(writer *w, const json_t *report, bool verbose)
{
    aq_auto_buf tier = {0};

    heading(w, " What this rests on");
    write_unread(w, report);
    aq_part_tier(report, &tier);
    fact(w, "input", aq_part_at(report, "package", "input", "?"));
    fact(w, "sandbox", aq_buf_str(&tier));
    write_basis(w, report);
    fact(w, "time", aq_part_str(report, "time", "?"));
    if (!verbose)
        return;
    fact(w, "package", aq_part_at(report, "package", "digest", "?"));
    fact(w, "verdict", aq_part_str(report, "verdict_digest", "?"));
    fact(w, "rules", aq_part_at(report, "rules", "digest", "?"));
    fact(w, "submission", aq_part_at(report, "submission", "id", "?"));
}

/* Where the proof lies, what to do next, and the verdict once more. */
static void write_end(writer *w, const json_t *report, const aq_text_options *o)
{
    const char *verdict = aq_part_str(report, "verdict", "inconclusive");
    aq_auto_buf why = {0}, next = {0};

    if (o->evidence) { /* in one piece, to be copied */
        aq_buf_adds(w->out, " evidence      ");
        shown(w->out, o->evidence);
        newline(w);
    }
    if (o->next_steps) {
        aq_buf_addf(&next,
                    "%saquarium validate --html FILE to read or pass on; "
                    "aquarium verify EVIDENCE %s before installing",
                    o->verbose ? "" : "aquarium validate --verbose for reasons and remedies; ",
                    o->package ? o->package : "PACKAGE");
        fact(w, "next", aq_buf_str(&next));
    }
    newline(w);
    aq_part_reason(report, &why);
    aq_buf_addc(w->out, ' ');
    painted(w, verdict, word_of(verdict));
    aq_buf_adds(w->out, "  ");
    if (w->whole) /* one line, for `tail -n 1` */
        w->width = LONG_LINE;
    flow(w, 3 + columns(word_of(verdict)), 1, 0, aq_buf_str(&why));
}

void aq_report_text(const json_t *report, const aq_text_options *o, aq_buf *out)
{
    writer w = {.out = out,
                .colour = o->colour,
                .whole = o->whole,
                .width = o->width == 0          ? 80
                         : o->width < NARROWEST ? NARROWEST
                                                : o->width};

    write_head(&w, report);
    write_stages(&w, report);
    write_checklist(&w, report);
    write_findings(&w, report, o->verbose);
    write_says(&w, report);
    write_facts(&w, report, o->verbose);
    write_end(&w, report, o);
}
