/* The document of a world; see world.h. */
#include "internet/world.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/io.h"
#include "base/json.h"

#define SCHEMA "aquarium/internet/v1"

static json_t *key_text(const uint8_t key[static 32])
{
    aq_auto_buf hex = {0};

    aq_hex(key, 32, &hex);
    return json_string(aq_buf_str(&hex));
}

static json_t *texts(const aq_fact *all, size_t count)
{
    json_t *object = json_object();

    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, all[i].name, json_string(all[i].value));
    return object;
}

void aq_internet_world_write(const aq_internet_world *w, aq_buf *out)
{
    aq_auto_json json_t *all = json_object();
    json_t *names = json_array();

    for (size_t i = 0; i < w->name_count; i++)
        json_array_append_new(names, json_string(w->names[i]));
    json_object_set_new(all, "schema", json_string(SCHEMA));
    json_object_set_new(all, "pair", key_text(w->pair));
    json_object_set_new(all, "own", key_text(w->own));
    json_object_set_new(all, "facts", texts(w->facts, w->fact_count));
    json_object_set_new(all, "decoys", texts(w->decoys, w->decoy_count));
    json_object_set_new(all, "names", names);
    if (w->ca_certificate) {
        json_object_set_new(all, "ca_certificate", json_string(w->ca_certificate));
        json_object_set_new(all, "ca_key", json_string(w->ca_key));
    }
    if (aq_json_canonical(all, out) < 0)
        aq_panic("the document of an internet's world cannot be written");
}

static int read_key(const json_t *all, const char *name, uint8_t ret[static 32], aq_err *err)
{
    const char *hex = aq_json_str(all, name);
    aq_digest d;

    if (!hex || aq_digest_parse(hex, &d) < 0)
        return aq_fail(err, -EBADMSG, "the internet's world: %s is no key", name);
    memcpy(ret, d.b, sizeof d.b);
    return 0;
}

static int read_texts(aq_arena *a, json_t *all, const char *name, const aq_fact **ret,
                      size_t *count, aq_err *err)
{
    json_t *object = json_object_get(all, name), *value;
    aq_fact *rows;
    const char *key;
    size_t n = 0;

    if (!json_is_object(object))
        return aq_fail(err, -EBADMSG, "the internet's world: %s is no object", name);
    rows = aq_arena_alloc(a, (json_object_size(object) + 1) * sizeof *rows);
    json_object_foreach (object, key, value) {
        if (!json_is_string(value))
            return aq_fail(err, -EBADMSG, "the internet's world: %s.%s is no text", name, key);
        rows[n++] =
            (aq_fact){aq_arena_strdup(a, key), aq_arena_strdup(a, json_string_value(value))};
    }
    *ret = rows;
    *count = n;
    return 0;
}

static int read_names(aq_arena *a, json_t *all, aq_internet_world *w, aq_err *err)
{
    json_t *names = json_object_get(all, "names"), *value;
    const char **rows;
    size_t i;

    if (!json_is_array(names) || json_array_size(names) > AQ_INTERNET_NAMES)
        return aq_fail(err, -EBADMSG, "the internet's world: names is no list, or too long");
    rows = aq_arena_alloc(a, (json_array_size(names) + 1) * sizeof *rows);
    json_array_foreach (names, i, value) {
        if (!json_is_string(value))
            return aq_fail(err, -EBADMSG, "the internet's world: names[%zu] is no text", i);
        rows[i] = aq_arena_strdup(a, json_string_value(value));
    }
    w->names = rows;
    w->name_count = json_array_size(names);
    return 0;
}

int aq_internet_world_read(aq_arena *a, const char *text, size_t len, aq_internet_world *ret,
                           aq_err *err)
{
    static const char *const keys[] = {"schema", "pair",           "own",    "facts", "decoys",
                                       "names",  "ca_certificate", "ca_key", NULL};
    aq_auto_json json_t *all = NULL;
    aq_internet_world w = {0};
    const char *schema, *certificate, *key;
    int r = aq_json_parse(text, len, "the internet's world", &all, err);

    if (r < 0 || (r = aq_json_only_keys(all, "the internet's world", keys, err)) < 0)
        return r;
    schema = aq_json_str(all, "schema");
    if (!schema || strcmp(schema, SCHEMA) != 0)
        return aq_fail(err, -EBADMSG, "the internet's world is not of the form " SCHEMA);
    if ((r = read_key(all, "pair", w.pair, err)) < 0 ||
        (r = read_key(all, "own", w.own, err)) < 0 ||
        (r = read_texts(a, all, "facts", &w.facts, &w.fact_count, err)) < 0 ||
        (r = read_texts(a, all, "decoys", &w.decoys, &w.decoy_count, err)) < 0 ||
        (r = read_names(a, all, &w, err)) < 0)
        return r;
    certificate = aq_json_str(all, "ca_certificate");
    key = aq_json_str(all, "ca_key");
    if (!certificate != !key)
        return aq_fail(err, -EBADMSG, "the internet's world has one half of an authority");
    w.ca_certificate = certificate ? aq_arena_strdup(a, certificate) : NULL;
    w.ca_key = key ? aq_arena_strdup(a, key) : NULL;
    *ret = w;
    return 0;
}

int aq_internet_world_file(const aq_internet_world *w, aq_err *err)
{
    aq_auto_fd int fd = memfd_create("world", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    aq_auto_buf text = {0};
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "cannot make a memory file");
    aq_internet_world_write(w, &text);
    r = aq_write_full(fd, text.data, text.len);
    explicit_bzero(text.data, text.len); /* the authority's key is in it */
    if (r < 0)
        return aq_fail(err, r, "cannot fill a memory file");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return aq_fail_errno(err, "cannot seal a memory file");
    return aq_take_fd(fd);
}

static const char *find(const aq_fact *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].value;
    return NULL;
}

const char *aq_internet_fact(const aq_internet_world *w, const char *name)
{
    return find(w->facts, w->fact_count, name);
}

const char *aq_internet_decoy(const aq_internet_world *w, const char *name)
{
    return find(w->decoys, w->decoy_count, name);
}
