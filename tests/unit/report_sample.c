/* Prints a sample report in one of its forms, for the tests that look at them from outside.
 *   report_sample NAME json|sarif|html|text */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "sample.h"

int main(int argc, char **argv)
{
    aq_auto_json json_t *report = argc == 3 ? sample_report(argv[1]) : NULL;
    aq_auto_json json_t *sarif = NULL;
    aq_text_options options = {.width = 80};
    aq_auto_buf out = {0};

    if (!report) {
        fprintf(stderr, "usage: report_sample NAME json|sarif|html|text\n");
        return 64;
    }
    if (strcmp(argv[2], "sarif") == 0)
        aq_json_pretty(sarif = aq_report_sarif(report), &out);
    else if (strcmp(argv[2], "html") == 0)
        aq_report_html(report, &out);
    else if (strcmp(argv[2], "text") == 0)
        aq_report_text(report, &options, &out);
    else
        aq_json_pretty(report, &out);
    return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 1;
}
