/* Memory: checked allocation, a growing buffer, an arena; see mem.h. */
#include "base/mem.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void *aq_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);

    if (!p)
        aq_panic("out of memory (%zu bytes)", size);
    return p;
}

void *aq_realloc(void *p, size_t count, size_t size)
{
    size_t total;
    void *q;

    if (__builtin_mul_overflow(count, size, &total))
        aq_panic("allocation of %zu × %zu bytes overflows", count, size);
    q = realloc(p, total ? total : 1);
    if (!q)
        aq_panic("out of memory (%zu bytes)", total);
    return q;
}

char *aq_strdup(const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(aq_alloc(n), s, n);
}

void aq_buf_reserve(aq_buf *b, size_t more)
{
    size_t need, cap;

    if (__builtin_add_overflow(b->len, more, &need) || need > SIZE_MAX / 2)
        aq_panic("buffer overflows");
    need++; /* the terminating NUL */
    if (need <= b->cap)
        return;
    cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    b->data = aq_realloc(b->data, cap, 1);
    b->cap = cap;
}

void aq_buf_add(aq_buf *b, const void *data, size_t len)
{
    aq_buf_reserve(b, len);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void aq_buf_addc(aq_buf *b, char c)
{
    aq_buf_add(b, &c, 1);
}

void aq_buf_adds(aq_buf *b, const char *s)
{
    aq_buf_add(b, s, strlen(s));
}

/* Bytes that a text will have; leaves the arguments to be used. */
__attribute__((format(printf, 1, 0))) static size_t length_of(const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        aq_panic("bad format");
    return (size_t)n;
}

void aq_buf_addv(aq_buf *b, const char *fmt, va_list ap)
{
    size_t n = length_of(fmt, ap);

    aq_buf_reserve(b, n);
    vsnprintf(b->data + b->len, n + 1, fmt, ap);
    b->len += n;
}

void aq_buf_addf(aq_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    aq_buf_addv(b, fmt, ap);
    va_end(ap);
}

const char *aq_buf_str(aq_buf *b)
{
    aq_buf_reserve(b, 0);
    b->data[b->len] = '\0';
    return b->data;
}

char *aq_buf_take(aq_buf *b)
{
    char *s;

    aq_buf_str(b);
    s = b->data;
    *b = (aq_buf){0};
    return s;
}

void aq_buf_clear(aq_buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void aq_buf_free(aq_buf *b)
{
    free(b->data);
    *b = (aq_buf){0};
}

typedef struct aq_block {
    struct aq_block *next;
    size_t used, size;
    alignas(max_align_t) char data[];
} aq_block;

struct aq_arena {
    aq_block *blocks;
    bool fixed; /* it has one block, and gets no more */
};

enum { AQ_BLOCK_SIZE = 64 * 1024 };

aq_arena *aq_arena_new(void)
{
    return aq_alloc(sizeof(aq_arena));
}

aq_arena *aq_arena_within(void *memory, size_t size)
{
    const size_t head =
        (sizeof(aq_arena) + alignof(aq_block) - 1) / alignof(aq_block) * alignof(aq_block);
    aq_arena *a = memory;

    if (size < head + sizeof(aq_block))
        aq_panic("no room for an arena in %zu bytes", size);
    a->blocks = (aq_block *)(void *)((char *)memory + head);
    *a->blocks = (aq_block){.size = size - head - sizeof(aq_block)};
    a->fixed = true;
    return a;
}

void *aq_arena_alloc(aq_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    aq_block *b = a->blocks;
    size_t want;
    void *p;

    if (size > SIZE_MAX / 2)
        aq_panic("arena allocation overflows");
    size = (size + align - 1) & ~(align - 1);
    if (!b || b->size - b->used < size) {
        if (a->fixed)
            aq_panic("an arena is full");
        want = size > AQ_BLOCK_SIZE ? size : AQ_BLOCK_SIZE;
        b = aq_realloc(NULL, sizeof *b + want, 1);
        *b = (aq_block){.next = a->blocks, .size = want};
        a->blocks = b;
    }
    p = b->data + b->used;
    b->used += size;
    return a->fixed ? p : memset(p, 0, size);
}

char *aq_arena_strndup(aq_arena *a, const char *s, size_t len)
{
    char *p = aq_arena_alloc(a, len + 1);

    memcpy(p, s, len);
    return p;
}

char *aq_arena_strdup(aq_arena *a, const char *s)
{
    return aq_arena_strndup(a, s, strlen(s));
}

char *aq_arena_vprintf(aq_arena *a, const char *fmt, va_list ap)
{
    size_t n = length_of(fmt, ap);
    char *p = aq_arena_alloc(a, n + 1);

    vsnprintf(p, n + 1, fmt, ap);
    return p;
}

char *aq_arena_printf(aq_arena *a, const char *fmt, ...)
{
    va_list ap;
    char *p;

    va_start(ap, fmt);
    p = aq_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void aq_arena_free(aq_arena *a)
{
    if (!a || a->fixed)
        return;
    for (aq_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}
