/* The text face of a run: at most a screen. What every program does (its libraries, the locale) is
 * one line; what this one does is listed. */
#include "cli/run_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/looks.h"
#include "cli/run_told.h"

enum {
    ROWS = 8,
    JOINED = 3,
    WAITS = 60,
    PATH_SHOWN = 200,
    LINE_SHOWN = 160,
    FOLDER_SHOWN = 110,
    NAMES = 6,
    ADDRESSES = 2
};

typedef struct face {
    FILE *to;
    bool colour;
} face;

static void heading(const face *f, const char *title)
{
    fprintf(f->to, f->colour && *title ? "\033[1m%-10s\033[0m" : "%-10s", title);
}

typedef struct list_face {
    const char *title, *none, *system, *passing;
    aq_told (*class)(const aq_run_result *r, const char *text);
    bool counts; /* how often a row came says something */
    bool paths;
    bool joined;                                                           /* many in one line */
    void (*note)(const face *f, const aq_run_result *r, const char *text); /* behind a row */
} list_face;

/* Cuts at a character: compilers call each other with pages of arguments. */
static int line_length(const char *text)
{
    size_t n = strlen(text);

    if (n <= LINE_SHOWN)
        return (int)n;
    for (n = LINE_SHOWN; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return (int)n;
}

static void row(const face *f, const aq_run_result *r, const list_face *l, const char *title,
                const aq_summary_row *w)
{
    const char *inner = l->paths ? aq_below(w->text, r->home) : NULL;
    const char *text = inner ? inner : w->text;
    int n = line_length(text);

    heading(f, title);
    fprintf(f->to, "%s%.*s%s", inner ? "~" : "", n, text, text[n] ? "…" : "");
    if ((l->counts || strstr(text, "://")) && w->count > 1)
        fprintf(f->to, "  ×%llu", (unsigned long long)w->count);
    if (l->note)
        l->note(f, r, w->text);
    fputc('\n', f->to);
}

/* ---- many paths: a line for each folder ---- */

typedef struct told {
    const aq_summary_row *row[AQ_SUMMARY_ROWS];
    bool shown[AQ_SUMMARY_ROWS];
    size_t count;
} told;

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Names the files of one folder until the line is full. How many were told. */
static size_t folder_row(const face *f, const aq_run_result *r, told *all, size_t first)
{
    const char *path = all->row[first]->text, *inner = aq_below(path, r->home);
    size_t n = folder_length(path), count = 0, named = 0, width = 0;

    if (inner)
        fprintf(f->to, "~%.*s", (int)(n - (size_t)(inner - path)), inner);
    else
        fprintf(f->to, "%.*s", (int)n, path);
    for (size_t i = first; i < all->count; i++) {
        const char *name = all->row[i]->text + n;

        if (strncmp(all->row[i]->text, path, n) != 0 || strchr(name, '/'))
            continue;
        all->shown[i] = true;
        if (++count > 1 && width + strlen(name) > FOLDER_SHOWN)
            continue;
        fprintf(f->to, "%s%.*s", count > 1 ? ", " : " ", line_length(name), name);
        width += strlen(name) + 2;
        named++;
    }
    if (named < count)
        fprintf(f->to, " and %zu more", count - named);
    fputc('\n', f->to);
    return count;
}

/* As many as fit into a few lines: none of them needs one of its own. */
static size_t joined_rows(const face *f, const aq_run_result *r, const list_face *l,
                          const told *all)
{
    size_t lines = 0, width = FOLDER_SHOWN, i = 0;

    for (; i < all->count; i++) {
        const char *path = all->row[i]->text, *inner = aq_below(path, r->home);
        const char *text = inner ? inner : path;
        int n = line_length(text);
        size_t wide = (size_t)n + 3;

        if (width + wide > FOLDER_SHOWN) {
            if (lines == JOINED)
                break;
            if (lines)
                fputs(",\n", f->to);
            heading(f, lines++ ? "" : l->title);
            width = 0;
        } else {
            fputs(", ", f->to);
        }
        fprintf(f->to, "%s%.*s%s", inner ? "~" : "", n, text, text[n] ? "…" : "");
        width += wide;
    }
    if (i)
        fputc('\n', f->to);
    return i;
}

static size_t rows(const face *f, const aq_run_result *r, const list_face *l, told *all)
{
    size_t lines = 0, count = 0;

    if (l->joined)
        return joined_rows(f, r, l, all);
    for (size_t i = 0; i < all->count && lines < ROWS; i++) {
        const char *title = lines ? "" : l->title;

        if (all->shown[i])
            continue;
        lines++;
        if (l->paths && all->count > ROWS && folder_length(all->row[i]->text)) {
            heading(f, title);
            count += folder_row(f, r, all, i);
        } else {
            row(f, r, l, title, all->row[i]);
            count++;
        }
    }
    return count;
}

static void rest(const face *f, const char *title, bool first, size_t count, const char *what)
{
    if (!count || !what)
        return;
    heading(f, first ? title : "");
    if (!first)
        fprintf(f->to, "and ");
    if (strchr(what, '%'))
        fprintf(f->to, "%zu%s\n", count, what + 1);
    else
        fprintf(f->to, "%s\n", what);
}

static void list(const face *f, const aq_run_result *r, const aq_summary_list *l, list_face how)
{
    size_t class[AQ_TOLD_CLASSES] = {0};
    aq_auto_free told *all = aq_alloc(sizeof *all);
    uint64_t more;
    bool none;

    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < l->count; i++) {
            aq_told c = how.class(r, l->rows[i].text);

            if (aq_told_at_home(r, l->rows[i].text) == others)
                continue;
            class[c]++;
            if (c == AQ_TOLD_ROW)
                all->row[all->count++] = &l->rows[i];
        }
    more = all->count - rows(f, r, &how, all) + l->more;
    if (how.class(r, "/usr/") != AQ_TOLD_ROW) { /* what did not fit is told alike */
        more -= l->more_system;
        class[how.class(r, "/usr/")] += l->more_system;
    }
    none = !all->count && !more;
    if (more) {
        heading(f, all->count ? "" : how.title);
        fprintf(f->to, "… and %llu more\n", (unsigned long long)more);
    }
    rest(f, how.title, none, class[AQ_TOLD_PASSING], how.passing);
    none = none && !(how.passing && class[AQ_TOLD_PASSING]);
    rest(f, how.title, none, class[AQ_TOLD_SYSTEM], how.system);
    none = none && !(how.system && class[AQ_TOLD_SYSTEM]);
    if (none && how.none) {
        heading(f, how.title);
        fprintf(f->to, "%s\n", how.none);
    }
}

/* ---- hosts and secrets ---- */

/* The addresses behind a name, each once whatever the port. */
static void addresses_of(const face *f, const aq_summary_list *named, const char *host, size_t len)
{
    const char *last = "";
    size_t last_len = 0, found = 0;

    for (size_t i = 0; i < named->count; i++) {
        const char *row = named->rows[i].text, *name = strchr(row, ' ');
        const char *colon = name ? memrchr(row, ':', (size_t)(name - row)) : NULL;
        size_t n = colon ? (size_t)(colon - row) : 0;

        if (!n || strlen(name + 1) != len || strncmp(name + 1, host, len) != 0 ||
            (n == last_len && strncmp(row, last, n) == 0))
            continue;
        last = row;
        last_len = n;
        if (found++ < ADDRESSES)
            fprintf(f->to, "%s%.*s", found == 1 ? "  at " : ", ", (int)n, row);
    }
    if (found > ADDRESSES)
        fputs(", …", f->to);
}

static void host_note(const face *f, const aq_run_result *r, const char *text)
{
    const aq_summary *s = r->summary;
    const char *host;
    size_t n = aq_host_of(text, &host);

    addresses_of(f, &s->named, host, n);
    if (!aq_listed(&s->names_absent, text))
        return;
    fputs("  does not exist here", f->to);
    if (strcmp(s->names_absent.rows[0].text, text) == 0)
        fprintf(f->to, "; to see what it would say there: --resolve %s", text);
}

static void names_of(const face *f, const aq_secret_row *row)
{
    for (size_t i = 0; i < row->name_count && i < NAMES; i++)
        fprintf(f->to, "%s%s", i ? ", " : "", row->names[i]);
    if (row->name_count > NAMES)
        fprintf(f->to, " and %zu more", row->name_count - NAMES);
}

static void left_with(const face *f, const aq_secret_row *row, bool first)
{
    bool out = strcmp(row->where, "stdout") == 0;

    heading(f, first ? "secrets" : "");
    fputs(f->colour ? "\033[1;31m" : "", f->to);
    if (row->act == AQ_SECRET_SENT)
        fprintf(f->to, "sent to %.*s", line_length(row->where), row->where);
    else
        fprintf(f->to, "printed %s", out ? "to its output" : "as an error message");
    fprintf(f->to, "%s: ", f->colour ? "\033[0m" : "");
    names_of(f, row);
    fputc('\n', f->to);
}

static void read_from(const face *f, const aq_run_result *r, bool first)
{
    const aq_secrets *s = r->secrets;
    size_t count = aq_secrets_count(s, AQ_SECRET_READ), shown = 0;

    if (!count)
        return;
    heading(f, first ? "secrets" : "");
    fputs(f->colour ? "\033[1mread from\033[0m " : "read from ", f->to);
    for (size_t i = 0; i < s->count && shown < NAMES; i++) {
        const char *path = s->rows[i].where, *inner = aq_below(path, r->home);

        if (s->rows[i].act == AQ_SECRET_READ)
            fprintf(f->to, "%s%s%s", shown++ ? ", " : "", inner ? "~" : "", inner ? inner : path);
    }
    if (count > shown)
        fprintf(f->to, " and %zu more files", count - shown);
    fputc('\n', f->to);
}

/* What somebody who must decide in a minute asks first. */
static void secrets(const face *f, const aq_run_result *r)
{
    size_t lines = 0;

    if (!r->secrets)
        return;
    for (size_t i = 0; i < r->secrets->count; i++)
        if (r->secrets->rows[i].act != AQ_SECRET_READ && lines < ROWS)
            left_with(f, &r->secrets->rows[i], lines++ == 0);
    read_from(f, r, lines == 0);
    if (!r->secrets->count) {
        heading(f, "secrets");
        fputs("none read from files, none seen to leave\n", f->to);
    }
}

static void sleeps(const face *f, const aq_summary *s)
{
    uint64_t longest = 0;

    if (s->sleep_count == 0)
        return;
    for (size_t i = 0; i < s->sleep_count; i++)
        if (s->sleeps[i].ns > longest)
            longest = s->sleeps[i].ns;
    heading(f, "slept");
    fprintf(f->to, "%.1f s in all, %.1f s at once (of virtual time)\n", (double)s->slept_ns / 1e9,
            (double)longest / 1e9);
}

bool aq_run_truncated(const aq_run_result *r)
{
    return !aq_observation_whole(r->observation) || r->summary->unnamed > 0;
}

bool aq_run_complete(const aq_run_result *r)
{
    const aq_observation *o = r->observation;

    return !aq_run_truncated(r) && r->summary->unseen == 0 &&
           (o->exit_kind == AQ_EXIT_STATUS || o->exit_kind == AQ_EXIT_SIGNAL);
}

bool aq_run_cut(const aq_run_result *r)
{
    return r->observation->exit_kind == AQ_EXIT_BUDGET &&
           aq_limit_by_clock((aq_limit)r->observation->exit_value);
}

bool aq_run_repeatable(const aq_run_result *r)
{
    return r->summary->preempted.count == 0 && !aq_run_cut(r);
}

/* A limit in the unit that people think in. */
static void limit(const face *f, const aq_run_result *r, aq_limit l)
{
    const char *name = aq_limit_name(l);
    size_t n = strlen(name);
    double most = (double)r->limits->most[l];

    fprintf(f->to, "by the limit %s", name);
    if (n > 3 && strcmp(name + n - 3, "-ns") == 0)
        fprintf(f->to, " (%.10g s)", most / 1e9);
    else if (n > 3 && strcmp(name + n - 3, "-ms") == 0)
        fprintf(f->to, " (%.10g s)", most / 1e3);
    else
        fprintf(f->to, " (%.15g)", most);
}

/* Sleeping costs nothing, so the world's clock may have gone far ahead of ours. */
static void own_time(const face *f, const aq_run_result *r)
{
    double s = (double)r->summary->virtual_ns / 1e9;

    if (s < 2 * (double)r->elapsed_ms / 1e3 + 1)
        return;
    if (s < 600)
        fprintf(f->to, ", %.1f s of its own time", s);
    else if (s < 2 * 86400)
        fprintf(f->to, ", %.1f h of its own time", s / 3600);
    else
        fprintf(f->to, ", %.1f days of its own time", s / 86400);
}

static void how_it_ended(const face *f, const aq_run_result *r)
{
    const aq_observation *o = r->observation;

    switch (o->exit_kind) {
    case AQ_EXIT_STATUS:
        fprintf(f->to, "with status %d", o->exit_value);
        break;
    case AQ_EXIT_SIGNAL:
        fprintf(f->to, "by signal %d (%s)", o->exit_value, strsignal(o->exit_value));
        break;
    case AQ_EXIT_BUDGET:
        if (r->interrupted)
            fprintf(f->to, "by you (%s)", strsignal(r->interrupted));
        else
            limit(f, r, (aq_limit)o->exit_value);
        break;
    default:
        fprintf(f->to, "by a failure of ours");
        break;
    }
    fprintf(f->to, " after %.1f s", (double)r->elapsed_ms / 1e3);
    own_time(f, r);
}

static void left_out(const face *f, const aq_containment *held)
{
    aq_auto_buf name = {0};

    if (!held->left_out)
        return;
    aq_text_quote_max(&name, held->left_out_first, strlen(held->left_out_first), PATH_SHOWN);
    heading(f, "");
    fprintf(f->to, "%u of what is shared cannot be read without rights, and is not inside: %s%s\n",
            held->left_out, aq_buf_str(&name), held->left_out > 1 ? ", …" : "");
}

/* A limit ended a program that did little but wait, and begin again: most often a service. */
static void waiting(const face *f, const aq_run_result *r)
{
    const aq_summary *s = r->summary;

    if (r->observation->exit_kind != AQ_EXIT_BUDGET || s->slept < WAITS ||
        s->slept_ns / 9 < s->virtual_ns / 10)
        return;
    heading(f, "");
    fprintf(f->to,
            "it slept %llu times, nearly all of its own time: perhaps a service that never ends\n",
            (unsigned long long)s->slept);
}

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* Nothing of the command ran: the world could not start it. */
static bool not_started(const aq_run_result *r)
{
    return r->observation->exit_kind == AQ_EXIT_STATUS && r->summary->processes.count == 0 &&
           (r->observation->exit_value == NOT_FOUND ||
            r->observation->exit_value == NOT_EXECUTABLE);
}

static void what_to_do(const face *f, const aq_run_result *r)
{
    aq_auto_buf outside = {0};

    if (r->outside)
        aq_text_quote_max(&outside, r->outside, strlen(r->outside), PATH_SHOWN);
    heading(f, "");
    if (r->observation->exit_value == NOT_EXECUTABLE)
        fputs("a script that may not be executed needs its interpreter: -- python3 X, -- sh X\n",
              f->to);
    else if (r->outside && r->outside_shared)
        fputs("the file is there, but not the interpreter or loader that it names\n", f->to);
    else if (r->outside)
        fprintf(f->to, "outside it is %s: name it so, and show its folder with --share\n",
                aq_buf_str(&outside));
    else if (strchr(r->command, ' '))
        fputs("a line for the shell is written -- sh -c '…'\n", f->to);
    else
        fputs("inside are the programs of /usr and the current folder; --share shows others, and\n"
              "          sh -c '…' runs the words of a shell\n",
              f->to);
}

static void why_not_started(const face *f, const aq_run_result *r)
{
    bool found = r->observation->exit_value == NOT_EXECUTABLE || r->outside_shared;
    aq_auto_buf name = {0};

    aq_text_quote_max(&name, r->command, strlen(r->command), PATH_SHOWN);
    heading(f, "ended");
    fprintf(f->to, "before it began, with status %d: '%s' %s\n", r->observation->exit_value,
            aq_buf_str(&name), found ? "cannot be executed" : "is not inside");
    if (!r->folder_kept_out || r->outside)
        what_to_do(f, r);
}

static void kept_out(const face *f, const aq_run_result *r)
{
    if (!r->folder_kept_out || r->status == 0)
        return;
    heading(f, "");
    fprintf(f->to, "the current folder is not inside, since it is your home or one of the "
                   "system's: change to\n");
    heading(f, "");
    fprintf(f->to, "the program's own folder, or name what it needs with --share\n");
}

static void hints(const face *f, const aq_run_result *r)
{
    if (r->input_unread) {
        heading(f, "");
        fputs("it read from an empty input; --stdin hands yours on\n", f->to);
    }
    if (r->read_only) {
        heading(f, "");
        fprintf(f->to,
                "%s is too large to be copied and so read-only inside; --limit disk-bytes=N with "
                "twice\n          its size, or a smaller folder, lets it be written to\n",
                r->read_only);
    }
    if (r->record) {
        heading(f, "");
        fprintf(f->to,
                "%s was written to a folder that is shared: the next run sees it and may differ\n",
                r->record);
    }
}

static bool is_listed(const aq_summary_list *l, const char *text)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->rows[i].text, text) == 0)
            return true;
    return false;
}

static void ending(const face *f, const aq_run_result *r)
{
    const aq_observation *o = r->observation;

    heading(f, "ended");
    how_it_ended(f, r);
    fprintf(f->to, "; %llu events", (unsigned long long)o->events);
    if (o->dropped)
        fprintf(f->to, ", %llu more only counted", (unsigned long long)o->dropped);
    fputc('\n', f->to);
    if (r->interrupted) {
        heading(f, "");
        fprintf(f->to, "what it would have done is not known\n");
    } else if (o->exit_kind == AQ_EXIT_BUDGET) {
        heading(f, "");
        fprintf(f->to, "what it would have done is not known; --limit %s=N sets another limit\n",
                aq_limit_name((aq_limit)o->exit_value));
    }
    waiting(f, r);
    if (r->summary->unnamed) {
        heading(f, "");
        fprintf(f->to,
                "a flood: %llu acts are only counted, and what they touched is not shown here\n",
                (unsigned long long)r->summary->unnamed);
    }
    if (r->summary->unseen) {
        heading(f, "");
        fprintf(f->to, "not all of it could be seen: the record is not whole\n");
    }
    if (r->summary->preempted.count) {
        heading(f, "");
        fprintf(f->to, "this machine's clock had to decide who ran when: another run may differ\n");
        if (!r->scheduled && is_listed(&r->summary->preempted, "computing")) {
            heading(f, "");
            fprintf(f->to, "(a record of it, --stream FILE, is the --schedule FILE of runs that do "
                           "not)\n");
        }
    }
    left_out(f, r->held);
    hints(f, r);
    kept_out(f, r);
}

/* Places whose content is not told. */
static void unread(const face *f, const aq_observation *o)
{
    size_t count = 0;

    for (size_t i = 0; i < o->change_count; i++) {
        const char *path = o->changes[i].path;
        aq_auto_buf quoted = {0};

        if (o->changes[i].change != 'U' || count++ >= ROWS)
            continue;
        aq_text_quote_max(&quoted, path, strlen(path), PATH_SHOWN);
        heading(f, count > 1 ? "" : "unread");
        fprintf(f->to, "%s: too deep, too long or too much, so what it left there is not told\n",
                aq_buf_str(&quoted));
    }
    if (count > ROWS) {
        heading(f, "");
        fprintf(f->to, "… and %zu more\n", count - ROWS);
    }
}

/* The facts in a line; the whole sentence is in the JSON. */
static void held(const face *f, const aq_run_result *r)
{
    const aq_containment *c = r->held;

    fprintf(f->to, "%s: namespaces, seccomp, %s%d, %s, limits by %s%s%s\n", r->backend->name,
            c->landlock ? "Landlock ABI " : "no Landlock: ABI ", c->landlock,
            c->own_ids ? "a user id of its own" : "your user id", c->memory,
            c->proc ? "" : "; no /proc inside: this host refuses one",
            strcmp(c->rate, "none") == 0 ? "; no mechanism slows it down as asked" : "");
}

static void acts(const face *f, const aq_run_result *r)
{
    const aq_summary *s = r->summary;
    const aq_summary_list looks = aq_looks(s, r->seed);

    list(f, r, &s->processes,
         (list_face){.title = "ran", .none = "nothing", .class = aq_told_all, .counts = true});
    list(f, r, &s->hosts,
         (list_face){.title = "hosts",
                     .none = "none asked for or reached for",
                     .system = "its name server",
                     .class = aq_told_host,
                     .note = host_note});
    list(f, r, &s->listens, (list_face){.title = "listened", .class = aq_told_all});
    list(f, r, &s->files_written,
         (list_face){.title = "wrote",
                     .none = "no file",
                     .passing = "% temporary, removed again",
                     .class = aq_told_written,
                     .paths = true});
    unread(f, r->observation);
    list(f, r, &s->files_removed,
         (list_face){.title = "removed", .class = aq_told_removed, .paths = true});
    list(f, r, &s->files_denied,
         (list_face){.title = "denied", .class = aq_told_denied, .paths = true});
    list(f, r, &s->files_read,
         (list_face){.title = "read",
                     .none = "no file",
                     .system = "% of the system",
                     .class = aq_told_read,
                     .paths = true});
    list(f, r, &looks,
         (list_face){.title = "looked at", .class = aq_told_all, .counts = true, .paths = true});
    list(f, r, &s->files_absent,
         (list_face){.title = "not there", .class = aq_told_absent, .paths = true, .joined = true});
    sleeps(f, s);
    list(f, r, &s->refused, (list_face){.title = "refused", .class = aq_told_all, .counts = true});
}

void aq_run_text(const aq_run_result *r, bool colour, FILE *to)
{
    face f = {to, colour};
    char hex[AQ_SHA256_HEX], start[AQ_TIME_LEN];

    fprintf(to, "\n");
    if (not_started(r)) {
        why_not_started(&f, r);
        kept_out(&f, r);
        return;
    }
    ending(&f, r);
    secrets(&f, r);
    acts(&f, r);
    heading(&f, "held by");
    held(&f, r);
    heading(&f, "world");
    if (r->seed)
        fprintf(to,
                "made up, with its home and all secrets; to see it again: --seed %s --world %s "
                "--start %s\n",
                r->seed, r->observation->world, aq_time_str(r->start, start));
    else
        fputs("empty: a home without files, no secrets\n", to);
    heading(&f, "digest");
    fprintf(to, "%s\n", aq_digest_hex(&r->canonical, hex));
}
