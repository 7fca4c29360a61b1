/* What intake's jobs share in talking to the front; see answers.h. */
#include "cleanroom/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

enum { RECORDS = 64 << 10 /* bytes of one request frame */ };

static int tell_jail(void *arg, uint16_t type, const void *payload, size_t len, aq_err *err)
{
    return aq_jail_send(arg, type, payload, len, err);
}

static int flush_jail(void *arg, aq_err *err)
{
    return aq_jail_flush(arg, err);
}

aq_teller aq_teller_jail(aq_jail_io *io)
{
    return (aq_teller){tell_jail, io, flush_jail};
}

int aq_tell(const aq_teller *t, uint16_t type, const void *payload, size_t len, aq_err *err)
{
    return t->tell(t->arg, type, payload, len, err);
}

int aq_answers_limits(aq_jail_io *io, aq_budget *budget, aq_buf *name, aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    aq_limits limits;
    size_t len, fd_count;
    uint16_t type;
    int r = aq_jail_recv(io, &type, &payload, &len, fds, &fd_count, err);

    if (r < 0)
        return r;
    if (type != AQ_ASK_LIMITS || len < sizeof limits)
        return aq_fail(err, -EPROTO, "expected the limits");
    memcpy(&limits, payload, sizeof limits);
    aq_budget_init(budget);
    memcpy(budget->limit, limits.limit, sizeof budget->limit);
    if (name)
        aq_buf_add(name, (const char *)payload + sizeof limits, len - sizeof limits);
    return 0;
}

int aq_ask_limits(aq_jail *j, const aq_budget *budget, const char *name, aq_err *err)
{
    aq_auto_buf b = {0};
    aq_limits limits;

    memcpy(limits.limit, budget->limit, sizeof limits.limit);
    aq_buf_add(&b, &limits, sizeof limits);
    aq_buf_adds(&b, name);
    return aq_jail_request(j, AQ_ASK_LIMITS, b.data, b.len, NULL, 0, err);
}

typedef struct list {
    aq_file *items;
    size_t count, cap;
} list;

static int take_records(list *l, aq_arena *a, uint64_t image, const char *p, size_t len,
                        aq_err *err)
{
    while (len > 0) {
        aq_file_record r;
        if (len < sizeof r)
            return aq_fail(err, -EPROTO, "malformed list of files");
        memcpy(&r, p, sizeof r);
        if (r.path_len > len - sizeof r || r.size > image || r.offset > image - r.size)
            return aq_fail(err, -EPROTO, "malformed list of files");
        if (l->count == l->cap) {
            l->cap = l->cap ? 2 * l->cap : 1024;
            l->items = aq_realloc(l->items, l->cap, sizeof *l->items);
        }
        l->items[l->count++] = (aq_file){.path = aq_arena_strndup(a, p + sizeof r, r.path_len),
                                         .offset = r.offset,
                                         .size = r.size};
        p += sizeof r + r.path_len;
        len -= sizeof r + r.path_len;
    }
    return 0;
}

typedef struct texts {
    const char **items;
    size_t count, cap;
} texts;

static int take_names(texts *t, aq_arena *a, const char *p, size_t len, aq_err *err)
{
    while (len > 0) {
        const char *end = memchr(p, '\0', len);
        if (!end)
            return aq_fail(err, -EPROTO, "malformed list of names");
        if (t->count == t->cap) {
            t->cap = t->cap ? 2 * t->cap : 256;
            t->items = aq_realloc(t->items, t->cap, sizeof *t->items);
        }
        t->items[t->count++] = aq_arena_strndup(a, p, (size_t)(end - p));
        len -= (size_t)(end - p) + 1;
        p = end + 1;
    }
    return 0;
}

static int take_request(list *l, texts *names, aq_arena *a, uint64_t image, uint16_t type,
                        const void *payload, size_t len, aq_err *err)
{
    if (type == AQ_ASK_FILES)
        return take_records(l, a, image, payload, len, err);
    if (type == AQ_ASK_NAMES)
        return take_names(names, a, payload, len, err);
    return aq_fail(err, -EPROTO, "unexpected request");
}

int aq_answers_all(aq_jail_io *io, aq_arena *a, uint64_t image, const aq_file **ret, size_t *count,
                   const char *const **names, size_t *name_count, aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    size_t len, fd_count;
    list l = {0};
    texts t = {0};
    uint16_t type;
    int r;

    while ((r = aq_jail_recv(io, &type, &payload, &len, fds, &fd_count, err)) == 0)
        if ((r = take_request(&l, &t, a, image, type, payload, len, err)) < 0)
            break;
    if (r == -ENODATA) {
        aq_file *files = aq_arena_alloc(a, l.count * sizeof *files);
        const char **kept = aq_arena_alloc(a, t.count * sizeof *kept);
        if (l.count > 0)
            memcpy(files, l.items, l.count * sizeof *files);
        if (t.count > 0)
            memcpy(kept, t.items, t.count * sizeof *kept);
        *ret = files;
        *count = l.count;
        *names = kept;
        *name_count = t.count;
        r = 0;
    }
    free(l.items);
    free(t.items);
    return r;
}

int aq_answers_files(aq_jail_io *io, aq_arena *a, uint64_t image, const aq_file **ret,
                     size_t *count, aq_err *err)
{
    const char *const *names;
    size_t name_count;

    return aq_answers_all(io, a, image, ret, count, &names, &name_count, err);
}

int aq_answers_size(int fd, uint64_t *ret, aq_err *err)
{
    struct stat st;

    if (syscall(SYS_fstat, fd, &st) < 0)
        return aq_fail_errno(err, "cannot tell the size of the input");
    *ret = (uint64_t)st.st_size;
    return 0;
}

int aq_ask_files(aq_jail *j, const aq_package *p, aq_err *err)
{
    aq_auto_buf b = {0};
    int r = 0;

    for (size_t i = 0; i < p->count && r == 0; i++) {
        const aq_file *file = &p->files[i];
        aq_file_record record = {
            .offset = file->offset, .size = file->size, .path_len = (uint32_t)strlen(file->path)};
        aq_buf_add(&b, &record, sizeof record);
        aq_buf_add(&b, file->path, record.path_len);
        if (b.len >= RECORDS || i + 1 == p->count) {
            r = aq_jail_request(j, AQ_ASK_FILES, b.data, b.len, NULL, 0, err);
            b.len = 0;
        }
    }
    return r;
}

int aq_ask_names(aq_jail *j, const char *const *names, size_t count, aq_err *err)
{
    aq_auto_buf b = {0};
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        aq_buf_add(&b, names[i], strlen(names[i]) + 1);
        if (b.len >= RECORDS || i + 1 == count) {
            r = aq_jail_request(j, AQ_ASK_NAMES, b.data, b.len, NULL, 0, err);
            b.len = 0;
        }
    }
    return r;
}

static int send_finding(const aq_teller *t, uint16_t type, const aq_finding *f, aq_err *err)
{
    aq_auto_json json_t *o = aq_finding_canonical(f);
    aq_auto_buf b = {0};

    if (!o || aq_json_canonical(o, &b) < 0)
        return aq_fail(err, -EINVAL, "a finding cannot be written as JSON");
    return aq_tell(t, type, b.data, b.len, err);
}

int aq_tell_early(const aq_teller *t, aq_findings *f, bool told[static AQ_RULE_COUNT], aq_err *err)
{
    bool fresh = false;
    int r;

    for (size_t i = 0; i < AQ_RULE_COUNT; i++)
        fresh = fresh || (f->per_rule[i] > 0 && !told[i]);
    if (!fresh)
        return 0;
    for (size_t i = 0; i < f->count; i++) {
        if (told[f->items[i].rule])
            continue;
        told[f->items[i].rule] = true;
        if ((r = send_finding(t, AQ_TELL_EARLY, &f->items[i], err)) < 0)
            return r;
    }
    return t->flush ? t->flush(t->arg, err) : 0;
}

int aq_tell_findings(const aq_teller *t, aq_findings *f, aq_err *err)
{
    int r;

    aq_findings_settle(f);
    for (size_t i = 0; i < f->count; i++)
        if ((r = send_finding(t, AQ_TELL_FINDING, &f->items[i], err)) < 0)
            return r;
    for (size_t i = 0; i < AQ_RULE_COUNT; i++) {
        uint32_t extra = aq_findings_extra(f, (aq_rule_id)i);
        aq_auto_buf b = {0};
        if (extra == 0)
            continue;
        aq_buf_add(&b, &extra, sizeof extra);
        aq_buf_adds(&b, aq_rule_get((aq_rule_id)i)->name);
        if ((r = aq_tell(t, AQ_TELL_COUNT, b.data, b.len, err)) < 0)
            return r;
    }
    return 0;
}

int aq_tell_unread(const aq_teller *t, const char *place, size_t place_len, const char *reason,
                   uint64_t bytes, aq_err *err)
{
    aq_auto_buf b = {0};
    uint16_t len;
    size_t start;

    aq_buf_add(&b, &bytes, sizeof bytes);
    start = b.len;
    aq_buf_add(&b, "\0\0", 2);
    if (place_len > 4096)
        place_len = 4096;
    aq_text_quote(&b, place, place_len);
    len = (uint16_t)(b.len - start - 2);
    memcpy(b.data + start, &len, sizeof len);
    aq_buf_adds(&b, reason);
    return aq_tell(t, AQ_TELL_UNREAD, b.data, b.len, err);
}

static int take_count(aq_findings *to, const char *p, size_t len, aq_err *err)
{
    aq_auto_buf name = {0};
    uint32_t extra;
    aq_rule_id rule;

    if (len <= sizeof extra)
        return aq_fail(err, -EBADMSG, "malformed count of findings");
    memcpy(&extra, p, sizeof extra);
    aq_buf_add(&name, p + sizeof extra, len - sizeof extra);
    if (aq_rule_find(aq_buf_str(&name), &rule) < 0 || aq_rule_get(rule)->layer != AQ_LAYER_INTAKE)
        return aq_fail(err, -EBADMSG, "count of findings for no rule of intake");
    if (__builtin_add_overflow(to->per_rule[rule], extra, &to->per_rule[rule]))
        to->per_rule[rule] = UINT32_MAX;
    return 0;
}

int aq_answers_take(aq_findings *to, uint16_t type, const void *payload, size_t len, aq_err *err)
{
    aq_auto_json json_t *o = NULL;
    int r;

    if (type == AQ_TELL_COUNT)
        return take_count(to, payload, len, err);
    if (type != AQ_TELL_FINDING && type != AQ_TELL_EARLY)
        return aq_fail(err, -EBADMSG, "unexpected answer of type %u", type);
    if (to->count >= AQ_RULE_COUNT * AQ_FINDINGS_PER_RULE)
        return aq_fail(err, -EBADMSG, "more findings than there can be");
    r = aq_json_parse(payload, len, "jail answer", &o, err);
    if (r < 0)
        return -EBADMSG;
    return aq_finding_read(to, AQ_LAYER_INTAKE, o, err);
}
