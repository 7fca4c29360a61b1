/* Sentences of plain words, as pages and models have them; rules/internet/words.pack. Which kind of
 * word stands where, and how long it is, the two worlds of a seed share; which word it is each has
 * for itself. Private to the room and its tests. */
#pragma once

#include "internet/fill.h"

/* At least so many words, to the end of a sentence. */
void aq_prose(aq_scene *s, unsigned words, aq_buf *out);
/* Reads words and sentences; the built-in ones are read when they are first wanted. */
typedef struct aq_words aq_words;
int aq_words_read(aq_arena *a, const char *text, size_t len, const aq_words **ret, aq_err *err);
void aq_prose_of(const aq_words *w, aq_scene *s, unsigned words, aq_buf *out);
