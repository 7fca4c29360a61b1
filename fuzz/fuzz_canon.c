/* The canonical form of hostile events: any births, any names, any numbers. Made twice it is the
 * same, and compared with itself nothing differs. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "observe/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes are events, one behind the other; what is none ends the run. */
static void record(const uint8_t *data, size_t size, aq_buf *out)
{
    aq_recorder *r = aq_recorder_new("container", "A", out);
    aq_auto_arena a = aq_arena_new();
    aq_observation o = {.exit_kind = AQ_EXIT_STATUS};
    aq_event e;
    ssize_t n;

    while ((n = aq_event_read(a, data, size, &e, NULL)) > 0) {
        aq_recorder_event(r, &e);
        data += n, size -= (size_t)n;
    }
    aq_recorder_end(r, &o);
    aq_recorder_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf whole = {0}, half = {0};
    const aq_marks *marks = aq_marks_new(a, &(aq_mark){"a", "A", 1}, 1);
    aq_compared sides[2] = {{.marks = marks}, {.marks = marks}};
    aq_comparison c;
    aq_err err = {0};

    record(data, size, &whole);
    record(data, size / 2, &half);
    sides[0].data = sides[1].data = whole.data;
    sides[0].len = sides[1].len = whole.len;
    if (aq_compare(a, sides, &c, &err) < 0 || !c.equal || c.count)
        abort();
    sides[1].data = half.data;
    sides[1].len = half.len;
    if (aq_compare(a, sides, &c, &err) < 0 || (!c.equal && !c.count))
        abort();
    return 0;
}
