/* The text face of a run: at most a screen. What every program does (its libraries, the locale) is
 * one line; what this one does is listed. */
#include "cli/run_text.h"

#include <string.h>

#include "base/text.h"

enum { ROWS = 8, PATH_SHOWN = 200 };

typedef struct face {
    FILE *to;
    bool colour;
} face;

static void heading(const face *f, const char *title)
{
    fprintf(f->to, f->colour ? "\033[1m%-10s\033[0m" : "%-10s", title);
}

/* Places that belong to the system and not to anybody: reading there says little. */
static bool of_the_system(const char *path)
{
    static const char *const roots[] = {"/usr/",  "/lib/", "/lib64/", "/bin/",     "/sbin/",
                                        "/proc/", "/sys/", "/dev/",   "/etc/ld.so"};

    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return true;
    return false;
}

static bool nothing_dull(const char *text)
{
    (void)text;
    return false;
}

static void list(const face *f, const char *title, const aq_summary_list *l, const char *none,
                 bool (*dull)(const char *))
{
    size_t shown = 0, hidden = 0, rest = 0;

    for (size_t i = 0; i < l->count; i++) {
        if (dull(l->rows[i].text)) {
            hidden++;
        } else if (shown < ROWS) {
            heading(f, shown++ ? "" : title);
            fprintf(f->to, "%s", l->rows[i].text);
            if (l->rows[i].count > 1)
                fprintf(f->to, "  ×%llu", (unsigned long long)l->rows[i].count);
            fputc('\n', f->to);
        } else {
            rest++;
        }
    }
    if (rest + l->more) {
        heading(f, "");
        fprintf(f->to, "… and %llu more\n", (unsigned long long)(rest + l->more));
    }
    if (hidden) {
        heading(f, shown ? "" : title);
        fprintf(f->to, "%s%zu of the system\n", shown ? "and " : "", hidden);
    }
    if (!shown && !hidden && none) {
        heading(f, title);
        fprintf(f->to, "%s\n", none);
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

static void ending(const face *f, const aq_run_result *r)
{
    const aq_observation *o = r->observation;

    heading(f, "ended");
    switch (o->exit_kind) {
    case AQ_EXIT_STATUS:
        fprintf(f->to, "with status %d", o->exit_value);
        break;
    case AQ_EXIT_SIGNAL:
        fprintf(f->to, "by signal %d (%s)", o->exit_value, strsignal(o->exit_value));
        break;
    case AQ_EXIT_BUDGET:
        fprintf(f->to, "by the limit %s: what it would have done is not known",
                aq_limit_name((aq_limit)o->exit_value));
        break;
    default:
        fprintf(f->to, "by a failure of ours");
        break;
    }
    fprintf(f->to, "; %llu events", (unsigned long long)o->events);
    if (o->dropped)
        fprintf(f->to, ", %llu more only counted", (unsigned long long)o->dropped);
    fputc('\n', f->to);
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
    char hex[AQ_SHA256_HEX];

    fprintf(to, "\n");
    ending(&f, r);
    list(&f, "ran", &s->processes, "nothing", nothing_dull);
    list(&f, "hosts", &s->hosts, "none asked for or reached for", nothing_dull);
    list(&f, "wrote", &s->files_written, "no file", nothing_dull);
    unread(&f, r->observation);
    list(&f, "removed", &s->files_removed, NULL, nothing_dull);
    list(&f, "read", &s->files_read, "no file", of_the_system);
    sleeps(&f, s);
    list(&f, "refused", &s->refused, NULL, nothing_dull);
    heading(&f, "held by");
    held(&f, r);
    heading(&f, "world");
    fprintf(to, "--seed %s --world %s makes it again\n", r->seed, r->observation->world);
    heading(&f, "digest");
    fprintf(to, "%s\n", aq_digest_hex(&r->observation->digest, hex));
}
