/* The container's watch: the tracer (observe/tracer.h) looks at the payload. The one place where
 * the observer and the container meet. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel/process.h"
#include "observe/tracer.h"
#include "sandbox/watch.h"

static uint64_t turn_ns(uint64_t ms)
{
    static const uint64_t year_ms = UINT64_C(31536000000), ms_ns = 1000000;

    return (ms < year_ms ? ms : year_ms) * ms_ns;
}

static void *begin(const aq_plan *plan, const aq_limits *limits, aq_recorder *rec,
                   const aq_watch_hooks *hooks)
{
    struct timespec now;
    struct stat st;
    aq_tracer_plan p = {
        .calls = limits->most[AQ_LIMIT_CALLS],
        .virtual_ns = limits->most[AQ_LIMIT_VIRTUAL_NS],
        .moved_bytes = limits->most[AQ_LIMIT_IO],
        .tasks = (uint32_t)limits->most[AQ_LIMIT_PROCESSES],
        .machine = plan->machine,
        .turn_ns = turn_ns(limits->most[AQ_LIMIT_TURN_MS]),
        .schedule = plan->schedule && plan->schedule->count ? plan->schedule : NULL,
        .cpu = -1,
        .pump = hooks->pump,
        .full = hooks->full,
        .room = hooks->room,
        .over = hooks->over,
        .said_bytes = limits->most[AQ_LIMIT_OUTPUT],
        .touch = hooks->touch,
        .lay = hooks->lay,
        .home = hooks->home,
        .hardware = hooks->hardware,
        .marks = hooks->marks,
        .large = hooks->large,
        .reach = hooks->line < 0 ? NULL : hooks->reach,
        .alone = hooks->alone,
        .line = hooks->line,
        .arg = hooks->arg,
    };

    for (int i = 0; i < 2; i++)
        if (fstat(hooks->output[i], &st) == 0) {
            p.output[i].dev = st.st_dev;
            p.output[i].ino = st.st_ino;
        }
    aq_process_clock(CLOCK_REALTIME, &now);
    p.start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    aq_recorder_limit(rec, limits->most[AQ_LIMIT_EVENTS]);
    return aq_tracer_new(&p, rec);
}

static int attach(void *watch, pid_t payload, aq_err *err)
{
    return aq_tracer_attach(watch, payload, err);
}

/* Which limit a stop belongs to. A world that waits for what can never come would wait until its
 * time is over, so it is ended as that. */
static int limit_of(aq_stop stop)
{
    switch (stop) {
    case AQ_STOP_CALLS:
        return AQ_LIMIT_CALLS;
    case AQ_STOP_TASKS:
        return AQ_LIMIT_PROCESSES;
    case AQ_STOP_MOVED:
        return AQ_LIMIT_IO;
    case AQ_STOP_FULL:
        return AQ_LIMIT_DISK;
    case AQ_STOP_SAID:
        return AQ_LIMIT_OUTPUT;
    case AQ_STOP_WALL:
        return AQ_LIMIT_WALL_MS;
    default:
        return AQ_LIMIT_VIRTUAL_NS;
    }
}

static int run(void *watch, aq_observation *o, bool *ended, aq_err *err)
{
    aq_tracer_end end = {0};
    int r = aq_tracer_run(watch, &end, err);

    if (r < 0)
        return r;
    *ended = true;
    o->written_bytes = end.written;
    if (end.stop != AQ_STOP_NONE) {
        o->exit_kind = AQ_EXIT_BUDGET;
        o->exit_value = limit_of(end.stop);
    } else if (WIFSIGNALED(end.status)) {
        o->exit_kind = AQ_EXIT_SIGNAL;
        o->exit_value = WTERMSIG(end.status);
    } else {
        o->exit_kind = AQ_EXIT_STATUS;
        o->exit_value = WEXITSTATUS(end.status);
    }
    return 0;
}

static void end(void *watch)
{
    aq_tracer_free(watch);
}

static const aq_watch tracing = {begin, attach, aq_tracer_enter, run, end};
const aq_watch *aq_container_watch = &tracing;
