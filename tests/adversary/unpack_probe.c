/* Unpacks one input and prints what came out, as one JSON object: for tests that make archives in
 * Python and for bench/intake. Limits may be lowered: unpack_probe PATH [BUDGET=N]… */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/intake.h"

static int lower(aq_budget *b, const char *word)
{
    const char *equal = strchr(word, '=');

    for (aq_budget_kind i = 0; equal && i < AQ_BUDGET_COUNT; i++) {
        const char *name = aq_budget_name(i);
        if (strlen(name) == (size_t)(equal - word) && strncmp(name, word, strlen(name)) == 0) {
            b->limit[i] = strtoull(equal + 1, NULL, 10);
            return 0;
        }
    }
    return -1;
}

static json_t *hex(const aq_digest *d)
{
    char text[AQ_SHA256_HEX];

    return json_string(aq_digest_hex(d, text));
}

static json_t *files(aq_arena *a, const aq_package *p, bool contents)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->count; i++) {
        const aq_file *f = &p->files[i];
        json_t *o = json_pack(
            "{s:s, s:I, s:b, s:o}", "path", aq_text_quoted(a, f->path, strlen(f->path), 8192),
            "size", (json_int_t)f->size, "executable", f->executable, "sha256", hex(&f->digest));
        if (contents && f->size <= 4096) {
            char text[4096];
            ssize_t n = aq_pread_full(p->image, text, (size_t)f->size, (off_t)f->offset);
            json_object_set_new(o, "text",
                                json_string(aq_text_quoted(a, text, n < 0 ? 0 : (size_t)n, 16384)));
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *describe(aq_arena *a, const aq_package *p, const aq_findings *f)
{
    json_t *o = json_pack("{s:s, s:s?, s:o, s:o, s:I, s:I}", "form", p->form, "wrapper", p->wrapper,
                          "digest", hex(&p->digest), "packed", hex(&p->packed), "bytes",
                          (json_int_t)p->bytes, "packed_bytes", (json_int_t)p->packed_bytes);
    json_t *unread = json_array(), *nested = json_array(), *found = json_array();

    for (size_t i = 0; i < p->unread_count; i++)
        json_array_append_new(unread, json_pack("{s:s, s:s, s:I}", "place", p->unread[i].place,
                                                "reason", p->unread[i].reason, "bytes",
                                                (json_int_t)p->unread[i].bytes));
    for (size_t i = 0; i < p->nested_count; i++)
        json_array_append_new(nested, json_pack("{s:s, s:s, s:I, s:I}", "path", p->nested[i].path,
                                                "format", p->nested[i].format, "entries",
                                                (json_int_t)p->nested[i].entries, "bytes",
                                                (json_int_t)p->nested[i].bytes));
    for (size_t i = 0; i < f->count; i++)
        json_array_append_new(found, aq_finding_canonical(&f->items[i]));
    json_object_set_new(o, "count", json_integer((json_int_t)p->count));
    json_object_set_new(o, "files", files(a, p, p->count <= 100));
    json_object_set_new(o, "unread", unread);
    json_object_set_new(o, "nested", nested);
    json_object_set_new(o, "findings", found);
    json_object_set_new(o, "incomplete", json_boolean(f->incomplete));
    return o;
}

/* Peak memory of this process, and of the largest jail (which counts from its fork on). */
static void print_peak(void)
{
    aq_auto_buf b = {0};
    struct rusage children;
    aq_err err = {0};
    const char *at;

    getrusage(RUSAGE_CHILDREN, &children);
    if (aq_read_file(AT_FDCWD, "/proc/self/status", 1 << 16, &b, &err) < 0)
        return;
    at = strstr(aq_buf_str(&b), "VmHWM:");
    printf("%ld %ld\n", at ? strtol(at + 6, NULL, 10) : 0, children.ru_maxrss);
}

int main(int argc, char **argv)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_auto_buf out = {0};
    aq_package p;
    aq_budget budget;
    aq_err err = {0};
    int last = argc;

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(aq_jobs, argc, argv);
    if (argc < 2)
        return 64;
    aq_budget_init(&budget);
    bool quiet = strcmp(argv[argc - 1], "--quiet") == 0;
    if (quiet)
        last--;
    for (int i = 2; i < last; i++)
        if (lower(&budget, argv[i]) < 0)
            return 64;
    if (aq_unpack(a, argv[1], NULL, &budget, f, NULL, NULL, &p, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 70;
    }
    if (quiet) {
        char text[AQ_SHA256_HEX];
        printf("%s %zu %llu\n", aq_digest_hex(&p.digest, text), p.count,
               (unsigned long long)p.bytes);
        print_peak();
    } else {
        aq_auto_json json_t *o = NULL;
        aq_findings_sort(f);
        o = describe(a, &p, f);
        aq_json_pretty(o, &out);
        fputs(aq_buf_str(&out), stdout);
    }
    aq_package_close(&p);
    return 0;
}
