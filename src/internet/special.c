/* Answers that a template cannot give: DNS over HTTPS, a repository for git (git.c), package
 * indexes (index.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internet/git.h"
#include "internet/index.h"
#include "internet/internal.h"

/* base64url without padding, as RFC 8484 has it. */
static int unbase64url(const char *text, aq_buf *out)
{
    aq_auto_buf plain = {0};
    size_t len = strlen(text);

    if (len == 0 || len > 4096)
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        aq_buf_addc(&plain, text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    while (plain.len % 4)
        aq_buf_addc(&plain, '=');
    return aq_unbase64(plain.data, plain.len, out);
}

static void note_question(aq_ask *q, const aq_dns_asked *asked)
{
    aq_note n = aq_note_of(q->conn, "peer-dns");

    aq_dns_note(&n, asked, "https");
    aq_note_send(q->conn->net, &n);
}

static bool doh_message(aq_ask *q, aq_reply *r)
{
    const char *given = aq_ask_query(q, "dns");
    aq_auto_buf message = {0};
    aq_dns_asked asked;

    if (strcmp(q->method, "POST") == 0)
        aq_buf_add(&message, aq_buf_str(&q->body), q->body.len);
    else if (!given || unbase64url(given, &message) < 0)
        return false;
    if (aq_dns_answer(q->conn->net->world, q->conn->net->now_ns, aq_buf_str(&message), message.len,
                      AQ_DNS_TCP, &asked, &r->body) < 0) {
        r->status = 400;
        aq_reply_header(r, "Content-Type", "text/plain");
        aq_buf_adds(&r->body, "Bad request\n");
        return true;
    }
    note_question(q, &asked);
    aq_reply_header(r, "Content-Type", "application/dns-message");
    aq_reply_header(r, "Cache-Control", "max-age=300");
    return true;
}

static void put_question(aq_buf *out, const char *name, uint16_t type)
{
    aq_buf_add(out, "\0\0\1\0\0\1\0\0\0\0\0\0", 12);
    while (*name) {
        size_t n = strcspn(name, ".");

        if (n == 0 || n > 63)
            break;
        aq_buf_addc(out, (char)n);
        aq_buf_add(out, name, n);
        name += n + (name[n] == '.');
    }
    aq_buf_addc(out, 0);
    aq_buf_addc(out, (char)(type >> 8));
    aq_buf_addc(out, (char)type);
    aq_buf_add(out, "\0\1", 2);
}

/* The JSON form of the large resolvers: only addresses can be in it. */
static bool doh_json(aq_ask *q, aq_reply *r)
{
    const char *name = aq_ask_query(q, "name"), *type = aq_ask_query(q, "type");
    const aq_internet_world *w = q->conn->net->world;
    uint16_t number = type ? aq_dns_type_of(type) : 1;
    aq_auto_buf message = {0}, binary = {0};
    aq_dns_asked asked;
    uint8_t four[4];

    if (!name || strlen(name) > 253 || strpbrk(name, "\"\\<>"))
        return false;
    put_question(&message, name, number ? number : 1);
    if (aq_dns_answer(w, q->conn->net->now_ns, message.data, message.len, AQ_DNS_TCP, &asked,
                      &binary) < 0)
        return false;
    note_question(q, &asked);
    aq_reply_header(r, "Content-Type", "application/dns-json");
    aq_buf_addf(&r->body,
                "{\"Status\":%u,\"TC\":false,\"RD\":true,\"RA\":true,\"AD\":false,\"CD\":false,"
                "\"Question\":[{\"name\":\"%s\",\"type\":%u}]",
                asked.code, asked.name, asked.type);
    if (asked.answers > 0 && asked.type == 1) {
        aq_dns_address4(w, asked.name, four);
        aq_buf_addf(
            &r->body,
            ",\"Answer\":[{\"name\":\"%s\",\"type\":1,\"TTL\":300,\"data\":\"%u.%u.%u.%u\"}]",
            asked.name, four[0], four[1], four[2], four[3]);
    }
    aq_buf_adds(&r->body, "}\n");
    return true;
}

static bool doh(aq_ask *q, aq_reply *r)
{
    const char *accept = aq_ask_header(q, "accept"), *type = aq_ask_header(q, "content-type");

    if (aq_ask_query(q, "name") && strcmp(q->method, "GET") == 0)
        return doh_json(q, r);
    if (strcmp(q->method, "POST") == 0 && (!type || !strstr(type, "dns-message")))
        return false;
    (void)accept;
    return doh_message(q, r);
}

const aq_special aq_specials[] = {
    {"doh", doh},
    {"git-refs", aq_git_refs},
    {"git-upload", aq_git_upload},
    {"git-receive", aq_git_receive},
    {"index-project", aq_index_project},
    {"index-json", aq_index_json},
    {"index-file", aq_index_file},
    {"package-short", aq_package_short},
    {"package-whole", aq_package_whole},
    {"package-file", aq_package_file},
    {"crate-versions", aq_crate_versions},
    {"crate-about", aq_crate_about},
    {"crate-file", aq_crate_file},
    {"module", aq_module_answer},
    {NULL, NULL},
};
