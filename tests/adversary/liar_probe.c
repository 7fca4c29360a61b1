/* Readers that die or lie: what the front makes of their answers. liar_probe FILE prints the
 * rules that were found, one a line, and then the paths of the package. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cleanroom/answers.h"
#include "cleanroom/intake.h"
#include "cleanroom/unpack_job.h"

static int tell_file(const aq_teller *t, const char *path, aq_err *err)
{
    aq_auto_buf b = {0};
    uint64_t size = 0;
    int r;

    aq_buf_addc(&b, 0);
    aq_buf_adds(&b, path);
    r = aq_tell(t, AQ_TELL_FILE, b.data, b.len, err);
    return r < 0 ? r : aq_tell(t, AQ_TELL_DONE, &size, sizeof size, err);
}

/* So many of each, where four are allowed. */
enum { ALLOWED = 4, ALLOWED_BYTES = 100 };

static int tell_many(const aq_teller *t, const char *word, unsigned count, aq_err *err)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < count; i++) {
        aq_auto_buf b = {0};
        uint32_t len = 2;

        if (strncmp(word, "links", 5) == 0) {
            aq_buf_addc(&b, AQ_LEFT_LINK);
            aq_buf_add(&b, (const char *)&len, sizeof len);
        }
        aq_buf_addf(&b, "x%u", i);
        if (strncmp(word, "files", 5) == 0)
            r = tell_file(t, aq_buf_str(&b), err);
        else if (strncmp(word, "links", 5) == 0)
            r = aq_tell(t, AQ_TELL_LEFT_OUT, b.data, b.len, err);
        else
            r = aq_tell(t, AQ_TELL_FOLDER, b.data, b.len, err);
    }
    return r;
}

static int tell_bytes(const aq_teller *t, uint64_t size, uint64_t said, aq_err *err)
{
    char bytes[ALLOWED_BYTES + 1] = {0};
    int r = aq_tell(t, AQ_TELL_FILE, "\0x", 2, err);

    if (r == 0)
        r = aq_tell(t, AQ_TELL_DATA, bytes, size, err);
    return r < 0 ? r : aq_tell(t, AQ_TELL_DONE, &said, sizeof said, err);
}

/* The file's first word says what to do. */
static int lie(aq_jail_io *io, aq_err *err)
{
    aq_teller t = aq_teller_jail(io);
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    bool told[AQ_RULE_COUNT] = {0};
    aq_source source = {.fd = aq_jail_fd(io, 0)};
    aq_account account = {0};
    char word[16] = {0};
    aq_budget limits;
    int r;

    if ((r = aq_answers_limits(io, &limits, NULL, err)) < 0 ||
        (r = aq_answers_size(source.fd, &source.size, err)) < 0)
        return r;
    aq_source_read(&source, 0, word, sizeof word - 1);
    account.read = source.size;
    if (strcmp(word, "die") == 0) {
        aq_findings_add(f, AQ_RULE_INTAKE_PATH_PARENT, "../x", "found before the end");
        aq_findings_add(f, AQ_RULE_INTAKE_PATH_PARENT, "../y", "found before the end");
        if ((r = aq_tell_early(&t, f, told, err)) < 0)
            return r;
        _Exit(9);
    }
    if (strcmp(word, "live") == 0) { /* told early, and taken back */
        aq_findings_add(f, AQ_RULE_INTAKE_PATH_PARENT, "../x", "found before the end");
        r = aq_tell_early(&t, f, told, err);
    } else if (strcmp(word, "below") == 0) {
        if ((r = tell_file(&t, "x", err)) == 0 && (r = tell_file(&t, "x-y", err)) == 0)
            r = tell_file(&t, "x/y", err);
    } else if (strchr(word, '-')) { /* "files-5" */
        r = tell_many(&t, word, (unsigned)atoi(strchr(word, '-') + 1), err);
    } else if (strncmp(word, "bytes", 5) == 0) { /* "bytes100" */
        r = tell_bytes(&t, (uint64_t)atoi(word + 5), (uint64_t)atoi(word + 5), err);
    } else if (strcmp(word, "size") == 0) {
        r = tell_bytes(&t, 5, 4, err);
    } else if (strcmp(word, "open") == 0) {
        r = aq_tell(&t, AQ_TELL_FILE, "\0x", 2, err);
    } else if (strcmp(word, "up") == 0) {
        r = tell_file(&t, "../x", err);
    } else if (strcmp(word, "twice") == 0) {
        if ((r = tell_file(&t, "x", err)) == 0)
            r = tell_file(&t, "x", err);
    } else if (strcmp(word, "account") == 0) {
        r = aq_tell(&t, AQ_TELL_ACCOUNT, &account, sizeof account, err);
    } else if (strcmp(word, "none") == 0) {
        return 0;
    } else if (strcmp(word, "unnamed") == 0) { /* unread bytes that no place accounts for */
        account.unread = account.read;
        account.read = 0;
    }
    return r < 0 ? r : aq_tell(&t, AQ_TELL_ACCOUNT, &account, sizeof account, err);
}

static const aq_jail_job jobs[] = {
    {"unpack", lie, UINT64_C(512) << 20, 10, NULL},
    {"inspect", aq_job_inspect, UINT64_C(512) << 20, 10, NULL},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_package p;
    aq_budget budget;
    aq_err err = {0};

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(jobs, argc, argv);
    if (argc != 2)
        return 64;
    aq_budget_init(&budget);
    budget.limit[AQ_BUDGET_FILES] = ALLOWED;
    budget.limit[AQ_BUDGET_BYTES] = ALLOWED_BYTES;
    if (aq_unpack(a, argv[1], NULL, &budget, f, NULL, NULL, &p, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 70;
    }
    for (size_t i = 0; i < f->count; i++)
        printf("%s\n", aq_rule_get(f->items[i].rule)->name);
    for (size_t i = 0; i < p.count; i++)
        printf("%s\n", p.files[i].path);
    aq_package_close(&p);
    return 0;
}
