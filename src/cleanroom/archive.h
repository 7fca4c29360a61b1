/* Strict readers for tar and zip, used only inside a jail.
 *
 * They exist because a general archive library forgives what an attacker lives on: two names for
 * one entry, bytes between entries, a second archive behind the first. Here every packed byte is
 * either read or named as unread, and whatever two readers could understand differently is a
 * finding. Private to this room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "model/finding.h"

/* A range of an open file; always read with pread. */
typedef struct aq_source {
    int fd;
    uint64_t base, size;
} aq_source;

/* Reads at `at` within the range; fewer bytes only at its end. Negative errno on failure. */
ssize_t aq_source_read(const aq_source *s, uint64_t at, void *data, size_t len);

/* ---- decoded bytes in order ---- */

typedef enum aq_filter { AQ_FILTER_NONE, AQ_FILTER_GZIP, AQ_FILTER_ZSTD } aq_filter;

typedef enum aq_stream_state {
    AQ_STREAM_GOES_ON,
    AQ_STREAM_ENDED,     /* the packed data ended where it should */
    AQ_STREAM_TRUNCATED, /* it ended too early */
    AQ_STREAM_DAMAGED,   /* it makes no sense from some place on */
} aq_stream_state;

typedef struct aq_stream aq_stream;

aq_stream *aq_stream_new(const aq_source *source, aq_filter filter);
void aq_stream_free(aq_stream *s); /* takes NULL */
/* Up to `max` decoded bytes that follow each other; *len 0 when there are no more. */
int aq_stream_next(aq_stream *s, size_t max, const uint8_t **data, size_t *len, aq_err *err);
/* As many as there are, up to `len`; the count or a negative errno. */
ssize_t aq_stream_read(aq_stream *s, void *data, size_t len, aq_err *err);
aq_stream_state aq_stream_state_of(const aq_stream *s);
uint64_t aq_stream_given(const aq_stream *s);    /* decoded bytes that the caller has had */
uint64_t aq_stream_consumed(const aq_stream *s); /* packed bytes that the decoder has used */
uint64_t aq_stream_skipped(const aq_stream *s);  /* of those: in frames that carry no data */

/* Packed bytes in headers and empty members of gzip and zstd, which decoders skip too. */
uint64_t aq_stream_spare(const aq_stream *s);
/* Damaged is what it could not decode within the memory that a stream may have. */
bool aq_stream_window_too_large(const aq_stream *s);

/* Bytes of comments and unknown fields that an archive may carry without a word. */
enum { AQ_SPARE_MAX = 4096 };

/* ---- entries ---- */

typedef enum aq_entry_kind {
    AQ_ENTRY_FILE,
    AQ_ENTRY_FOLDER,
    AQ_ENTRY_SYMLINK,
    AQ_ENTRY_HARD_LINK,
    AQ_ENTRY_SPECIAL, /* device, FIFO, socket */
    AQ_ENTRY_UNREAD,  /* contents that cannot be had: `reason` */
} aq_entry_kind;

typedef struct aq_entry {
    aq_entry_kind kind;
    const char *name; /* raw bytes, any */
    size_t name_len;
    const char *link; /* target of links */
    size_t link_len;
    const char *short_link; /* another target, for programs that do not know long ones, or NULL */
    size_t short_link_len;
    uint64_t size; /* claimed */
    uint32_t mode; /* permission bits */
    const char *reason;
    aq_rule_id rule; /* AQ_ENTRY_UNREAD: what to report */
} aq_entry;

enum { AQ_SINK_SKIP = 0, AQ_SINK_TAKE = 1, AQ_SINK_STOP = 2 };

/* Where entries go. Every call may return a negative errno, which ends the reading: our failure. */
typedef struct aq_sink {
    void *arg;
    int (*entry)(void *arg, const aq_entry *e, aq_err *err); /* AQ_SINK_… */
    int (*data)(void *arg, const void *data, size_t len, aq_err *err);
    /* After the data of a taken entry; not `whole`: it was cut short or its checksum is wrong. */
    int (*end)(void *arg, bool whole, aq_err *err);
    int (*unread)(void *arg, const char *place, const char *reason, uint64_t bytes, aq_err *err);
} aq_sink;

/* One archive being read. */
typedef struct aq_archive {
    aq_source source;
    const aq_sink *sink;
    aq_findings *findings;
    uint64_t read, unread; /* packed bytes; together the size when a reader is done */
    uint64_t decode_max;   /* padding after the last entry beyond this is not looked at */
    uint64_t overhead_max; /* decoded bytes of headers and padding; 0: any number */
    uint64_t from, to;     /* where the contents of the entry at hand lie in the source; tar only,
                              and of use only where nothing is compressed */
    uint64_t decoded;      /* bytes that came out of the compressed data; tar only */
    uint64_t packed;       /* bytes of the entry at hand in the source; zip only */
    bool stopped;          /* the sink said so, or one of these did */
    bool unseen;           /* an entry was not shown to the sink, so its names are not all */
} aq_archive;

int aq_tar_read(aq_archive *a, aq_filter filter, aq_err *err);
int aq_zip_read(aq_archive *a, aq_err *err);

/* What the bytes look like. `name` is "tar.gz" and so on; for formats that we know and do not
 * read, `accepted` is false. */
typedef struct aq_format {
    const char *name;
    bool accepted;
    bool tar, zip, wasm;
    aq_filter filter;
} aq_format;

/* NULL name: nothing that we know. For compressed data a first block is decoded to look inside. */
int aq_format_detect(const aq_source *source, aq_format *ret, aq_err *err);
/* Zip archives that programs which look from the end find in an input of another format. */
typedef struct aq_zip_ends {
    bool found; /* one that is there for them, whatever else the input is */
    /* Where the others end. One that is a whole file of a tar archive does not count: inspection
     * lists it. */
    uint64_t *at;
    size_t count, cap;
} aq_zip_ends;

int aq_zip_at_end(const aq_source *source, const aq_format *format, aq_zip_ends *ret, aq_err *err);
/* Takes out those that are a file, or lie within a file that is an archive, at `from` to `to`. */
void aq_zip_ends_listed(aq_zip_ends *ends, const aq_source *source, uint64_t from, uint64_t to);
/* Can a tar archive begin with this block: a good header, or the zeros of an empty one? */
bool aq_tar_start(const uint8_t block[static 512]);
/* Has the input a tar header at its start, whatever else it looks like? */
bool aq_tar_inside(const aq_source *source);
/* As aq_format_detect, for a file inside the package: also formats that are too seldom or too
 * weakly marked to be sent as a package, and a zip archive behind other data. */
int aq_format_nested(const aq_source *source, aq_format *ret, aq_err *err);
/* The same by the first 512 bytes alone: cheap, may be wrong. */
bool aq_format_magic(const uint8_t *head, size_t len);
enum { AQ_ZIP_TAIL = 65535 + 22 }; /* where an end record with its comment can be */

/* Adds a finding about an entry; control characters and NULs of the name are made visible. Beyond
 * the rule's share only the count goes up, so a flood costs no memory. */
void aq_archive_finding(aq_archive *a, aq_rule_id rule, bool incomplete, const char *name,
                        size_t name_len, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Names packed bytes that nobody read. */
int aq_archive_unread(aq_archive *a, const char *place, const char *reason, uint64_t packed,
                      aq_err *err);
