/* The canonical package: a sorted list of regular files over one immutable image.
 *
 * The image is one unnamed file that holds all contents back to back; it disappears with its last
 * descriptor. Nothing but regular files is in it: links, devices and names that are not canonical
 * became findings on the way in. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"

typedef struct aq_file {
    const char *path;      /* raw bytes, relative, '/' between parts, no empty, "." or ".." part */
    uint64_t offset, size; /* place in the image */
    bool executable;
    aq_digest digest;
} aq_file;

/* Bytes of the submission that no one read, and why. Never silent: each makes the verdict at best
 * INCONCLUSIVE or is explained by a finding. */
typedef struct aq_unread {
    const char *place;  /* quoted path, or "(after the end of the archive)" */
    const char *reason; /* "budget unpacked-bytes", "encrypted", … */
    uint64_t bytes;     /* 0 when unknown */
} aq_unread;

/* Something of the submission that is in no file of the package but must count in its digest, so
 * that what was judged with it never passes for the same tree without it. */
typedef struct aq_left_out {
    const char *kind;   /* "link", "special", "unread", "artifact", "envelope" */
    const char *path;   /* raw, or a place in words; may be empty */
    aq_digest content;  /* of the target, the kind of device, the reason, the artifact */
    const char *target; /* raw, of a link; NULL for the rest */
} aq_left_out;

/* An archive inside the package: listed and counted here, opened by L2's decoders. */
typedef struct aq_nested {
    const char *path;   /* quoted */
    const char *format; /* "zip", "tar.gz", … */
    uint64_t entries, bytes;
} aq_nested;

typedef struct aq_package {
    const char *form;    /* "folder", "tar", "tar.gz", "tar.zst", "zip", "wasm", "unknown" */
    const char *wrapper; /* quoted: the folder around everything, left out of the paths, or NULL */
    const char *name;    /* what the user called it, quoted: for messages only */
    uint64_t packed_bytes; /* size of the artifact; 0 for a folder */
    aq_digest packed;      /* SHA-256 of the artifact's bytes; zero for a folder */
    int image;             /* read-only descriptor, owned */
    const aq_file *files;  /* sorted by path bytes, unique */
    size_t count;
    uint64_t bytes; /* of all files */
    aq_digest digest;
    const aq_unread *unread;
    size_t unread_count;
    const aq_nested *nested;
    size_t nested_count;
} aq_package;

/* Is `path` canonical in the sense above, at most `max` bytes long? */
bool aq_path_canonical(const char *path, size_t len, size_t max);

const aq_file *aq_package_find(const aq_package *p, const char *path);

/* SHA-256 over the lines `<path>\0<hex SHA-256 of the file>\n` in path order. For what was left out
 * a line `\0<kind>\0<path>\0<hex content>\n` follows, in the order of kind, path and content;
 * `left` is put into that order. */
aq_digest aq_package_digest(const aq_file *files, size_t count, aq_left_out *left,
                            size_t left_count);

/* Maps the whole image read-only; NULL when empty. aq_package_unmap takes NULL. */
int aq_package_map(const aq_package *p, const unsigned char **ret, aq_err *err);
void aq_package_unmap(const aq_package *p, const unsigned char *image);

/* Closes the image; the struct itself lives in its submission's arena. Takes NULL. */
void aq_package_close(aq_package *p);
