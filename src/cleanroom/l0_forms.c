/* L0: other forms of a name that a reader takes for it: without the words that people put around
 * names, in another order of its words, with a word twice. Bounded, and no look at the index. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/gate.h"

enum {
    WORDS = 8,   /* a name of more words has no other forms */
    ORDERED = 4, /* words whose order is changed */
    LEAST = 3,   /* letters of a form */
    GLUED = 4,   /* letters that must be left beside a word without a separator */
};

static const char *const affixes[] = {
#define AQ_AFFIX(word) word,
#include "cleanroom/l0_affixes.def"
#undef AQ_AFFIX
};

enum { AFFIXES = sizeof affixes / sizeof *affixes };

const char *aq_name_affix(size_t i)
{
    return i < AFFIXES ? affixes[i] : NULL;
}

typedef struct words {
    const char *at[WORDS];
    size_t len[WORDS], count;
} words;

static bool split(const char *name, words *ret)
{
    *ret = (words){0};
    for (const char *p = name; *p;) {
        size_t len;
        p += strspn(p, "-_./ ");
        len = strcspn(p, "-_./ ");
        if (len == 0)
            break;
        if (ret->count == WORDS)
            return false;
        ret->at[ret->count] = p;
        ret->len[ret->count++] = len;
        p += len;
    }
    return ret->count > 0;
}

/* "v2", "3", and the words of l0_affixes.def. */
static bool around(const words *w, size_t i)
{
    const char *s = w->at[i];
    size_t len = w->len[i], digits = len > 1 && tolower((unsigned char)*s) == 'v';

    while (digits < len && isdigit((unsigned char)s[digits]))
        digits++;
    if (digits == len)
        return true;
    for (size_t k = 0; k < AFFIXES; k++)
        if (strlen(affixes[k]) == len && strncasecmp(affixes[k], s, len) == 0)
            return true;
    return false;
}

static void add_form(aq_name_forms *f, aq_arena *a, aq_name_form kind, aq_buf *text)
{
    const char *s = aq_buf_str(text);

    if (text->len < LEAST || f->count == AQ_NAME_FORMS)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->item[i].text, s) == 0)
            return;
    f->item[f->count].kind = kind;
    f->item[f->count++].text = aq_arena_strdup(a, s);
}

static void join(aq_buf *out, const words *w, const size_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            aq_buf_addc(out, '-');
        aq_buf_add(out, w->at[order[i]], w->len[order[i]]);
    }
}

/* Every way to leave out words at the start and at the end; returns the shortest. */
static const char *without_affixes(aq_name_forms *f, aq_arena *a, const words *w)
{
    size_t first = 0, last = w->count, order[WORDS];
    aq_auto_buf core = {0};

    while (first + 1 < last && around(w, first))
        first++;
    while (last > first + 1 && around(w, last - 1))
        last--;
    for (size_t i = 0; i < w->count; i++)
        order[i] = i;
    join(&core, w, order + first, last - first);
    add_form(f, a, AQ_FORM_BARE, &core);
    for (size_t from = 0; from <= first; from++) {
        for (size_t to = last; to <= w->count; to++) {
            aq_auto_buf one = {0};
            join(&one, w, order + from, to - from);
            if (to - from < w->count)
                add_form(f, a, AQ_FORM_BARE, &one);
        }
    }
    return aq_arena_strdup(a, aq_buf_str(&core));
}

/* "githubmcp", "mcpgithub". Short words end too many others. */
static void unglue(aq_name_forms *f, aq_arena *a, const char *core)
{
    size_t n = strlen(core);

    for (size_t i = 0; i < AFFIXES; i++) {
        size_t len = strlen(affixes[i]);
        aq_auto_buf head = {0}, tail = {0};
        if (len < 3 || n < len + GLUED)
            continue;
        if (strncasecmp(core, affixes[i], len) == 0) {
            aq_buf_adds(&tail, core + len);
            add_form(f, a, AQ_FORM_UNGLUED, &tail);
        }
        if (strcasecmp(core + n - len, affixes[i]) == 0) {
            aq_buf_add(&head, core, n - len);
            add_form(f, a, AQ_FORM_UNGLUED, &head);
        }
    }
}

static void once_each(aq_name_forms *f, aq_arena *a, const words *w)
{
    size_t order[WORDS], count = 0;
    aq_auto_buf one = {0};

    for (size_t i = 0; i < w->count; i++) {
        size_t j = 0;
        while (j < count && !(w->len[order[j]] == w->len[i] &&
                              strncasecmp(w->at[order[j]], w->at[i], w->len[i]) == 0))
            j++;
        if (j == count)
            order[count++] = i;
    }
    join(&one, w, order, count);
    if (count < w->count)
        add_form(f, a, AQ_FORM_BARE, &one);
}

/* All orders but the one it has, by Heap's method. */
static void reorder(aq_name_forms *f, aq_arena *a, const words *w)
{
    size_t order[ORDERED], c[ORDERED] = {0}, n = w->count;

    if (n < 2 || n > ORDERED)
        return;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = 1; i < n;) {
        aq_auto_buf one = {0};
        size_t k, t;
        if (c[i] >= i) {
            c[i++] = 0;
            continue;
        }
        k = i % 2 ? c[i] : 0;
        t = order[k];
        order[k] = order[i];
        order[i] = t;
        join(&one, w, order, n);
        add_form(f, a, AQ_FORM_ORDER, &one);
        c[i]++;
        i = 1;
    }
}

void aq_name_forms_of(aq_arena *a, const char *name, aq_name_forms *ret)
{
    words w;

    *ret = (aq_name_forms){.core = name};
    if (!split(name, &w))
        return;
    ret->core = without_affixes(ret, a, &w);
    unglue(ret, a, ret->core);
    once_each(ret, a, &w);
    reorder(ret, a, &w);
}

int aq_name_letters(aq_buf *out, const char *name)
{
    aq_auto_buf fold = {0};
    const unsigned char *p, *end;
    int r = aq_text_fold(&fold, name, strlen(name));

    if (r < 0)
        return r;
    p = (const unsigned char *)aq_buf_str(&fold);
    for (end = p + fold.len; p < end;) {
        const unsigned char *from = p;
        aq_auto_buf one = {0};
        aq_utf8_next(&p, end);
        if (aq_text_skeleton(&one, (const char *)from, (size_t)(p - from)) == 0 &&
            !strchr("-_./ ", *aq_buf_str(&one)))
            aq_buf_adds(out, aq_buf_str(&one));
    }
    aq_buf_str(out);
    return 0;
}

bool aq_name_swapped(const char *a, const char *b)
{
    size_t n = strlen(a), i = 0;

    if (n != strlen(b))
        return false;
    while (i < n && a[i] == b[i])
        i++;
    return i + 1 < n && a[i] == b[i + 1] && a[i + 1] == b[i] && strcmp(a + i + 2, b + i + 2) == 0;
}

bool aq_name_doubled(const char *a, const char *b)
{
    const char *longer = strlen(a) > strlen(b) ? a : b, *shorter = longer == a ? b : a;
    size_t i = 0;

    if (strlen(longer) != strlen(shorter) + 1)
        return false;
    while (shorter[i] && longer[i] == shorter[i])
        i++;
    return i > 0 && longer[i] == longer[i - 1] && strcmp(longer + i + 1, shorter + i) == 0;
}
