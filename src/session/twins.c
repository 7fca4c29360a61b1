/* Twins; see twins.h. */
#include "session/twins.h"

#include "base/cleanup.h"

int aq_twins_run(aq_arena *a, const aq_backend *b, const aq_plan *plan, unsigned rounds,
                 aq_schedule *schedule, aq_buf *stream, aq_err *err)
{
    aq_schedule given = plan->schedule ? *plan->schedule : (aq_schedule){0}, next;
    aq_plan again = *plan;

    for (;;) {
        aq_auto_buf record = {0};
        int r;

        again.schedule = &given;
        r = aq_backend_run(b, &again, &record, err);
        if (r == 0)
            r = aq_schedule_read(a, record.data, record.len, &next, err);
        if (r < 0)
            return r;
        if (rounds-- > 1 && next.by_clock > 0) {
            given = next;
            continue;
        }
        aq_buf_add(stream, record.data, record.len);
        *schedule = given;
        return 0;
    }
}
