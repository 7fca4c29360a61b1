/* Package indexes of Python, Node and Rust; see index.h. That of Go is in index_go.c. */
#include "internet/index.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "internet/index_internal.h"

/* ---- what all have in common ---- */

/* The tag follows from the ware, so that what clients keep is the same in both worlds. */
bool aq_index_reply(aq_reply *r, const char *type)
{
    aq_digest d = aq_sha256(aq_buf_str(&r->body), r->body.len);
    char hex[AQ_SHA256_HEX], tag[40];

    snprintf(tag, sizeof tag, "\"%.32s\"", aq_digest_hex(&d, hex));
    aq_reply_header(r, "Content-Type", type);
    aq_reply_header(r, "Cache-Control", "max-age=600, public");
    aq_reply_header(r, "ETag", tag);
    return true;
}

bool aq_index_archive(aq_ask *q, aq_reply *r, const char *kind, const char *name,
                      const char *version, const char *type)
{
    aq_ware w;

    if (!aq_ware_begin(&w, q, kind, name))
        return false;
    aq_ware_version(&w, version, &r->body);
    memcpy(r->served, w.sha256, sizeof r->served);
    aq_ware_free(&w);
    return aq_index_reply(r, type);
}

/* Part `number` of a path from its end, 0 being the last; NULL: it has not so many. */
const char *aq_index_part(const aq_ask *q, size_t number)
{
    const char *end = q->path + strlen(q->path), *from;

    for (;; number--) {
        for (from = end; from > q->path && from[-1] != '/'; from--)
            ;
        if (number == 0)
            return aq_arena_strndup(q->arena, from, (size_t)(end - from));
        if (from == q->path)
            return NULL;
        end = from - 1;
    }
}

static bool is_made_of(const char *text, const char *more)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr(more, *text))
            return false;
    return true;
}

/* ---- Python ---- */

/* The one spelling of a name: lower case, one hyphen for any run of hyphens, dots and low lines.
 * NULL: no name. */
static const char *project_name(const aq_ask *q, const char *given)
{
    char *out = aq_arena_strdup(q->arena, given), *to = out;
    size_t n = strlen(given);

    if (n == 0 || !isalnum((unsigned char)given[0]) || !isalnum((unsigned char)given[n - 1]) ||
        !is_made_of(given, "-_."))
        return NULL;
    for (const char *p = given; *p; p++)
        if (isalnum((unsigned char)*p))
            *to++ = (char)tolower((unsigned char)*p);
        else if (to[-1] != '-')
            *to++ = '-';
    *to = '\0';
    return out;
}

static void put_simple_json(aq_ware *w, aq_buf *out)
{
    aq_ware_put(w, "simple-json-head", out);
    aq_ware_put_all(w, "simple-json-row", true, ",", out);
    aq_ware_put(w, "simple-json-middle", out);
    aq_ware_put_all(w, "simple-json-version", false, ",", out);
    aq_ware_put(w, "simple-json-tail", out);
}

static void put_simple_html(aq_ware *w, aq_buf *out)
{
    aq_ware_put(w, "simple-html-head", out);
    aq_ware_put_all(w, "simple-html-row", true, "", out);
    aq_ware_put(w, "simple-html-tail", out);
}

static bool moved(aq_ask *q, aq_reply *r, const char *name)
{
    const char *given = aq_index_part(q, q->path[strlen(q->path) - 1] == '/');
    aq_auto_buf place = {0};

    aq_buf_add(&place, q->path, (size_t)(strstr(q->path, given) - q->path));
    aq_buf_addf(&place, "%s/", name);
    r->status = 301;
    aq_reply_header(r, "Location", aq_buf_str(&place));
    return true;
}

bool aq_index_project(aq_ask *q, aq_reply *r)
{
    static const char json[] = "application/vnd.pypi.simple.v1+json",
                      html[] = "application/vnd.pypi.simple.v1+html";
    bool slash = q->path[strlen(q->path) - 1] == '/';
    const char *given = aq_index_part(q, slash), *accept = aq_ask_header(q, "accept");
    const char *name = given ? project_name(q, given) : NULL, *above;
    aq_ware w;

    above = aq_index_part(q, 1 + slash);
    if (!name || !above || strcmp(above, "simple") != 0 || !aq_ware_begin(&w, q, "wheel", name))
        return false;
    if (!slash || strcmp(name, given) != 0) {
        aq_ware_free(&w);
        return moved(q, r, name);
    }
    if (accept && strstr(accept, json))
        put_simple_json(&w, &r->body);
    else
        put_simple_html(&w, &r->body);
    aq_ware_free(&w);
    aq_reply_header(r, "Vary", "Accept");
    return aq_index_reply(r, accept && strstr(accept, json)   ? json
                             : accept && strstr(accept, html) ? html
                                                              : "text/html; charset=UTF-8");
}

bool aq_index_json(aq_ask *q, aq_reply *r)
{
    const char *one = aq_index_part(q, 1), *two = aq_index_part(q, 2), *name;
    bool versioned = two && strcmp(two, "pypi") != 0;
    aq_ware w;

    name = one ? project_name(q, versioned ? two : one) : NULL;
    if (!name || (versioned && !aq_ware_is_version(one)) || !aq_ware_begin(&w, q, "wheel", name))
        return false;
    aq_ware_version(&w, versioned ? one : w.latest, NULL);
    aq_ware_put(&w, "project-head", &r->body);
    for (size_t i = 0; !versioned && i < w.shelf->version_count; i++) {
        aq_ware_number(&w, i, true);
        aq_buf_adds(&r->body, i > 0 ? "," : "");
        aq_ware_put(&w, "project-release", &r->body);
        aq_ware_put(&w, "project-row", &r->body);
        aq_buf_adds(&r->body, "]");
    }
    aq_ware_put(&w, "project-middle", &r->body);
    aq_ware_version(&w, versioned ? one : w.latest, NULL);
    aq_ware_put(&w, "project-row", &r->body);
    aq_ware_put(&w, "project-tail", &r->body);
    aq_ware_free(&w);
    return aq_index_reply(r, "application/json");
}

/* NAME-VERSION-py3-none-any.whl */
bool aq_index_file(aq_ask *q, aq_reply *r)
{
    static const char end[] = "-py3-none-any.whl";
    const char *file = aq_index_part(q, 0), *dash = file ? strchr(file, '-') : NULL, *name,
               *version;
    size_t n = file ? strlen(file) : 0;

    if (!dash || n < sizeof end || strcmp(file + n - (sizeof end - 1), end) != 0 ||
        dash >= file + n - (sizeof end - 1))
        return false;
    name = project_name(q, aq_arena_strndup(q->arena, file, (size_t)(dash - file)));
    version =
        aq_arena_strndup(q->arena, dash + 1, n - (sizeof end - 1) - (size_t)(dash + 1 - file));
    return name && aq_ware_is_version(version) &&
           aq_index_archive(q, r, "wheel", name, version, "application/octet-stream");
}

/* ---- Node ---- */

static bool is_package_part(const char *text, size_t len)
{
    if (len == 0 || len > AQ_WARE_NAME || !isalnum((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
            !strchr("-_.~", text[i]))
            return false;
    return true;
}

/* NAME or @SCOPE/NAME at the beginning of a path, and where it ends; NULL: none. */
static const char *package_name(const aq_ask *q, const char **rest)
{
    const char *at = q->path + 1, *from = at;
    size_t n;

    if (q->path[0] != '/')
        return NULL;
    if (*at == '@') {
        n = strcspn(++at, "/");
        if (!is_package_part(at, n) || at[n] != '/')
            return NULL;
        at += n + 1;
    }
    n = strcspn(at, "/");
    if (!is_package_part(at, n))
        return NULL;
    *rest = at + n;
    return aq_arena_strndup(q->arena, from, (size_t)(at + n - from));
}

bool aq_package_short(aq_ask *q, aq_reply *r)
{
    const char *rest, *name = package_name(q, &rest);
    aq_ware w;

    if (!name || *rest || !aq_ware_begin(&w, q, "tarball", name))
        return false;
    aq_ware_version(&w, w.latest, NULL);
    aq_ware_put(&w, "package-short-head", &r->body);
    aq_ware_put_all(&w, "package-short-row", true, ",", &r->body);
    aq_ware_put(&w, "package-short-tail", &r->body);
    aq_ware_free(&w);
    return aq_index_reply(r, "application/vnd.npm.install-v1+json");
}

/* One version: /NAME/latest, /NAME/1.2.3. Its row begins with the version as a key. */
static bool one_version(aq_ware *w, const char *version, aq_reply *r)
{
    aq_auto_buf row = {0};

    if (strcmp(version, "latest") != 0 && !aq_ware_is_version(version))
        return false;
    aq_ware_version(w, strcmp(version, "latest") == 0 ? w->latest : version, NULL);
    aq_ware_put(w, "package-row", &row);
    aq_buf_adds(&r->body, strchr(aq_buf_str(&row), '{'));
    return true;
}

bool aq_package_whole(aq_ask *q, aq_reply *r)
{
    const char *rest, *name = package_name(q, &rest);
    bool good = true;
    aq_ware w;

    if (!name || !aq_ware_begin(&w, q, "tarball", name))
        return false;
    if (*rest) {
        good = one_version(&w, rest + 1, r);
    } else {
        aq_ware_put(&w, "package-head", &r->body);
        aq_ware_put_all(&w, "package-row", true, ",", &r->body);
        aq_ware_put(&w, "package-middle", &r->body);
        aq_ware_put_all(&w, "package-time", false, ",", &r->body);
        aq_ware_put(&w, "package-tail", &r->body);
    }
    aq_ware_free(&w);
    return good && aq_index_reply(r, "application/json");
}

bool aq_package_file(aq_ask *q, aq_reply *r)
{
    const char *rest, *name = package_name(q, &rest), *base, *version;
    size_t n;

    if (!name || strncmp(rest, "/-/", 3) != 0)
        return false;
    base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    rest += 3;
    n = strlen(base);
    if (strncmp(rest, base, n) != 0 || rest[n] != '-' || strlen(rest) < n + 6 ||
        strcmp(rest + strlen(rest) - 4, ".tgz") != 0)
        return false;
    version = aq_arena_strndup(q->arena, rest + n + 1, strlen(rest) - n - 5);
    return aq_ware_is_version(version) &&
           aq_index_archive(q, r, "tarball", name, version, "application/octet-stream");
}

/* ---- Rust ---- */

enum { CRATE_VERSION = 32 }; /* both must fit into a path of a tar */

static bool is_crate(const char *name)
{
    return name && isalpha((unsigned char)name[0]) && is_made_of(name, "-_");
}

/* The folders that an index has for a name: /1/a, /2/ab, /3/a/abc, /ab/cd/abcd…; in lower case. */
static bool is_at_its_place(const aq_ask *q, const char *name)
{
    size_t n = strlen(name), path = strlen(q->path);
    aq_auto_buf place = {0};

    if (n < 3)
        aq_buf_addf(&place, "/%zu/%s", n, name);
    else if (n == 3)
        aq_buf_addf(&place, "/3/%.1s/%s", name, name);
    else
        aq_buf_addf(&place, "/%.2s/%.2s/%s", name, name + 2, name);
    return path >= place.len && strcmp(q->path + path - place.len, aq_buf_str(&place)) == 0;
}

bool aq_crate_versions(aq_ask *q, aq_reply *r)
{
    const char *name = aq_index_part(q, 0);
    aq_ware w;

    if (!is_crate(name) || !is_at_its_place(q, name) || !aq_ware_begin(&w, q, "crate", name))
        return false;
    aq_ware_put_all(&w, "crate-row", true, "", &r->body);
    aq_ware_free(&w);
    return aq_index_reply(r, "text/plain");
}

bool aq_crate_about(aq_ask *q, aq_reply *r)
{
    const char *name = aq_index_part(q, 0);
    aq_ware w;

    if (!is_crate(name) || !aq_ware_begin(&w, q, "crate", name))
        return false;
    aq_ware_put(&w, "crate-api-head", &r->body);
    aq_ware_put_all(&w, "crate-api-row", true, ",", &r->body);
    aq_ware_put(&w, "crate-api-tail", &r->body);
    aq_ware_free(&w);
    return aq_index_reply(r, "application/json");
}

bool aq_crate_file(aq_ask *q, aq_reply *r)
{
    const char *version = aq_index_part(q, 1), *name = aq_index_part(q, 2);

    return is_crate(name) && version && strlen(version) <= CRATE_VERSION &&
           aq_ware_is_version(version) &&
           aq_index_archive(q, r, "crate", name, version, "application/gzip");
}
