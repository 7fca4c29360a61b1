/* DNS: one resolver that knows the declared names, the machine's own, and nothing else.
 *
 * A message is read by hand, bounded, and answered as a recursive resolver would: declared names
 * have an address of their own each (stable, drawn from public ranges by the key that both worlds
 * share), every other name does not exist, with the SOA that says so. The question is echoed as it
 * came, case and all. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internet/internal.h"
#include "internet/rules.h"

enum {
    A = 1,
    NS = 2,
    CNAME = 5,
    SOA = 6,
    PTR = 12,
    MX = 15,
    TXT = 16,
    AAAA = 28,
    OPT = 41,
    ANY = 255,
    CLASS_IN = 1,
    NAME_WIRE = 255,
    TTL = 300,
    TTL_NONE = 900,
};
enum { NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 16 };

static const struct {
    uint16_t type;
    const char *name;
} types[] = {
    {A, "A"},     {NS, "NS"},    {CNAME, "CNAME"}, {SOA, "SOA"},   {PTR, "PTR"},
    {MX, "MX"},   {TXT, "TXT"},  {AAAA, "AAAA"},   {33, "SRV"},    {35, "NAPTR"},
    {43, "DS"},   {46, "RRSIG"}, {47, "NSEC"},     {48, "DNSKEY"}, {52, "TLSA"},
    {64, "SVCB"}, {65, "HTTPS"}, {99, "SPF"},      {251, "IXFR"},  {252, "AXFR"},
    {ANY, "ANY"}, {257, "CAA"},  {13, "HINFO"},    {44, "SSHFP"},  {10, "NULL"},
};

const char *aq_dns_type_name(uint16_t type, char buffer[static 16])
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return types[i].name;
    snprintf(buffer, 16, "TYPE%u", type);
    return buffer;
}

uint16_t aq_dns_type_of(const char *name)
{
    char *end;
    unsigned long n = strtoul(name, &end, 10);

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i].name, name) == 0)
            return types[i].type;
    return *name >= '0' && *name <= '9' && !*end && n < 65536 ? (uint16_t)n : 0;
}

void aq_dns_note(aq_note *n, const aq_dns_asked *asked, const char *over)
{
    static char buffer[16];

    aq_note_object(n, asked->name, strlen(asked->name));
    aq_note_text(n, "type", aq_dns_type_name(asked->type, buffer));
    aq_note_number(n, "class", asked->class_);
    aq_note_number(n, "code", asked->code);
    aq_note_number(n, "answers", asked->answers);
    aq_note_text(n, "over", over);
}

static unsigned get16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static void put16(aq_buf *out, unsigned v)
{
    aq_buf_addc(out, (char)(v >> 8));
    aq_buf_addc(out, (char)v);
}

static void put32(aq_buf *out, uint32_t v)
{
    put16(out, v >> 16);
    put16(out, v & 0xffff);
}

/* The question's name as text. It cannot be compressed: nothing stands before it. */
static int read_name(const uint8_t *data, size_t len, size_t *at, char *text, size_t room)
{
    size_t from = *at, n = 0;

    for (;;) {
        size_t label;

        if (*at >= len)
            return -EBADMSG;
        label = data[(*at)++];
        if (label == 0)
            break;
        /* With its end a name has at most 255 bytes; each may become four, and a dot follows. */
        if (label > 63 || *at + label > len || *at + label - from >= NAME_WIRE ||
            n + 4 * label + 2 > room)
            return -EBADMSG;
        for (size_t i = 0; i < label; i++) {
            uint8_t ch = data[*at + i];
            bool plain = ch > ' ' && ch < 127 && ch != '.' && ch != '\\';

            n += (size_t)snprintf(text + n, room - n, plain ? "%c" : "\\%03u", ch);
        }
        *at += label;
        text[n++] = '.';
    }
    if (n > 1)
        n--; /* the last dot */
    else if (n == 0)
        text[n++] = '.';
    text[n] = '\0';
    return 0;
}

static void put_name(aq_buf *out, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, ".");

        if (n > 63)
            n = 63;
        if (n > 0) {
            aq_buf_addc(out, (char)n);
            aq_buf_add(out, name, n);
        }
        name += n;
        name += *name == '.';
    }
    aq_buf_addc(out, 0);
}

/* ---- what there is ---- */

static aq_stream stream_of(const aq_internet_world *w, const char *kind, const char *name,
                           char text[static AQ_STREAM_NAME])
{
    aq_auto_buf lower = {0};
    aq_digest d;
    char hex[AQ_SHA256_HEX];

    for (const char *p = name; *p; p++)
        aq_buf_addc(&lower, (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p));
    d = aq_sha256(aq_buf_str(&lower), lower.len);
    snprintf(text, AQ_STREAM_NAME, "internet:%s:%s", kind, aq_digest_hex(&d, hex));
    return aq_stream_of(w->pair, text);
}

/* Ranges of the large networks that most names of today lead to. */
void aq_dns_address4(const aq_internet_world *w, const char *name, uint8_t ret[static 4])
{
    static const struct {
        uint32_t base;
        unsigned bits;
    } ranges[] = {
        {0x68100000, 19}, /* 104.16.0.0/13 */
        {0x97650000, 16}, /* 151.101.0.0/16 */
        {0x0d200000, 17}, /* 13.32.0.0/15 */
        {0x34540000, 17}, /* 52.84.0.0/15 */
        {0x8efa0000, 17}, /* 142.250.0.0/15 */
        {0xac430000, 16}, /* 172.67.0.0/16 */
        {0x143c0000, 16}, /* 20.60.0.0/16 */
        {0x23be0000, 15}, /* 35.190.0.0/17 */
        {0x88f30000, 16}, /* 136.243.0.0/16 */
        {0xc7e80000, 16}, /* 199.232.0.0/16 */
    };
    char text[AQ_STREAM_NAME];
    aq_stream s = stream_of(w, "a", name, text);
    uint32_t which = aq_stream_below(&s, sizeof ranges / sizeof *ranges);
    uint32_t inside = aq_stream_below(&s, 1u << ranges[which].bits);
    uint32_t at = ranges[which].base | inside;

    if ((at & 0xff) == 0 || (at & 0xff) == 0xff)
        at ^= 0x35;
    for (int i = 0; i < 4; i++)
        ret[i] = (uint8_t)(at >> (24 - 8 * i));
}

void aq_dns_address6(const aq_internet_world *w, const char *name, uint8_t ret[static 16])
{
    static const uint8_t ranges[][4] = {{0x26, 0x06, 0x47, 0x00},
                                        {0x2a, 0x04, 0x4e, 0x42},
                                        {0x26, 0x00, 0x90, 0x00},
                                        {0x2a, 0x00, 0x14, 0x50}};
    char text[AQ_STREAM_NAME];
    aq_stream s = stream_of(w, "aaaa", name, text);

    memset(ret, 0, 16);
    memcpy(ret, ranges[aq_stream_below(&s, 4)], 4);
    aq_stream_bytes(&s, ret + 4, 4);
    aq_stream_bytes(&s, ret + 12, 4);
}

static bool is_declared(const aq_internet_world *w, const char *name)
{
    for (size_t i = 0; i < w->name_count; i++)
        if (w->names[i][0] != ',' && !strchr(w->names[i], ',') && aq_rule_match(w->names[i], name))
            return true;
    return false;
}

/* The machine's own address, where `name` is a name of its own. */
static bool own_name(const aq_internet_world *w, const char *name, uint8_t ret[static 4])
{
    const char *host = aq_internet_fact(w, "host.name"), *domain, *address;
    char text[64];

    if (strcasecmp(name, "localhost") == 0) {
        memcpy(ret, "\x7f\0\0\1", 4);
        return true;
    }
    domain = aq_internet_fact(w, "host.domain");
    address = aq_internet_fact(w, "net.address");
    if (strcasecmp(name, "_gateway") == 0)
        address = aq_internet_fact(w, "net.gateway");
    else if (!host || strncasecmp(name, host, strlen(host)) != 0 ||
             (name[strlen(host)] && (name[strlen(host)] != '.' || !domain ||
                                     strcasecmp(name + strlen(host) + 1, domain) != 0)))
        return false;
    if (!address)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(address, "/"), address);
    return inet_pton(AF_INET, text, ret) == 1;
}

/* ---- the answer ---- */

typedef struct answer {
    const aq_internet_world *world;
    int64_t now;
    aq_buf *out;
    const aq_dns_asked *asked;
    size_t count;
} answer;

static void begin_record(answer *a, uint16_t type, uint32_t ttl)
{
    put16(a->out, 0xc00c); /* the question's name */
    put16(a->out, type);
    put16(a->out, CLASS_IN);
    put32(a->out, ttl);
    a->count++;
}

static size_t open_length(aq_buf *out)
{
    put16(out, 0);
    return out->len;
}

static void close_length(aq_buf *out, size_t mark)
{
    size_t n = out->len - mark;

    out->data[mark - 2] = (char)(n >> 8);
    out->data[mark - 1] = (char)n;
}

static void put_address(answer *a, const uint8_t *address, size_t len)
{
    begin_record(a, len == 4 ? A : AAAA, TTL);
    put16(a->out, (unsigned)len);
    aq_buf_add(a->out, address, len);
}

static void put_mail(answer *a, const char *name)
{
    size_t mark;

    begin_record(a, MX, TTL);
    mark = open_length(a->out);
    put16(a->out, 10);
    aq_buf_adds(a->out, "\4mail");
    put_name(a->out, name);
    close_length(a->out, mark);
}

static void put_text(answer *a)
{
    static const char spf[] = "v=spf1 mx -all";

    begin_record(a, TXT, TTL);
    put16(a->out, sizeof spf);
    aq_buf_addc(a->out, (char)(sizeof spf - 1));
    aq_buf_adds(a->out, spf);
}

/* The zone that says no: the top level's. */
static void put_soa(answer *a)
{
    const char *name = a->asked->name, *last = strrchr(name, '.');
    const char *zone = last && last[1] ? last + 1 : name;
    aq_auto_buf source = {0}, mail = {0};
    size_t mark;
    bool root = strcmp(zone, ".") == 0 || strchr(zone, '\\') || !last;

    put_name(a->out, root ? "" : zone);
    put16(a->out, SOA);
    put16(a->out, CLASS_IN);
    put32(a->out, TTL_NONE);
    mark = open_length(a->out);
    aq_buf_addf(&source, root ? "a.root-servers.net" : "a.nic.%s", zone);
    aq_buf_addf(&mail, root ? "nstld.verisign-grs.com" : "hostmaster.nic.%s", zone);
    put_name(a->out, aq_buf_str(&source));
    put_name(a->out, aq_buf_str(&mail));
    put32(a->out, (uint32_t)(a->now / 86400 * 100 % 4000000000));
    put32(a->out, 1800);
    put32(a->out, 900);
    put32(a->out, 604800);
    put32(a->out, 86400);
    close_length(a->out, mark);
}

/* d.c.b.a.in-addr.arpa: the name whose address it is, if any. */
static int reverse(answer *a)
{
    const char *name = a->asked->name, *suffix = strcasestr(name, ".in-addr.arpa");
    const char *host = aq_internet_fact(a->world, "host.name"), *found = NULL;
    char text[32], back[32];
    uint8_t b[4], own[4];
    size_t mark;

    if (!suffix || suffix[13] || (size_t)(suffix - name) >= sizeof text)
        return NXDOMAIN;
    snprintf(text, sizeof text, "%.*s", (int)(suffix - name), name);
    if (inet_pton(AF_INET, text, b) != 1)
        return NXDOMAIN;
    snprintf(back, sizeof back, "%u.%u.%u.%u", b[3], b[2], b[1], b[0]);
    inet_pton(AF_INET, back, b);
    if (host && own_name(a->world, host, own) && memcmp(own, b, 4) == 0)
        found = host;
    for (size_t i = 0; i < a->world->name_count && !found; i++) {
        aq_dns_address4(a->world, a->world->names[i], own);
        if (a->world->names[i][0] != '*' && memcmp(own, b, 4) == 0)
            found = a->world->names[i];
    }
    if (!found)
        return NXDOMAIN;
    if (a->asked->type == PTR || a->asked->type == ANY) {
        begin_record(a, PTR, TTL);
        mark = open_length(a->out);
        put_name(a->out, found);
        close_length(a->out, mark);
    }
    return NOERROR;
}

static int lookup(answer *a)
{
    const char *name = a->asked->name;
    uint16_t type = a->asked->type;
    uint8_t four[4], six[16];

    if (own_name(a->world, name, four)) {
        if (type == A || type == ANY)
            put_address(a, four, 4);
        return NOERROR;
    }
    if (!is_declared(a->world, name))
        return reverse(a);
    if (type == A || type == ANY) {
        aq_dns_address4(a->world, name, four);
        put_address(a, four, 4);
    }
    if (type == AAAA || type == ANY) {
        aq_dns_address6(a->world, name, six);
        put_address(a, six, 16);
    }
    if (type == MX)
        put_mail(a, name);
    if (type == TXT)
        put_text(a);
    return NOERROR;
}

/* What the client can take: its OPT record, the only one that a question may carry. */
static int read_opt(const uint8_t *data, size_t len, size_t at, size_t *max, bool *edns,
                    unsigned *version)
{
    size_t size;

    if (len - at < 11 || data[at] != 0 || get16(data + at + 1) != OPT)
        return -EBADMSG;
    size = get16(data + at + 3);
    *edns = true;
    *version = data[at + 6];
    if (*max == AQ_DNS_UDP)
        *max = size < AQ_DNS_UDP ? AQ_DNS_UDP : size > 4096 ? 4096 : size;
    return at + 11 + get16(data + at + 9) <= len ? 0 : -EBADMSG;
}

static void put_head(aq_buf *out, const uint8_t *question, unsigned code, bool cut)
{
    unsigned flags = 0x8080 | (question[2] & 0x79u) << 8 | (question[3] & 0x10u) | (code & 15);

    aq_buf_add(out, question, 2);
    put16(out, flags | (cut ? 0x200u : 0));
    for (int i = 0; i < 4; i++)
        put16(out, 0);
}

static void set_count(aq_buf *out, size_t which, size_t count)
{
    out->data[4 + 2 * which] = (char)(count >> 8);
    out->data[5 + 2 * which] = (char)count;
}

typedef struct query {
    const uint8_t *data;
    size_t name_end, max;
    bool edns;
    unsigned version;
} query;

static int read_query(const uint8_t *data, size_t len, size_t max, query *q, aq_dns_asked *asked)
{
    size_t at = 12;

    *asked = (aq_dns_asked){.name = "."};
    *q = (query){.data = data, .max = max};
    if (len < 12 || data[2] & 0x80) /* an answer is not answered */
        return -EBADMSG;
    if ((data[2] >> 3 & 15) != 0)
        return NOTIMP;
    if (get16(data + 4) != 1 || read_name(data, len, &at, asked->name, sizeof asked->name) < 0 ||
        len - at < 4)
        return FORMERR;
    asked->type = (uint16_t)get16(data + at);
    asked->class_ = (uint16_t)get16(data + at + 2);
    q->name_end = at + 4;
    if (get16(data + 6) || get16(data + 8))
        return FORMERR;
    if (get16(data + 10) == 1 && read_opt(data, len, at + 4, &q->max, &q->edns, &q->version) < 0)
        return FORMERR;
    if (q->edns && q->version > 0)
        return BADVERS;
    if (asked->class_ != CLASS_IN && asked->class_ != 255)
        return REFUSED;
    return asked->type == 251 || asked->type == 252 ? REFUSED : NOERROR;
}

int aq_dns_answer(const aq_internet_world *w, int64_t now_ns, const void *question, size_t len,
                  size_t max, aq_dns_asked *asked, aq_buf *out)
{
    query q;
    answer a = {.world = w, .now = now_ns / AQ_NET_NS, .out = out, .asked = asked};
    int code = read_query(question, len, max, &q, asked);
    size_t authority = 0;

    if (code < 0)
        return code;
    put_head(out, question, (unsigned)code, false);
    if (q.name_end > 0) {
        aq_buf_add(out, q.data + 12, q.name_end - 12);
        set_count(out, 0, 1);
    }
    if (code == NOERROR) {
        code = lookup(&a);
        if (a.count == 0) {
            put_soa(&a);
            authority = 1;
        }
        out->data[3] = (char)(out->data[3] | code);
    }
    if (out->len + (q.edns ? 11 : 0) > q.max) { /* only the head, and that it was cut */
        out->len = q.name_end;
        out->data[2] = (char)(out->data[2] | 2);
        a.count = authority = 0;
    }
    set_count(out, 1, a.count);
    set_count(out, 2, authority);
    if (q.edns) {
        aq_buf_addc(out, 0);
        put16(out, OPT);
        put16(out, 1232);
        put32(out, (uint32_t)(code >> 4) << 24);
        put16(out, 0);
        set_count(out, 3, 1);
    }
    asked->code = (uint8_t)code;
    asked->answers = (uint16_t)a.count;
    return 0;
}
