/* TLS: OpenSSL between two memory buffers, so that it never touches a socket, a clock or chance.
 *
 * All randomness of a connection comes from a stream of its own, so that the bytes of a handshake
 * depend on the world and on what the client said, never on other connections. Session tickets are
 * off: they hold the time. Certificates are made as they are asked for (mint.c). */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internet/internal.h"
#include "internet/mint.h"

struct aq_tls_maker {
    SSL_CTX *ctx;
    aq_mint *mint;
};

struct aq_tls {
    SSL *ssl;
    aq_conn *conn;
    aq_stream random;
    char stream_name[32];
    char name[256]; /* of the server, as the client called it */
    bool noted;     /* the greeting is recorded */
};

/* ---- randomness ---- */

static aq_stream *current; /* of the connection that is being worked on */

static int random_bytes(unsigned char *out, int len)
{
    if (!current || len < 0)
        return 0;
    aq_stream_bytes(current, out, (size_t)len);
    return 1;
}

static int random_status(void)
{
    return 1;
}

static RAND_METHOD method = {
    .bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};

/* ---- the greeting ---- */

static void add_list(aq_buf *out, const unsigned char *data, size_t len)
{
    for (size_t i = 0; i + 1 < len; i += 2)
        aq_buf_addf(out, "%s%04x", i ? " " : "", (unsigned)data[i] << 8 | data[i + 1]);
}

static void add_extension(SSL *ssl, unsigned type, size_t skip, aq_buf *out)
{
    const unsigned char *data;
    size_t len;

    if (SSL_client_hello_get0_ext(ssl, type, &data, &len) == 1 && len > skip)
        add_list(out, data + skip, len - skip);
}

static void read_name(struct aq_tls *t)
{
    const unsigned char *data;
    size_t len, n;

    /* list length, type 0, name length, name */
    if (SSL_client_hello_get0_ext(t->ssl, TLSEXT_TYPE_server_name, &data, &len) != 1 || len < 5 ||
        data[2] != 0)
        return;
    n = (size_t)data[3] << 8 | data[4];
    if (n > len - 5 || n >= sizeof t->name)
        return;
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = data[5 + i];

        if (ch <= ' ' || ch >= 127 || strchr("\"\\<>&'/", ch)) {
            t->name[0] = '\0'; /* no name of a host: the address is used */
            return;
        }
        t->name[i] = (char)(ch >= 'A' && ch <= 'Z' ? ch | 0x20 : ch);
    }
    t->name[n] = '\0';
}

static void add_alpn(SSL *ssl, aq_buf *out)
{
    const unsigned char *data;
    size_t len;

    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &data,
                                  &len) != 1)
        return;
    for (size_t i = 2; i < len && i + 1 + data[i] <= len; i += 1 + (size_t)data[i]) {
        aq_buf_adds(out, out->len ? "," : "");
        aq_buf_add(out, data + i + 1, data[i]);
    }
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
    struct aq_tls *t = SSL_get_app_data(ssl);
    aq_auto_buf alpn = {0}, versions = {0}, ciphers = {0}, groups = {0}, extensions = {0};
    const unsigned char *data;
    size_t len, count = 0;
    int *all = NULL;
    aq_note n = aq_note_of(t->conn, "peer-tls");

    (void)alert;
    (void)arg;
    read_name(t);
    add_alpn(ssl, &alpn);
    len = SSL_client_hello_get0_ciphers(ssl, &data);
    add_list(&ciphers, data, len);
    add_extension(ssl, TLSEXT_TYPE_supported_versions, 1, &versions);
    add_extension(ssl, TLSEXT_TYPE_supported_groups, 2, &groups);
    if (SSL_client_hello_get1_extensions_present(ssl, &all, &count) == 1)
        for (size_t i = 0; i < count; i++)
            aq_buf_addf(&extensions, "%s%04x", i ? " " : "", (unsigned)all[i]);
    OPENSSL_free(all);
    if (t->name[0])
        aq_note_object(&n, t->name, strlen(t->name));
    aq_note_text(&n, "alpn", aq_buf_str(&alpn));
    aq_note_text(&n, "versions", aq_buf_str(&versions));
    aq_note_text(&n, "ciphers", aq_buf_str(&ciphers));
    aq_note_text(&n, "groups", aq_buf_str(&groups));
    aq_note_text(&n, "extensions", aq_buf_str(&extensions));
    aq_note_number(&n, "version", SSL_client_hello_get0_legacy_version(ssl));
    aq_note_send(t->conn->net, &n);
    t->noted = true;
    return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_certificate(SSL *ssl, void *arg)
{
    struct aq_tls_maker *maker = arg;
    struct aq_tls *t = SSL_get_app_data(ssl);
    aq_net *net = t->conn->net;
    char text[AQ_LINE_END_TEXT];
    const char *name = t->name;

    if (!*name) { /* by its address, without brackets and port */
        size_t n;

        aq_line_end_text(&t->conn->server, text);
        *strrchr(text, ':') = '\0';
        n = strlen(text);
        if (text[0] == '[') {
            memmove(text, text + 1, n);
            text[n - 2] = '\0';
        }
        name = text;
    }
    return aq_mint_use(maker->mint, ssl, name, net->now_ns / AQ_NET_NS) == 0;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned len, void *arg)
{
    static const unsigned char wanted[] = "\x02h2\x08http/1.1\x08http/1.0\x03"
                                          "dot";

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto((unsigned char **)out, out_len, wanted, sizeof wanted - 1, in, len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    return SSL_TLSEXT_ERR_OK;
}

struct aq_tls_maker *aq_tls_maker_new(const aq_internet_world *world, aq_err *err)
{
    struct aq_tls_maker *m = aq_alloc(sizeof *m);
    aq_stream start = aq_stream_of(world->pair, "internet:tls");

    /* The host's configuration must not show in what a world's servers prefer. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    RAND_set_rand_method(&method);
    current = &start;
    m->mint = aq_mint_new(world, err);
    m->ctx = m->mint ? SSL_CTX_new(TLS_server_method()) : NULL;
    if (!m->ctx) {
        if (m->mint)
            aq_fail(err, -EIO, "OpenSSL does not start: %s",
                    ERR_error_string(ERR_get_error(), NULL));
        free(m);
        return NULL;
    }
    SSL_CTX_set_options(m->ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_num_tickets(m->ctx, 0);
    SSL_CTX_set_session_cache_mode(m->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_min_proto_version(m->ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(m->ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_client_hello_cb(m->ctx, on_hello, NULL);
    SSL_CTX_set_cert_cb(m->ctx, on_certificate, m);
    SSL_CTX_set_alpn_select_cb(m->ctx, on_alpn, NULL);
    current = NULL;
    return m;
}

struct aq_tls *aq_tls_new(aq_conn *c)
{
    struct aq_tls *t = aq_alloc(sizeof *t);

    t->conn = c;
    snprintf(t->stream_name, sizeof t->stream_name, "internet:tls:%llu",
             (unsigned long long)c->flow);
    t->random = aq_stream_of(c->net->world->pair, t->stream_name);
    current = &t->random;
    t->ssl = SSL_new(c->net->tls->ctx);
    if (!t->ssl)
        aq_panic("OpenSSL cannot make a connection");
    SSL_set_app_data(t->ssl, t);
    SSL_set_bio(t->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(t->ssl);
    return t;
}

/* What OpenSSL wants to send. */
static void drain(aq_conn *c)
{
    BIO *out = SSL_get_wbio(c->tls->ssl);
    char *data;
    long n = BIO_get_mem_data(out, &data);

    if (n > 0) {
        aq_buf_add(&c->out, data, (size_t)n);
        BIO_reset(out);
        c->net->moved++;
    }
}

static void note_failure(aq_conn *c)
{
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    aq_note n = aq_note_of(c, "peer-tls");

    aq_note_text(&n, "failed", reason ? reason : "the handshake did not end");
    if (c->tls->name[0])
        aq_note_object(&n, c->tls->name, strlen(c->tls->name));
    aq_note_send(c->net, &n);
}

int aq_tls_input(aq_conn *c, const void *data, size_t len)
{
    struct aq_tls *t = c->tls;
    static char clear[AQ_NET_READ];
    int n, result = 0;

    current = &t->random;
    ERR_clear_error();
    if (BIO_write(SSL_get_rbio(t->ssl), data, (int)len) != (int)len)
        return -ENOMEM;
    while ((n = SSL_read(t->ssl, clear, sizeof clear)) > 0)
        aq_buf_add(&c->in, clear, (size_t)n);
    n = SSL_get_error(t->ssl, n);
    if (n == SSL_ERROR_ZERO_RETURN) {
        c->ended = true;
    } else if (n != SSL_ERROR_WANT_READ && n != SSL_ERROR_WANT_WRITE) {
        note_failure(c);
        result = -EPROTO;
    }
    drain(c); /* also the alert that says why */
    return result;
}

int aq_tls_output(aq_conn *c, const void *data, size_t len)
{
    current = &c->tls->random;
    ERR_clear_error();
    if (SSL_write(c->tls->ssl, data, (int)len) != (int)len)
        return -EPROTO;
    drain(c);
    return 0;
}

void aq_tls_bye(aq_conn *c)
{
    current = &c->tls->random;
    ERR_clear_error();
    SSL_shutdown(c->tls->ssl);
    drain(c);
}

bool aq_tls_ready(const struct aq_tls *t)
{
    return SSL_is_init_finished(t->ssl);
}

bool aq_tls_is_http2(const struct aq_tls *t)
{
    const unsigned char *name;
    unsigned len;

    SSL_get0_alpn_selected(t->ssl, &name, &len);
    return len == 2 && memcmp(name, "h2", 2) == 0;
}

void aq_tls_free(struct aq_tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    if (current == &t->random)
        current = NULL;
    free(t);
}
