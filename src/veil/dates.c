/* See dates.h; and the logs that tell of those days. */
#include "veil/dates.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "veil/internal.h"

enum { DAY = 86400, HOUR = 3600, DAYS = 3, DATE = 10, HOURS = 9106, LEAST = 9, SPREAD = 15 };

/* In the order of rules/machine: installed, the kernel, the last upgrade. */
static const char *const dates[DAYS] = {"2024-01-16", "2024-02-27", "2025-09-08"};
static const int64_t days[DAYS] = {19738, 19780, 20339}; /* since 1970 */

static int64_t day_of(const aq_machine *m, int which)
{
    const int64_t second = 1000000000;
    int64_t start = m->start_ns / second;
    int64_t made = start - (int64_t)aq_machine_number(m, "disk.made_hours", HOURS) * HOUR;

    if (which == 2)
        return start / DAY - LEAST - m->entropy[0] % SPREAD;
    return made / DAY + days[which] - days[0];
}

int64_t aq_veil_moved(const aq_machine *m, int64_t at)
{
    for (int i = 0; i < DAYS; i++)
        if (at >= days[i] * DAY && at < (days[i] + 1) * DAY)
            return at + (day_of(m, i) - days[i]) * DAY;
    return at;
}

static bool put_date(const aq_machine *m, const char *from, char to[static DATE])
{
    char text[24];
    struct tm day;
    time_t at;

    for (int i = 0; i < DAYS; i++)
        if (memcmp(from, dates[i], DATE) == 0) {
            at = (time_t)(day_of(m, i) * DAY);
            if (!gmtime_r(&at, &day) || strftime(text, sizeof text, "%Y-%m-%d", &day) != DATE)
                return false;
            memcpy(to, text, DATE);
            return true;
        }
    return false;
}

/* A log: the days in it, moved. */
void aq_make_log(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_buf_add(ret, truth, len);
    for (size_t at = 0; at + DATE <= len; at++)
        if (ret->data[at] == '2' && put_date(s->machine, truth + at, ret->data + at))
            at += DATE - 1;
}
