/* Whether the short name in a tar header says the same as the long one that overrides it, and
 * whether pax records are read alike by programs that take them apart in different ways. Private to
 * the tar reader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Programs that do not know extension headers take the short name. It must be the long one, or be
 * made from it by cutting and by replacing what is not ASCII, where that was needed. */
bool tar_name_shortened(const char *small, size_t len, const char *whole, size_t whole_len);
/* Bytes in the name of a pax header itself that do not come from the entry that it is about. */
size_t tar_pax_name_foreign(const char *small, size_t len, const char *whole, size_t whole_len);
/* Is a record "LEN KEY=VALUE\n" one record also to who parts the header at its newlines? */
bool tar_record_clear(const char *key, size_t key_len, const char *value, size_t len);
/* Some programs make a number of a name that has digits only. */
bool tar_only_digits(const char *value, size_t len);
