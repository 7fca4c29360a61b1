/* HTTP/2 on a connection: the library does frames and header tables, requests are answered as those
 * of HTTP/1 are. */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "internet/internal.h"

enum { STREAMS = 100 };

typedef struct http2 {
    nghttp2_session *session;
    struct stream *first; /* of those that are open; the client chooses their numbers */
} http2;

typedef struct stream {
    struct stream *next, **back;
    aq_ask *ask;
    aq_buf head; /* as text, for the record */
    aq_buf body; /* of the answer */
    size_t sent;
} stream;

static void stream_free(stream *s)
{
    if (!s)
        return;
    *s->back = s->next;
    if (s->next)
        s->next->back = s->back;
    aq_ask_free(s->ask);
    aq_buf_free(&s->head);
    aq_buf_free(&s->body);
    free(s);
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags,
                       void *arg)
{
    aq_conn *c = arg;

    (void)session;
    (void)flags;
    if (c->out.len - c->sent > AQ_NET_OUTPUT_PAUSE)
        return NGHTTP2_ERR_WOULDBLOCK;
    aq_conn_say(c, data, len);
    return (ssize_t)len;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    http2 *h = ((aq_conn *)arg)->state;
    stream *s;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    s = aq_alloc(sizeof *s);
    s->next = h->first;
    s->back = &h->first;
    if (s->next)
        s->next->back = &s->next;
    h->first = s;
    s->ask = aq_ask_new(arg, "h2");
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
    return 0;
}

/* Pseudo headers take the place of the request line. */
static void pseudo(aq_ask *q, const char *name, const char *value)
{
    if (strcmp(name, ":method") == 0)
        q->method = value;
    else if (strcmp(name, ":path") == 0)
        q->target = value;
    else if (strcmp(name, ":authority") == 0 && q->header_count < AQ_NET_HEADERS)
        q->headers[q->header_count++] = (aq_header){"host", value};
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *arg)
{
    stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const char *n, *v;

    (void)flags;
    (void)arg;
    if (!s || !s->ask)
        return 0;
    if (s->head.len + name_len + value_len > AQ_NET_HEAD)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* this stream is reset */
    n = aq_arena_strndup(s->ask->arena, (const char *)name, name_len);
    v = aq_arena_strndup(s->ask->arena, (const char *)value, value_len);
    aq_buf_addf(&s->head, "%s: %s\r\n", n, v);
    if (name_len > 0 && name[0] == ':')
        pseudo(s->ask, n, v);
    else if (s->ask->header_count < AQ_NET_HEADERS)
        s->ask->headers[s->ask->header_count++] = (aq_header){n, v};
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *arg)
{
    stream *s = nghttp2_session_get_stream_user_data(session, id);

    (void)flags;
    (void)arg;
    if (s && s->ask)
        aq_ask_body(s->ask, data, len);
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    stream *s = source->ptr;
    size_t left = s->body.len - s->sent, n = left < room ? left : room;

    (void)session;
    (void)id;
    (void)arg;
    if (n > 0)
        memcpy(out, s->body.data + s->sent, n);
    s->sent += n;
    if (s->sent == s->body.len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void submit(nghttp2_session *session, int32_t id, stream *s, aq_reply *r)
{
    nghttp2_nv all[28];
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_body};
    aq_auto_buf status = {0}, length = {0};
    bool head = strcmp(s->ask->method, "HEAD") == 0;
    size_t n = 0;

    aq_buf_addf(&status, "%d", r->status);
    aq_buf_addf(&length, "%zu", r->body.len);
    all[n++] = pair(":status", aq_buf_str(&status));
    for (size_t i = 0; i < r->header_count; i++) {
        for (char *p = (char *)r->headers[i].name; *p; p++)
            if (*p >= 'A' && *p <= 'Z')
                *p = (char)(*p | 0x20);
        all[n++] = pair(r->headers[i].name, r->headers[i].value);
    }
    if (!r->stream && r->status >= 200 && r->status != 204 && r->status != 304)
        all[n++] = pair("content-length", aq_buf_str(&length));
    s->body = r->body;
    r->body = (aq_buf){0};
    nghttp2_submit_response(session, id, all, n, head || s->body.len == 0 ? NULL : &provider);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    stream *s;
    aq_reply r = {.status = 200};

    (void)arg;
    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!s || !s->ask || !s->ask->conn || s->body.data)
        return 0;
    s->ask->head = aq_buf_str(&s->head);
    s->ask->head_len = s->head.len;
    aq_ask_parse(s->ask);
    aq_answer(s->ask, &r);
    submit(session, frame->hd.stream_id, s, &r);
    aq_reply_free(&r);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    stream *s = nghttp2_session_get_stream_user_data(session, id);

    (void)code;
    (void)arg;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    stream_free(s);
    return 0;
}

static void begin(aq_conn *c)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, AQ_NET_HEAD},
    };
    nghttp2_session_callbacks *calls;
    nghttp2_session *session = NULL;
    http2 *h = aq_alloc(sizeof *h);

    if (nghttp2_session_callbacks_new(&calls) != 0)
        aq_panic("no memory for HTTP/2");
    nghttp2_session_callbacks_set_send_callback(calls, on_send);
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    if (nghttp2_session_server_new(&session, calls, c) != 0)
        aq_panic("no memory for HTTP/2");
    nghttp2_session_callbacks_del(calls);
    h->session = session;
    c->state = h;
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                            sizeof settings / sizeof *settings);
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, 8 << 20);
}

static size_t input(aq_conn *c, const uint8_t *data, size_t len)
{
    nghttp2_session *session = ((http2 *)c->state)->session;
    ssize_t n = nghttp2_session_mem_recv(session, data, len);

    if (n < 0 || nghttp2_session_send(session) != 0) {
        aq_note note = aq_note_of(c, "peer-refused");

        aq_note_text(&note, "why", n < 0 ? nghttp2_strerror((int)n) : "frames");
        aq_note_bytes(&note, "bytes", data, len);
        aq_note_send(c->net, &note);
        aq_conn_close(c, "frames");
        return len;
    }
    if (!nghttp2_session_want_read(session) && !nghttp2_session_want_write(session))
        aq_conn_close(c, "goodbye");
    return (size_t)n;
}

/* Frames that had to wait because the client was slow to read. */
static void more(aq_conn *c)
{
    nghttp2_session *session = ((http2 *)c->state)->session;

    if (nghttp2_session_want_write(session) && nghttp2_session_send(session) != 0)
        aq_conn_close(c, "frames");
}

/* Streams that are still open have no callback at the end of a session: they go with it. */
static void end(aq_conn *c)
{
    http2 *h = c->state;

    while (h->first)
        stream_free(h->first);
    nghttp2_session_del(h->session);
    free(h);
}

const aq_talk aq_talk_http2 = {
    .name = "http2", .begin = begin, .input = input, .more = more, .free = end};
