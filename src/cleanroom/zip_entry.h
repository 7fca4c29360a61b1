/* What one entry of a zip archive says about itself, in the directory and in its extra data.
 * Private to the zip reader. */
#pragma once

#include "cleanroom/archive.h"

enum {
    CENTRAL_LEN = 46,
    FLAG_ENCRYPTED = 1,
    FLAG_DESCRIPTOR = 8,
    FLAG_STRONG = 64,
    FLAG_UTF8 = 2048,
    /* Every other bit changes how some program reads the entry. */
    FLAGS_KNOWN = FLAG_ENCRYPTED | 2 | 4 | FLAG_DESCRIPTOR | FLAG_STRONG | FLAG_UTF8,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
};

typedef struct zip_entry {
    const uint8_t *central; /* in the directory */
    const char *name;
    uint16_t name_len, flags, method;
    uint32_t crc, mode;
    bool unix_mode;
    bool local_extra; /* its own header has extra data */
    uint64_t packed, size, local;
} zip_entry;

static inline uint16_t u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t u32(const uint8_t *p)
{
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}
static inline uint64_t u64(const uint8_t *p)
{
    return u32(p) | (uint64_t)u32(p + 4) << 32;
}
static inline bool is(const uint8_t *p, char third, char fourth)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == (uint8_t)third && p[3] == (uint8_t)fourth;
}

/* Is extra data read alike by all programs? */
bool zip_extras_good(const uint8_t *extra, size_t len);
/* Bytes of extra data that programs do not write by themselves, or more of it than they do. */
size_t zip_extras_spare(const uint8_t *extra, size_t len);
/* Puts the 64-bit values in the place of fields that say so; false when they are not there. */
bool zip_wide_fields(const uint8_t *extra, size_t len, uint64_t *size, uint64_t *packed,
                     uint64_t *local);
/* A name in the entry's own extra data must be the one in the directory's. */
bool zip_same_extra_name(const zip_entry *e, const uint8_t *extra, size_t len);
/* Do all programs take its name for the same characters? */
bool zip_encoding_clear(const zip_entry *e);
bool zip_plain_ascii(const zip_entry *e); /* of the name */
void zip_classify(const zip_entry *e, aq_entry *out);
/* Takes the name from the extra data where that is right; false when there are two names. */
bool zip_unicode_name(const zip_entry *e, aq_entry *out);
/* Do all programs take it for the same kind of entry? */
bool zip_kind_clear(const zip_entry *e);
/* Puts a slash in the place of each backslash. */
void zip_slashes(uint8_t *name, size_t len);
/* Is this the entry's name, where `dos` also with backslashes for its slashes? */
bool zip_same_name(const uint8_t *name, const zip_entry *e, bool dos);
