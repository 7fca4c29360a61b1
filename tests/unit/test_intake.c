/* Intake as a whole: from a path to submission, package and manifest, through real jails; and a
 * front that is lied to by a job of the same name. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cleanroom/answers.h"
#include "cleanroom/intake.h"
#include "cleanroom/unpack_job.h"

typedef struct scene {
    char folder[64];
    int dir;
    aq_arena *a;
    aq_findings *findings;
    aq_budget budget;
    aq_intake in;
    aq_err err;
} scene;

static int set_up(void **state)
{
    scene *s = aq_alloc(sizeof *s);

    snprintf(s->folder, sizeof s->folder, "/tmp/aquarium-intake.XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    s->dir = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->a = aq_arena_new();
    s->findings = aq_findings_new(s->a);
    s->in.package.image = -1;
    aq_budget_init(&s->budget);
    *state = s;
    return 0;
}

static void remove_all(int dir)
{
    DIR *d = fdopendir(dup(dir));

    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(dir, e->d_name, 0) < 0) {
            aq_auto_fd int sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            remove_all(sub);
            unlinkat(dir, e->d_name, AT_REMOVEDIR);
        }
    }
    closedir(d);
}

static int tear_down(void **state)
{
    scene *s = *state;

    aq_intake_close(&s->in);
    aq_arena_free(s->a);
    remove_all(s->dir);
    close(s->dir);
    rmdir(s->folder);
    free(s);
    return 0;
}

static void put(scene *s, const char *name, const char *text)
{
    aq_err err = {0};

    if (aq_write_file(s->dir, name, text, strlen(text), 0644, &err) < 0)
        fail_msg("%s", err.text);
}

#ifndef LIED_TO

static int open_it(scene *s, const char *name, const char *artifact)
{
    const char *path = aq_arena_printf(s->a, "%s/%s", s->folder, name);

    if (artifact)
        artifact = aq_arena_printf(s->a, "%s/%s", s->folder, artifact);
    return aq_intake_open(s->a, path, artifact, s->folder, &s->budget, s->findings, NULL, NULL,
                          &s->in, &s->err);
}

static void make_skill(scene *s)
{
    assert_int_equal(mkdirat(s->dir, "skill", 0700), 0);
    put(s, "skill/SKILL.md", "---\nname: greeter\ndescription: Says hello.\n---\n# Greeter\n");
    put(s, "skill/LICENSE", "MIT\n");
}

static void a_folder(void **state)
{
    scene *s = *state;

    make_skill(s);
    if (open_it(s, "skill", NULL) < 0)
        fail_msg("%s", s->err.text);
    assert_true(s->in.submission.local);
    assert_string_equal(s->in.package.form, "folder");
    assert_int_equal(s->in.package.count, 2);
    assert_int_equal(s->in.manifest.kind, AQ_KIND_SKILL);
    assert_string_equal(s->in.manifest.name, "greeter");
    assert_false(s->in.broken);
    assert_int_equal(s->findings->per_rule[AQ_RULE_INTAKE_UNSIGNED], 1);
    assert_int_equal(s->budget.spent[AQ_BUDGET_FILES], 2);
    assert_true(fcntl(s->in.package.image, F_GETFL) % 4 == O_RDONLY);
    assert_int_equal(write(s->in.package.image, "x", 1), -1);
}

static void a_module(void **state)
{
    scene *s = *state;
    aq_err err = {0};

    assert_int_equal(aq_write_file(s->dir, "tool.wasm", "\0asm\1\0\0\0", 8, 0644, &err), 0);
    if (open_it(s, "tool.wasm", NULL) < 0)
        fail_msg("%s", s->err.text);
    assert_string_equal(s->in.package.form, "wasm");
    assert_int_equal(s->in.manifest.kind, AQ_KIND_WASM);
    assert_int_equal(s->in.package.packed_bytes, 8);
}

static void envelopes(void **state)
{
    scene *s = *state;
    const char *source = getenv("AQUARIUM_SOURCE");
    aq_auto_buf text = {0};
    aq_err err = {0};

    assert_non_null(source);
    if (aq_read_file(AT_FDCWD,
                     aq_arena_printf(s->a, "%s/tests/golden/intake-v1/valid/signed.json", source),
                     1 << 20, &text, &err) < 0)
        fail_msg("%s", err.text);
    put(s, "x.json", aq_buf_str(&text));
    assert_int_equal(open_it(s, "x.json", NULL), -ENOENT); /* no artifact beside it */
    assert_non_null(strstr(s->err.text, "artifact"));
    assert_int_equal(aq_write_file(s->dir, "x.wasm", "\0asm\1\0\0\0", 8, 0644, &err), 0);
    if (open_it(s, "x.json", NULL) < 0)
        fail_msg("%s", s->err.text);
    assert_false(s->in.submission.local);
    assert_int_equal(s->in.submission.signature, AQ_SIGNATURE_UNCHECKED);
    assert_int_equal(s->findings->per_rule[AQ_RULE_INTAKE_UNSIGNED], 0);
    aq_intake_close(&s->in);
    s->in.package.image = -1;
    put(s, "x.tar", "two of them");
    s->in = (aq_intake){.package = {.image = -1}};
    assert_int_equal(open_it(s, "x.json", NULL), -EINVAL);
    if (open_it(s, "x.json", "x.wasm") < 0)
        fail_msg("%s", s->err.text);
    assert_string_equal(s->in.package.form, "wasm");
}

static void bad_envelopes(void **state)
{
    scene *s = *state;

    put(s, "x.json", "{\"schema\": \"intake/v1\", \"unknown\": 1}");
    put(s, "x.tar", "");
    assert_int_equal(open_it(s, "x.json", NULL), 0);
    assert_int_equal(s->findings->per_rule[AQ_RULE_INTAKE_ENVELOPE], 1);
    /* The message enters the verdict digest, so how the file is called is not in it. */
    assert_non_null(strstr(s->findings->items[0].message, "an Intake v1 envelope: "));
    assert_null(strstr(s->findings->items[0].message, "x.json"));
    assert_int_equal(s->in.package.count, 0);
}

static void missing_input(void **state)
{
    scene *s = *state;

    assert_int_equal(open_it(s, "none", NULL), -ENOENT);
    assert_int_equal(s->findings->count, 0);
}

#else

/* ---- a front that is lied to ---- */

static int tell(aq_jail_io *io, uint16_t type, const void *p, size_t len, aq_err *err)
{
    return aq_jail_send(io, type, p, len, err);
}

/* The input's first byte chooses the lie. */
static int job_liar(aq_jail_io *io, aq_err *err)
{
    char what = 0;
    uint64_t five = 5, size = 0;
    aq_account whole = {0, 0};
    int r = pread(aq_jail_fd(io, 0), &what, 1, 0) == 1 ? 0 : -EIO;

    if (r < 0 || aq_answers_size(aq_jail_fd(io, 0), &size, err) < 0)
        return -EIO;
    whole.read = what == 'a' ? size - 1 : size;
    tell(io, AQ_TELL_FORM, what == 'f' ? "elf" : "tar", 3, err);
    tell(io, AQ_TELL_FILE, what == 'p' ? "\0../x" : "\0good", 5, err);
    tell(io, AQ_TELL_DATA, "12345", 5, err);
    if (what == 'n')
        tell(io, AQ_TELL_FILE, "\0b", 2, err);
    if (what == 's')
        five = 4;
    if (what != 'o')
        tell(io, AQ_TELL_DONE, &five, sizeof five, err);
    if (what == '2') {
        tell(io, AQ_TELL_FILE, "\0good", 5, err);
        tell(io, AQ_TELL_DONE, &(uint64_t){0}, 8, err);
    }
    if (what == 'w')
        tell(io, AQ_TELL_WRAPPER, "other", 5, err);
    if (what == 'u')
        tell(io, AQ_TELL_UNREAD, "short", 5, err);
    if (what == 'j')
        tell(io, AQ_TELL_FINDING, "{\"rule\":\"l0.readme.missing\",\"message\":\"m\"}", 43, err);
    if (what == 'c') /* a rule of another layer: a parser has no say there */
        tell(io, AQ_TELL_COUNT, "\1\0\0\0l0.readme.missing", 21, err);
    if (what == 'k')
        tell(io, AQ_TELL_COUNT, "\1\0\0\0intake.no-such-rule", 23, err);
    if (what == 'b')
        tell(io, AQ_TELL_COUNT, "\1\0\0\0", 4, err);
    if (what == 'C' || what == 'D') /* true: intake counts its own */
        tell(io, AQ_TELL_COUNT, "\7\0\0\0intake.unsigned", 19, err);
    if (what == 'D')
        tell(io, AQ_TELL_COUNT, "\xff\xff\xff\xffintake.unsigned", 19, err);
    if (what == 't')
        tell(io, 999, "?", 1, err);
    if (what == 'd')
        tell(io, AQ_TELL_DATA, "no file is open", 15, err);
    if (what == 'l')
        tell(io, AQ_TELL_LEFT_OUT, "\1no digest", 10, err);
    if (what == 'x')
        __builtin_trap();
    if (what != 'm')
        tell(io, AQ_TELL_ACCOUNT, &whole, sizeof whole, err);
    return 0;
}

static void lies_are_refused(void **state)
{
    aq_digest nothing = aq_sha256("", 0), last = nothing;
    static const char lies[] = "apfnso2wujckbtdxml";
    scene *s = *state;

    for (size_t i = 0; i + 1 < sizeof lies; i++) {
        uint32_t before = s->findings->per_rule[AQ_RULE_INTAKE_UNPACKER];
        char name[8], text[] = {lies[i], 'x', 'y', 'z', 0};
        aq_package p = {.image = -1};

        snprintf(name, sizeof name, "l%zu", i);
        put(s, name, text);
        if (aq_unpack(s->a, aq_arena_printf(s->a, "%s/%s", s->folder, name), s->folder, &s->budget,
                      s->findings, NULL, NULL, &p, &s->err) < 0)
            fail_msg("%c: %s", lies[i], s->err.text);
        if (p.count != 0 || s->findings->per_rule[AQ_RULE_INTAKE_UNPACKER] != before + 1)
            fail_msg("lie %c was believed", lies[i]);
        assert_true(s->findings->incomplete);
        assert_int_equal(p.unread_count, 1);
        assert_int_equal(p.unread[0].bytes, 4);
        /* Two inputs that could not be read are not one package. */
        assert_false(aq_digest_equal(&p.digest, &nothing));
        assert_false(aq_digest_equal(&p.digest, &last));
        last = p.digest;
        aq_package_close(&p);
    }
    assert_int_equal(s->findings->per_rule[AQ_RULE_L0_README_MISSING], 0);
}

/* The benign twin of a count for another layer's rule; a count that cannot be held is the most that
 * can, never a small one. */
static void counts_of_intake_are_added(void **state)
{
    scene *s = *state;

    for (int i = 0; i < 2; i++) {
        aq_package p = {.image = -1};
        put(s, i ? "D" : "C", i ? "Dxyz" : "Cxyz");
        if (aq_unpack(s->a, aq_arena_printf(s->a, "%s/%c", s->folder, i ? 'D' : 'C'), s->folder,
                      &s->budget, s->findings, NULL, NULL, &p, &s->err) < 0)
            fail_msg("%s", s->err.text);
        assert_int_equal(p.count, 1);
        assert_false(s->findings->incomplete);
        assert_int_equal(s->findings->per_rule[AQ_RULE_INTAKE_UNSIGNED], i ? UINT32_MAX : 7);
        aq_package_close(&p);
    }
}

static void truth_is_believed(void **state)
{
    scene *s = *state;
    aq_package p = {.image = -1};
    aq_digest want = aq_sha256("12345", 5);

    put(s, "t", "good");
    if (aq_unpack(s->a, aq_arena_printf(s->a, "%s/t", s->folder), s->folder, &s->budget,
                  s->findings, NULL, NULL, &p, &s->err) < 0)
        fail_msg("%s", s->err.text);
    assert_int_equal(p.count, 1);
    assert_true(aq_digest_equal(&p.files[0].digest, &want));
    assert_false(s->findings->incomplete);
    aq_package_close(&p);
}

static int job_dies(aq_jail_io *io, aq_err *err)
{
    tell(io, AQ_TELL_FINDING, "{}", 2, err);
    __builtin_trap();
}

/* The package stands, its manifest is empty, and the walk is told that a reader broke. */
static void a_manifest_job_that_dies(void **state)
{
    scene *s = *state;
    int r;

    assert_int_equal(mkdirat(s->dir, "skill", 0700), 0);
    put(s, "skill/SKILL.md", "---\nname: greeter\ndescription: Says hello.\n---\n# Greeter\n");
    r = aq_intake_open(s->a, aq_arena_printf(s->a, "%s/skill", s->folder), NULL, s->folder,
                       &s->budget, s->findings, NULL, NULL, &s->in, &s->err);
    if (r < 0)
        fail_msg("%s", s->err.text);
    assert_true(s->in.broken);
    assert_true(s->findings->incomplete);
    assert_int_equal(s->findings->per_rule[AQ_RULE_INTAKE_UNPACKER], 1);
    assert_int_equal(s->in.package.count, 1);
    assert_null(s->in.manifest.name);
}

static const aq_jail_job liars[] = {
    {"manifest", job_dies, UINT64_C(512) << 20, 5, NULL},
    {"unpack", job_liar, UINT64_C(512) << 20, 5, NULL},
    {"inspect", aq_job_inspect, UINT64_C(512) << 20, 5, NULL},
    {.name = NULL},
};

#endif

#define SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Built twice: with the true jobs, and (LIED_TO) with a liar in place of the unpacker. */
int main(int argc, char **argv)
{
#ifdef LIED_TO
    const struct CMUnitTest tests[] = {SCENE(lies_are_refused), SCENE(truth_is_believed),
                                       SCENE(counts_of_intake_are_added),
                                       SCENE(a_manifest_job_that_dies)};
    const aq_jail_job *jobs = liars;
#else
    const struct CMUnitTest tests[] = {
        SCENE(a_folder),      SCENE(a_module),      SCENE(envelopes),
        SCENE(bad_envelopes), SCENE(missing_input),
    };
    const aq_jail_job *jobs = aq_jobs;
#endif

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(jobs, argc, argv);
    return cmocka_run_group_tests_name("intake", tests, NULL, NULL);
}
