/* The summary of an observation; see summary.h. */
#include "model/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { FIRST_ROWS = 16, REQUEST = 240, TEXT_MAX = 512 };

void aq_summary_begin(aq_summary *s, aq_arena *a)
{
    *s = (aq_summary){.arena = a};
}

static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

/* Where the text is or would be. There are twice as many slots as rows, and a power of two. */
static uint32_t *slot_of(const aq_summary_list *l, const char *text)
{
    uint32_t last = (uint32_t)(2 * l->room - 1), at = hash(text) & last;

    while (l->slots[at] && strcmp(l->rows[l->slots[at] - 1].text, text) != 0)
        at = (at + 1) & last;
    return &l->slots[at];
}

/* Most lists are short. */
static void grow(aq_summary *s, aq_summary_list *l)
{
    const aq_summary_row *before = l->rows;

    l->room = l->room ? 2 * l->room : FIRST_ROWS;
    l->slots = aq_arena_alloc(s->arena, 2 * l->room * sizeof *l->slots);
    l->rows = aq_arena_alloc(s->arena, l->room * sizeof *l->rows);
    for (size_t i = 0; i < l->count; i++) {
        l->rows[i] = before[i];
        *slot_of(l, l->rows[i].text) = (uint32_t)i + 1;
    }
}

static aq_summary_row *row_of(aq_summary *s, aq_summary_list *l, const char *bytes, size_t len)
{
    const char *text = aq_text_quoted(s->arena, bytes, len, TEXT_MAX);
    uint32_t *slot;

    if (l->count == l->room && l->count < AQ_SUMMARY_ROWS)
        grow(s, l);
    slot = slot_of(l, text);
    if (*slot)
        return &l->rows[*slot - 1];
    if (l->count == AQ_SUMMARY_ROWS) {
        l->more++;
        l->more_system += strncmp(text, "/usr/", 5) == 0;
        return NULL;
    }
    l->rows[l->count].text = text;
    *slot = (uint32_t)++l->count;
    return &l->rows[l->count - 1];
}

static void add(aq_summary *s, aq_summary_list *l, const char *bytes, size_t len, uint64_t n)
{
    aq_summary_row *r = bytes ? row_of(s, l, bytes, len) : NULL;

    if (r)
        r->count += n;
}

static void add_object(aq_summary *s, aq_summary_list *l, const aq_event *e)
{
    add(s, l, e->object, e->object_len, 1);
}

/* A folder may be named with a slash at its end, and without. */
static void add_path(aq_summary *s, aq_summary_list *l, const char *path, size_t len)
{
    while (len > 1 && path[len - 1] == '/')
        len--;
    add(s, l, path, len, 1);
}

static void add_file(aq_summary *s, aq_summary_list *l, const aq_event *e)
{
    add_path(s, l, e->object, e->object_len);
}

static const aq_event_arg *arg(const aq_event *e, const char *name)
{
    for (int i = 0; i < e->arg_count; i++)
        if (strcmp(e->args[i].name, name) == 0)
            return &e->args[i];
    return NULL;
}

static int64_t number(const aq_event *e, const char *name, int64_t fallback)
{
    const aq_event_arg *a = arg(e, name);

    return a && !a->bytes ? a->number : fallback;
}

static bool is(const aq_event *e, const char *op)
{
    return strcmp(e->op, op) == 0;
}

static bool is_one_of(const aq_event *e, const char *const *ops)
{
    while (*ops)
        if (is(e, *ops++))
            return true;
    return false;
}

static void take_open(aq_summary *s, const aq_event *e)
{
    int64_t flags = number(e, "flags", O_RDONLY);

    if (flags & (O_DIRECTORY | O_PATH))
        return;
    if ((flags & O_ACCMODE) != O_WRONLY)
        add_file(s, &s->files_read, e);
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)))
        add_file(s, &s->files_written, e);
}

/* What was not to be had says as much about a program as what was: it looked for a key, it tried
 * to change the system. */
static void take_failure(aq_summary *s, const aq_event *e)
{
    if (e->result == -ENOENT || e->result == -ENOTDIR)
        add_file(s, &s->files_absent, e);
    else if (e->result == -EACCES || e->result == -EPERM || e->result == -EROFS)
        add_file(s, &s->files_denied, e);
}

/* What the tracer calls something whose path is longer than the kernel tells. */
static bool unnamed(const aq_event *e)
{
    static const char text[] = "(unnamed)";

    return e->object_len >= sizeof text - 1 && memcmp(e->object, text, sizeof text - 1) == 0;
}

static void take_file(aq_summary *s, const aq_event *e)
{
    static const char *const writes[] = {
        "write",    "mkdir",    "mknod",     "symlink", "chmod",        "chown",          "times",
        "truncate", "allocate", "xattr-set", "link",    "xattr-remove", "attributes-set", NULL};
    static const char *const removes[] = {"unlink", "rmdir", NULL};
    const aq_event_arg *to = arg(e, "to");
    bool path = e->object && e->object_len && (e->object[0] == '/' || unnamed(e));

    if (!path)
        return;
    if (e->result < 0)
        take_failure(s, e);
    else if (is(e, "open"))
        take_open(s, e);
    else if (is_one_of(e, writes))
        add_file(s, &s->files_written, e);
    else if (is_one_of(e, removes))
        add_file(s, &s->files_removed, e);
    else if (is(e, "rename"))
        add_file(s, &s->files_removed, e);
    if (e->result >= 0 && (is(e, "rename") || is(e, "link")) && to && to->bytes)
        add_path(s, &s->files_written, to->bytes, to->len);
}

static bool starts(const aq_event *e, const char *with)
{
    size_t n = strlen(with);

    return e->object_len >= n && memcmp(e->object, with, n) == 0;
}

static bool datagram(const aq_event *e)
{
    const aq_event_arg *a = arg(e, "socket");

    return a && a->bytes && a->len == 8 && memcmp(a->bytes, "datagram", 8) == 0;
}

/* The C library connects a datagram socket to no address at all to learn its own, and to each
 * address of a name to put them in order; nobody is reached for. */
static bool asks_itself(const aq_summary *s, const aq_event *e)
{
    return is(e, "connect") && datagram(e) &&
           (starts(e, "[::]:") || starts(e, "0.0.0.0:") || (s->resolved && e->result >= 0));
}

/* An address of the internet, or a name: not a socket of the machine itself. */
static bool outward(const aq_summary *s, const aq_event *e)
{
    static const char *const inner[] = {"unix", "netlink", "packet", "vsock", "socket"};

    if (is(e, "dns-query"))
        return e->object_len > 0;
    if (starts(e, "family-") || asks_itself(s, e))
        return false;
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        size_t n = strlen(inner[i]);

        if (e->object_len >= n && memcmp(e->object, inner[i], n) == 0 &&
            (e->object_len == n || e->object[n] == ':'))
            return false;
    }
    return e->object_len > 0;
}

/* The other side tells a host without its port. */
static size_t without_port(const char *host, size_t len)
{
    size_t n = len;

    while (n > 0 && host[n - 1] >= '0' && host[n - 1] <= '9')
        n--;
    return n > 1 && n < len && host[n - 1] == ':' ? n - 1 : len;
}

/* "HOST/PATH" of a request. What was sent in the clear is seen twice: as it leaves, and by the
 * other side. What only the other side saw came through TLS. */
static void take_request(aq_summary *s, const aq_event *e, bool sent)
{
    const aq_event_arg *target = arg(e, "target");
    size_t host = without_port(e->object, e->object_len);
    char text[TEXT_MAX];
    aq_summary_row *seen;
    int n;

    if (target && target->bytes && target->len > 7 && memcmp(target->bytes, "http://", 7) == 0) {
        if (!sent) /* as one asks a proxy: it names the host itself */
            add(s, &s->hosts, target->bytes, target->len < REQUEST ? target->len : REQUEST, 1);
        return;
    }
    n = snprintf(text, sizeof text, "https://%.*s%.*s", (int)(host < REQUEST ? host : REQUEST),
                 e->object,
                 (int)(!target || !target->bytes ? 0
                       : target->len < REQUEST   ? target->len
                                                 : REQUEST),
                 target && target->bytes ? target->bytes : "");
    if (n <= 8 || n >= (int)sizeof text)
        return;
    seen = row_of(s, &s->clear, text + 8, (size_t)n - 8);
    if (sent) {
        if (seen)
            seen->count++;
        return;
    }
    if (seen && seen->count > 0) {
        seen->count--;
        memmove(text + 4, text + 5, (size_t)n - 5);
        n--;
    }
    add(s, &s->hosts, text, (size_t)n, 1);
}

/* Under which name an address was spoken to. */
static void take_name(aq_summary *s, const aq_event *e, const aq_event_arg *peer)
{
    size_t host = without_port(e->object, e->object_len);
    size_t address = peer->len < REQUEST ? peer->len : REQUEST;
    char text[TEXT_MAX];
    int n = snprintf(text, sizeof text, "%.*s %.*s", (int)address, peer->bytes,
                     (int)(host < REQUEST ? host : REQUEST), e->object);

    add(s, &s->named, text, (size_t)n, 1);
}

/* What the world's name server answered. */
static void take_answer(aq_summary *s, const aq_event *e)
{
    enum { NO_SUCH_NAME = 3 };

    if (number(e, "code", 0) == NO_SUCH_NAME)
        add_object(s, &s->names_absent, e);
    else if (number(e, "answers", 0) > 0)
        s->resolved = true;
}

/* Attempts count whether they succeeded or not: in a sealed world most do not. */
static void take_network(aq_summary *s, const aq_event *e)
{
    static const char *const reaches[] = {"connect",      "send",      "dns-query",
                                          "http-request", "tls-hello", NULL};

    const aq_event_arg *peer = arg(e, "peer");

    if (!e->object || !outward(s, e))
        return;
    if (is(e, "peer-dns"))
        take_answer(s, e);
    if (peer && peer->bytes)
        take_name(s, e, peer);
    if (is(e, "http-request") || is(e, "peer-http"))
        take_request(s, e, is(e, "http-request"));
    if (is_one_of(e, reaches))
        add_object(s, &s->hosts, e);
    else if (e->result >= 0 && (is(e, "listen") || (is(e, "bind") && datagram(e))))
        add_object(s, &s->listens, e);
}

static void take_exec(aq_summary *s, const aq_event *e)
{
    const aq_event_arg *a = arg(e, "argv");
    char line[TEXT_MAX];
    size_t len = 0;

    if (e->result < 0)
        return;
    if (!a || !a->bytes || a->len == 0) {
        add_object(s, &s->processes, e);
        return;
    }
    for (size_t i = 0; i < a->len && len < sizeof line; i++)
        if (a->bytes[i] || i + 1 < a->len) /* the last NUL ends the last word */
            line[len++] = a->bytes[i] ? a->bytes[i] : ' ';
    add(s, &s->processes, line, len, 1);
}

static void take_sleep(aq_summary *s, const aq_event *e)
{
    uint64_t ns = (uint64_t)number(e, "ns", 0);

    s->slept_ns += ns;
    s->slept++;
    for (size_t i = s->sleep_count; i-- > 0;)
        if (s->sleeps[i].process == e->process && s->sleeps[i].ns == ns) {
            s->sleeps[i].count++;
            return;
        }
    if (!s->sleeps)
        s->sleeps = aq_arena_alloc(s->arena, AQ_SUMMARY_ROWS * sizeof *s->sleeps);
    if (s->sleep_count == AQ_SUMMARY_ROWS)
        s->more_sleeps++;
    else
        s->sleeps[s->sleep_count++] = (aq_summary_sleep){e->process, ns, 1};
}

/* Those of a flood that are only counted say what they repeat. */
static void take_refusal(aq_summary *s, const aq_event *e)
{
    const aq_event_arg *op = is(e, "repeat") ? arg(e, "op") : NULL;
    int64_t more = number(e, "left-out", 0);
    char text[TEXT_MAX];
    int object = e->object_len < 256 ? (int)e->object_len : 256;
    int n = snprintf(text, sizeof text, "%.*s%s%.*s (%s)",
                     op && op->bytes ? (int)op->len : (int)strlen(e->op),
                     op && op->bytes ? op->bytes : e->op, object ? " " : "", object,
                     e->object ? e->object : "", e->rule);

    add(s, &s->refused, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1,
        op && more > 0 ? (uint64_t)more : 1);
}

/* Opens that are only counted: of a file that was told. */
static void take_repeated(aq_summary *s, const aq_event *e)
{
    const aq_event_arg *op = arg(e, "op");
    int64_t more = number(e, "left-out", 0);
    const char *text;
    uint32_t *slot;

    if (e->kind != AQ_EVENT_FILE || e->rule || more <= 0 || !op || !op->bytes || op->len != 4 ||
        memcmp(op->bytes, "open", 4) != 0 || !e->object || e->object_cut || !s->files_read.count)
        return;
    text = aq_text_quoted(s->arena, e->object, e->object_len, TEXT_MAX);
    slot = slot_of(&s->files_read, text);
    if (*slot)
        s->files_read.rows[*slot - 1].count += (uint64_t)more;
}

void aq_summary_event(const aq_event *e, void *summary)
{
    aq_summary *s = summary;

    s->virtual_ns = e->time > s->virtual_ns ? e->time : s->virtual_ns;
    if (e->rule)
        take_refusal(s, e);
    if (is(e, "repeat"))
        take_repeated(s, e);
    if (is(e, "repeat") && number(e, "unnamed", 0) > 0)
        s->unnamed += (uint64_t)number(e, "unnamed", 0);
    switch (e->kind) {
    case AQ_EVENT_FILE:
        take_file(s, e);
        break;
    case AQ_EVENT_NETWORK:
        take_network(s, e);
        break;
    case AQ_EVENT_PROCESS:
        if (is(e, "exec"))
            take_exec(s, e);
        break;
    case AQ_EVENT_CLOCK:
        if (is(e, "sleep") || is(e, "wait")) { /* one that ended by its time */
            take_sleep(s, e);
        } else if (is(e, "repeat") && number(e, "ns", 0) > 0) {
            s->slept_ns += (uint64_t)number(e, "ns", 0);
            s->slept += (uint64_t)number(e, "left-out", 0);
        }
        break;
    case AQ_EVENT_ENTROPY:
        break;
    default:
        s->unseen += is(e, "unseen");
        if (is(e, "preempted") && arg(e, "why"))
            add(s, &s->preempted, arg(e, "why")->bytes, arg(e, "why")->len, 1);
        break;
    }
}

static json_t *list_json(const aq_summary_list *l)
{
    json_t *array = json_array();

    for (size_t i = 0; i < l->count; i++)
        json_array_append_new(array, json_string(l->rows[i].text));
    return array;
}

static json_t *sleeps_json(const aq_summary *s)
{
    json_t *array = json_array();

    for (size_t i = 0; i < s->sleep_count; i++)
        json_array_append_new(array,
                              json_pack("{s:I,s:I,s:I}", "count", (json_int_t)s->sleeps[i].count,
                                        "ns", (json_int_t)s->sleeps[i].ns, "process",
                                        (json_int_t)s->sleeps[i].process));
    return array;
}

json_t *aq_summary_json(const aq_summary *s)
{
    uint64_t more = s->files_read.more + s->files_written.more + s->files_removed.more +
                    s->files_absent.more + s->files_denied.more + s->hosts.more +
                    s->names_absent.more + s->listens.more + s->processes.more + s->refused.more +
                    s->more_sleeps;

    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I}", "files_read",
        list_json(&s->files_read), "files_written", list_json(&s->files_written), "files_removed",
        list_json(&s->files_removed), "files_absent", list_json(&s->files_absent), "files_denied",
        list_json(&s->files_denied), "hosts", list_json(&s->hosts), "names_absent",
        list_json(&s->names_absent), "listens", list_json(&s->listens), "processes",
        list_json(&s->processes), "sleeps", sleeps_json(s), "refused", list_json(&s->refused),
        "slept_ns", (json_int_t)s->slept_ns, "virtual_ns", (json_int_t)s->virtual_ns, "left_out",
        (json_int_t)more, "unnamed", (json_int_t)s->unnamed, "unseen", (json_int_t)s->unseen);
}
