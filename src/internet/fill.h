/* Templates of answers: %{…} is filled in from the request and the world; rules/internet/README.md
 * lists what there is. What is drawn depends on the world's keys, the rule and what was asked for,
 * and has the same length in both worlds of a seed. */
#pragma once

#include "internet/internal.h"

typedef struct aq_scene {
    aq_net *net;
    aq_conn *conn;
    aq_ask *ask;      /* NULL: no request, a dialogue */
    const char *line; /* of the dialogue, NULL: none; its first word is %{tag} */
    size_t line_len;
    const aq_fact *given; /* more that a template may name, before all else */
    size_t given_count;
    aq_stream own, pair;
    char name[AQ_STREAM_NAME], shared[AQ_STREAM_NAME]; /* of the streams */
} aq_scene;

/* `rule` names what is answered, so that two rules draw different values. */
void aq_scene_begin(aq_scene *s, aq_conn *c, aq_ask *q, const char *rule);
void aq_fill(aq_scene *s, const char *text, aq_buf *out);
/* "Tue, 15 Nov 1994 08:12:31 GMT" */
enum { AQ_HTTP_DATE = 32 };
const char *aq_http_date(int64_t seconds, char out[static AQ_HTTP_DATE]);
/* The address that the world has on the internet, as its provider's router shows it. */
void aq_public_address(const aq_internet_world *w, aq_buf *out);
/* The text of a JSON member of the request's body, found without a tree: bounded, first match. */
const char *aq_ask_member(const aq_ask *q, const char *name, size_t *len);
