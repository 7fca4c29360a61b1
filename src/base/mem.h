/* Memory: checked allocation, a growing buffer, an arena.
 *
 * Callers bound sizes first; after that running out of memory is our failure, not a case to
 * handle, and ends the process with status 70 (a supervisor turns that into INCONCLUSIVE). */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

void *aq_alloc(size_t size); /* zeroed */
void *aq_realloc(void *p, size_t count, size_t size);
char *aq_strdup(const char *s);

/* A byte buffer that grows. `data` is NUL-terminated whenever len > 0 or after aq_buf_str. */
typedef struct aq_buf {
    char *data;
    size_t len, cap;
} aq_buf;

void aq_buf_reserve(aq_buf *b, size_t more);
void aq_buf_add(aq_buf *b, const void *data, size_t len);
void aq_buf_addc(aq_buf *b, char c);
void aq_buf_adds(aq_buf *b, const char *s);
void aq_buf_addf(aq_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void aq_buf_addv(aq_buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
const char *aq_buf_str(aq_buf *b); /* never NULL */
char *aq_buf_take(aq_buf *b);      /* hands the string on and empties the buffer */
void aq_buf_clear(aq_buf *b);      /* keeps the memory */
void aq_buf_free(aq_buf *b);

#define aq_auto_buf __attribute__((cleanup(aq_buf_free))) aq_buf

/* An arena: allocations that live and die together, one per submission. */
typedef struct aq_arena aq_arena;

aq_arena *aq_arena_new(void);
/* One that lives in the given memory, which is zero, and panics when that is full; not to be freed.
 */
aq_arena *aq_arena_within(void *memory, size_t size);
void *aq_arena_alloc(aq_arena *a, size_t size); /* zeroed, aligned for any type */
char *aq_arena_strdup(aq_arena *a, const char *s);
char *aq_arena_strndup(aq_arena *a, const char *s, size_t len);
char *aq_arena_printf(aq_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *aq_arena_vprintf(aq_arena *a, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
void aq_arena_free(aq_arena *a); /* takes NULL */

static inline void aq_cleanup_arena(aq_arena **a)
{
    aq_arena_free(*a);
}
#define aq_auto_arena __attribute__((cleanup(aq_cleanup_arena))) aq_arena *
