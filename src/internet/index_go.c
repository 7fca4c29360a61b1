/* The package index of Go: a module proxy; see index.h. A module is named by where it lies, in
 * lower case with "!x" for "X", and its version begins with a "v". */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internet/index.h"
#include "internet/index_internal.h"

enum { LONGEST = 120, LISTED = 128 };

/* "!x" is "X"; NULL: no name. */
static const char *unescaped(const aq_ask *q, const char *text, size_t len)
{
    char *out = aq_arena_alloc(q->arena, len + 1), *to = out;

    for (size_t i = 0; i < len; i++) {
        bool upper = text[i] == '!';

        i += upper;
        if (i == len || (upper && !islower((unsigned char)text[i])) ||
            isupper((unsigned char)text[i]))
            return NULL;
        *to++ = upper ? (char)toupper((unsigned char)text[i]) : text[i];
    }
    return out;
}

/* Of ".../v3" or "gopkg.in/x.v3" 3; else 0, which stands for 0 and 1. */
static unsigned major_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    const char *at = slash && slash[1] == 'v'                       ? slash + 2
                     : dot && slash && dot > slash && dot[1] == 'v' ? dot + 2
                                                                    : NULL;
    char *end = NULL;
    unsigned long n = at && isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 0;

    return end && *end == '\0' && n < 1000 ? (unsigned)n : 0;
}

/* A host and one or two parts; on the hosts of everybody's code a module is a whole repository. */
static bool is_module(const char *name)
{
    static const char *const everybodys[] = {"github.com/", "gitlab.com/", "bitbucket.org/",
                                             "codeberg.org/"};
    size_t parts = 1, n = strlen(name), host = strcspn(name, "/");

    if (n == 0 || n > LONGEST || !memchr(name, '.', host) || !isalnum((unsigned char)name[0]))
        return false;
    for (const char *p = name; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("-_.~/", *p))
            return false;
        if (*p == '/' && (!isalnum((unsigned char)p[1])))
            return false;
        parts += *p == '/';
    }
    parts -= strrchr(name, '/') && major_of(name) > 0 && strrchr(name, '/')[1] == 'v';
    for (size_t i = 0; i < sizeof everybodys / sizeof *everybodys; i++)
        if (strncmp(name, everybodys[i], strlen(everybodys[i])) == 0)
            return parts == 3;
    return parts == 2 || parts == 3;
}

/* Does a module have such a version? The first number must be its own. */
static bool has_version(const char *name, const char *version)
{
    unsigned major = major_of(name);
    unsigned long said;

    if (version[0] != 'v' || !aq_ware_is_version(version + 1))
        return false;
    said = strtoul(version + 1, NULL, 10);
    return major > 0 ? said == major : said < 2 || strstr(version, "+incompatible");
}

static void put_list(const char *name, aq_ware *w, aq_buf *out)
{
    size_t listed = 0;

    for (size_t i = 0; i < w->shelf->version_count && listed < LISTED; i++) {
        char text[40];
        unsigned n[3];

        aq_shelf_version(w->shelf, i, n);
        snprintf(text, sizeof text, "v%u.%u.%u", n[0], n[1], n[2]);
        if (n[2] > 1 || !has_version(name, text))
            continue;
        aq_buf_addf(out, "%s\n", text);
        listed++;
    }
    /* What lies beyond the shelf has its first version. */
    if (listed == 0)
        aq_buf_addf(out, "v%u.0.0\n", major_of(name));
}

static const char *newest(aq_ask *q, aq_ware *w, const char *name)
{
    unsigned major = major_of(name);

    return aq_arena_printf(q->arena, "v%u%.*s.1", major > 0 ? major : 1,
                           (int)(strrchr(w->latest, '.') - strchr(w->latest, '.')),
                           strchr(w->latest, '.'));
}

static bool file(aq_ask *q, aq_reply *r, aq_ware *w, const char *name, const char *asked)
{
    const char *dot = strrchr(asked, '.'),
               *version = dot ? unescaped(q, asked, (size_t)(dot - asked)) : NULL;

    if (!version || !has_version(name, version))
        return false;
    if (strcmp(dot, ".info") == 0 || strcmp(dot, ".mod") == 0) {
        aq_ware_name_version(w, version);
        aq_ware_put(w, dot[1] == 'i' ? "module-info" : "module-mod", &r->body);
        return aq_index_reply(r, dot[1] == 'i' ? "application/json" : "text/plain; charset=UTF-8");
    }
    if (strcmp(dot, ".zip") != 0)
        return false;
    aq_ware_version(w, version, &r->body);
    memcpy(r->served, w->sha256, sizeof r->served);
    return aq_index_reply(r, "application/zip");
}

bool aq_module_answer(aq_ask *q, aq_reply *r)
{
    const char *at = strstr(q->path, "/@"),
               *name = at && q->path[0] == '/' && at > q->path
                           ? unescaped(q, q->path + 1, (size_t)(at - q->path - 1))
                           : NULL;
    bool good = true;
    aq_ware w;

    if (!name || !is_module(name) || !aq_ware_begin(&w, q, "module", name))
        return false;
    if (strcmp(at, "/@v/list") == 0) {
        put_list(name, &w, &r->body);
        aq_index_reply(r, "text/plain; charset=UTF-8");
    } else if (strcmp(at, "/@latest") == 0) {
        aq_ware_name_version(&w, newest(q, &w, name));
        aq_ware_put(&w, "module-info", &r->body);
        aq_index_reply(r, "application/json");
    } else {
        good = strncmp(at, "/@v/", 4) == 0 && file(q, r, &w, name, at + 4);
    }
    aq_ware_free(&w);
    return good;
}
