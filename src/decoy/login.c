/* Records of logins and starts, as `who` and `last` read them: 384 bytes, numbers little-endian,
 * texts filled with zeros. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoy/internal.h"

enum {
    TYPE = 0,
    PID = 4,
    LINE = 8,
    ID = 40,
    USER = 44,
    HOST = 76,
    SECONDS = 340,
    MICROSECONDS = 344,
    RECORD = 384,
    FIELDS = 7
};

static void put_u32(uint8_t *to, uint32_t n)
{
    for (int i = 0; i < 4; i++, n >>= 8)
        to[i] = (uint8_t)n;
}

static void put_text(uint8_t *to, size_t room, const char *text)
{
    size_t n = strlen(text);

    memcpy(to, text, n < room ? n : room);
}

/* "boot", "boot+6": after the start of the machine; "-5400": before the world's clock begins. */
static int64_t moment(const aq_making *m, const char *when)
{
    if (strncmp(when, "boot", 4) == 0)
        return m->boot + strtol(when + 4, NULL, 10);
    return m->start + strtol(when, NULL, 10);
}

int aq_value_login(const aq_making *m, aq_buf *out, aq_err *err)
{
    char text[512], *field[FIELDS], *rest = text;
    uint8_t record[RECORD] = {0};

    if (m->len >= sizeof text)
        return aq_fail(err, -EINVAL, "a login of more than 511 bytes");
    memcpy(text, m->text, m->len + 1);
    for (int i = 0; i < FIELDS; i++)
        if (!(field[i] = strsep(&rest, "|")))
            return aq_fail(err, -EINVAL, "a login is TYPE|WHEN|PID|LINE|ID|USER|HOST");
    record[TYPE] = (uint8_t)strtoul(field[0], NULL, 10);
    put_u32(record + SECONDS, (uint32_t)moment(m, field[1]));
    put_u32(record + MICROSECONDS, aq_stream_below(&m->lot->pair, 1000000));
    put_u32(record + PID, (uint32_t)strtoul(field[2], NULL, 10));
    put_text(record + LINE, 32, field[3]);
    put_text(record + ID, 4, field[4]);
    put_text(record + USER, 32, field[5]);
    put_text(record + HOST, 256, field[6]);
    aq_buf_add(out, record, sizeof record);
    return 0;
}
