/* A submission: the Intake v1 envelope, read as strictly as its JSON Schema says; see submission.h.
 * All violations are collected before the reader gives up, so that a publisher corrects them in one
 * go. The manifest and the Sigstore bundle inside are opaque here. */
#include "model/submission.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"

static const char *const tiers[] = {
    [AQ_TIER_LOCAL] = "local",   [AQ_TIER_NEW] = "new",         [AQ_TIER_IDENTIFIED] = "identified",
    [AQ_TIER_PROVEN] = "proven", [AQ_TIER_TRUSTED] = "trusted", [AQ_TIER_STEWARD] = "steward",
};

static const char *const signatures[] = {
    [AQ_SIGNATURE_NONE] = "none",
    [AQ_SIGNATURE_UNCHECKED] = "unchecked",
    [AQ_SIGNATURE_GOOD] = "good",
    [AQ_SIGNATURE_BAD] = "bad",
};

const char *aq_publisher_tier_name(aq_publisher_tier t)
{
    return tiers[t];
}

const char *aq_signature_state_name(aq_signature_state s)
{
    return signatures[s];
}

enum { MOST_BYTES_LOG2 = 40, NAME_MAX_BYTES = 128 };

#define HEX   "0123456789abcdef"
#define DIGIT "0123456789"
#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool all_of(const char *s, size_t from, size_t to, const char *set)
{
    size_t len = strlen(s);

    return len >= from && len <= to && strspn(s, set) == len;
}

static bool is_id(const char *s)
{
    if (all_of(s, 32, 32, HEX))
        return true;
    if (!all_of(s, 36, 36, HEX "-"))
        return false;
    for (size_t i = 0; i < 36; i++)
        if ((s[i] == '-') != (i == 8 || i == 13 || i == 18 || i == 23))
            return false;
    return true;
}

static bool is_name(const char *s)
{
    size_t len = strlen(s);

    return all_of(s, 1, NAME_MAX_BYTES, ALNUM "._-") && !strchr("._-", s[0]) &&
           !strchr("._-", s[len - 1]);
}

/* Two to four numbers, and perhaps a pre-release or build after - or +. */
static bool is_version(const char *s)
{
    int parts = 0;

    for (;;) {
        size_t digits = strspn(s, DIGIT);
        if (digits < 1 || digits > 9 || ++parts > 4)
            return false;
        s += digits;
        if (*s != '.')
            break;
        s++;
    }
    if (parts < 2)
        return false;
    return *s == '\0' || ((*s == '-' || *s == '+') && all_of(s + 1, 1, 48, ALNUM ".+-"));
}

static bool is_type(const char *s)
{
    aq_type type;

    return aq_type_find(s, &type) == 0;
}

static bool is_publisher(const char *s)
{
    return all_of(s, 1, 200, ALNUM "._@:/+-") && strchr(ALNUM, s[0]) && strcmp(s, "local") != 0;
}

static bool is_tier(const char *s)
{
    for (size_t i = AQ_TIER_NEW; i <= AQ_TIER_STEWARD; i++)
        if (strcmp(s, tiers[i]) == 0)
            return true;
    return false;
}

static bool is_sha256(const char *s)
{
    return all_of(s, 64, 64, HEX);
}

static bool is_media_type(const char *s)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789!#$&^_.+-";
    const char *slash = strchr(s, '/');
    size_t head = slash ? (size_t)(slash - s) : 0;

    return slash && head >= 1 && head <= 127 && strspn(s, set) == head &&
           all_of(slash + 1, 1, 127, set) && !strchr("!#$&^_.+-", s[0]) &&
           !strchr("!#$&^_.+-", slash[1]);
}

static bool is_time(const char *s)
{
    int64_t t;

    return aq_time_parse(s, &t) == 0;
}

static bool is_nonce(const char *s)
{
    return all_of(s, 16, 64, HEX);
}

static bool is_schema(const char *s)
{
    return strcmp(s, "intake/v1") == 0;
}

typedef enum shape { TEXT, TEXT_OR_NULL, SIZE, OBJECT, OBJECT_OR_NULL } shape;

typedef struct field {
    const char *within, *key; /* "" for the envelope itself */
    shape shape;
    bool (*ok)(const char *);
    const char *want;
} field;

/* The whole contract; docs/formats/intake-v1.schema.json says the same. */
static const field fields[] = {
    {"", "schema", TEXT, is_schema, "\"intake/v1\""},
    {"", "submission", TEXT, is_id, "32 lower-case hex digits or a UUID"},
    {"", "package", OBJECT, NULL, "an object"},
    {"package", "name", TEXT, is_name, "1 to 128 letters, digits, . _ -"},
    {"package", "namespace", TEXT_OR_NULL, is_name, "null, or 1 to 128 letters, digits, . _ -"},
    {"package", "version", TEXT, is_version, "a version such as 1.2.3 or 1.2.3-rc.1"},
    {"package", "type", TEXT, is_type, "a package type"},
    {"", "publisher", OBJECT, NULL, "an object"},
    {"publisher", "id", TEXT, is_publisher,
     "1 to 200 letters, digits, . _ @ : / + -, not \"local\""},
    {"publisher", "tier", TEXT, is_tier, "new, identified, proven, trusted or steward"},
    {"", "manifest", OBJECT, NULL, "an object"},
    {"", "artifact", OBJECT, NULL, "an object"},
    {"artifact", "sha256", TEXT, is_sha256, "64 lower-case hex digits"},
    {"artifact", "size", SIZE, NULL, "a number of bytes from 1 to 2^40"},
    {"artifact", "media_type", TEXT, is_media_type, "a media type in lower case"},
    {"", "bundle", OBJECT_OR_NULL, NULL, "absent, null or an object"},
    {"", "time", TEXT, is_time, "a time such as 2025-01-31T12:00:00Z"},
    {"", "nonce", TEXT, is_nonce, "16 to 64 lower-case hex digits"},
};

enum { FIELDS = sizeof fields / sizeof *fields };

static const json_t *level(const json_t *root, const char *within)
{
    return *within ? json_object_get(root, within) : root;
}

static bool fits(const field *f, const json_t *v)
{
    const char *s = json_string_value(v);

    switch (f->shape) {
    case TEXT:
    case TEXT_OR_NULL:
        if (json_is_null(v))
            return f->shape == TEXT_OR_NULL;
        return s && strlen(s) == json_string_length(v) && f->ok(s);
    case SIZE:
        return json_is_integer(v) && json_integer_value(v) >= 1 &&
               json_integer_value(v) <= (json_int_t)1 << MOST_BYTES_LOG2;
    case OBJECT:
        return json_is_object(v);
    case OBJECT_OR_NULL:
        return !v || json_is_null(v) || json_is_object(v);
    }
    return false;
}

typedef struct violations {
    aq_arena *a;
    aq_buf text;
    size_t count;
} violations;

static void violation(violations *v, const char *within, const char *key, const char *what)
{
    if (v->count++ >= 6)
        return; /* they are counted; the message has an end */
    aq_buf_addf(&v->text, "%s%s%s%s %s", v->text.len ? "; " : "", within, *within ? "." : "",
                aq_text_quoted(v->a, key, strlen(key), 60), what);
}

static void check_fields(const json_t *root, violations *v)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        const json_t *object = level(root, f->within), *value = json_object_get(object, f->key);
        if (!json_is_object(object))
            continue; /* said for the object already */
        if (!value && f->shape != OBJECT_OR_NULL)
            violation(v, f->within, f->key, "is missing");
        else if (!fits(f, value))
            violation(v, f->within, f->key, aq_arena_printf(v->a, "must be %s", f->want));
    }
}

static void check_unknown(const json_t *root, const char *within, violations *v)
{
    const json_t *object = level(root, within);
    const char *key;
    json_t *member;

    json_object_foreach ((json_t *)object, key, member) {
        size_t i = 0;
        while (i < FIELDS &&
               !(strcmp(fields[i].within, within) == 0 && strcmp(fields[i].key, key) == 0))
            i++;
        if (i == FIELDS)
            violation(v, within, key, "is not a field of intake/v1");
    }
}

/* Our formats have integers only: what has no canonical form cannot be digested or signed. */
static bool has_fraction(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach ((json_t *)value, key, member)
            if (has_fraction(member))
                return true;
    } else if (json_is_array(value)) {
        json_array_foreach ((json_t *)value, i, member)
            if (has_fraction(member))
                return true;
    }
    return json_is_real(value);
}

static int check(aq_arena *a, const json_t *root, const char *name, aq_err *err)
{
    violations v = {.a = a};
    int r = 0;

    if (!json_is_object(root))
        return aq_fail(err, -EBADMSG, "%s: an envelope is a JSON object", name);
    check_fields(root, &v);
    check_unknown(root, "", &v);
    check_unknown(root, "package", &v);
    check_unknown(root, "publisher", &v);
    check_unknown(root, "artifact", &v);
    if (has_fraction(json_object_get(root, "manifest")))
        violation(&v, "", "manifest", "holds a number with a fraction; write it as text");
    if (has_fraction(json_object_get(root, "bundle")))
        violation(&v, "", "bundle", "holds a number with a fraction");
    if (v.count > 6)
        aq_buf_addf(&v.text, "; and %zu more", v.count - 6);
    if (v.count)
        r = aq_fail(err, -EBADMSG, "%s: %s", name, aq_buf_str(&v.text));
    aq_buf_free(&v.text);
    return r;
}

static const char *copy(aq_arena *a, const json_t *object, const char *key)
{
    const char *s = aq_json_str(object, key);

    return s ? aq_arena_strdup(a, s) : NULL;
}

static void fill(aq_arena *a, json_t *root, aq_submission *s)
{
    const json_t *package = json_object_get(root, "package");
    const json_t *publisher = json_object_get(root, "publisher");
    const json_t *artifact = json_object_get(root, "artifact");

    s->id = copy(a, root, "submission");
    s->name = copy(a, package, "name");
    s->namespace_ = copy(a, package, "namespace");
    s->version = copy(a, package, "version");
    aq_type_find(aq_json_str(package, "type"), &s->type);
    s->publisher = copy(a, publisher, "id");
    for (size_t i = AQ_TIER_NEW; i <= AQ_TIER_STEWARD; i++)
        if (strcmp(aq_json_str(publisher, "tier"), tiers[i]) == 0)
            s->tier = (aq_publisher_tier)i;
    aq_digest_parse(aq_json_str(artifact, "sha256"), &s->artifact);
    s->artifact_size = (uint64_t)aq_json_int(artifact, "size", 0);
    s->media_type = copy(a, artifact, "media_type");
    s->manifest = json_object_get(root, "manifest");
    s->signature = json_is_object(json_object_get(root, "bundle")) ? AQ_SIGNATURE_UNCHECKED
                                                                   : AQ_SIGNATURE_NONE;
    aq_time_parse(aq_json_str(root, "time"), &s->time);
    s->nonce = copy(a, root, "nonce");
    s->source = root;
}

int aq_submission_read(aq_arena *a, const char *text, size_t len, const char *name,
                       aq_submission *ret, aq_err *err)
{
    aq_submission s = {0};
    json_t *root;
    int r;

    if (len > AQ_ENVELOPE_BYTES)
        return aq_fail(err, -E2BIG, "%s: an envelope has at most %d bytes", name,
                       AQ_ENVELOPE_BYTES);
    r = aq_json_parse(text, len, name, &root, err);
    if (r < 0)
        return r;
    r = check(a, root, name, err);
    if (r < 0) {
        json_decref(root);
        return r;
    }
    fill(a, root, &s);
    *ret = s;
    return 0;
}

static int random_hex(aq_arena *a, const char **ret, aq_err *err)
{
    unsigned char b[16];
    aq_buf hex = {0};

    if (getrandom(b, sizeof b, 0) != sizeof b)
        return aq_fail_errno(err, "no random bytes from the system");
    aq_hex(b, sizeof b, &hex);
    *ret = aq_arena_strdup(a, aq_buf_str(&hex));
    aq_buf_free(&hex);
    return 0;
}

int aq_submission_local(aq_arena *a, aq_submission *ret, aq_err *err)
{
    aq_submission s = {.local = true, .publisher = "local", .tier = AQ_TIER_LOCAL};
    int r = random_hex(a, &s.id, err);

    if (r == 0)
        r = random_hex(a, &s.nonce, err);
    if (r < 0)
        return r;
    s.time = aq_now();
    *ret = s;
    return 0;
}

json_t *aq_submission_json(const aq_submission *s)
{
    char time[AQ_TIME_LEN];

    if (s->source)
        return json_incref(s->source);
    return json_pack("{s:s, s:s, s:n, s:{s:s, s:s}, s:n, s:n, s:n, s:s, s:s}", "schema",
                     "intake/v1", "submission", s->id, "package", "publisher", "id", s->publisher,
                     "tier", tiers[s->tier], "manifest", "artifact", "bundle", "time",
                     aq_time_str(s->time, time), "nonce", s->nonce);
}

bool aq_submission_claims(const aq_submission *s, aq_digest *ret)
{
    static const char *const own[] = {"submission", "time", "nonce", "bundle"};
    aq_auto_json json_t *o = s->source ? json_copy(s->source) : NULL;

    if (!o)
        return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        json_object_del(o, own[i]);
    if (aq_json_digest(o, ret) < 0)
        aq_panic("an envelope that was read has no canonical form");
    return true;
}

void aq_submission_close(aq_submission *s)
{
    if (!s)
        return;
    json_decref(s->source);
    s->source = NULL;
    s->manifest = NULL;
}
