/* The line to the private internet: whatever comes in a packet is refused with a reason, or is a
 * message that prints back to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "internet/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_line_message m;
    aq_auto_buf again = {0};
    aq_err err = {0};
    int r = aq_line_read(data, size, &m, &err);

    if (r < 0) {
        if (err.code != r || !err.text[0])
            abort();
        return 0;
    }
    aq_line_write(&m, &again);
    if (again.len != size || memcmp(again.data, data, size) != 0)
        abort();
    return 0;
}
