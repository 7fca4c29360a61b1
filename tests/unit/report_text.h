/* What a text report says, and what it must never say. */
#pragma once

#include "unit.h"

#include <string.h>

#include "cleanroom/report.h"

static inline void in_text(const json_t *report, unsigned width, bool verbose, const char *want)
{
    aq_text_options o = {.width = width, .verbose = verbose};
    aq_auto_buf out = {0};

    aq_report_text(report, &o, &out);
    if (!strstr(out.data, want))
        fail_msg("“%s” is not in:\n%s", want, out.data);
}

static inline void not_in_text(const json_t *report, const char *never)
{
    aq_text_options o = {.width = 80};
    aq_auto_buf out = {0};

    aq_report_text(report, &o, &out);
    if (strstr(out.data, never))
        fail_msg("“%s” is in:\n%s", never, out.data);
}
