/* Sentences; see prose.h. */
#include "internet/prose.h"

#include <errno.h>
#include <string.h>

#include "words.inc"

enum { KINDS = 16, WORDS = 512, SENTENCES = 64, LONGEST_WORD = 31 };

typedef struct kind {
    const char *name;
    const char *words[WORDS];
    uint32_t count;
} kind;

struct aq_words {
    kind kinds[KINDS];
    size_t kind_count;
    const char *sentences[SENTENCES];
    uint32_t sentence_count;
};

/* ---- reading ---- */

static kind *kind_of(aq_words *w, const char *name, size_t len)
{
    for (size_t i = 0; i < w->kind_count; i++)
        if (strlen(w->kinds[i].name) == len && memcmp(w->kinds[i].name, name, len) == 0)
            return &w->kinds[i];
    return NULL;
}

static int add_words(aq_words *w, aq_arena *a, char *at, aq_err *err)
{
    char *word = strsep(&at, " ");
    kind *k = kind_of(w, word, strlen(word));

    if (!k && w->kind_count == KINDS)
        return aq_fail(err, -E2BIG, "words.pack: more than %d kinds of words", KINDS);
    if (!k) {
        k = &w->kinds[w->kind_count++];
        k->name = aq_arena_strdup(a, word);
    }
    while ((word = strsep(&at, " "))) {
        if (*word == '\0')
            continue;
        if (k->count == WORDS || strlen(word) > LONGEST_WORD)
            return aq_fail(err, -E2BIG, "words.pack: too many words, or one too long: %s", word);
        k->words[k->count++] = aq_arena_strdup(a, word);
    }
    return 0;
}

/* Every kind in it must be one. */
static int check(aq_words *w, aq_err *err)
{
    for (uint32_t i = 0; i < w->sentence_count; i++)
        for (const char *at = w->sentences[i]; (at = strchr(at, '{')); at++) {
            const kind *k = kind_of(w, at + 1, strcspn(at + 1, "}"));

            if (!k || k->count == 0)
                return aq_fail(err, -EINVAL, "words.pack: no such words: %s", at);
        }
    return w->sentence_count > 0 ? 0 : aq_fail(err, -EINVAL, "words.pack: no sentence");
}

static int row(aq_words *w, aq_arena *a, char *line, aq_err *err)
{
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (strncmp(line, "words ", 6) == 0)
        return add_words(w, a, line + 6, err);
    if (strncmp(line, "sentence ", 9) != 0 || w->sentence_count == SENTENCES)
        return aq_fail(err, -EINVAL, "words.pack: no such row, or too many: %s", line);
    w->sentences[w->sentence_count++] = line + 9;
    return 0;
}

int aq_words_read(aq_arena *a, const char *text, size_t len, const aq_words **ret, aq_err *err)
{
    aq_words *w = aq_arena_alloc(a, sizeof *w);
    const char *end = text + len;
    int r = 0;

    while (text < end && r == 0) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);

        r = row(w, a, aq_arena_strndup(a, text, n), err);
        text += n + 1;
    }
    if (r == 0)
        r = check(w, err);
    if (r == 0)
        *ret = w;
    return r;
}

/* ---- writing ---- */

/* A word as long as one that both worlds drew. */
static const char *word_of(const kind *k, aq_scene *s)
{
    size_t len = strlen(k->words[aq_stream_below(&s->pair, k->count)]);
    uint32_t same = 0, chosen;

    for (uint32_t i = 0; i < k->count; i++)
        same += strlen(k->words[i]) == len;
    chosen = aq_stream_below(&s->own, same);
    for (uint32_t i = 0;; i++)
        if (strlen(k->words[i]) == len && chosen-- == 0)
            return k->words[i];
}

/* Returns the number of words. */
static unsigned sentence(const aq_words *w, aq_scene *s, aq_buf *out)
{
    const char *at = w->sentences[aq_stream_below(&s->pair, w->sentence_count)];
    size_t begin = out->len;
    unsigned words = 1;

    while (*at) {
        size_t n = strcspn(at, "{ ");

        aq_buf_add(out, at, n);
        at += n;
        if (*at == '{') {
            n = strcspn(at, "}");
            aq_buf_adds(out, word_of(kind_of((aq_words *)w, at + 1, n - 1), s));
            at += n + 1;
        } else if (*at == ' ') {
            aq_buf_addc(out, ' ');
            words++;
            at++;
        }
    }
    if (out->len > begin && out->data[begin] >= 'a' && out->data[begin] <= 'z')
        out->data[begin] = (char)(out->data[begin] - 'a' + 'A');
    aq_buf_addc(out, '.');
    return words;
}

void aq_prose_of(const aq_words *w, aq_scene *s, unsigned words, aq_buf *out)
{
    for (unsigned n = 0; n < words;) {
        if (n > 0)
            aq_buf_addc(out, ' ');
        n += sentence(w, s, out);
    }
}

void aq_prose(aq_scene *s, unsigned words, aq_buf *out)
{
    static const aq_words *built_in;
    static aq_arena *arena;
    aq_err err = {0};

    if (!arena)
        arena = aq_arena_new();
    if (!built_in && aq_words_read(arena, words_pack, sizeof words_pack - 1, &built_in, &err) < 0)
        aq_panic("%s", err.text);
    aq_prose_of(built_in, s, words, out);
}
