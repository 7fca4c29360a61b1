/* The memory of a tracee, read and written while it is stopped. Every length is bounded by us, and
 * nothing that was read is trusted to be there a second time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "kernel/process.h"
#include "observe/internal.h"

enum { PAGE = 4096, RED_ZONE = 128, CONTROL = 4096 };

/* One word after the other, as a debugger reads: also what is mapped for writing or for running
 * only. The processor knows no such difference, so a call takes its arguments from there. */
static size_t peek(const aq_task *k, uint64_t at, char *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        size_t skip = (size_t)((at + done) % sizeof(long)), n = sizeof(long) - skip;
        long word;

        errno = 0;
        word = ptrace(PTRACE_PEEKDATA, k->tid, at + done - skip, 0);
        if (errno != 0)
            break;
        if (n > len - done)
            n = len - done;
        memcpy(data + done, (const char *)&word + skip, n);
        done += n;
    }
    return done;
}

/* There even a call finds nothing, and a debugger would. */
static bool is_closed(const aq_mapping *m, void *arg)
{
    const uint64_t *at = arg;

    return m->closed && *at >= m->from && *at < m->to;
}

ssize_t aq_tracee_read(const aq_task *k, uint64_t at, void *data, size_t len)
{
    struct iovec mine = {data, len}, theirs = {(void *)(uintptr_t)at, len};
    ssize_t n = process_vm_readv(k->tid, &mine, 1, &theirs, 1, 0);

    if (n == (ssize_t)len || (n < 0 && errno != EFAULT))
        return n < 0 ? -errno : n;
    n = n > 0 ? n : 0;
    at += (uint64_t)n;
    if (!aq_tracee_maps(k, is_closed, &at))
        n += (ssize_t)peek(k, at, (char *)data + n, len - (size_t)n);
    return n > 0 ? n : -EFAULT;
}

bool aq_tracee_get(const aq_task *k, uint64_t at, void *data, size_t len)
{
    return aq_tracee_read(k, at, data, len) == (ssize_t)len;
}

bool aq_tracee_put(const aq_task *k, uint64_t at, const void *data, size_t len)
{
    struct iovec mine = {(void *)(uintptr_t)data, len}, theirs = {(void *)(uintptr_t)at, len};

    return process_vm_writev(k->tid, &mine, 1, &theirs, 1, 0) == (ssize_t)len;
}

/* Page by page, since a string may end right before an unmapped one. */
ssize_t aq_tracee_string(const aq_task *k, uint64_t at, char *data, size_t cap, bool *cut)
{
    size_t len = 0;

    *cut = false;
    while (len < cap - 1) {
        size_t want = PAGE - (size_t)((at + len) % PAGE);
        ssize_t n;
        const char *end;

        if (len == 0 && want > 256)
            want = 256; /* most are short */
        if (want > cap - 1 - len)
            want = cap - 1 - len;
        n = aq_tracee_read(k, at + len, data + len, want);
        if (n <= 0)
            return -EFAULT;
        end = memchr(data + len, '\0', (size_t)n);
        if (end)
            return end - data;
        len += (size_t)n;
    }
    data[len] = '\0';
    *cut = true;
    return (ssize_t)len;
}

static bool keep(aq_task *k, uint64_t at, size_t len, aq_saved_for why)
{
    int n = k->saved_count;
    aq_saved *s = &k->saved[n];
    unsigned char *bytes = s->few;

    if (n == AQ_SAVED || len > AQ_SAVED_BYTES)
        return false;
    if (len > sizeof s->few)
        bytes = aq_alloc(len);
    if (!aq_tracee_get(k, at, bytes, len)) {
        if (bytes != s->few)
            free(bytes);
        return false;
    }
    s->many = bytes == s->few ? NULL : bytes;
    s->at = at;
    s->len = (uint32_t)len;
    s->why = why;
    k->saved_count++;
    return true;
}

bool aq_tracee_save(aq_task *k, uint64_t at, size_t len)
{
    return keep(k, at, len, AQ_SAVED_ARGUMENT);
}

bool aq_tracee_save_answer(aq_task *k, uint64_t at, size_t len)
{
    return keep(k, at, len, AQ_SAVED_ANSWER);
}

static void give_back(aq_task *k, const aq_saved *s)
{
    aq_tracee_put(k, s->at, s->many ? s->many : s->few, s->len);
}

void aq_tracee_ran(aq_task *k)
{
    for (int i = k->saved_count; i-- > 0;)
        if (k->saved[i].why == AQ_SAVED_ARGUMENT)
            give_back(k, &k->saved[i]);
}

static void end(aq_task *k, bool again)
{
    while (k->saved_count > 0) {
        aq_saved *s = &k->saved[--k->saved_count];

        if (again || s->why == AQ_SAVED_SCRATCH)
            give_back(k, s);
        free(s->many);
        s->many = NULL;
    }
}

void aq_tracee_restore(aq_task *k)
{
    end(k, true);
}

void aq_tracee_settle(aq_task *k)
{
    end(k, false);
}

uint64_t aq_tracee_scratch(aq_task *k, const void *data, size_t len)
{
    uint64_t at = (k->in.rsp - RED_ZONE - 64 - len) & ~15ULL;

    if (!keep(k, at, len, AQ_SAVED_SCRATCH) || !aq_tracee_put(k, at, data, len))
        return 0;
    return at;
}

/* "55d0…-55d1… r-xp 00002000 fe:01 1234   /bin/cat" */
static bool parse_mapping(char *line, aq_mapping *m)
{
    char *p = line;
    uint64_t major;

    line[strcspn(line, "\n")] = '\0';
    m->from = strtoull(p, &p, 16);
    if (*p != '-')
        return false;
    m->to = strtoull(p + 1, &p, 16);
    if (strlen(p) < 6)
        return false;
    m->shared = p[4] == 's';
    m->closed = strncmp(p + 1, "---", 3) == 0;
    m->writable = p[2] == 'w';
    m->offset = strtoull(p + 5, &p, 16);
    major = strtoull(p, &p, 16);
    if (*p != ':')
        return false;
    m->device = major << 20 | strtoull(p + 1, &p, 16);
    m->inode = strtoull(p, &p, 10);
    m->name = p + strspn(p, " ");
    return true;
}

bool aq_tracee_maps(const aq_task *k, bool (*each)(const aq_mapping *m, void *arg), void *arg)
{
    char path[64], line[512], rest[512];
    bool found = false;
    aq_mapping m;
    FILE *f;

    snprintf(path, sizeof path, "%s/%d/maps", aq_process_proc(), k->tid);
    f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        bool whole = strchr(line, '\n') != NULL;

        found = parse_mapping(line, &m) && each(&m, arg);
        /* What is left of a long name must not pass as a row of its own. */
        while (!whole && !found && fgets(rest, sizeof rest, f))
            whole = strchr(rest, '\n') != NULL;
    }
    if (f)
        fclose(f);
    return found;
}

void aq_tracee_control(const aq_task *k, uint64_t header, aq_control_look look, void *arg)
{
    struct msghdr h;
    struct cmsghdr c;
    char control[CONTROL];
    uint64_t from;
    size_t len;

    if (!aq_tracee_get(k, header, &h, sizeof h) || !h.msg_control)
        return;
    from = (uint64_t)(uintptr_t)h.msg_control;
    len = h.msg_controllen < sizeof control ? h.msg_controllen : sizeof control;
    if (!aq_tracee_get(k, from, control, len))
        return;
    for (size_t at = 0; at + sizeof c <= len; at += CMSG_ALIGN(c.cmsg_len)) {
        memcpy(&c, control + at, sizeof c);
        if (c.cmsg_len < sizeof c || c.cmsg_len > len - at)
            return;
        if (c.cmsg_level == SOL_SOCKET)
            look(c.cmsg_type, control + at + sizeof c, c.cmsg_len - sizeof c, from + at + sizeof c,
                 arg);
    }
}
