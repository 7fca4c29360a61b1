/* The record of an earlier run as the schedule of this one. */
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/run_text.h"

static const size_t STREAM_MOST = (size_t)512 << 20;

int aq_run_schedule(aq_arena *a, const char *path, aq_schedule *ret)
{
    aq_auto_arena reading = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_switch *rows;
    aq_schedule read;
    aq_err err = {0};

    if (aq_read_file(AT_FDCWD, path, STREAM_MOST, &stream, &err) < 0)
        return aq_say_usage(&aq_command_run, "--schedule: %s", err.text);
    if (aq_schedule_read(reading, stream.data, stream.len, &read, &err) < 0)
        return aq_say_usage(&aq_command_run, "--schedule %.200s: %s", path, err.text);
    rows = aq_arena_alloc(a, (read.count + 1) * sizeof *rows);
    for (size_t i = 0; i < read.count; i++)
        rows[i] = read.rows[i];
    *ret = (aq_schedule){rows, read.count, read.by_clock};
    return AQ_PARSE_RUN;
}
