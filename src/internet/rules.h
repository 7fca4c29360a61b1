/* The answers and dialogues of the private internet, as data: the packs in rules/internet, built
 * in. The grammar is in rules/internet/README.md. Private to the room and its tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { AQ_RULE_WHENS = 4, AQ_RULE_HEADERS = 8, AQ_RULES_ANSWERS = 512, AQ_RULES_TURNS = 32 };

typedef struct aq_when {
    const char *header;  /* NULL: the body */
    const char *pattern; /* of the header's value; a part of the body */
} aq_when;

typedef struct aq_answer_rule {
    const char *name, *methods, *hosts, *path; /* comma-separated; * for anything */
    aq_when when[AQ_RULE_WHENS];
    size_t when_count;
    int status;
    const char *type, *special; /* NULL: none */
    struct {
        const char *name, *value;
    } headers[AQ_RULE_HEADERS];
    size_t header_count;
    const char *body; /* never NULL */
    bool stream;
} aq_answer_rule;

/* One turn of a dialogue: what begins with, or contains, a pattern gets a reply. */
typedef struct aq_turn {
    const char *pattern;
    size_t pattern_len;
    const char *reply; /* a template unless `raw` */
    size_t reply_len;
    bool raw, anywhere, collect, bye;
    bool starttls; /* the rest is said in TLS; not where it is already, or cannot be */
} aq_turn;

typedef struct aq_dialogue {
    const char *services; /* comma-separated */
    const char *greeting; /* NULL: the client speaks first */
    size_t greeting_len;
    bool greeting_raw;
    /* A reply for each line, or for each command as Redis writes them; else for each piece that
     * came. */
    bool lines, commands;
    aq_turn turns[AQ_RULES_TURNS];
    size_t turn_count;
} aq_dialogue;

typedef struct aq_rules {
    const aq_answer_rule *answers;
    size_t answer_count;
    const aq_dialogue *dialogues;
    size_t dialogue_count;
} aq_rules;

int aq_rules_parse(aq_arena *a, const char *name, const char *text, size_t len, aq_rules *ret,
                   aq_err *err);
/* What is built in; lives as long as the program. */
int aq_rules_builtin(const aq_rules **ret, aq_err *err);
const aq_dialogue *aq_rules_dialogue(const aq_rules *r, const char *service); /* NULL: none */
bool aq_rules_greets(const aq_rules *r, const char *service);
bool aq_rules_answers(const aq_rules *r, const char *service);

/* Does `text` match, case apart? `*` is any text, and a list matches by any of its parts. */
bool aq_rule_match(const char *list, const char *text);
