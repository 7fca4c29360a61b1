/* A schedule; see schedule.h. */
#include "model/schedule.h"

#include <string.h>

#include "model/observation.h"

typedef struct reading {
    aq_switch *rows;
    size_t count, by_clock;
} reading;

/* A number of the event, or -1. */
static int64_t number(const aq_event *e, const char *name)
{
    for (uint8_t i = 0; i < e->arg_count; i++)
        if (!e->args[i].bytes && strcmp(e->args[i].name, name) == 0)
            return e->args[i].number;
    return -1;
}

static void take(const aq_event *e, void *arg)
{
    static const int64_t END = INT64_C(1) << 47; /* of the addresses that a program has */
    int64_t call = number(e, "call"), at = number(e, "at"), hits = number(e, "hits");
    reading *r = arg;

    if (e->kind != AQ_EVENT_SYSCALL ||
        (strcmp(e->op, "preempted") != 0 && strcmp(e->op, "switched") != 0))
        return;
    if (call < 0 || at <= 0 || at >= END || hits <= 0 || hits > AQ_SCHEDULE_HITS ||
        r->count == AQ_SCHEDULE_ROWS)
        return;
    r->by_clock += strcmp(e->op, "preempted") == 0;
    r->rows[r->count++] = (aq_switch){.process = e->process,
                                      .thread = e->thread,
                                      .call = (uint64_t)call,
                                      .at = (uint64_t)at,
                                      .hits = (uint32_t)hits,
                                      .jump = number(e, "jump") > 0};
}

int aq_schedule_read(aq_arena *a, const void *stream, size_t len, aq_schedule *ret, aq_err *err)
{
    reading r = {.rows = aq_arena_alloc(a, AQ_SCHEDULE_ROWS * sizeof *r.rows)};
    aq_observation o;
    int n = aq_observation_read(a, stream, len, take, &r, &o, err);

    if (n < 0)
        return n;
    *ret = (aq_schedule){r.rows, r.count, r.by_clock};
    return 0;
}
