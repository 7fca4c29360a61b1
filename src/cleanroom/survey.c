/* The survey, seen from the front: sends the list of files to the jailed child and reads its answer
 * as hostile. A child that gives no answer costs the survey, never the walk: a finding then says
 * that there is none. */
#include "cleanroom/survey.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cleanroom/survey_core.h"
#include "cleanroom/survey_job.h"

enum { GATHER = 256 << 10 /* bytes of records in one frame */ };

/* `sent`: how many files were within the budget. */
static int send_files(aq_jail *j, const aq_package *p, aq_budget *budget, size_t *sent, aq_err *err)
{
    aq_auto_buf frame = {0};
    int r;

    for (size_t i = 0; i < p->count; i++) {
        const aq_file *f = &p->files[i];
        aq_survey_record record = {
            .offset = f->offset, .size = f->size, .path = (uint32_t)strlen(f->path)};
        if (!aq_budget_spend(budget, AQ_BUDGET_SURVEY, f->size))
            break;
        *sent = i + 1;
        aq_buf_add(&frame, &record, sizeof record);
        aq_buf_add(&frame, f->path, record.path);
        if (frame.len < GATHER && i + 1 < p->count)
            continue;
        if ((r = aq_jail_request(j, AQ_SURVEY_FILES, frame.data, frame.len, NULL, 0, err)) < 0)
            return r;
        aq_buf_clear(&frame);
    }
    if (frame.len &&
        (r = aq_jail_request(j, AQ_SURVEY_FILES, frame.data, frame.len, NULL, 0, err)) < 0)
        return r;
    return aq_jail_finish(j, err);
}

static int receive(aq_jail *j, aq_arena *a, const aq_package *p, aq_survey *ret, aq_err *err)
{
    aq_auto_json json_t *answer = NULL;
    const void *payload;
    uint16_t type;
    aq_survey s;
    size_t len;
    int r;

    aq_jail_limit(j, 8, 2 * AQ_JAIL_FRAME); /* the protocol's own frames count */
    if ((r = aq_jail_next(j, &type, &payload, &len, err)) <= 0)
        return r < 0 ? r : aq_fail(err, -EBADMSG, "survey: no answer");
    if (type != AQ_SURVEY_RESULT)
        return aq_fail(err, -EBADMSG, "survey: unknown answer %u", type);
    if ((r = aq_json_parse(payload, len, "survey", &answer, err)) < 0 ||
        (r = aq_survey_read(a, answer, p->count, p->bytes, &s, err)) < 0)
        return r;
    if ((r = aq_jail_next(j, &type, &payload, &len, err)) != 0)
        return r < 0 ? r : aq_fail(err, -EBADMSG, "survey: more than one answer");
    *ret = s;
    return 0;
}

int aq_survey_run(aq_arena *a, const aq_package *package, aq_budget *budget, aq_survey *ret,
                  aq_err *err)
{
    aq_survey survey = {.complete = false};
    aq_jail *j = NULL;
    size_t sent = 0;
    int r;

    if (package->bytes == 0) { /* nothing to read, and perhaps no image */
        *ret = (aq_survey){.complete = true, .files = package->count};
        return 0;
    }
    if ((r = aq_jail_start("survey", &package->image, 1, &j, err)) < 0)
        return r;
    r = send_files(j, package, budget, &sent, err);
    if (r == 0)
        r = receive(j, a, package, &survey, err);
    aq_jail_stop(j);
    if (r < 0)
        survey =
            (aq_survey){.reason = aq_arena_printf(a, "Its reader gave no answer: %s", err->text)};
    else if (sent < package->count)
        survey.reason = aq_arena_printf(
            a, "%zu of %zu files were surveyed: the budget surveyed-bytes of %llu ended", sent,
            package->count, (unsigned long long)budget->limit[AQ_BUDGET_SURVEY]);
    else if (!survey.complete)
        survey.reason = "Its reader did not finish";
    survey.complete = !survey.reason;
    *ret = survey;
    return 0;
}
