/* The jailed job "gate": looks at README, licence file and manifest of a package and answers with a
 * few numbers. Also its other end in the front, which believes none of them beyond their bounds.
 *
 *   request  1  {"readme": [offset, size], "license": …, "manifest": …, "file": path, "name": …}
 *   request  2  the envelope's copy of the manifest, if there is one
 *   answer   1  the facts
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/gate.h"

enum {
    REQUEST = 1,
    COPY = 2,
    FACTS = 1,
    README_BYTES = 1 << 20,
    LICENSE_BYTES = 256 << 10,
    DIFFERENCE = 200,
};

/* ---- comparing manifests ---- */

static double number_of(const aq_node *n)
{
    return n->kind == AQ_NODE_INT ? (double)n->number : strtod(n->text ? n->text : "", NULL);
}

static bool is_number(const aq_node *n)
{
    return n->kind == AQ_NODE_INT || n->kind == AQ_NODE_REAL;
}

static bool same_scalar(const aq_node *a, const aq_node *b)
{
    if (is_number(a) && is_number(b))
        return a->kind == AQ_NODE_INT && b->kind == AQ_NODE_INT ? a->number == b->number
                                                                : number_of(a) == number_of(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == AQ_NODE_BOOL)
        return a->number == b->number;
    return a->kind == AQ_NODE_NULL || strcmp(a->text, b->text) == 0;
}

static bool same_node(const aq_node *a, const aq_node *b, aq_buf *path)
{
    size_t before = path->len;
    const aq_node *other = b->first;

    if (a->kind != AQ_NODE_MAP && a->kind != AQ_NODE_LIST)
        return same_scalar(a, b);
    if (a->kind != b->kind || a->count != b->count)
        return false;
    for (const aq_node *n = a->first; n; n = n->next) {
        if (n->key) {
            if (!other || strcmp(other->key, n->key) != 0)
                other = aq_node_get(b, n->key);
            aq_buf_addf(path, "%s%s", before ? "." : "", n->key);
        }
        if (!other || !same_node(n, other, path))
            return false;
        path->len = before;
        other = other->next;
    }
    return true;
}

/* The part of SKILL.md between its two lines of three hyphens. */
static bool front_matter(const char **text, size_t *len)
{
    const char *start, *end;

    if (*len < 4 || strncmp(*text, "---", 3) != 0)
        return false;
    start = memchr(*text, '\n', *len);
    end = start ? memmem(start, *len - (size_t)(start - *text), "\n---", 4) : NULL;
    if (!end)
        return false;
    *text = start + 1;
    *len = end >= start + 1 ? (size_t)(end - start - 1) : 0;
    return true;
}

static int read_doc(aq_arena *a, const char *file, const char *text, size_t len,
                    const aq_node **ret, aq_err *err)
{
    const char *dot = strrchr(file, '.');

    if (len > AQ_DOC_BYTES)
        return aq_fail(err, -EFBIG, "%s is too long", file);
    if (dot && strcasecmp(dot, ".md") == 0 && !front_matter(&text, &len))
        return aq_fail(err, -EBADMSG, "%s has no front matter", file);
    if (dot && strcasecmp(dot, ".json") == 0)
        return aq_doc_json(a, text, len, file, ret, err);
    if (dot && strcasecmp(dot, ".toml") == 0)
        return aq_doc_toml(a, text, len, file, ret, err);
    return aq_doc_yaml(a, text, len, file, ret, err);
}

int aq_manifest_same(const char *file, const char *text, size_t len, const char *copy,
                     size_t copy_len, aq_buf *where, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    const aq_node *inside, *claimed;
    int r;

    if ((r = read_doc(a, file, text, len, &inside, err)) < 0 ||
        (r = aq_doc_json(a, copy, copy_len, "the envelope's copy", &claimed, err)) < 0)
        return r;
    if (same_node(inside, claimed, where))
        return 1;
    aq_buf_str(where);
    return 0;
}

/* ---- inside the jail ---- */

/* Reads a piece of the image, at most `max` bytes of it. */
static bool read_piece(aq_jail_io *io, const json_t *request, const char *key, size_t max,
                       aq_buf *out)
{
    const json_t *piece = json_object_get(request, key);
    json_int_t at = json_integer_value(json_array_get(piece, 0));
    json_int_t size = json_integer_value(json_array_get(piece, 1));
    size_t want = size < 0 ? 0 : (uint64_t)size < max ? (size_t)size : max;
    ssize_t n;

    if (!json_is_array(piece) || at < 0)
        return false;
    aq_buf_reserve(out, want + 1);
    n = aq_pread_full(aq_jail_fd(io, 0), out->data, want, (off_t)at);
    if (n < 0)
        return false;
    out->len = (size_t)n;
    aq_buf_str(out);
    return true;
}

static void look_at_readme(aq_jail_io *io, const json_t *request, json_t *answer)
{
    aq_auto_buf text = {0};
    aq_readme_facts f;

    if (!read_piece(io, request, "readme", README_BYTES, &text))
        return;
    /* The cut may divide a character. */
    while (text.len == README_BYTES && text.len && (text.data[text.len - 1] & 0x80))
        text.len--;
    aq_readme_look(aq_buf_str(&text), text.len, aq_json_str(request, "name"), &f);
    json_object_set_new(answer, "readme",
                        json_pack("{s:b, s:I, s:I, s:b, s:I}", "text", f.text, "prose",
                                  (json_int_t)f.prose, "titles", (json_int_t)f.titles, "names",
                                  f.names_package, "left_over", (json_int_t)f.left_over));
}

static void look_at_license(aq_jail_io *io, const json_t *request, json_t *answer)
{
    aq_auto_buf text = {0};

    if (read_piece(io, request, "license", LICENSE_BYTES, &text))
        json_object_set_new(answer, "license",
                            json_integer(aq_license_recognise(aq_buf_str(&text), text.len)));
}

static void look_at_manifest(aq_jail_io *io, const json_t *request, aq_buf *copy, json_t *answer)
{
    aq_auto_buf text = {0}, where = {0}, quoted = {0};
    const char *file = aq_json_str(request, "file");
    aq_err why = {0};
    int r;

    if (!copy->len || !file || !read_piece(io, request, "manifest", AQ_DOC_BYTES + 1, &text))
        return;
    r = aq_manifest_same(file, aq_buf_str(&text), text.len, copy->data, copy->len, &where, &why);
    if (r < 0)
        aq_buf_adds(&where, why.text);
    aq_text_quote(&quoted, aq_buf_str(&where), where.len);
    json_object_set_new(answer, "manifest", json_boolean(r == 1));
    json_object_set_new(answer, "where", json_stringn(aq_buf_str(&quoted), quoted.len));
}

/* The first JSON object makes its library open the system's random source. */
void aq_gate_warm(void)
{
    json_decref(json_object());
}

int aq_gate_job(aq_jail_io *io, aq_err *err)
{
    aq_auto_json json_t *request = NULL, *answer = json_object();
    aq_auto_buf copy = {0}, text = {0};
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    size_t len, count;
    uint16_t type;
    int r;

    while ((r = aq_jail_recv(io, &type, &payload, &len, fds, &count, err)) == 0) {
        if (type == REQUEST && !request)
            r = aq_json_parse(payload, len, "gate request", &request, err);
        else if (type == COPY)
            aq_buf_add(&copy, payload, len);
        if (r < 0)
            return r;
    }
    if (r != -ENODATA)
        return r;
    look_at_readme(io, request, answer);
    look_at_license(io, request, answer);
    look_at_manifest(io, request, &copy, answer);
    if ((r = aq_json_canonical(answer, &text)) < 0)
        return aq_fail(err, r, "the facts have no canonical form");
    return aq_jail_send(io, FACTS, text.data, text.len, err);
}

/* ---- in the front ---- */

static const aq_file *file_of(const aq_stage_input *in, const char *quoted)
{
    aq_auto_buf raw = {0};

    if (!quoted || aq_text_unquote(&raw, quoted, strlen(quoted)) < 0)
        return NULL;
    return aq_package_find(in->package, aq_buf_str(&raw));
}

static void add_piece(json_t *request, const char *key, const aq_file *file)
{
    if (file)
        json_object_set_new(request, key,
                            json_pack("[I, I]", (json_int_t)file->offset, (json_int_t)file->size));
}

static int send_request(const aq_stage_input *in, aq_arena *a, aq_jail *j, aq_err *err)
{
    const aq_manifest *m = in->manifest;
    const json_t *copy = in->submission->local ? NULL : in->submission->manifest;
    aq_auto_free char *copy_text = copy ? json_dumps(copy, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    aq_auto_json json_t *request = json_object();
    aq_auto_free char *text = NULL;
    const aq_file *manifest = file_of(in, m->file);
    const char *name = aq_gate_name(in, a);
    int r;

    add_piece(request, "readme", file_of(in, aq_gate_readme(m)));
    add_piece(request, "license", file_of(in, m->license_file));
    add_piece(request, "manifest", manifest);
    if (manifest)
        json_object_set_new(request, "file", json_string(m->file));
    if (name)
        json_object_set_new(request, "name", json_string(name)); /* NULL if not UTF-8: left out */
    text = json_dumps(request, JSON_COMPACT);
    if ((r = aq_jail_request(j, REQUEST, text, strlen(text), NULL, 0, err)) < 0)
        return r;
    for (size_t at = 0, len = copy_text ? strlen(copy_text) : 0; at < len; at += AQ_JAIL_FRAME) {
        size_t n = len - at < AQ_JAIL_FRAME ? len - at : AQ_JAIL_FRAME;
        if ((r = aq_jail_request(j, COPY, copy_text + at, n, NULL, 0, err)) < 0)
            return r;
    }
    return aq_jail_finish(j, err);
}

static uint32_t bounded(const json_t *o, const char *key)
{
    int64_t n = aq_json_int(o, key, 0);

    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void read_facts(aq_arena *a, const json_t *answer, aq_gate_facts *ret)
{
    const json_t *readme = json_object_get(answer, "readme");
    const char *where = aq_json_str(answer, "where");

    if (json_is_object(readme)) {
        ret->have_readme = true;
        ret->readme = (aq_readme_facts){
            .text = json_is_true(json_object_get(readme, "text")),
            .prose = bounded(readme, "prose"),
            .titles = bounded(readme, "titles"),
            .names_package = json_is_true(json_object_get(readme, "names")),
            .left_over = bounded(readme, "left_over"),
        };
    }
    ret->have_license = json_is_integer(json_object_get(answer, "license"));
    ret->license_families = bounded(answer, "license");
    ret->have_manifest = json_is_boolean(json_object_get(answer, "manifest"));
    ret->manifest_same = json_is_true(json_object_get(answer, "manifest"));
    ret->manifest_difference = where && *where ? aq_text_printable(a, where, DIFFERENCE) : NULL;
}

static int read_answer(aq_arena *a, aq_jail *j, aq_gate_facts *ret, aq_err *err)
{
    aq_auto_json json_t *answer = NULL;
    const void *payload;
    uint16_t type;
    size_t len;
    int r = aq_jail_next(j, &type, &payload, &len, err);

    if (r < 0)
        return r;
    if (r == 0 || type != FACTS)
        return aq_fail(err, -EBADMSG, "the jailed reader answered nothing");
    if ((r = aq_json_parse(payload, len, "gate answer", &answer, err)) < 0)
        return r;
    if ((r = aq_jail_next(j, &type, &payload, &len, err)) != 0)
        return r < 0 ? r : aq_fail(err, -EBADMSG, "the jailed reader answered twice");
    read_facts(a, answer, ret);
    return 0;
}

/* What was asked for and not answered is not known; silence must not look like a good answer. */
static int check_whole(const aq_stage_input *in, const aq_gate_facts *f, aq_err *err)
{
    const aq_manifest *m = in->manifest;
    const json_t *copy = in->submission->local ? NULL : in->submission->manifest;

    if ((!f->have_readme && file_of(in, aq_gate_readme(m))) ||
        (!f->have_license && file_of(in, m->license_file)) ||
        (!f->have_manifest && copy && !json_is_null(copy) && file_of(in, m->file)))
        return aq_fail(err, -EBADMSG, "the jailed reader left a file out");
    return 0;
}

int aq_gate_ask(const aq_stage_input *in, aq_arena *a, aq_gate_facts *ret, aq_err *err)
{
    const aq_file *readme = file_of(in, aq_gate_readme(in->manifest));
    aq_gate_facts facts = {.readme_bytes = readme ? readme->size : 0};
    aq_jail *j = NULL;
    int r;

    if ((r = aq_jail_start("gate", &in->package->image, 1, &j, err)) < 0)
        return r;
    aq_jail_limit(j, 4, 1 << 20);
    if ((r = send_request(in, a, j, err)) == 0)
        r = read_answer(a, j, &facts, err);
    aq_jail_stop(j);
    if (r == 0)
        r = check_whole(in, &facts, err);
    if (r == 0)
        *ret = facts;
    return r;
}
