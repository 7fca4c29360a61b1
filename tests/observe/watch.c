/* Runs a program under the tracer and writes its events as JSON lines. For tests: the programs are
 * ours, and there is no sandbox.
 *
 *   watch [--apart] EVENTS PROGRAM ARGUMENT…
 *
 * --apart: in mount and pid namespaces of its own, as the tracer will meet its workloads: numbers
 * and /proc mean something else inside than outside. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/process.h"
#include "observe/tracer.h"

static int fail(const char *text)
{
    fprintf(stderr, "watch: %s\n", text);
    return 70;
}

/* Becomes the program once it is told to go. */
static int workload(int go, char **argv)
{
    aq_err err = {0};
    char c;

    if (read(go, &c, 1) != 1)
        return 70;
    close(go);
    if (aq_process_no_new_privileges(&err) < 0 || aq_tracer_enter(&err) < 0)
        return fail(err.text);
    execv(argv[0], argv);
    return 127;
}

/* Makes the namespaces, starts the workload in them and says its number outside. */
static int apart(int go, int say, char **argv)
{
    pid_t pid;

    if (unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWNS | CLONE_NEWPID) < 0)
        return 77;
    pid = fork();
    if (pid == 0) {
        close(say);
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("proc", "/proc", "proc", 0, NULL) < 0)
            return 77;
        return workload(go, argv);
    }
    close(go);
    if (pid < 0 || write(say, &pid, sizeof pid) != sizeof pid)
        return 70;
    close(say);
    waitpid(pid, NULL, 0);
    return 0;
}

static pid_t start(bool is_apart, int go[2], char **argv)
{
    int say[2];
    pid_t pid, inner = -1;

    if (pipe(go) < 0 || pipe(say) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(say[0]);
        if (is_apart)
            _exit(apart(go[0], say[1], argv));
        close(say[1]);
        _exit(workload(go[0], argv));
    }
    close(go[0]);
    close(say[1]);
    if (is_apart && read(say[0], &inner, sizeof inner) != sizeof inner)
        inner = -1;
    close(say[0]);
    return is_apart ? inner : pid;
}

static int save(const aq_buf *stream, const char *path)
{
    aq_auto_buf lines = {0};
    aq_err err = {0};
    FILE *f;

    if (aq_observation_jsonl(stream->data, stream->len, &lines, &err) < 0)
        return fail(err.text);
    f = fopen(path, "we");
    if (!f || fwrite(lines.data, 1, lines.len, f) != lines.len || fclose(f) != 0)
        return fail("cannot write the events");
    return 0;
}

static int watch(aq_tracer *t, aq_recorder *rec, pid_t pid, int go, aq_tracer_end *end)
{
    aq_observation o = {.backend = "container", .world = "A"};
    aq_err err = {0};

    if (pid < 0 || aq_tracer_attach(t, pid, &err) < 0)
        return fail(err.text);
    if (write(go, "", 1) != 1 || close(go) != 0)
        return fail("the program is not there");
    if (aq_tracer_run(t, end, &err) < 0)
        return fail(err.text);
    aq_recorder_end(rec, &o);
    return 0;
}

int main(int argc, char **argv)
{
    bool is_apart = argc > 1 && strcmp(argv[1], "--apart") == 0;
    aq_auto_buf out = {0};
    aq_tracer_plan plan = {.start_ns = INT64_C(1700000000) * 1000000000,
                           .cpu = -1,
                           .wall_ms = 60000,
                           .turn_ns = 2000000000};
    aq_recorder *rec = aq_recorder_new("container", "A", &out);
    aq_tracer *t = aq_tracer_new(&plan, rec);
    aq_tracer_end end = {0};
    int go[2] = {-1, -1}, r;
    pid_t pid;

    argv += is_apart;
    if (argc - is_apart < 3)
        return 64;
    pid = start(is_apart, go, argv + 2);
    r = watch(t, rec, pid, go[1], &end);
    if (r == 0)
        r = save(&out, argv[1]);
    aq_tracer_free(t);
    aq_recorder_free(rec);
    if (r != 0 || end.stop != AQ_STOP_NONE)
        return r ? r : 71;
    return WIFEXITED(end.status) ? WEXITSTATUS(end.status) : 128 + WTERMSIG(end.status);
}
