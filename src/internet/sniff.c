/* What the first bytes of a connection are: TLS on any port, HTTP on any port, or something else.
 */
#include <string.h>

#include "internet/internal.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* A record of a handshake (22) of version 3.0 to 3.4, with a client's hello (1) in it. */
static aq_sniff tls(const uint8_t *data, size_t len)
{
    if (data[0] != 22 || (len > 1 && data[1] != 3) || (len > 2 && data[2] > 4) ||
        (len > 5 && data[5] != 1))
        return AQ_SNIFF_OTHER;
    return len > 5 ? AQ_SNIFF_TLS : AQ_SNIFF_MORE;
}

/* A method (letters, some with a hyphen or an underscore), a blank, and a target. */
static aq_sniff http(const uint8_t *data, size_t len)
{
    enum { LONGEST = 24, LINE = 2048 };
    size_t i = 0;

    while (i < len && i < LONGEST && ((data[i] >= 'A' && data[i] <= 'Z') || data[i] == '-'))
        i++;
    if (i == len)
        return AQ_SNIFF_MORE;
    if (i < 3 || data[i] != ' ')
        return AQ_SNIFF_OTHER;
    if (i + 1 == len)
        return AQ_SNIFF_MORE;
    i++;
    if (data[i] == '/' || data[i] == '*')
        return AQ_SNIFF_HTTP;
    /* Otherwise the version at the end of the line decides: SMTP has words before a blank too. */
    const uint8_t *end = memchr(data, '\n', len < LINE ? len : LINE);

    if (!end)
        return len < LINE ? AQ_SNIFF_MORE : AQ_SNIFF_OTHER;
    return memmem(data, (size_t)(end - data), " HTTP/1.", 8) ? AQ_SNIFF_HTTP : AQ_SNIFF_OTHER;
}

aq_sniff aq_sniff_of(const uint8_t *data, size_t len)
{
    size_t head = sizeof preface - 1;
    aq_sniff s;

    if (len == 0)
        return AQ_SNIFF_MORE;
    if (memcmp(data, preface, len < head ? len : head) == 0)
        return len < head ? AQ_SNIFF_MORE : AQ_SNIFF_HTTP2;
    s = tls(data, len);
    return s == AQ_SNIFF_OTHER ? http(data, len) : s;
}
