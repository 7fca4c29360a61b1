/* The survey over files from the fuzzer: "path NUL content NUL path NUL content …". Whatever comes,
 * the counts add up, the answer survives the border, and the order of files does not matter. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/survey_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 16 };

typedef struct sheet {
    char *path;
    const uint8_t *text;
    size_t len;
} sheet;

static const uint8_t *until_nul(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *nul = memchr(p, 0, (size_t)(end - p));

    return nul ? nul : end;
}

static size_t split(aq_arena *a, const uint8_t *p, const uint8_t *end, sheet *sheets)
{
    size_t count = 0;

    while (p < end && count < FILES) {
        const uint8_t *stop = until_nul(p, end);
        sheet *s = &sheets[count++];
        /* Paths of a package are unique. */
        s->path = aq_arena_printf(a, "%02zu/%.*s", count, (int)(stop - p), (const char *)p);
        p = stop < end ? stop + 1 : end;
        stop = count < FILES ? until_nul(p, end) : end;
        s->text = p;
        s->len = (size_t)(stop - p);
        p = stop < end ? stop + 1 : end;
    }
    return count;
}

static json_t *survey(aq_arena *a, const sheet *sheets, size_t count, bool backwards,
                      aq_survey *ret)
{
    aq_survey_scan *scan = aq_survey_scan_new();

    for (size_t i = 0; i < 2 * count; i++) {
        const sheet *s = &sheets[backwards ? count - 1 - i % count : i % count];
        if (i < count)
            aq_survey_count(scan, s->path, s->text, s->len);
        else
            aq_survey_score(scan, s->path, s->text, s->len);
    }
    aq_survey_finish(scan, a, ret);
    aq_survey_scan_free(scan);
    return aq_survey_json(ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *one = NULL, *two = NULL;
    sheet sheets[FILES] = {0};
    size_t count = split(a, data, data + size, sheets);
    aq_survey s, back;
    aq_err err = {0};

    if (count == 0)
        return 0;
    one = survey(a, sheets, count, false, &s);
    two = survey(a, sheets, count, true, &back);
    if (!json_equal(one, two) || s.files != count || s.look_count > AQ_LOOKS)
        abort();
    if (aq_survey_read(a, one, count, s.bytes, &back, &err) < 0)
        abort();
    for (size_t i = 0; i < s.look_count; i++)
        if (!aq_utf8_valid(s.looks[i].text, strlen(s.looks[i].text)) ||
            strlen(s.looks[i].text) > AQ_LOOK_TEXT || strcmp(s.looks[i].text, back.looks[i].text))
            abort();
    return 0;
}
