/* Makes wares; see ware.h. */
#include "internet/ware.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internet/archive.h"

/* Times in archives are those that the tools of each language write: nobody's clock. */
enum { TARBALL_TIME = 499162500, CRATE_TIME = 1153704088, FIRST_DAY = 17956 /* 2019-03-01 */ };

/* ---- what templates may name ---- */

static void give(aq_ware *w, const char *name, const char *value)
{
    for (size_t i = 0; i < w->scene.given_count; i++)
        if (strcmp(w->given[i].name, name) == 0) {
            w->given[i].value = value;
            return;
        }
    if (w->scene.given_count == AQ_WARE_GIVEN)
        aq_panic("a ware has too many names");
    w->given[w->scene.given_count++] = (aq_fact){name, value};
}

/* A copy of a text in which signs were replaced. */
static const char *with(aq_arena *a, const char *text, const char *signs, char by)
{
    char *out = aq_arena_strdup(a, text);

    for (char *p = out; *p; p++)
        if (strchr(signs, *p))
            *p = by;
    return out;
}

/* What a program imports. */
static void give_module(aq_ware *w, aq_arena *a, const char *name)
{
    const char *module = aq_shelf_module(w->shelf, name);

    if (!module)
        module = with(a, name, "-.", '_');
    give(w, "module", module);
    give(w, "folder", with(a, module, ".", '/'));
    give(w, "top", aq_arena_strndup(a, module, strcspn(module, ".")));
    give(w, "dist", with(a, name, "-.", '_'));
}

/* The last part of a name, as a word of a language: of "example.org/a/go-tool/v2" it is "gotool".
 */
static const char *package_of(aq_arena *a, const char *name)
{
    const char *end = name + strlen(name), *slash = strrchr(name, '/'), *from;
    char *out = aq_arena_alloc(a, strlen(name) + 5);
    size_t n = 0;

    if (slash && slash[1] == 'v' && isdigit((unsigned char)slash[2]))
        end = slash;
    for (from = end; from > name && from[-1] != '/'; from--)
        ;
    while (from < end && *from != '.') {
        if (isalpha((unsigned char)*from) || (n > 0 && isdigit((unsigned char)*from)))
            out[n++] = (char)tolower((unsigned char)*from);
        from++;
    }
    return n > 0 ? out : "module";
}

static const char *base_of(aq_ware *w, aq_arena *a, const char *name)
{
    const char *slash = strrchr(name, '/');

    if (strcmp(w->kind, "module") == 0)
        return package_of(a, name);
    return slash ? slash + 1 : name;
}

static void origin(aq_ware *w, const aq_ask *q)
{
    uint16_t port = q->conn->server.port, usual = q->conn->tls ? 443 : 80;

    aq_buf_addf(&w->origin, "%s://%s", q->conn->tls ? "https" : "http", q->host);
    if (port != usual && port != 0)
        aq_buf_addf(&w->origin, ":%u", port);
}

/* ---- a ware ---- */

/* A name that carries a decoy is in no index: it would be another one in the other world. */
static bool carries_decoy(const aq_internet_world *w, const char *name)
{
    for (size_t i = 0; i < w->decoy_count; i++)
        if (strlen(w->decoys[i].value) >= 4 && strcasestr(name, w->decoys[i].value))
            return true;
    return false;
}

static bool is_plausible(const aq_shelf *s, const char *name)
{
    char part[AQ_WARE_NAME + 1];

    for (;;) {
        size_t n = strcspn(name, "/");

        if (n > AQ_WARE_NAME)
            return false;
        snprintf(part, sizeof part, "%.*s", (int)n, name);
        if (!aq_shelf_plausible(s, part))
            return false;
        if (!name[n])
            return true;
        name += n + 1;
    }
}

/* Lengths follow from the length of the name alone, as those of every answer do. */
static void scene(aq_ware *w, aq_ask *q, const char *name)
{
    const uint8_t *key = q->conn->net->world->pair;
    aq_scene *s = &w->scene;
    aq_digest d = aq_sha256(name, strlen(name));
    char hex[AQ_SHA256_HEX];

    *s = (aq_scene){.net = q->conn->net, .conn = q->conn, .ask = q, .given = w->given};
    snprintf(s->name, sizeof s->name, "ware:%s:%s", w->kind, aq_digest_hex(&d, hex));
    snprintf(s->shared, sizeof s->shared, "ware:%s:%zu", w->kind, strlen(name));
    s->own = aq_stream_of(key, s->name);
    s->pair = aq_stream_of(key, s->shared);
}

/* The one that is asked for when none is named: neither the first nor the last. */
static void choose_latest(aq_ware *w)
{
    aq_stream *s = &w->scene.own;

    snprintf(w->latest, sizeof w->latest, "%u.%u.%u", 1 + aq_stream_below(s, 3),
             2 + aq_stream_below(s, 8), aq_stream_below(s, 3));
    snprintf(w->serial, sizeof w->serial, "%u", 100000 + aq_stream_below(s, 900000));
}

bool aq_ware_begin(aq_ware *w, aq_ask *q, const char *kind, const char *name)
{
    const aq_shelf *shelf = aq_shelf_builtin();

    if (!is_plausible(shelf, name[0] == '@' ? name + 1 : name) ||
        carries_decoy(q->conn->net->world, name))
        return false;
    *w = (aq_ware){.shelf = shelf, .kind = kind};
    scene(w, q, name);
    aq_fill(&w->scene, "%{prose:8}", &w->summary);
    aq_fill(&w->scene, "%{own.word:6} %{own.word:8}", &w->author);
    w->author.data[0] = (char)toupper((unsigned char)w->author.data[0]);
    w->author.data[7] = (char)toupper((unsigned char)w->author.data[7]);
    choose_latest(w);
    origin(w, q);
    give(w, "name", name);
    give(w, "base", base_of(w, q->arena, name));
    if (strcmp(kind, "wheel") == 0)
        give_module(w, q->arena, name);
    give(w, "summary", aq_buf_str(&w->summary));
    give(w, "author", aq_buf_str(&w->author));
    give(w, "origin", aq_buf_str(&w->origin));
    give(w, "serial", w->serial);
    give(w, "latest", w->latest);
    return true;
}

void aq_ware_free(aq_ware *w)
{
    aq_buf_free(&w->summary);
    aq_buf_free(&w->author);
    aq_buf_free(&w->origin);
}

bool aq_ware_is_version(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n <= AQ_WARE_VERSION && isdigit((unsigned char)text[0]) &&
           isalnum((unsigned char)text[n - 1]) &&
           strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-") == n;
}

/* ---- its files ---- */

/* A wheel lists its files with digests, in a file that is among them. */
static void record(const char *path, const aq_buf *data, aq_buf *list)
{
    aq_digest d = aq_sha256(data->data, data->len);
    aq_auto_buf text = {0};

    aq_base64(d.b, sizeof d.b, &text);
    for (size_t i = 0; i < text.len; i++)
        text.data[i] = text.data[i] == '+' ? '-' : text.data[i] == '/' ? '_' : text.data[i];
    aq_buf_addf(list, "%s,sha256=%.43s,%zu\n", path, aq_buf_str(&text), data->len);
}

static void file(aq_ware *w, const aq_shelf_text *t, aq_zip *zip, aq_buf *tar, aq_buf *list)
{
    aq_auto_buf path = {0}, data = {0};

    aq_fill(&w->scene, t->path, &path);
    aq_fill(&w->scene, t->text, &data);
    if (strcmp(w->kind, "wheel") == 0 && data.len == 0) {
        aq_buf_addf(list, "%s,,\n", aq_buf_str(&path));
        aq_buf_add(&data, list->data, list->len);
    } else {
        record(aq_buf_str(&path), &data, list);
    }
    if (strcmp(w->kind, "wheel") == 0 || strcmp(w->kind, "module") == 0)
        aq_zip_add(zip, aq_buf_str(&path), aq_buf_str(&data), data.len);
    else
        aq_tar_add(tar, aq_buf_str(&path), w->kind[0] == 't' ? TARBALL_TIME : CRATE_TIME,
                   aq_buf_str(&data), data.len);
}

static void pack(aq_ware *w, aq_buf *ret)
{
    aq_auto_buf list = {0};
    aq_zip zip = {0};
    aq_buf tar = {0};

    for (size_t i = 0; i < w->shelf->text_count; i++) {
        const aq_shelf_text *t = &w->shelf->texts[i];
        /* What is older than modules has no file that says so. */
        bool old = strstr(w->version, "+incompatible") && t->path && strstr(t->path, "/go.mod");

        if (t->path && strcmp(t->name, w->kind) == 0 && !old)
            file(w, t, &zip, &tar, &list);
    }
    if (tar.len > 0)
        aq_tar_end(&tar, ret);
    else
        aq_zip_end(&zip, ret);
}

/* ---- its versions ---- */

/* The numbers of a version say how old it is; a day for each minor one. */
static void date(aq_ware *w)
{
    unsigned n[3] = {0};
    const char *at = w->version + (w->version[0] == 'v');
    time_t seconds;
    struct tm tm = {0};

    for (size_t i = 0; i < 3; i++) {
        char *end;
        unsigned long value = strtoul(at, &end, 10);

        n[i] = value > 44 ? 44 : (unsigned)value;
        at = *end == '.' ? end + 1 : end;
    }
    seconds = (time_t)(FIRST_DAY + n[0] * 45 + n[1]) * 86400 + n[2] * 1800 + 30000;
    gmtime_r(&seconds, &tm);
    if (strftime(w->time, sizeof w->time, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        w->time[0] = '\0';
}

static void hex_of(const EVP_MD *how, const aq_buf *data, char *hex, aq_buf *raw)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned len = sizeof sum;

    if (EVP_Digest(data->data, data->len, sum, &len, how, NULL) != 1)
        aq_panic("a digest failed");
    if (raw)
        aq_base64(sum, len, raw);
    for (unsigned i = 0; hex && i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

static void digests(aq_ware *w, const aq_buf *archive)
{
    aq_digest d = aq_sha256(archive->data, archive->len);
    aq_auto_buf long_one = {0};

    aq_digest_hex(&d, w->sha256);
    snprintf(w->size, sizeof w->size, "%zu", archive->len);
    snprintf(w->place, sizeof w->place, "%.2s/%.2s/%s", w->sha256, w->sha256 + 2, w->sha256 + 4);
    if (strcmp(w->kind, "tarball") == 0) {
        hex_of(EVP_sha1(), archive, w->sha1, NULL);
        hex_of(EVP_sha512(), archive, NULL, &long_one);
        snprintf(w->sha512, sizeof w->sha512, "%s", aq_buf_str(&long_one));
    }
}

void aq_ware_name_version(aq_ware *w, const char *version)
{
    snprintf(w->version, sizeof w->version, "%s", version);
    give(w, "version", w->version);
    date(w);
    give(w, "time", w->time);
}

void aq_ware_version(aq_ware *w, const char *version, aq_buf *archive)
{
    aq_auto_buf made = {0}, name = {0};

    aq_ware_name_version(w, version);
    pack(w, &made);
    digests(w, &made);
    give(w, "sha256", w->sha256);
    give(w, "sha1", w->sha1);
    give(w, "sha512", w->sha512);
    give(w, "size", w->size);
    give(w, "place", w->place);
    if (strcmp(w->kind, "wheel") == 0)
        aq_fill(&w->scene, "%{dist}-%{version}-py3-none-any.whl", &name);
    snprintf(w->file, sizeof w->file, "%s", aq_buf_str(&name));
    give(w, "file", w->file);
    if (archive) {
        *archive = made;
        made = (aq_buf){0};
    }
}

void aq_ware_number(aq_ware *w, size_t i, bool whole)
{
    char text[40];
    unsigned n[3];

    aq_shelf_version(w->shelf, i, n);
    snprintf(text, sizeof text, "%u.%u.%u", n[0], n[1], n[2]);
    if (whole)
        aq_ware_version(w, text, NULL);
    else
        aq_ware_name_version(w, text);
}

void aq_ware_put(aq_ware *w, const char *text, aq_buf *out)
{
    aq_fill(&w->scene, aq_shelf_text_of(w->shelf, text), out);
}

void aq_ware_put_all(aq_ware *w, const char *text, bool whole, const char *between, aq_buf *out)
{
    for (size_t i = 0; i < w->shelf->version_count; i++) {
        aq_buf_adds(out, i > 0 ? between : "");
        aq_ware_number(w, i, whole);
        aq_ware_put(w, text, out);
    }
}
