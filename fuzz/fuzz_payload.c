/* What the first bytes of a message say. Slices must lie inside of the message. */
#include <stdlib.h>
#include <string.h>

#include "observe/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(aq_slice s, const uint8_t *data, size_t size)
{
    const char *first = (const char *)data;

    if (s.len > 0 && (s.at < first || s.len > size || s.at + s.len > first + size))
        abort();
}

/* What is whole stays so with more bytes behind it; what is none stays none. */
static void parts(const uint8_t *data, size_t size)
{
    static uint8_t joined[512];
    size_t end = 0, len = 0;
    uint64_t body = 0;
    aq_http_head http;
    aq_part half = aq_payload_http_part(data, size / 2, &end, &body);
    aq_part all = aq_payload_http_part(data, size, &end, &body);

    if ((half != AQ_PART_MORE && all != half) || (all == AQ_PART_WHOLE && end > size) ||
        (all == AQ_PART_WHOLE && !aq_payload_http(data, end, &http)))
        abort();
    half = aq_payload_tls_part(data, size / 2, joined, sizeof joined, &len, &end);
    all = aq_payload_tls_part(data, size, joined, sizeof joined, &len, &end);
    if ((half != AQ_PART_MORE && all != half) ||
        (all == AQ_PART_WHOLE && (end > size || len > sizeof joined)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static aq_dns_question q;
    aq_http_head http;
    aq_tls_hello tls;
    int r = 0;

    parts(data, size);
    for (unsigned i = 0; i <= AQ_DNS_QUESTIONS && r == 0; i++) {
        r = aq_payload_dns(data, size, i, &q);
        if (r == 0 && (strnlen(q.name, sizeof q.name) == 0 ||
                       strnlen(q.name, sizeof q.name) == sizeof q.name))
            abort();
    }
    if (aq_payload_http(data, size, &http)) {
        inside(http.method, data, size);
        inside(http.target, data, size);
        inside(http.host, data, size);
    }
    if (aq_payload_tls(data, size, &tls)) {
        inside(tls.name, data, size);
        inside(tls.alpn, data, size);
    }
    return 0;
}
