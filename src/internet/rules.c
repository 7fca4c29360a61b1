/* Reads the packs in rules/internet; see rules.h. */
#include "internet/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"

#include "answers.inc"
#include "clouds.inc"
#include "greetings.inc"
#include "models.inc"

typedef struct reader {
    aq_arena *arena;
    const char *name;
    unsigned line;
    aq_err *err;
    aq_answer_rule *answers; /* room for AQ_RULES_ANSWERS */
    size_t answer_count;
    aq_dialogue *dialogues;
    size_t dialogue_count;
    aq_answer_rule *answer; /* the one that lines belong to; NULL: a dialogue */
    aq_dialogue *dialogue;
    aq_turn *turn;
    aq_buf text; /* of the body or reply that is being read */
} reader;

enum { DIALOGUES = 64 };

static int wrong(reader *r, const char *what)
{
    return aq_fail(r->err, -EINVAL, "%s:%u: %s", r->name, r->line, what);
}

/* The next word of `*at`, which moves behind it; "" at the end. */
static const char *word(reader *r, char **at)
{
    char *from = *at + strspn(*at, " ");
    size_t n = strcspn(from, " ");

    *at = from + n + strspn(from + n, " ");
    return aq_arena_strndup(r->arena, from, n);
}

/* Ends the body or reply above. */
static void close_text(reader *r)
{
    char *copy = aq_arena_alloc(r->arena, r->text.len + 1);

    if (r->text.len > 0)
        memcpy(copy, r->text.data, r->text.len);
    if (r->turn) {
        r->turn->reply = copy;
        r->turn->reply_len = r->text.len;
    } else if (r->answer) {
        r->answer->body = copy;
    }
    r->text.len = 0;
    r->turn = NULL;
}

static int begin_answer(reader *r, char *at)
{
    aq_answer_rule *a;

    if (r->answer_count == AQ_RULES_ANSWERS)
        return wrong(r, "too many answers");
    a = &r->answers[r->answer_count++];
    a->name = word(r, &at);
    a->methods = word(r, &at);
    a->hosts = word(r, &at);
    a->path = word(r, &at);
    a->status = 200;
    a->body = "";
    r->answer = a;
    r->dialogue = NULL;
    return *a->path && !*at ? 0 : wrong(r, "an answer is NAME METHODS HOSTS PATH");
}

static int begin_service(reader *r, char *at)
{
    const char *how;

    if (r->dialogue_count == DIALOGUES)
        return wrong(r, "too many services");
    r->dialogue = &r->dialogues[r->dialogue_count++];
    r->dialogue->services = word(r, &at);
    how = word(r, &at);
    r->dialogue->lines = strcmp(how, "lines") == 0;
    r->dialogue->commands = strcmp(how, "commands") == 0;
    if (*how && !r->dialogue->lines && !r->dialogue->commands)
        return wrong(r, "a service replies to lines or commands");
    r->answer = NULL;
    return *r->dialogue->services ? 0 : wrong(r, "a service needs a name");
}

static int answer_row(reader *r, const char *key, char *at)
{
    aq_answer_rule *a = r->answer;

    if (strcmp(key, "status") == 0) {
        a->status = (int)strtol(at, NULL, 10);
        return a->status >= 100 && a->status < 600 ? 0 : wrong(r, "no status");
    }
    if (strcmp(key, "type") == 0)
        a->type = aq_arena_strdup(r->arena, at);
    else if (strcmp(key, "do") == 0)
        a->special = word(r, &at);
    else if (strcmp(key, "stream") == 0)
        a->stream = true;
    else if (strcmp(key, "header") == 0 && a->header_count < AQ_RULE_HEADERS) {
        a->headers[a->header_count].name = word(r, &at);
        a->headers[a->header_count++].value = aq_arena_strdup(r->arena, at);
    } else if (strcmp(key, "when") == 0 && a->when_count < AQ_RULE_WHENS) {
        a->when[a->when_count].header = word(r, &at);
        a->when[a->when_count++].pattern = aq_arena_strdup(r->arena, at);
    } else if (strcmp(key, "has") == 0 && a->when_count < AQ_RULE_WHENS) {
        a->when[a->when_count++].pattern = aq_arena_strdup(r->arena, at);
    } else {
        return wrong(r, "no such row in an answer");
    }
    return 0;
}

/* Text, or bytes in hex behind an equals sign. */
static int literal(reader *r, const char *at, const char **ret, size_t *len, bool *raw)
{
    aq_auto_buf bytes = {0};

    *raw = at[0] == '=';
    if (!*raw) {
        *ret = aq_arena_strdup(r->arena, at);
        *len = strlen(at);
        return 0;
    }
    if (aq_unhex(at + 1, strlen(at + 1), &bytes) < 0)
        return wrong(r, "these are no hex digits");
    *ret = aq_arena_strndup(r->arena, aq_buf_str(&bytes), bytes.len);
    memcpy((char *)*ret, aq_buf_str(&bytes), bytes.len);
    *len = bytes.len;
    return 0;
}

/* What is said of a turn after its text. */
static bool is_mark(const char *key)
{
    return strcmp(key, "bye") == 0 || strcmp(key, "collect") == 0 || strcmp(key, "starttls") == 0;
}

static int service_row(reader *r, const char *key, char *at)
{
    aq_dialogue *d = r->dialogue;
    bool anywhere = strcmp(key, "has") == 0, raw;

    if (strcmp(key, "greet") == 0)
        return literal(r, at, &d->greeting, &d->greeting_len, &d->greeting_raw);
    if (is_mark(key)) {
        aq_turn *t = d->turn_count > 0 ? &d->turns[d->turn_count - 1] : NULL;

        if (!t)
            return wrong(r, "there is no turn above");
        *(key[0] == 'b' ? &t->bye : key[0] == 'c' ? &t->collect : &t->starttls) = true;
        return 0;
    }
    if (!anywhere && strcmp(key, "on") != 0 && strcmp(key, "else") != 0)
        return wrong(r, "no such row in a service");
    if (d->turn_count == AQ_RULES_TURNS)
        return wrong(r, "too many turns");
    r->turn = &d->turns[d->turn_count++];
    r->turn->anywhere = anywhere;
    return literal(r, at, &r->turn->pattern, &r->turn->pattern_len, &raw);
}

static int text_row(reader *r, const char *at)
{
    aq_turn *t = r->dialogue && r->dialogue->turn_count > 0
                     ? &r->dialogue->turns[r->dialogue->turn_count - 1]
                     : NULL;

    if (!r->answer && !t)
        return wrong(r, "text of nothing");
    if (!r->answer)
        r->turn = t;
    if (at[0] == '=') {
        if (!t || aq_unhex(at + 1, strlen(at + 1), &r->text) < 0)
            return wrong(r, "these are no hex digits, or not of a turn");
        t->raw = true;
        return 0;
    }
    aq_buf_adds(&r->text, at + 1);
    if (at[0] == '|')
        aq_buf_adds(&r->text, r->answer ? "\n" : "\r\n");
    return 0;
}

static int row(reader *r, char *line)
{
    char *at = line;
    const char *key;

    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (strchr("|>=", line[0]))
        return text_row(r, line);
    key = word(r, &at);
    if (!is_mark(key))
        close_text(r);
    if (strcmp(key, "answer") == 0)
        return begin_answer(r, at);
    if (strcmp(key, "service") == 0)
        return begin_service(r, at);
    if (r->answer)
        return answer_row(r, key, at);
    return r->dialogue ? service_row(r, key, at) : wrong(r, "a row of nothing");
}

static int read_text(reader *r, const char *name, const char *text, size_t len)
{
    const char *end = text + len;
    int result = 0;

    r->name = name;
    r->line = 0;
    while (text < end && result == 0) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);

        r->line++;
        result = row(r, aq_arena_strndup(r->arena, text, n));
        text += n + 1;
    }
    close_text(r);
    r->answer = NULL;
    r->dialogue = NULL;
    return result;
}

static reader reader_of(aq_arena *a, aq_err *err)
{
    return (reader){.arena = a,
                    .err = err,
                    .answers = aq_arena_alloc(a, AQ_RULES_ANSWERS * sizeof(aq_answer_rule)),
                    .dialogues = aq_arena_alloc(a, DIALOGUES * sizeof(aq_dialogue))};
}

static void rules_of(const reader *r, aq_rules *ret)
{
    *ret = (aq_rules){r->answers, r->answer_count, r->dialogues, r->dialogue_count};
}

int aq_rules_parse(aq_arena *a, const char *name, const char *text, size_t len, aq_rules *ret,
                   aq_err *err)
{
    reader r = reader_of(a, err);
    int result = read_text(&r, name, text, len);

    aq_buf_free(&r.text);
    if (result == 0)
        rules_of(&r, ret);
    return result;
}

int aq_rules_builtin(const aq_rules **ret, aq_err *err)
{
    static const struct {
        const char *name, *text;
        size_t len;
    } packs[] = {
        {"greetings.pack", greetings_pack, sizeof greetings_pack - 1},
        {"clouds.pack", clouds_pack, sizeof clouds_pack - 1},
        {"models.pack", models_pack, sizeof models_pack - 1},
        {"answers.pack", answers_pack, sizeof answers_pack - 1},
    };
    static aq_rules rules;
    static aq_arena *arena;
    reader r;
    int result = 0;

    if (!arena) {
        arena = aq_arena_new();
        r = reader_of(arena, err);
        for (size_t i = 0; i < sizeof packs / sizeof *packs && result == 0; i++)
            result = read_text(&r, packs[i].name, packs[i].text, packs[i].len);
        aq_buf_free(&r.text);
        rules_of(&r, &rules);
    }
    *ret = &rules;
    return result;
}

static bool glob(const char *p, size_t plen, const char *text)
{
    const char *end = p + plen, *star = NULL, *again = NULL;

    while (*text) {
        if (p < end && *p == '*') {
            star = ++p;
            again = text;
        } else if (p < end && tolower((unsigned char)*p) == tolower((unsigned char)*text)) {
            p++;
            text++;
        } else if (star) {
            p = star;
            text = ++again;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

bool aq_rule_match(const char *list, const char *text)
{
    for (;;) {
        size_t n = strcspn(list, ",");

        if (glob(list, n, text))
            return true;
        if (!list[n])
            return false;
        list += n + 1;
    }
}

const aq_dialogue *aq_rules_dialogue(const aq_rules *r, const char *service)
{
    for (size_t i = 0; service && i < r->dialogue_count; i++)
        if (aq_rule_match(r->dialogues[i].services, service))
            return &r->dialogues[i];
    return NULL;
}

bool aq_rules_greets(const aq_rules *r, const char *service)
{
    const aq_dialogue *d = aq_rules_dialogue(r, service);

    return d && d->greeting;
}

bool aq_rules_answers(const aq_rules *r, const char *service)
{
    return aq_rules_dialogue(r, service) != NULL;
}
