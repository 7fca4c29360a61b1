/* The two passes of the survey; survey_core.h has the theory of operation. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/report_parts.h"
#include "cleanroom/survey_core.h"
#include "cleanroom/survey_parts.h"
#include "cleanroom/survey_words.h"

enum {
    ROW_BITS = 20,     /* counters of one row of the sketch: 2 rows, 8 MiB */
    PIECE = 400,       /* bytes of a line that are looked at as one */
    PIECE_BREAK = 200, /* from here on a separator ends the piece */
    PER_FILE = 2,      /* places to look in one file, while others compete for them */
    FILL_WEIGHT = 25,  /* one that weighs less gets no third place in its file */
    FEW_FILES = 20,    /* in fewer, nothing is rare */
    FEW = 2,           /* pieces of one shape that are still strange */
    SOLID = 6,         /* a piece with fewer bytes is never strange by its shape alone */
    RARITY = 16,       /* of a shape that is there once; halves by repetition down to … */
    RARITY_FLOOR = 4,  /* … this: repeating a heavy line a thousand times does not hide it */
    OWN_CODE = 12,     /* weight of mere strangeness where all else repeats itself */
    REPETITIVE_PIECES = 300, /* fewer say nothing about repetition */
    REPETITIVE_RATIO = 8,    /* pieces for each different shape */
};

typedef struct candidate {
    uint32_t score, line, seen, weight, in_file;
    uint64_t shape;
    char *path; /* owned */
    size_t from, to, at;
    aq_hits hits;
    char *text; /* owned; set when the file is done */
} candidate;

/* A file of a share, while it is among the largest. */
typedef struct large {
    char *path; /* owned */
    uint64_t size;
} large;

struct aq_survey_scan {
    aq_words *words;
    uint32_t *sketch; /* two rows */
    uint64_t pieces, shapes;
    aq_survey sum;
    large largest[AQ_SHARES][AQ_SHARE_NAMES];
    candidate best[AQ_LOOKS]; /* of each file the first PER_FILE */
    size_t best_count;
    candidate more[AQ_LOOKS]; /* of each file those behind them: for places that stay free */
    size_t more_count;
};

/* One file on its way through a pass. */
typedef struct reader {
    const unsigned char *data;
    size_t len, from, to; /* the piece: data[from…to) */
    uint32_t line;
    bool line_start;
    bool fenced; /* inside a code block of prose */
    bool front;  /* inside the front matter of a document */
    bool prose, manifest;
    aq_comment_style style;
    aq_place place; /* of the line */
    aq_words_state words;
} reader;

aq_survey_scan *aq_survey_scan_new(void)
{
    aq_survey_scan *s = aq_alloc(sizeof *s);

    s->words = aq_words_new();
    s->sketch = aq_alloc((size_t)2 * sizeof *s->sketch << ROW_BITS);
    return s;
}

static void drop(candidate *c)
{
    free(c->path);
    free(c->text);
    *c = (candidate){0};
}

void aq_survey_scan_free(aq_survey_scan *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->best_count; i++)
        drop(&s->best[i]);
    for (size_t i = 0; i < s->more_count; i++)
        drop(&s->more[i]);
    for (size_t i = 0; i < AQ_SHARES; i++)
        for (size_t n = 0; n < AQ_SHARE_NAMES; n++)
            free(s->largest[i][n].path);
    aq_words_free(s->words);
    free(s->sketch);
    free(s);
}

static void open_reader(reader *r, const char *path, const unsigned char *data, size_t len)
{
    *r = (reader){.data = data,
                  .len = len,
                  .line = 1,
                  .line_start = true,
                  .prose = aq_survey_prose(path),
                  .manifest = aq_survey_manifest(path),
                  .style = aq_survey_comments(path)};
}

static bool starts(const reader *r, size_t at, const char *text)
{
    size_t n = strlen(text);

    return r->len - at >= n && memcmp(r->data + at, text, n) == 0;
}

static bool comment(const reader *r, size_t at)
{
    switch (r->style) {
    case AQ_COMMENT_SLASHES:
        return starts(r, at, "//") || starts(r, at, "/*") || starts(r, at, "* ");
    case AQ_COMMENT_DASHES:
        return starts(r, at, "--");
    case AQ_COMMENT_SEMICOLON:
        return starts(r, at, ";");
    case AQ_COMMENT_MARKUP:
        return false; /* an agent reads the comments of a document like the rest of it */
    case AQ_COMMENT_HASH:
        return starts(r, at, "#") && !starts(r, at, "#!");
    }
    return false;
}

/* Decides once a line where it stands; a fence of a document opens or closes a code block. */
static void place_line(reader *r)
{
    size_t at = r->from;

    while (at < r->to && (r->data[at] == ' ' || r->data[at] == '\t'))
        at++;
    if (r->prose && starts(r, r->from, "---") && (r->line == 1 || r->front))
        r->front = r->line == 1;
    if (r->prose && (starts(r, at, "```") || starts(r, at, "~~~")))
        r->fenced = !r->fenced;
    if (r->prose)
        r->place = r->fenced ? AQ_PLACE_CODE : AQ_PLACE_PROSE;
    else
        r->place = comment(r, at) ? AQ_PLACE_COMMENT : AQ_PLACE_CODE;
    r->words.table = r->place == AQ_PLACE_PROSE && starts(r, at, "|");
}

/* Where a line that is too long is cut: behind a separator, else at the end of the room. */
static size_t cut(const reader *r, size_t from)
{
    for (size_t i = from + PIECE_BREAK; i < from + PIECE; i++)
        if (strchr(";{}, \t", r->data[i]) && r->data[i])
            return i + 1;
    return from + PIECE;
}

/* Advances to the next piece; false at the end of the file. */
static bool next_piece(reader *r)
{
    size_t room;
    const unsigned char *end;

    if (r->to < r->len && r->data[r->to] == '\n') {
        r->to++;
        r->line += r->line < UINT32_MAX;
        r->line_start = true;
        r->words = (aq_words_state){0};
    } else {
        r->line_start = r->to == 0;
    }
    r->from = r->to;
    if (r->from >= r->len)
        return false;
    room = r->len - r->from < PIECE ? r->len - r->from : PIECE;
    end = memchr(r->data + r->from, '\n', room);
    if (end)
        r->to = (size_t)(end - r->data);
    else
        r->to = room < PIECE ? r->len : cut(r, r->from);
    if (r->line_start)
        place_line(r);
    return true;
}

static uint64_t look_at(aq_survey_scan *s, reader *r, aq_hits *hits, size_t *solid)
{
    uint64_t shape = aq_survey_shape(r->data + r->from, r->to - r->from, solid);

    aq_words_scan(s->words, &r->words, r->data, r->from, r->to, r->len, hits);
    return (shape + hits->mixture) * 0xff51afd7ed558ccdull;
}

static uint32_t *counter(aq_survey_scan *s, uint64_t shape, size_t row)
{
    size_t index = (size_t)(shape >> (row ? 64 - ROW_BITS : 8)) & (((size_t)1 << ROW_BITS) - 1);

    return &s->sketch[(row << ROW_BITS) + index];
}

static uint32_t seen(aq_survey_scan *s, uint64_t shape)
{
    uint32_t a = *counter(s, shape, 0), b = *counter(s, shape, 1);

    return a < b ? a : b;
}

static void count_pieces(aq_survey_scan *s, reader *r)
{
    while (next_piece(r)) {
        aq_hits hits;
        size_t solid;
        uint64_t shape = look_at(s, r, &hits, &solid);
        s->sum.lines += r->line_start;
        if (solid == 0)
            continue;
        s->pieces++;
        s->shapes += seen(s, shape) == 0;
        for (size_t row = 0; row < 2; row++)
            *counter(s, shape, row) += *counter(s, shape, row) < UINT32_MAX;
    }
}

/* Keeps the largest of a share; of equal ones the first by name, whatever the order they come in.
 */
static void keep_large(large *list, const char *path, uint64_t size)
{
    large in = {aq_strdup(path), size};

    for (size_t i = 0; i < AQ_SHARE_NAMES; i++) {
        large here = list[i];
        if (here.path &&
            (here.size > in.size || (here.size == in.size && strcmp(here.path, in.path) <= 0)))
            continue;
        list[i] = in;
        in = here;
        if (!in.path)
            return;
    }
    free(in.path);
}

void aq_survey_count(aq_survey_scan *s, const char *path, const unsigned char *data, size_t len)
{
    aq_survey *sum = &s->sum;
    uint64_t *const files[] = {
        [AQ_CONTENT_BINARY] = &sum->binary_files,
        [AQ_CONTENT_VENDORED] = &sum->vendored_files,
        [AQ_CONTENT_MINIFIED] = &sum->minified_files,
        [AQ_CONTENT_GENERATED] = &sum->generated_files,
    };
    uint64_t *const bytes[] = {
        [AQ_CONTENT_BINARY] = &sum->binary_bytes,
        [AQ_CONTENT_VENDORED] = &sum->vendored_bytes,
        [AQ_CONTENT_MINIFIED] = &sum->minified_bytes,
        [AQ_CONTENT_GENERATED] = &sum->generated_bytes,
    };
    aq_content content = aq_survey_classify(path, data, len);
    reader r;

    sum->files++;
    sum->bytes += len;
    if (content != AQ_CONTENT_PLAIN) {
        ++*files[content];
        *bytes[content] += len;
        keep_large(s->largest[content], path, len);
    }
    if (len == 0 || !aq_survey_readable(data, len))
        return;
    open_reader(&r, path, data, len);
    count_pieces(s, &r);
}

static unsigned rarity(uint32_t count)
{
    unsigned steps = 0;

    while (count > 1 && steps < RARITY) {
        count /= 2;
        steps += 2;
    }
    return steps + RARITY_FLOOR > RARITY ? RARITY_FLOOR : RARITY - steps;
}

static bool repetitive(const aq_survey_scan *s)
{
    return s->pieces >= REPETITIVE_PIECES && s->shapes * REPETITIVE_RATIO < s->pieces;
}

static int better(const candidate *a, const candidate *b)
{
    int r;

    if (a->score != b->score)
        return a->score > b->score ? 1 : -1;
    if (a->weight != b->weight)
        return a->weight > b->weight ? 1 : -1;
    r = strcmp(b->path, a->path);
    if (r == 0 && a->line != b->line)
        r = a->line < b->line ? 1 : -1;
    if (r == 0 && a->from != b->from)
        r = a->from < b->from ? 1 : -1;
    return r;
}

/* Enters `c` among the `room` best of different shapes. Of two with one shape the better stays, so
 * the outcome is the same in whatever order they come. Returns what fell out (or `c`). */
static candidate offer(candidate *best, size_t *count, size_t room, const candidate *c)
{
    size_t slot = *count;
    candidate out;

    for (size_t i = 0; i < *count; i++)
        if (best[i].shape == c->shape)
            slot = i;
    if (slot == *count && *count < room) {
        best[(*count)++] = *c;
        return (candidate){0};
    }
    if (slot == *count) { /* no place is free: the worst may have to go */
        slot = 0;
        for (size_t i = 1; i < *count; i++)
            if (better(&best[slot], &best[i]) > 0)
                slot = i;
    }
    if (better(c, &best[slot]) <= 0)
        return *c;
    out = best[slot];
    best[slot] = *c;
    return out;
}

/* What every package of its kind has (name:, description:) is not strange for standing alone. */
static bool own_weight(const aq_survey_scan *s, const reader *r, size_t solid, uint32_t count)
{
    return repetitive(s) && s->sum.files >= FEW_FILES && solid >= SOLID && count <= FEW &&
           !r->front && !r->manifest;
}

/* Sets weight and score; false when the piece is no place to look. */
static bool score_piece(const aq_survey_scan *s, const reader *r, size_t solid, candidate *c)
{
    unsigned own = 0;

    c->weight = aq_words_weight(&c->hits, r->place);
    if (c->weight < AQ_LOOK_LEAST)
        c->hits.count = 0;
    if (r->place == AQ_PLACE_CODE && own_weight(s, r, solid, c->seen))
        own = OWN_CODE;
    c->score = (uint32_t)((c->weight + own) *
                          (s->sum.files < FEW_FILES ? (unsigned)RARITY : rarity(c->seen)));
    return solid > 0 && (c->hits.count > 0 || own > 0);
}

static int graver_first(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return better(y, x);
}

/* A graver line of a file never stands below a milder one of it, however often it is repeated. */
static void rank_file(candidate *best, size_t count)
{
    qsort(best, count, sizeof *best, graver_first);
    for (size_t i = count; i-- > 1;)
        if (best[i - 1].score < best[i].score)
            best[i - 1].score = best[i].score;
}

static void keep(aq_survey_scan *s, candidate *c, size_t rank)
{
    if (rank >= PER_FILE && c->weight < FILL_WEIGHT) {
        drop(c);
        return;
    }
    candidate out = rank < PER_FILE ? offer(s->best, &s->best_count, AQ_LOOKS, c)
                                    : offer(s->more, &s->more_count, AQ_LOOKS, c);

    drop(&out);
}

void aq_survey_score(aq_survey_scan *s, const char *path, const unsigned char *data, size_t len)
{
    candidate best[AQ_LOOKS] = {0};
    size_t count = 0;
    uint32_t heavy = 0, last = 0, grave = 0, last_grave = 0;
    reader r;

    if (len == 0 || !aq_survey_readable(data, len))
        return;
    open_reader(&r, path, data, len);
    while (next_piece(&r)) {
        candidate c = {.line = r.line, .from = r.from, .to = r.to, .path = (char *)(uintptr_t)path};
        size_t solid;
        c.shape = look_at(s, &r, &c.hits, &solid);
        c.at = c.hits.count ? c.hits.at[0] : c.from;
        c.seen = seen(s, c.shape);
        if (!score_piece(s, &r, solid, &c))
            continue;
        offer(best, &count, AQ_LOOKS, &c);
        if (c.hits.count && last != c.line) {
            heavy += heavy < UINT32_MAX;
            last = c.line;
        }
        if (c.weight >= AQ_LOOK_GRAVE && last_grave != c.line) {
            grave += grave < UINT32_MAX;
            last_grave = c.line;
        }
    }
    s->sum.look_lines += heavy;
    s->sum.look_files += heavy > 0;
    s->sum.grave_lines += grave;
    s->sum.grave_files += grave > 0;
    rank_file(best, count);
    for (size_t i = 0; i < count; i++) {
        aq_auto_arena a = aq_arena_new();
        best[i].in_file = heavy;
        best[i].path = aq_strdup(path);
        best[i].text =
            aq_strdup(aq_survey_excerpt(a, data, len, best[i].from, best[i].to, best[i].at));
        keep(s, &best[i], i);
    }
}

/* mentions “curl” and “| sh”: could download, pipe text into a shell; names a host by its address
 * — what is there, and only what it could mean. The three heaviest. */
static void add_reasons(aq_buf *b, const aq_hits *hits)
{
    uint16_t words[3];
    size_t count = 0;

    for (size_t i = 0; i < hits->count && i < 3; i++)
        if (aq_words_get(hits->word[i])->literal[0] != '@')
            words[count++] = hits->word[i];
    for (size_t i = 0; i < count; i++)
        aq_buf_addf(b, "%s“%s”",
                    i == 0          ? "mentions "
                    : i + 1 < count ? ", "
                                    : " and ",
                    aq_words_get(words[i])->shown);
    for (size_t i = 0; i < count; i++)
        aq_buf_addf(b, "%s%s", i ? ", " : ": could ", aq_words_get(words[i])->why);
    for (size_t i = 0; i < hits->count && i < 3; i++)
        if (aq_words_get(hits->word[i])->literal[0] == '@')
            aq_buf_addf(b, "%s%s", b->len ? "; " : "", aq_words_get(hits->word[i])->why);
}

static const char *reason(aq_arena *a, const candidate *c, uint64_t files)
{
    aq_auto_buf b = {0};

    add_reasons(&b, &c->hits);
    if (c->seen <= 10 && files >= FEW_FILES) {
        aq_buf_adds(&b, b.len ? "; " : "");
        if (c->seen <= 1)
            aq_buf_adds(&b, "no other line looks like it in ");
        else
            aq_buf_addf(&b, "one of %u lines that look alike in ", c->seen);
        aq_part_plural(&b, files, "file", "files");
    }
    return aq_arena_strdup(a, aq_buf_str(&b));
}

static int best_first(const void *a, const void *b)
{
    return better(b, a);
}

/* Places that stay free go to what the limit of its file held back. */
static void fill(aq_survey_scan *s)
{
    qsort(s->more, s->more_count, sizeof *s->more, best_first);
    for (size_t i = 0; i < s->more_count && s->best_count < AQ_LOOKS; i++) {
        candidate out = offer(s->best, &s->best_count, AQ_LOOKS, &s->more[i]);
        s->more[i] = (candidate){0};
        drop(&out);
    }
}

void aq_survey_finish(aq_survey_scan *s, aq_arena *a, aq_survey *ret)
{
    *ret = s->sum;
    ret->complete = true;
    for (size_t i = 0; i < AQ_SHARES; i++)
        for (size_t n = 0; n < AQ_SHARE_NAMES && s->largest[i][n].path; n++)
            ret->largest[i][n] =
                aq_text_quoted(a, s->largest[i][n].path, strlen(s->largest[i][n].path), 4096);
    fill(s);
    qsort(s->best, s->best_count, sizeof *s->best, best_first);
    for (size_t i = 0; i < s->best_count; i++) {
        const candidate *c = &s->best[i];
        ret->looks[i] = (aq_look){
            .file = aq_text_quoted(a, c->path, strlen(c->path), 4096),
            .line = c->line,
            .score = c->score,
            .weight = c->weight,
            .in_file = c->in_file,
            .why = reason(a, c, s->sum.files),
            .text = aq_arena_strdup(a, c->text),
        };
    }
    ret->look_count = s->best_count;
}
