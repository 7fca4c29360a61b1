/* Intake v1 envelopes: what is accepted has a canonical form and is accepted again from it. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/submission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf canonical = {0};
    aq_submission s, again;
    aq_err err = {0};

    if (aq_submission_read(a, (const char *)data, size, "envelope", &s, &err) < 0)
        return 0;
    aq_auto_json json_t *j = aq_submission_json(&s);
    if (aq_json_canonical(j, &canonical) < 0 ||
        aq_submission_read(a, canonical.data, canonical.len, "envelope", &again, &err) < 0)
        abort();
    aq_submission_close(&again);
    aq_submission_close(&s);
    return 0;
}
