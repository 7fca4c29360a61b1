/* The text face of a run: at most a screen. What every program does (its libraries, the locale) is
 * one line; what this one does is listed. */
#include "cli/run_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/looks.h"

enum { ROWS = 8, WAITS = 60, PATH_SHOWN = 200, LINE_SHOWN = 160, FOLDER_SHOWN = 110 };

typedef struct face {
    FILE *to;
    bool colour;
} face;

static void heading(const face *f, const char *title)
{
    fprintf(f->to, f->colour && *title ? "\033[1m%-10s\033[0m" : "%-10s", title);
}

/* What a row of a list is. Only what is told says something about this program and no other. */
typedef enum row_class { TOLD, SYSTEM, PASSING, DULL } row_class;

static bool begins_with_one(const char *path, const char *const *rows)
{
    for (; *rows; rows++)
        if (strncmp(path, *rows, strlen(*rows)) == 0)
            return true;
    return false;
}

static const char *below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]) ? path + n : NULL;
}

/* Places that belong to the system and not to anybody: reading there says little. Every program
 * that resolves a name or speaks TLS reads the ones in /etc. */
static bool of_the_system(const char *path)
{
    static const char *const roots[] = {"/usr/",
                                        "/lib/",
                                        "/lib64/",
                                        "/bin/",
                                        "/sbin/",
                                        "/dev/",
                                        "/etc/ld.so",
                                        "/etc/nsswitch.conf",
                                        "/etc/resolv.conf",
                                        "/etc/host.conf",
                                        "/etc/hosts",
                                        "/etc/gai.conf",
                                        "/etc/localtime",
                                        "/etc/locale.alias",
                                        "/etc/ssl/certs/",
                                        "/etc/ssl/openssl.cnf",
                                        "/etc/python3",
                                        "/etc/selinux",
                                        "/selinux",
                                        NULL};

    return begins_with_one(path, roots);
}

static bool has(const aq_summary_list *l, const char *text)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->rows[i].text, text) == 0)
            return true;
    return false;
}

static bool shown_inside(const aq_run_result *r, const char *path)
{
    for (size_t i = 0; i < r->share_count; i++) {
        size_t n = strlen(r->shares[i].to);

        if (strncmp(path, r->shares[i].to, n) == 0 && (path[n] == '/' || !path[n]))
            return true;
    }
    return false;
}

/* Among five hundred files of a project the one key is what matters, so the home comes first. */
static bool of_the_home(const aq_run_result *r, const char *path)
{
    size_t n = strlen(r->home);

    return strncmp(path, r->home, n) == 0 && path[n] == '/' && !shown_inside(r, path);
}

/* Temporary files come and go with every compiler. These folders begin empty, so what was made and
 * removed there was never anybody's. */
static bool passing(const aq_run_result *r, const char *path)
{
    static const char *const places[] = {"/tmp/", "/var/tmp/", "/dev/shm/", NULL};

    return begins_with_one(path, places) && !shown_inside(r, path) &&
           has(&r->summary->files_written, path) && has(&r->summary->files_removed, path);
}

static row_class any(const aq_run_result *r, const char *text)
{
    (void)r;
    (void)text;
    return TOLD;
}

static row_class host(const aq_run_result *r, const char *text)
{
    size_t len = strlen(text);
    bool near = strncmp(text, "10.", 3) == 0 || strncmp(text, "192.168.", 8) == 0;

    (void)r; /* that of /etc/resolv.conf inside */
    return near && len > 3 && strcmp(text + len - 3, ":53") == 0 ? SYSTEM : TOLD;
}

static row_class written(const aq_run_result *r, const char *path)
{
    static const char *const nowhere[] = {"/dev/null", "/dev/tty", "/dev/zero", "/dev/full", NULL};

    return passing(r, path) ? PASSING : begins_with_one(path, nowhere) ? DULL : TOLD;
}

static row_class removed(const aq_run_result *r, const char *path)
{
    return passing(r, path) ? DULL : TOLD; /* told as written */
}

/* /proc and /sys, of which what is not ordinary has a list of its own. */
static bool of_the_kernel(const char *path)
{
    return below(path, "/proc") || below(path, "/sys");
}

static row_class read_there(const aq_run_result *r, const char *path)
{
    if (of_the_kernel(path))
        return aq_look_ordinary(path, r->seed) ? SYSTEM : DULL;
    return passing(r, path) ? DULL : of_the_system(path) ? SYSTEM : TOLD;
}

/* Programs try names until one fits; in their own folder and the system's that says nothing, and
 * neither does what they then made themselves. */
static row_class absent(const aq_run_result *r, const char *path)
{
    bool dull = of_the_system(path) || of_the_kernel(path) || shown_inside(r, path) ||
                strstr(path, "/.local/lib/python") || has(&r->summary->files_written, path) ||
                has(&r->summary->files_read, path);

    return dull ? DULL : TOLD;
}

static row_class denied(const aq_run_result *r, const char *path)
{
    (void)r;
    return of_the_kernel(path) || strcmp(path, "/dev/tty") == 0 ? DULL : TOLD;
}

typedef struct list_face {
    const char *title, *none, *system, *passing;
    row_class (*class)(const aq_run_result *r, const char *text);
    bool counts; /* how often a row came says something */
    bool paths;
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
    const char *inner = l->paths ? below(w->text, r->home) : NULL;
    const char *text = inner ? inner : w->text;
    int n = line_length(text);

    heading(f, title);
    fprintf(f->to, "%s%.*s%s", inner ? "~" : "", n, text, text[n] ? "…" : "");
    if (l->counts && w->count > 1)
        fprintf(f->to, "  ×%llu", (unsigned long long)w->count);
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
    const char *path = all->row[first]->text, *inner = below(path, r->home);
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

static size_t rows(const face *f, const aq_run_result *r, const list_face *l, told *all)
{
    size_t lines = 0, count = 0;

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
    size_t class[DULL + 1] = {0};
    aq_auto_free told *all = aq_alloc(sizeof *all);
    uint64_t more;
    bool none;

    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < l->count; i++) {
            row_class c = how.class(r, l->rows[i].text);

            if (of_the_home(r, l->rows[i].text) == others)
                continue;
            class[c]++;
            if (c == TOLD)
                all->row[all->count++] = &l->rows[i];
        }
    more = all->count - rows(f, r, &how, all) + l->more;
    none = !all->count && !more;
    if (more) {
        heading(f, all->count ? "" : how.title);
        fprintf(f->to, "… and %llu more\n", (unsigned long long)more);
    }
    rest(f, how.title, none, class[PASSING], how.passing);
    none = none && !(how.passing && class[PASSING]);
    rest(f, how.title, none, class[SYSTEM], how.system);
    none = none && !(how.system && class[SYSTEM]);
    if (none && how.none) {
        heading(f, how.title);
        fprintf(f->to, "%s\n", how.none);
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
    }
    left_out(f, r->held);
    if (r->folder_kept_out && r->status != 0) {
        heading(f, "");
        fprintf(f->to,
                "the current folder is not inside, since it is your home or /: change to the "
                "program's own\n");
        heading(f, "");
        fprintf(f->to, "folder, or name what it needs with --share\n");
    }
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

void aq_run_text(const aq_run_result *r, bool colour, FILE *to)
{
    face f = {to, colour};
    const aq_summary *s = r->summary;
    const aq_summary_list looks = aq_looks(s, r->seed);
    char hex[AQ_SHA256_HEX], start[AQ_TIME_LEN];

    fprintf(to, "\n");
    ending(&f, r);
    list(&f, r, &s->processes, (list_face){"ran", "nothing", NULL, NULL, any, true, false});
    list(&f, r, &s->hosts,
         (list_face){"hosts", "none asked for or reached for", "its name server", NULL, host, true,
                     false});
    list(&f, r, &s->listens, (list_face){"listened", NULL, NULL, NULL, any, false, false});
    list(&f, r, &s->files_written,
         (list_face){"wrote", "no file", NULL, "% temporary, removed again", written, false, true});
    unread(&f, r->observation);
    list(&f, r, &s->files_removed, (list_face){"removed", NULL, NULL, NULL, removed, false, true});
    list(&f, r, &s->files_denied, (list_face){"denied", NULL, NULL, NULL, denied, false, true});
    list(&f, r, &s->files_read,
         (list_face){"read", "no file", "% of the system", NULL, read_there, false, true});
    list(&f, r, &looks, (list_face){"looked at", NULL, NULL, NULL, any, true, true});
    list(&f, r, &s->files_absent, (list_face){"not there", NULL, NULL, NULL, absent, false, true});
    sleeps(&f, s);
    list(&f, r, &s->refused, (list_face){"refused", NULL, NULL, NULL, any, true, false});
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
