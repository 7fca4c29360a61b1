/* Lines two sequences up: the shortest way from the one to the other, within bounds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Calls `step` for every place at which they differ, in order: (i, k) for an element of each that
 * stand in each other's place, (i, SIZE_MAX) and (SIZE_MAX, k) for one that a side alone has.
 * -E2BIG when they have too little in common to be lined up: then only the first pair was told. */
int aq_align(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count,
             void (*step)(size_t i, size_t k, void *arg), void *arg);
