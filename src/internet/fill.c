/* Templates; see fill.h. */
#include "internet/fill.h"
#include "internet/prose.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONGEST = 4096 };

/* What the worlds share is named by sizes alone: a request that carries a decoy must get an answer
 * of the same length in both. */
void aq_scene_begin(aq_scene *s, aq_conn *c, aq_ask *q, const char *rule)
{
    aq_auto_buf all = {0};
    aq_digest d;
    char hex[AQ_SHA256_HEX];

    *s = (aq_scene){.net = c->net, .conn = c, .ask = q};
    aq_buf_add(&all, rule, strlen(rule) + 1);
    if (q) {
        snprintf(s->shared, sizeof s->shared, "answer:%.48s:%zu:%zu:%zu", rule, strlen(q->host),
                 strlen(q->target), q->body.len);
        aq_buf_add(&all, q->host, strlen(q->host) + 1);
        aq_buf_add(&all, q->target, strlen(q->target) + 1);
        if (q->body.len > 0)
            aq_buf_add(&all, q->body.data, q->body.len);
    } else {
        snprintf(s->shared, sizeof s->shared, "answer:%.48s", rule);
        aq_buf_add(&all, c->server.address, sizeof c->server.address);
    }
    d = aq_sha256(all.data, all.len);
    snprintf(s->name, sizeof s->name, "answer:%s", aq_digest_hex(&d, hex));
    s->own = aq_stream_of(c->net->world->own, s->name);
    s->pair = aq_stream_of(c->net->world->pair, s->shared);
}

const char *aq_http_date(int64_t seconds, char out[static AQ_HTTP_DATE])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t at = (time_t)seconds;
    struct tm t = {0};

    gmtime_r(&at, &t);
    snprintf(out, AQ_HTTP_DATE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
             days + 3 * (t.tm_wday % 7), (unsigned)t.tm_mday % 32, months + 3 * (t.tm_mon % 12),
             (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 24,
             (unsigned)t.tm_min % 60, (unsigned)t.tm_sec % 61);
    return out;
}

void aq_public_address(const aq_internet_world *w, aq_buf *out)
{
    aq_stream s = aq_stream_of(w->pair, "internet:public");
    uint32_t third = 64 + aq_stream_below(&s, 128), last = 10 + aq_stream_below(&s, 200);

    aq_buf_addf(out, "93.%u.%u.%u", 192 + aq_stream_below(&s, 60), third, last);
}

const char *aq_ask_member(const aq_ask *q, const char *name, size_t *len)
{
    const char *at, *end;
    aq_auto_buf key = {0};

    aq_buf_addf(&key, "\"%s\"", name);
    if (q->body.len == 0)
        return NULL;
    at = memmem(q->body.data, q->body.len, key.data, key.len);
    if (!at)
        return NULL;
    end = q->body.data + q->body.len;
    at += key.len;
    while (at < end && (*at == ' ' || *at == ':' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    if (at == end || *at != '"')
        return NULL;
    at++;
    *len = 0;
    while (at + *len < end && at[*len] != '"' && at[*len] != '\\' &&
           (unsigned char)at[*len] >= ' ' && *len < 256)
        (*len)++;
    return at;
}

/* How many bits a sign takes in a header of HTTP/2 (RFC 7541, B), from the blank on. */
static const uint8_t bits[] = {
    6, 10, 10, 12, 13, 6, 8,  11, 10, 10, 8, 11, 8,  6,  6,  6, 5,  5, 5, 6,  6,  6,  6, 6,
    6, 6,  7,  8,  15, 6, 12, 10, 13, 6,  7, 7,  7,  7,  7,  7, 7,  7, 7, 7,  7,  7,  7, 7,
    7, 7,  7,  7,  7,  7, 7,  7,  8,  7,  8, 13, 19, 13, 14, 6, 15, 5, 6, 5,  6,  5,  6, 6,
    6, 5,  7,  7,  6,  6, 6,  5,  6,  7,  6, 5,  5,  6,  7,  7, 7,  7, 7, 15, 11, 14, 13};

/* One sign: the worlds share how long it is when HTTP/2 packs it, and each has its own. */
static char pick(aq_scene *s, bool own, const char *symbols)
{
    uint32_t count = (uint32_t)strlen(symbols);
    char shared = symbols[aq_stream_below(&s->pair, count)], same[65];
    uint32_t n = 0;

    if (!own)
        return shared;
    for (uint32_t i = 0; i < count && n < sizeof same; i++)
        if (bits[symbols[i] - ' '] == bits[shared - ' '])
            same[n++] = symbols[i];
    return same[aq_stream_below(&s->own, n)];
}

static const char *symbols_of(const char *what)
{
    static const struct {
        const char *name, *symbols;
    } alphabets[] = {
        {"hex", "0123456789abcdef"},
        {"HEX", "0123456789ABCDEF"},
        {"digits", "0123456789"},
        {"lower", "abcdefghijklmnopqrstuvwxyz"},
        {"upper", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
        {"upper36", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"},
        {"base62", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"},
        {"url64", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"},
    };

    for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++)
        if (strcmp(alphabets[i].name, what) == 0)
            return alphabets[i].symbols;
    return NULL;
}

static void draw(aq_scene *s, bool own, const char *what, unsigned count, aq_buf *out)
{
    const char *symbols = symbols_of(what);

    for (unsigned n = 0; n < count; n++) {
        /* What is no set of signs is a word: what can be spoken. */
        char sign = pick(s, own, symbols ? symbols : n % 2 ? "aeiou" : "bdfglmnprstv");

        /* A number never begins with 0. */
        if (n == 0 && count > 1 && sign == '0' && strcmp(what, "digits") == 0)
            sign = '1';
        aq_buf_addc(out, sign);
    }
}

/* Numbers between -1 and 1, as embeddings have them; the sign is shared, so that lengths are. */
static void vector(aq_scene *s, unsigned count, aq_buf *out)
{
    for (unsigned i = 0; i < count; i++) {
        aq_buf_adds(out, i == 0 ? "" : ",");
        aq_buf_adds(out, aq_stream_below(&s->pair, 2) ? "-0.0" : "0.0");
        aq_buf_addf(out, "%06u", 100000 + aq_stream_below(&s->own, 900000));
        aq_buf_addc(out, (char)('1' + aq_stream_below(&s->own, 9)));
    }
}

/* Text that stands in a string of JSON, or between tags: nothing that ends either. */
static void add_safe(aq_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len && i < LONGEST; i++) {
        unsigned char ch = (unsigned char)text[i];

        if (ch >= ' ' && ch < 127 && !strchr("\"\\<>&'", ch))
            aq_buf_addc(out, (char)ch);
    }
}

static void add_time(aq_scene *s, const char *key, aq_buf *out)
{
    int64_t now = s->net->now_ns / AQ_NET_NS, at = now;
    const char *sign = strpbrk(key, "+-");
    time_t t;
    struct tm tm = {0};
    char text[64];

    if (sign)
        at += strtol(sign, NULL, 10);
    t = (time_t)at;
    gmtime_r(&t, &tm);
    if (strncmp(key, "unix", 4) == 0)
        aq_buf_addf(out, "%lld", (long long)at);
    else if (strncmp(key, "date", 4) == 0)
        aq_buf_adds(out, aq_http_date(at, text));
    else if (strftime(text, sizeof text,
                      strncmp(key, "day", 3) == 0 ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        aq_buf_adds(out, text);
}

static void segment(const aq_ask *q, long number, aq_buf *out)
{
    const char *at = q->path;

    while (*at && number > 0) {
        at += strcspn(at, "/");
        at += *at == '/';
        number--;
    }
    add_safe(out, at, strcspn(at, "/"));
}

/* What comes from the request. */
static bool asked(aq_scene *s, const char *key, const char *argument, aq_buf *out)
{
    const aq_ask *q = s->ask;
    const char *found = NULL;
    size_t len = 0;

    if (!q)
        return false;
    if (strcmp(key, "host") == 0)
        found = q->host;
    else if (strcmp(key, "path") == 0)
        found = q->path;
    else if (strcmp(key, "method") == 0)
        found = q->method;
    else if (strcmp(key, "query") == 0)
        found = aq_ask_query(q, argument);
    else if (strcmp(key, "agent") == 0)
        found = aq_ask_header(q, "user-agent");
    else if (strcmp(key, "member") == 0) {
        found = aq_ask_member(q, argument, &len);
        add_safe(out, found ? found : "", len);
        return true;
    } else if (strcmp(key, "segment") == 0) {
        segment(q, strtol(argument, NULL, 10), out);
        return true;
    } else {
        return false;
    }
    add_safe(out, found ? found : "", found ? strlen(found) : 0);
    return true;
}

/* The first word of a line, which some protocols want back. */
static void tag(const aq_scene *s, aq_buf *out)
{
    size_t n = 0;

    while (s->line && n < s->line_len && n < 64 && (unsigned char)s->line[n] > ' ')
        n++;
    add_safe(out, s->line ? s->line : "", n);
}

/* The machine's own address, with that sign between its numbers. */
static void add_address(const aq_internet_world *w, char between, aq_buf *out)
{
    const char *address = aq_internet_fact(w, "net.address");

    for (; address && *address && *address != '/'; address++)
        aq_buf_addc(out, *address == '.' ? between : *address);
}

/* What comes from the world. */
static bool of_world(aq_scene *s, const char *key, const char *argument, aq_buf *out)
{
    const aq_internet_world *w = s->net->world;
    const char *found = NULL;
    char text[AQ_LINE_END_TEXT];

    if (strcmp(key, "fact") == 0)
        found = aq_internet_fact(w, argument);
    else if (strcmp(key, "decoy") == 0)
        found = aq_internet_decoy(w, argument);
    else if (strcmp(key, "address") == 0)
        return add_address(w, *argument ? *argument : '.', out), true;
    else if (strcmp(key, "public") == 0)
        return aq_public_address(w, out), true;
    else if (strcmp(key, "server") == 0) {
        aq_line_end_text(&s->conn->server, text);
        *strrchr(text, ':') = '\0';
        found = text;
    } else {
        return false;
    }
    aq_buf_adds(out, found ? found : "");
    return true;
}

/* Text for as long as there is no TLS and could be; "\n" in it is the end of a line. */
static void clear(const aq_scene *s, const char *text, aq_buf *out)
{
    const char *end = strstr(text, "\\n");

    if (s->conn->tls || !s->net->tls)
        return;
    aq_buf_add(out, text, end ? (size_t)(end - text) : strlen(text));
    aq_buf_adds(out, end ? "\r\n" : "");
}

static bool given(const aq_scene *s, const char *key, aq_buf *out)
{
    for (size_t i = 0; i < s->given_count; i++)
        if (strcmp(s->given[i].name, key) == 0) {
            aq_buf_adds(out, s->given[i].value);
            return true;
        }
    return false;
}

static void fill_one(aq_scene *s, char *key, aq_buf *out)
{
    char *argument = strchr(key, ':');
    unsigned count;

    if (argument)
        *argument++ = '\0';
    else
        argument = key + strlen(key);
    count = (unsigned)strtoul(argument, NULL, 10) % (LONGEST + 1);
    if (given(s, key, out) || asked(s, key, argument, out) || of_world(s, key, argument, out))
        return;
    if (strncmp(key, "own.", 4) == 0 || strncmp(key, "pair.", 5) == 0) {
        draw(s, key[0] == 'o', strchr(key, '.') + 1, count, out);
    } else if (strncmp(key, "same.", 5) == 0) {
        aq_scene same = *s;

        same.own = aq_stream_of(s->net->world->own, s->name);
        same.pair = aq_stream_of(s->net->world->pair, s->shared);
        draw(&same, true, key + 5, count, out);
    } else if (strcmp(key, "tag") == 0) {
        tag(s, out);
    } else if (strcmp(key, "clear") == 0) {
        clear(s, argument, out);
    } else if (strcmp(key, "prose") == 0) {
        aq_prose(s, count, out);
    } else if (strcmp(key, "vector") == 0) {
        vector(s, count, out);
    } else if (strcmp(key, "uuid") == 0) {
        draw(s, true, "hex", 8, out);
        aq_buf_addc(out, '-');
        draw(s, true, "hex", 4, out);
        aq_buf_adds(out, "-4");
        draw(s, true, "hex", 3, out);
        aq_buf_adds(out, "-a");
        draw(s, true, "hex", 3, out);
        aq_buf_addc(out, '-');
        draw(s, true, "hex", 12, out);
    } else {
        add_time(s, key, out);
    }
}

void aq_fill(aq_scene *s, const char *text, aq_buf *out)
{
    for (const char *at; (at = strstr(text, "%{")); text = strchr(at, '}') + 1) {
        char key[128];
        size_t n = strcspn(at + 2, "}");

        aq_buf_add(out, text, (size_t)(at - text));
        if (!at[2 + n])
            return;
        snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : sizeof key - 1), at + 2);
        fill_one(s, key, out);
    }
    aq_buf_adds(out, text);
}
