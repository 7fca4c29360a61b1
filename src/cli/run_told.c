/* Which rows of a run's lists say something about this program and no other; see run_told.h. */
#include "cli/run_told.h"

#include <string.h>

#include "cli/looks.h"

static bool begins_with_one(const char *path, const char *const *rows)
{
    for (; *rows; rows++)
        if (strncmp(path, *rows, strlen(*rows)) == 0)
            return true;
    return false;
}

const char *aq_below(const char *path, const char *folder)
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
                                        "/etc/corporate-root-ca.pem", /* as the variables say */
                                        "/etc/gnutls/",
                                        "/etc/group",
                                        "/etc/services",
                                        "/etc/terminfo/",
                                        "/etc/python3",
                                        "/etc/selinux",
                                        "/selinux",
                                        NULL};

    return begins_with_one(path, roots);
}

bool aq_listed(const aq_summary_list *l, const char *text)
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

bool aq_told_at_home(const aq_run_result *r, const char *path)
{
    size_t n = strlen(r->home);

    return strncmp(path, r->home, n) == 0 && path[n] == '/' && !shown_inside(r, path);
}

/* Is it there as it was, as far as what the run left says? */
static bool unchanged(const aq_observation *o, const char *path)
{
    size_t from = 0, to = o->change_count;

    if (strchr(path, '\\')) /* quoted: what its bytes are is not known here */
        return false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(path, o->changes[middle].path);

        if (order == 0)
            return false;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    for (size_t i = 0; i < o->change_count; i++)
        if (o->changes[i].change == 'U' && aq_below(path, o->changes[i].path))
            return false;
    return true;
}

/* Temporary files come and go with every compiler, and locks with every tool. The folders of the
 * system for them begin empty, so what was made and removed there was never anybody's; and in a
 * shared folder that shows in what was left. */
static bool passing(const aq_run_result *r, const char *path)
{
    static const char *const places[] = {"/tmp/", "/var/tmp/", "/dev/shm/", NULL};
    bool shared = shown_inside(r, path);

    return (shared || begins_with_one(path, places)) &&
           aq_listed(&r->summary->files_written, path) &&
           aq_listed(&r->summary->files_removed, path) &&
           (!shared || unchanged(r->observation, path));
}

aq_told aq_told_all(const aq_run_result *r, const char *text)
{
    (void)r;
    (void)text;
    return AQ_TOLD_ROW;
}

size_t aq_host_of(const char *text, const char **ret)
{
    const char *scheme = strstr(text, "://");

    *ret = scheme ? scheme + 3 : text;
    return scheme ? strcspn(*ret, "/?#") : strlen(text);
}

/* A name whose requests are told says nothing beyond them. */
static bool told_by_request(const aq_run_result *r, const char *name)
{
    const aq_summary_list *l = &r->summary->hosts;

    for (size_t i = 0; i < l->count; i++) {
        const char *of;
        size_t n = aq_host_of(l->rows[i].text, &of);

        if (of != l->rows[i].text && strncmp(of, name, n) == 0 && (!name[n] || name[n] == ':'))
            return true;
    }
    return false;
}

/* Spoken to under a name: it stands behind that one. An odd port is told all the same. */
static bool has_a_name(const aq_run_result *r, const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t n = strlen(address);

    if (!colon || (strcmp(colon, ":80") != 0 && strcmp(colon, ":443") != 0))
        return false;
    for (size_t i = 0; i < r->summary->named.count; i++) {
        const char *row = r->summary->named.rows[i].text;

        if (strncmp(row, address, n) == 0 && row[n] == ' ')
            return true;
    }
    return false;
}

/* That of /etc/resolv.conf inside. */
static bool name_server(const char *text)
{
    size_t len = strlen(text);
    bool near = strncmp(text, "10.", 3) == 0 || strncmp(text, "192.168.", 8) == 0;

    return near && len > 3 && strcmp(text + len - 3, ":53") == 0;
}

aq_told aq_told_host(const aq_run_result *r, const char *text)
{
    if (name_server(text)) /* whoever asks for a name asks it */
        return r->summary->hosts.count > 1 ? AQ_TOLD_DULL : AQ_TOLD_SYSTEM;
    return told_by_request(r, text) || has_a_name(r, text) ? AQ_TOLD_DULL : AQ_TOLD_ROW;
}

aq_told aq_told_written(const aq_run_result *r, const char *path)
{
    static const char *const nowhere[] = {"/dev/null", "/dev/tty", "/dev/zero", "/dev/full", NULL};

    return passing(r, path)                 ? AQ_TOLD_PASSING
           : begins_with_one(path, nowhere) ? AQ_TOLD_DULL
                                            : AQ_TOLD_ROW;
}

aq_told aq_told_removed(const aq_run_result *r, const char *path)
{
    return passing(r, path) ? AQ_TOLD_DULL : AQ_TOLD_ROW; /* told as written */
}

/* /proc and /sys, of which what is not ordinary has a list of its own. */
static bool of_the_kernel(const char *path)
{
    return aq_below(path, "/proc") || aq_below(path, "/sys");
}

aq_told aq_told_read(const aq_run_result *r, const char *path)
{
    if (of_the_kernel(path))
        return aq_look_ordinary(path, r->seed) ? AQ_TOLD_SYSTEM : AQ_TOLD_DULL;
    return passing(r, path) ? AQ_TOLD_DULL : of_the_system(path) ? AQ_TOLD_SYSTEM : AQ_TOLD_ROW;
}

/* Programs try names until one fits; in their own folder and the system's that says nothing, and
 * neither does what they then made themselves. */
aq_told aq_told_absent(const aq_run_result *r, const char *path)
{
    bool dull = of_the_system(path) || of_the_kernel(path) || shown_inside(r, path) ||
                strstr(path, "/.local/lib/python") || strstr(path, "/node_modules") ||
                strstr(path, "/.node_") || aq_listed(&r->summary->files_written, path) ||
                aq_listed(&r->summary->files_read, path);

    return dull ? AQ_TOLD_DULL : AQ_TOLD_ROW;
}

aq_told aq_told_denied(const aq_run_result *r, const char *path)
{
    (void)r;
    return of_the_kernel(path) || strcmp(path, "/dev/tty") == 0 ? AQ_TOLD_DULL : AQ_TOLD_ROW;
}
