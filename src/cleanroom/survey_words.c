/* Attention words; see survey_words.h. The automaton is built once a run from the table that the
 * build made; it reads lower-cased bytes with white space collapsed and hidden characters skipped,
 * so that neither spacing nor invisible characters break a phrase. */
#include "cleanroom/survey_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cleanroom/survey.h"

enum {
    ENCODED_RUN = 160, /* characters of one base64-like run: longer than any digest */
    ESCAPES = 10,      /* \x41-like escapes in one piece */
    NONE = 0xffff,
};

static const aq_word table[] = {
#include "attention_table.h"
};
enum { WORDS = sizeof table / sizeof *table };

struct aq_words {
    uint8_t class_of[256]; /* 0: in no literal; capitals are small letters, all white space one */
    size_t classes, nodes;
    uint16_t *next; /* nodes × classes */
    uint16_t *word; /* word that ends at the node, or NONE */
    uint16_t *link; /* nearest shorter suffix at which a word ends, or 0 */
    bool *ends;     /* a word ends at the node or at a suffix of it */
    uint16_t hidden, encoded, escapes, ip_url;
};

const aq_word *aq_words_get(size_t index)
{
    return &table[index];
}

static bool wordy(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static uint16_t find(const char *literal)
{
    for (uint16_t i = 0; i < WORDS; i++)
        if (strcmp(table[i].literal, literal) == 0)
            return i;
    aq_panic("attention table: no row %s", literal);
}

/* "://" stands for the check of addresses: the literal that calls it. */
static const char *literal_of(const aq_word *w)
{
    if (w->literal[0] != '@')
        return w->literal;
    return strcmp(w->literal, "@ip-url") == 0 ? "://" : "";
}

static void add_literal(aq_words *w, const char *literal, uint16_t index)
{
    size_t node = 0;

    if (!*literal)
        return;
    for (const unsigned char *p = (const unsigned char *)literal; *p; p++) {
        uint16_t *to = &w->next[node * w->classes + w->class_of[*p]];
        if (*to == 0)
            *to = (uint16_t)w->nodes++;
        node = *to;
    }
    w->word[node] = index;
}

/* Breadth first: turns the tree into the automaton with all its jumps filled in. */
static void close_automaton(aq_words *w)
{
    uint16_t *queue = aq_realloc(NULL, w->nodes, sizeof *queue);
    uint16_t *fail = aq_alloc(w->nodes * sizeof *fail);
    size_t head = 0, tail = 0;

    for (size_t c = 0; c < w->classes; c++)
        if (w->next[c])
            queue[tail++] = w->next[c];
    while (head < tail) {
        size_t node = queue[head++], back = fail[node];
        w->link[node] = w->word[back] != NONE ? (uint16_t)back : w->link[back];
        for (size_t c = 0; c < w->classes; c++) {
            uint16_t *to = &w->next[node * w->classes + c];
            uint16_t over = w->next[back * w->classes + c];
            if (*to) {
                fail[*to] = over;
                queue[tail++] = *to;
            } else {
                *to = over;
            }
        }
    }
    free(queue);
    free(fail);
}

aq_words *aq_words_new(void)
{
    aq_words *w = aq_alloc(sizeof *w);
    size_t most = 1;

    w->classes = 1;
    for (size_t i = 0; i < WORDS; i++) {
        const unsigned char *p = (const unsigned char *)literal_of(&table[i]);
        most += strlen((const char *)p);
        for (; *p; p++)
            if (!w->class_of[*p])
                w->class_of[*p] = (uint8_t)w->classes++;
    }
    for (int c = 'A'; c <= 'Z'; c++)
        w->class_of[c] = w->class_of[c + 32];
    for (int c = '\t'; c <= '\r'; c++)
        w->class_of[c] = w->class_of[' '];
    w->next = aq_alloc(most * w->classes * sizeof *w->next);
    w->word = aq_realloc(NULL, most, sizeof *w->word);
    w->link = aq_alloc(most * sizeof *w->link);
    memset(w->word, 0xff, most * sizeof *w->word);
    w->nodes = 1;
    for (uint16_t i = 0; i < WORDS; i++)
        add_literal(w, literal_of(&table[i]), i);
    close_automaton(w);
    w->ends = aq_alloc(w->nodes * sizeof *w->ends);
    for (size_t i = 0; i < w->nodes; i++)
        w->ends[i] = w->word[i] != NONE || w->link[i];
    w->hidden = find("@hidden");
    w->encoded = find("@encoded");
    w->escapes = find("@escapes");
    w->ip_url = find("@ip-url");
    return w;
}

void aq_words_free(aq_words *w)
{
    if (!w)
        return;
    free(w->next);
    free(w->word);
    free(w->link);
    free(w->ends);
    free(w);
}

static bool weak(uint16_t word)
{
    return table[word].need == AQ_NEED_COMPANY || table[word].need == AQ_NEED_NAME;
}

/* Is `a` the better proof of one reason than `b`? A weak word may still fall away. */
static bool outweighs(uint16_t a, uint16_t b)
{
    if (weak(a) != weak(b))
        return weak(b);
    return table[a].weight > table[b].weight;
}

/* Keeps the heaviest word of each reason; with all places taken the lightest gives way. */
static void add_hit(aq_hits *hits, uint16_t word, size_t at)
{
    size_t slot = hits->count, lightest = 0;

    if (table[word].scope == AQ_SCOPE_SIGNAL) {
        hits->signal = true;
        hits->moves = hits->moves || strcmp(table[word].why, "moves data") == 0;
        return;
    }
    hits->mixture += (word + 1) * 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < hits->count; i++) {
        if (strcmp(table[hits->word[i]].why, table[word].why) == 0)
            slot = i;
        if (outweighs(hits->word[lightest], hits->word[i]))
            lightest = i;
    }
    if (slot == AQ_HITS)
        slot = lightest;
    if (slot < hits->count && !outweighs(word, hits->word[slot]))
        return;
    hits->word[slot] = word;
    hits->at[slot] = at;
    if (slot == hits->count)
        hits->count++;
}

/* Drops weak words without company, and sorts the others by weight. */
static void settle(aq_hits *hits)
{
    bool company = hits->signal;
    uint16_t kept = 0;

    for (size_t i = 0; i < hits->count; i++)
        company = company || !weak(hits->word[i]);
    for (uint16_t i = 0; i < hits->count; i++) {
        uint16_t word = hits->word[i], to = kept;
        size_t at = hits->at[i];
        if (weak(word) && !company)
            continue;
        for (; to > 0 && table[hits->word[to - 1]].weight < table[word].weight; to--) {
            hits->word[to] = hits->word[to - 1];
            hits->at[to] = hits->at[to - 1];
        }
        hits->word[to] = word;
        hits->at[to] = at;
        kept++;
    }
    hits->count = kept;
}

/* Letters of a program's argument: a path, a name, a variable or an option. */
static bool argument_start(unsigned char c)
{
    return wordy(c) || c == '.' || c == '/' || c == '~' || c == '$' || c == '-' || c >= 0x80;
}

static bool same_letters(const aq_word *w, const unsigned char *data, size_t at)
{
    size_t n = strlen(w->shown);

    return at + 1 >= n && memcmp(data + at + 1 - n, w->shown, n) == 0;
}

static size_t skip_blanks(const unsigned char *data, size_t at, size_t len)
{
    while (at < len && (data[at] == ' ' || data[at] == '\t'))
        at++;
    return at;
}

/* "scp file host:" but neither "SCP" nor "scp." */
static bool has_argument(const aq_word *w, const unsigned char *data, size_t at, size_t len)
{
    size_t next = skip_blanks(data, at + 1, len);

    return same_letters(w, data, at) && next > at + 1 && next < len && argument_start(data[next]);
}

/* Does the program behind a pipe read what comes through it? Not when a script or a module is named
 * ("| python3 tool.py", "| python3 -m json.tool"), and a table has no pipes. */
static bool reads_input(const unsigned char *data, size_t at, size_t len, bool in_table)
{
    size_t next = skip_blanks(data, at + 1, len);

    if (in_table)
        return false;
    if (next >= len || data[next] == '\n' || data[next] == '\r')
        return true;
    if (data[next] == '-')
        return next + 1 >= len || space(data[next + 1]) || strchr("-cesux", data[next + 1]);
    return !argument_start(data[next]) ||
           (len - next > 1 && data[next] == '2' && data[next + 1] == '>');
}

/* The package that an installer-and-runner gets: its first argument that is no option. */
static bool unpinned(const unsigned char *data, size_t at, size_t len)
{
    size_t from = skip_blanks(data, at + 1, len), to = from;

    while (from < len && data[from] == '-') {
        while (from < len && !space(data[from]))
            from++;
        from = skip_blanks(data, from, len);
    }
    for (to = from; to < len && !space(data[to]); to++)
        if ((to > from && data[to] == '@') || (data[to] == '=' && to + 1 < len))
            return false;
    return to > from && (wordy(data[from]) || data[from] == '@');
}

/* The byte before a match of `n` normalised characters that ends at data[at], 0 at the start.
 * Walks back over what the automaton saw as one character (a run of white space) or as none (a
 * hidden character). */
static unsigned char before_match(const unsigned char *data, size_t at, size_t n)
{
    const unsigned char *p = data + at + 1;

    while (n > 0 && p > data) {
        const unsigned char *q;
        p--;
        if (space(*p)) {
            while (p > data && space(p[-1]))
                p--;
        } else if (*p >= 0x80) {
            while (p > data && (*p & 0xc0) == 0x80)
                p--;
            q = p;
            if (aq_text_hidden(aq_utf8_next(&q, data + at + 1)))
                continue;
        }
        n--;
    }
    return p > data ? p[-1] : 0;
}

static bool need_met(uint16_t word, const aq_words_state *s, const unsigned char *data, size_t at,
                     size_t len)
{
    switch (table[word].need) {
    case AQ_NEED_ARGUMENT:
        return has_argument(&table[word], data, at, len);
    case AQ_NEED_NAME:
        return same_letters(&table[word], data, at);
    case AQ_NEED_INPUT:
        return reads_input(data, at, len, s->table);
    case AQ_NEED_UNPINNED:
        return unpinned(data, at, len);
    case AQ_NEED_COMMAND:
        return !strchr(".-", before_match(data, at, strlen(table[word].literal))) ||
               !before_match(data, at, strlen(table[word].literal));
    case AQ_NEED_NOTHING:
    case AQ_NEED_COMPANY:
        break;
    }
    return true;
}

/* Is there a dotted quad at `p` that is not of a private or local network? */
static bool public_address(const unsigned char *p, const unsigned char *end)
{
    unsigned part[4] = {0}, n = 0;

    while (n < 4) {
        size_t digits = 0;
        for (; p < end && *p >= '0' && *p <= '9' && digits < 4; p++, digits++)
            part[n] = part[n] * 10 + (unsigned)(*p - '0');
        if (digits == 0 || digits > 3 || part[n] > 255)
            return false;
        if (++n < 4 && (p == end || *p++ != '.'))
            return false;
    }
    if (p < end && (wordy(*p) || *p == '.'))
        return false;
    return part[0] != 127 && part[0] != 10 && part[0] != 0 && !(part[0] == 192 && part[1] == 168) &&
           !(part[0] == 172 && part[1] >= 16 && part[1] <= 31);
}

static void end_words(const aq_words *w, const aq_words_state *s, const unsigned char *data,
                      size_t at, size_t len, aq_hits *hits)
{
    size_t node = s->node;
    bool longer = false; /* a literal that ends here, too, has counted: "credentials" is then no
                            company for ".aws/credentials" */

    for (node = w->word[node] != NONE ? node : w->link[node]; node; node = w->link[node]) {
        uint16_t word = w->word[node];
        const char *literal = literal_of(&table[word]);
        size_t n = strlen(literal);
        if (wordy(literal[n - 1]) && at + 1 < len && wordy(data[at + 1]))
            continue;
        if (wordy(literal[0]) &&
            wordy(before_match(data, at, n)) != (table[word].need == AQ_NEED_NAME))
            continue;
        if (table[word].scope == AQ_SCOPE_NONE)
            return;
        if (word == w->ip_url && !public_address(data + at + 1, data + len))
            continue;
        if ((longer && weak(word)) || !need_met(word, s, data, at, len))
            continue;
        longer = true;
        add_hit(hits, word, at + 1);
    }
}

/* A run of base64 letters with capitals, small letters and digits; told once, when it gets long. */
static bool long_run(aq_words_state *s, unsigned char c)
{
    static const uint8_t classes[256] = {
        ['a' ... 'z'] = 1, ['A' ... 'Z'] = 2, ['0' ... '9'] = 4, ['+'] = 8,
        ['/'] = 8,         ['-'] = 8,         ['_'] = 8,         ['='] = 8,
    };

    if (!classes[c]) {
        s->run = 0;
        s->run_classes = 0;
        return false;
    }
    s->run_classes |= classes[c];
    return s->run < UINT32_MAX && ++s->run == ENCODED_RUN && (s->run_classes & 7) == 7;
}

/* Joiners are ordinary in many scripts and in emoji; next to ASCII they join nothing. */
static bool hidden_here(int32_t c, const unsigned char *before, const unsigned char *data,
                        const unsigned char *after, const unsigned char *end)
{
    if (!aq_text_hidden(c))
        return false;
    if (c == 0xfeff && before == data)
        return false; /* a byte order mark where one belongs */
    if (c == 0x200c || c == 0x200d)
        return (before > data && before[-1] < 0x80) || after == end || *after < 0x80;
    return true;
}

/* One character beyond ASCII at data[i]; returns where the next one starts. */
static size_t scan_wide(const aq_words *w, aq_words_state *s, const unsigned char *data, size_t i,
                        size_t len, aq_hits *hits)
{
    const unsigned char *p = data + i;
    int32_t code = aq_utf8_next(&p, data + len);

    if (aq_text_hidden(code)) {
        if (hidden_here(code, data + i, data, p, data + len))
            add_hit(hits, w->hidden, i);
    } else {
        s->node = 0; /* in no literal */
        s->space = false;
    }
    long_run(s, 0);
    return (size_t)(p - data);
}

void aq_words_scan(const aq_words *w, aq_words_state *s, const unsigned char *data, size_t from,
                   size_t to, size_t len, aq_hits *hits)
{
    unsigned escapes = 0;

    *hits = (aq_hits){0};
    for (size_t i = from; i < to;) {
        unsigned char c = data[i];
        if (c >= 0x80) {
            i = scan_wide(w, s, data, i, len, hits);
            continue;
        }
        if (long_run(s, c))
            add_hit(hits, w->encoded, i);
        if (space(c) && s->space) {
            i++;
            continue;
        }
        s->space = space(c);
        if (c == '\\' && i + 3 < to && (data[i + 1] == 'x' || data[i + 1] == 'u') &&
            ++escapes == ESCAPES)
            add_hit(hits, w->escapes, i);
        s->node = w->next[s->node * w->classes + w->class_of[c]];
        if (w->ends[s->node])
            end_words(w, s, data, i, len, hits);
        i++;
    }
    settle(hits);
}

/* Does it only name a place where secrets or services are, and nothing that is done with it? */
static bool only_names(const aq_word *w)
{
    return strcmp(w->why, "read secrets") == 0 || strcmp(w->why, "ask an agent for secrets") == 0 ||
           strcmp(w->literal, "@ip-url") == 0;
}

/* Prose that names authorized_keys or credentials speaks of them; it is grave once it says what to
 * do with them. */
static bool harmless_prose(const aq_hits *hits, aq_place place)
{
    if (place != AQ_PLACE_PROSE || hits->moves)
        return false;
    for (size_t i = 0; i < hits->count; i++)
        if (!only_names(&table[hits->word[i]]))
            return false;
    return true;
}

unsigned aq_words_weight(const aq_hits *hits, aq_place place)
{
    unsigned sum = 0;

    for (size_t i = 0; i < hits->count; i++) {
        const aq_word *word = &table[hits->word[i]];
        unsigned weight = word->weight;
        if (word->scope == AQ_SCOPE_CODE && place == AQ_PLACE_PROSE)
            weight = (weight + 1) / 2;
        else if (word->scope == AQ_SCOPE_CODE && place == AQ_PLACE_COMMENT)
            weight = (weight + 3) / 4;
        sum += weight;
    }
    if (sum >= AQ_LOOK_GRAVE && harmless_prose(hits, place))
        sum = AQ_LOOK_GRAVE - 1;
    return sum > 100 ? 100 : sum;
}
