/* Archives: the unpacking core without the jail around it. Whatever the bytes are, paths are
 * canonical and told once, files open and close in turn, and every packed byte is accounted for. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cleanroom/paths.h"
#include "cleanroom/unpack_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct told {
    aq_path_set *paths;
    bool open, has_account;
    uint64_t written, total;
    aq_account account;
} told;

static int hear(void *arg, uint16_t type, const void *payload, size_t len, aq_err *err)
{
    told *t = arg;
    const char *p = payload;

    (void)err;
    switch (type) {
    case AQ_TELL_FILE:
        if (t->open || len < 2 || !aq_path_canonical(p + 1, len - 1, 1024) ||
            aq_path_set_add(t->paths, p + 1, len - 1, false) != AQ_SEEN_NEW)
            abort();
        t->open = true;
        t->written = 0;
        break;
    case AQ_TELL_DATA:
        t->written += len;
        t->total += len;
        if (!t->open || t->written > 1 << 20 || t->total > 4 << 20)
            abort();
        break;
    case AQ_TELL_DONE:
        if (!t->open || len != 8 || memcmp(p, &t->written, 8) != 0)
            abort();
        t->open = false;
        break;
    case AQ_TELL_DROP:
        if (!t->open)
            abort();
        t->open = false;
        break;
    case AQ_TELL_ACCOUNT:
        memcpy(&t->account, p, sizeof t->account);
        t->has_account = true;
        break;
    default:
        break;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_fd int fd = memfd_create("archive", MFD_CLOEXEC);
    told t = {.paths = aq_path_set_new(a)};
    aq_teller teller = {.tell = hear, .arg = &t};
    aq_source source = {.fd = fd, .size = size};
    aq_budget limits;
    aq_err err = {0};

    aq_budget_init(&limits);
    limits.limit[AQ_BUDGET_FILES] = 1000;
    limits.limit[AQ_BUDGET_FILE_BYTES] = 1 << 20;
    limits.limit[AQ_BUDGET_BYTES] = 4 << 20;
    if (fd < 0 || aq_write_full(fd, data, size) < 0)
        abort();
    /* It never fails: what is wrong with an archive is a finding. */
    if (aq_unpack_core(&source, "input.wasm", &limits, &teller, &err) < 0 || t.open ||
        !t.has_account || t.account.read + t.account.unread != size)
        abort();
    aq_path_set_free(t.paths);
    return 0;
}
