/* Unpacking, the front's side: opens the input, lets a jail read it, believes nothing, and fills
 * the package's image with what it is told. See intake.h. */
#include "cleanroom/unpack.h"
#include "cleanroom/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "cleanroom/answers.h"

enum {
    UNREAD_KEPT = 2000,
    HASH_AT_ONCE = 256 << 10,
    PACKING = 64 << 20,   /* headers and padding of an artifact beyond the bytes of its files */
    PROGRESS_EVERY = 256, /* files */
};

void aq_front_unread(aq_front *f, const char *place, const char *reason, uint64_t bytes)
{
    if (f->unread_count >= UNREAD_KEPT) { /* the last one stands for all further ones */
        aq_unread *last = &f->unread[f->unread_count - 1];
        last->place = "(further places)";
        last->bytes += bytes;
        return;
    }
    if (f->unread_count == f->unread_cap) {
        f->unread_cap = f->unread_cap ? 2 * f->unread_cap : 16;
        f->unread = aq_realloc(f->unread, f->unread_cap, sizeof *f->unread);
    }
    f->unread[f->unread_count++] =
        (aq_unread){aq_text_quoted(f->arena, place, strlen(place), 4096), reason, bytes};
}

bool aq_front_left_out(aq_front *f, const char *kind, const char *path, size_t path_len,
                       const char *what, size_t what_len)
{
    bool link = strcmp(kind, "link") == 0;

    if (f->left_count >= f->budget->limit[AQ_BUDGET_FILES])
        return false;
    if (f->left_count == f->left_cap) {
        f->left_cap = f->left_cap ? 2 * f->left_cap : 16;
        f->left = aq_realloc(f->left, f->left_cap, sizeof *f->left);
    }
    f->left[f->left_count++] =
        (aq_left_out){kind, aq_arena_strndup(f->arena, path, path_len), aq_sha256(what, what_len),
                      link ? aq_arena_strndup(f->arena, what, what_len) : NULL};
    return true;
}

bool aq_front_add_folder(aq_front *f, const char *path, size_t len)
{
    if (f->folder_count >= f->budget->limit[AQ_BUDGET_FILES])
        return false;
    if (f->folder_count == f->folder_cap) {
        f->folder_cap = f->folder_cap ? 2 * f->folder_cap : 64;
        f->folders = aq_realloc(f->folders, f->folder_cap, sizeof *f->folders);
    }
    f->folders[f->folder_count++] = aq_arena_strndup(f->arena, path, len);
    return true;
}

void aq_front_progress(aq_front *f)
{
    uint64_t files = aq_image_count(f->image);

    if (!f->progress || files < f->next_progress)
        return;
    f->next_progress = files + PROGRESS_EVERY;
    f->progress(f->progress_arg,
                f->form && strcmp(f->form, "folder") == 0 ? "reading" : "unpacking", files,
                aq_image_bytes(f->image));
}

/* ---- answers of job "unpack" ---- */

typedef struct reading {
    aq_front *front;
    uint64_t size; /* of the artifact */
    uint64_t told; /* bytes of unread places */
    bool has_account;
} reading;

static int take_form(aq_front *f, const char *p, size_t len, aq_err *err)
{
    static const char *const forms[] = {"tar", "tar.gz", "tar.zst", "zip", "wasm"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!f->form && strlen(forms[i]) == len && memcmp(forms[i], p, len) == 0) {
            f->form = forms[i];
            return 0;
        }
    }
    return aq_fail(err, -EBADMSG, "no form that is known");
}

static int take_file(aq_front *f, const char *p, size_t len, aq_err *err)
{
    if (len < 2 || !aq_path_canonical(p + 1, len - 1, f->budget->limit[AQ_BUDGET_PATH]))
        return aq_fail(err, -EBADMSG, "a path is not canonical");
    if (!aq_budget_spend(f->budget, AQ_BUDGET_FILES, 1))
        return aq_fail(err, -EBADMSG, "more files than allowed");
    return aq_image_begin(f->image, p + 1, len - 1, p[0] != 0, err);
}

static int take_data(aq_front *f, const void *p, size_t len, aq_err *err)
{
    if (!aq_budget_spend(f->budget, AQ_BUDGET_BYTES, len) ||
        aq_image_open_size(f->image) + len > f->budget->limit[AQ_BUDGET_FILE_BYTES])
        return aq_fail(err, -EBADMSG, "more bytes than allowed");
    return aq_image_data(f->image, p, len, err);
}

static int take_done(aq_front *f, const void *p, size_t len, aq_err *err)
{
    uint64_t size;
    int r;

    if (len != sizeof size)
        return aq_fail(err, -EBADMSG, "malformed end of a file");
    memcpy(&size, p, sizeof size);
    if (!aq_image_is_open(f->image) || size != aq_image_open_size(f->image))
        return aq_fail(err, -EBADMSG, "a file has another size than was said");
    r = aq_image_end(f->image, err);
    if (r == 0)
        aq_front_progress(f);
    return r;
}

static int take_unread(aq_front *f, const char *p, size_t len, uint64_t *sum, aq_err *err)
{
    aq_auto_buf place = {0}, reason = {0}, raw = {0};
    uint64_t bytes;
    uint16_t n;

    if (len < sizeof bytes + sizeof n)
        return aq_fail(err, -EBADMSG, "malformed unread place");
    memcpy(&bytes, p, sizeof bytes);
    memcpy(&n, p + sizeof bytes, sizeof n);
    p += sizeof bytes + sizeof n;
    len -= sizeof bytes + sizeof n;
    if (n > len || len - n > 200)
        return aq_fail(err, -EBADMSG, "malformed unread place");
    aq_buf_add(&place, p, n);
    aq_buf_add(&reason, p + n, len - n);
    if (aq_text_unquote(&raw, aq_buf_str(&place), place.len) < 0)
        return aq_fail(err, -EBADMSG, "malformed unread place");
    if (__builtin_add_overflow(*sum, bytes, sum))
        *sum = UINT64_MAX;
    aq_front_unread(f, aq_buf_str(&raw), aq_text_printable(f->arena, aq_buf_str(&reason), 200),
                    bytes);
    return 0;
}

static int take_wrapper(aq_front *f, const char *p, size_t len, aq_err *err)
{
    if (f->wrapper || !aq_path_canonical(p, len, f->budget->limit[AQ_BUDGET_PATH]) ||
        memchr(p, '/', len))
        return aq_fail(err, -EBADMSG, "malformed name of the folder around everything");
    f->wrapper = aq_arena_strndup(f->arena, p, len);
    return 0;
}

static int take_left_out(aq_front *f, const char *p, size_t len, aq_err *err)
{
    const char *kind = len > 0 && p[0] == AQ_LEFT_LINK ? "link" : "special";
    uint32_t path_len;
    const size_t start = 1 + sizeof path_len;

    if (len < start || (p[0] != AQ_LEFT_LINK && p[0] != AQ_LEFT_SPECIAL))
        return aq_fail(err, -EBADMSG, "malformed link or device");
    memcpy(&path_len, p + 1, sizeof path_len);
    if (path_len > len - start ||
        !aq_path_canonical(p + start, path_len, f->budget->limit[AQ_BUDGET_PATH]))
        return aq_fail(err, -EBADMSG, "malformed link or device");
    if (!aq_front_left_out(f, kind, p + start, path_len, p + start + path_len,
                           len - start - path_len))
        return aq_fail(err, -EBADMSG, "more links than allowed");
    return 0;
}

static int take_folder(aq_front *f, const char *p, size_t len, aq_err *err)
{
    if (!aq_path_canonical(p, len, f->budget->limit[AQ_BUDGET_PATH]))
        return aq_fail(err, -EBADMSG, "malformed folder");
    if (!aq_front_add_folder(f, p, len))
        return aq_fail(err, -EBADMSG, "more folders than allowed");
    return 0;
}

/* Every byte is accounted for: what was read and what is named as unread make the whole. */
static int take_account(reading *r, const void *p, size_t len, aq_err *err)
{
    aq_account a;

    if (len != sizeof a || r->has_account)
        return aq_fail(err, -EBADMSG, "malformed account");
    memcpy(&a, p, sizeof a);
    /* Unpacked bytes are named where there are some, so that the places can be more. */
    if (a.read > r->size || a.unread != r->size - a.read || r->told < a.unread)
        return aq_fail(err, -EBADMSG, "bytes are missing from the account");
    r->has_account = true;
    return 0;
}

static int take(reading *r, uint16_t type, const void *p, size_t len, aq_err *err)
{
    aq_front *f = r->front;

    switch (type) {
    case AQ_TELL_FORM:
        return take_form(f, p, len, err);
    case AQ_TELL_FILE:
        return take_file(f, p, len, err);
    case AQ_TELL_DATA:
        return take_data(f, p, len, err);
    case AQ_TELL_DONE:
        return take_done(f, p, len, err);
    case AQ_TELL_DROP:
        return aq_image_drop(f->image, err);
    case AQ_TELL_UNREAD:
        return take_unread(f, p, len, &r->told, err);
    case AQ_TELL_WRAPPER:
        return take_wrapper(f, p, len, err);
    case AQ_TELL_ACCOUNT:
        return take_account(r, p, len, err);
    case AQ_TELL_LEFT_OUT:
        return take_left_out(f, p, len, err);
    case AQ_TELL_FOLDER:
        return take_folder(f, p, len, err);
    case AQ_TELL_EARLY:
        return aq_answers_take(f->early, type, p, len, err);
    default:
        return aq_answers_take(f->findings, type, p, len, err);
    }
}

/* The artifact's digest, made piece by piece while the jail reads. */
typedef struct hashing {
    aq_hash *hash;
    int fd;
    uint64_t done, size;
    char *piece;
} hashing;

static int hash_piece(hashing *h, aq_err *err)
{
    uint64_t left = h->size - h->done;
    ssize_t n = aq_pread_full(h->fd, h->piece, left < HASH_AT_ONCE ? (size_t)left : HASH_AT_ONCE,
                              (off_t)h->done);

    if (n < 0)
        return aq_fail(err, (int)n, "cannot read the artifact: %s", strerror((int)-n));
    aq_hash_add(h->hash, h->piece, (size_t)n);
    /* It became shorter: that is told as a change when all is read. */
    h->done = n == 0 ? h->size : h->done + (uint64_t)n;
    return 0;
}

/* Reads answers to the end; while none is there, hashes a piece of the artifact. */
static int converse(reading *r, aq_jail *j, hashing *h, aq_err *err)
{
    int got;

    do {
        const void *payload;
        uint16_t type;
        size_t len;
        int bad;
        while (h->done < h->size && !aq_jail_ready(j))
            if ((bad = hash_piece(h, err)) < 0)
                return bad;
        got = aq_jail_next(j, &type, &payload, &len, err);
        if (got == 1 && (bad = take(r, type, payload, len, err)) < 0)
            return bad;
    } while (got == 1);
    return got;
}

/* Also when the reader died or is not started: a package of which nothing is known has this digest
 * at least. */
static int finish_hash(hashing *h, aq_digest *ret, aq_err *err)
{
    int r = 0;

    while (r == 0 && h->done < h->size)
        r = hash_piece(h, err);
    *ret = aq_hash_end(h->hash);
    free(h->piece);
    return r;
}

int aq_front_artifact(aq_front *f, int fd, uint64_t size, const char *name, aq_digest *packed,
                      aq_err *err)
{
    const uint64_t *limit = f->budget->limit;
    uint64_t files = limit[AQ_BUDGET_FILES], bytes = limit[AQ_BUDGET_BYTES];
    reading state = {.front = f, .size = size};
    hashing h = {.fd = fd, .size = size};
    aq_jail *j;
    aq_err late = {0};
    int r = aq_jail_start("unpack", &fd, 1, &j, err), hashed;

    if (r < 0)
        return r;
    aq_jail_limit(j, 4 * files + bytes / 4096 + 100000,
                  bytes + files * (2 * limit[AQ_BUDGET_PATH] + 64) + (64 << 20));
    h.hash = aq_hash_begin();
    h.piece = aq_realloc(NULL, HASH_AT_ONCE, 1);
    r = aq_ask_limits(j, f->budget, name, err);
    if (r == 0)
        r = aq_jail_finish(j, err);
    if (r == 0)
        r = converse(&state, j, &h, err);
    aq_jail_stop(j);
    if (r == 0 && (!state.has_account || aq_image_is_open(f->image)))
        r = aq_fail(err, -EBADMSG, "the unpacker's answer is not whole");
    hashed = finish_hash(&h, packed, &late);
    if (hashed < 0)
        *err = late;
    return hashed < 0 ? hashed : r;
}

/* ---- answers of job "inspect" ---- */

static int take_nested(aq_front *f, const char *p, size_t len, aq_err *err)
{
    aq_nested_record n;
    aq_auto_buf format = {0};

    if (len < sizeof n)
        return aq_fail(err, -EBADMSG, "malformed nested archive");
    memcpy(&n, p, sizeof n);
    if (n.format_len > 16 || n.format_len > len - sizeof n ||
        f->nested_count >= f->budget->limit[AQ_BUDGET_NESTED])
        return aq_fail(err, -EBADMSG, "malformed nested archive");
    p += sizeof n;
    len -= sizeof n + n.format_len;
    if (f->nested_count == f->nested_cap) {
        f->nested_cap = f->nested_cap ? 2 * f->nested_cap : 16;
        f->nested = aq_realloc(f->nested, f->nested_cap, sizeof *f->nested);
    }
    aq_buf_add(&format, p, n.format_len);
    f->nested[f->nested_count++] =
        (aq_nested){.path = aq_text_quoted(f->arena, p + n.format_len, len, 4096),
                    .format = aq_text_printable(f->arena, aq_buf_str(&format), 16),
                    .entries = n.entries,
                    .bytes = n.bytes};
    return 0;
}

/* Links, devices and folders, by their names in the package. */
static int ask_names(aq_front *f, aq_jail *j, aq_err *err)
{
    size_t around = f->wrapper ? strlen(f->wrapper) + 1 : 0, n = 0;
    aq_auto_free const char **names =
        aq_alloc((f->left_count + f->folder_count + 1) * sizeof *names);

    for (size_t i = 0; i < f->left_count + f->folder_count; i++) {
        const char *path = i < f->left_count ? f->left[i].path : f->folders[i - f->left_count];
        if (strlen(path) > around)
            names[n++] = path + around;
    }
    return aq_ask_names(j, names, n, err);
}

static int inspect(aq_front *f, aq_jail *j, const aq_package *p, aq_err *err)
{
    int r = aq_ask_limits(j, f->budget, f->wrapper ? f->wrapper : "", err);
    uint64_t sum = 0;

    if (r == 0)
        r = ask_names(f, j, err);
    if (r == 0)
        r = aq_ask_files(j, p, err);
    if (r == 0)
        r = aq_jail_finish(j, err);
    while (r == 0) {
        const void *payload;
        uint16_t type;
        size_t len;
        int got = aq_jail_next(j, &type, &payload, &len, err);
        if (got <= 0)
            return got;
        if (type == AQ_TELL_NESTED)
            r = take_nested(f, payload, len, err);
        else if (type == AQ_TELL_UNREAD)
            r = take_unread(f, payload, len, &sum, err);
        else if (type == AQ_TELL_EARLY)
            r = aq_answers_take(f->early, type, payload, len, err);
        else
            r = aq_answers_take(f->findings, type, payload, len, err);
    }
    return r;
}

int aq_front_inspect(aq_front *f, const aq_package *p, aq_err *err)
{
    aq_jail *j;
    int r;

    if (p->count + f->left_count + f->folder_count == 0)
        return 0;
    f->early = aq_findings_new(f->arena);
    r = aq_jail_start("inspect", &p->image, 1, &j, err);
    if (r < 0)
        return r;
    r = inspect(f, j, p, err);
    aq_jail_stop(j);
    if (!aq_jail_blames(r))
        return r;
    aq_findings_keep(f->findings, f->early, AQ_INFO);
    aq_findings_add_incomplete(f->findings, AQ_RULE_INTAKE_UNPACKER, NULL,
                               "Names and nested archives could not be checked: %s", err->text);
    aq_front_unread(f, "(nested archives)", "their reader died", 0);
    return 0;
}

/* ---- the whole ---- */

/* The reader died or lied: of what it said only the first finding of each rule is kept, so that a
 * package does not get rid of them by killing it, and everything is unread. */
static int give_up(aq_front *f, const char *temp_dir, uint64_t size, aq_err *err)
{
    aq_findings_keep(f->findings, f->early, AQ_INFO);
    aq_findings_add_incomplete(f->findings, AQ_RULE_INTAKE_UNPACKER, NULL,
                               "The package could not be unpacked: %s", err->text);
    aq_image_free(f->image);
    f->image = NULL;
    f->unread_count = f->left_count = f->folder_count = 0;
    f->wrapper = NULL;
    f->budget->spent[AQ_BUDGET_FILES] = f->budget->spent[AQ_BUDGET_BYTES] = 0;
    aq_front_unread(f, "(the whole input)", "its reader died", size);
    return aq_image_new(f->arena, temp_dir, &f->image, err);
}

/* Up to `size` bytes; *got says how many there were. */
static int copy_bytes(int from, int to, uint64_t size, uint64_t *got, aq_err *err)
{
    aq_auto_free char *piece = NULL;

    *got = 0;
    while (*got < size) { /* by the kernel, where it can */
        ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)(size - *got), 0);
        if (n <= 0)
            break;
        *got += (uint64_t)n;
    }
    piece = *got < size ? aq_realloc(NULL, HASH_AT_ONCE, 1) : NULL;
    while (*got < size) {
        uint64_t left = size - *got;
        ssize_t n = aq_read_full(from, piece, left < HASH_AT_ONCE ? (size_t)left : HASH_AT_ONCE);
        int r;
        if (n < 0)
            return aq_fail(err, (int)n, "cannot read the artifact: %s", strerror((int)-n));
        if (n == 0)
            break;
        if ((r = aq_write_full(to, piece, (size_t)n)) < 0)
            return aq_fail(err, r, "cannot copy the artifact (is the temporary folder full?): %s",
                           strerror(-r));
        *got += (uint64_t)n;
    }
    return 0;
}

/* What is hashed and what the jail reads must be the same bytes, so both read a copy that nobody
 * else can write to. Returns its descriptor, read-only. */
static int copy_artifact(aq_front *f, int fd, const struct stat *st, const char *temp_dir,
                         uint64_t *size, aq_err *err)
{
    aq_auto_fd int copy = aq_temp_fd(temp_dir, err);
    struct stat after;
    int r;

    if (copy < 0)
        return copy;
    if ((r = copy_bytes(fd, copy, (uint64_t)st->st_size, size, err)) < 0)
        return r;
    if (fstat(fd, &after) < 0)
        return aq_fail_errno(err, "cannot look at the artifact again");
    if (*size != (uint64_t)st->st_size || !aq_unchanged(st, &after))
        aq_findings_add_incomplete(f->findings, AQ_RULE_INTAKE_CHANGED, NULL,
                                   "The archive changed while it was being read.");
    return aq_reopen_read_only(copy, err);
}

/* Neither copied nor unpacked; its digest tells which artifact it was. */
static int oversized(aq_front *f, int fd, uint64_t size, aq_package *p, aq_err *err)
{
    hashing h = {.fd = fd, .size = size, .hash = aq_hash_begin()};

    aq_findings_add_incomplete(f->findings, AQ_RULE_INTAKE_BUDGET, NULL,
                               "The archive is larger than the budget %s (%llu %s) allows.",
                               aq_budget_name(AQ_BUDGET_BYTES),
                               (unsigned long long)f->budget->limit[AQ_BUDGET_BYTES],
                               aq_budget_what(AQ_BUDGET_BYTES));
    aq_front_unread(f, "(the whole input)", "budget", size);
    h.piece = aq_realloc(NULL, HASH_AT_ONCE, 1);
    return finish_hash(&h, &p->packed, err);
}

static int read_artifact(aq_front *f, int fd, const struct stat *st, const char *path,
                         const char *temp_dir, aq_package *p, aq_err *err)
{
    uint64_t limit = f->budget->limit[AQ_BUDGET_BYTES];
    aq_auto_fd int copy = -1;
    int r;

    p->packed_bytes = (uint64_t)st->st_size;
    if (p->packed_bytes > PACKING && p->packed_bytes - PACKING > limit)
        return oversized(f, fd, p->packed_bytes, p, err);
    copy = copy_artifact(f, fd, st, temp_dir, &p->packed_bytes, err);
    if (copy < 0)
        return copy;
    r = aq_front_artifact(f, copy, p->packed_bytes, aq_path_last(path), &p->packed, err);
    return aq_jail_blames(r) ? give_up(f, temp_dir, p->packed_bytes, err) : r;
}

static void *in_arena(aq_arena *a, const void *from, size_t count, size_t size)
{
    void *to = aq_arena_alloc(a, count * size);

    return count ? memcpy(to, from, count * size) : to;
}

/* "examples/adder.wasm" is called adder.wasm; "some/folder/" is called folder. */
static const char *last_part(aq_arena *a, const char *path)
{
    size_t end = strlen(path), start;

    while (end > 1 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/'; start--)
        ;
    return aq_text_quoted(a, start < end ? path + start : path, start < end ? end - start : end,
                          1024);
}

/* A package that was read whole has the digest of its files, links and devices. Of one that was not
 * the digest also covers the artifact, or for a folder the places that were not read: otherwise the
 * evidence of what could not be read would hold for the innocent rest of it. */
static void seal_digest(aq_front *f, aq_package *p)
{
    size_t around = f->wrapper ? strlen(f->wrapper) + 1 : 0;
    aq_auto_free aq_left_out *left = aq_alloc((f->left_count + f->unread_count + 1) * sizeof *left);
    size_t count = 0;

    for (; count < f->left_count; count++) {
        left[count] = f->left[count];
        if (strlen(left[count].path) > around)
            left[count].path += around;
    }
    if (f->unread_count == 0 && !f->findings->incomplete) {
        p->digest = aq_package_digest(p->files, p->count, left, count);
        return;
    }
    if (f->form && strcmp(f->form, "folder") == 0) {
        for (size_t i = 0; i < f->unread_count; i++) {
            aq_auto_buf why = {0};
            aq_buf_addf(&why, "%s %llu", f->unread[i].reason,
                        (unsigned long long)f->unread[i].bytes);
            left[count++] =
                (aq_left_out){"unread", f->unread[i].place, aq_sha256(why.data, why.len), NULL};
        }
    } else {
        left[count++] = (aq_left_out){"artifact", "", p->packed, NULL};
    }
    p->digest = aq_package_digest(p->files, p->count, left, count);
}

/* A link whose name decides what a package is or starts must be a file: readers that drop links and
 * readers that follow them would see two packages. */
static bool name_decides(const char *path)
{
    static const char *const names[] = {
        "SKILL.md",          "plugin.json",     "marketplace.json", ".mcp.json",    "hooks.json",
        "arc-manifest.yaml", "arc-bundle.yaml", "server.json",      "package.json", "manifest.json",
        "pyproject.toml",    "setup.py",        "settings.json",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(aq_path_last(path), names[i]) == 0)
            return true;
    return false;
}

/* Links that stay inside; those that lead out were told when they were met. What a link means is
 * known only when all files are. */
static void tell_links(aq_front *f, const aq_package *p)
{
    size_t around = f->wrapper ? strlen(f->wrapper) + 1 : 0;

    for (size_t i = 0; i < f->left_count; i++) {
        const aq_left_out *l = &f->left[i];
        const char *path = strlen(l->path) > around ? l->path + around : l->path;
        aq_auto_buf to = {0};
        bool inside;

        if (!l->target || !aq_link_stays(l->path, l->target, strlen(l->target)))
            continue;
        aq_link_resolve(path, l->target, &to);
        inside = aq_package_find(p, aq_buf_str(&to)) && !name_decides(path);
        aq_findings_add(f->findings, inside ? AQ_RULE_INTAKE_LINK_INSIDE : AQ_RULE_INTAKE_LINK,
                        path, "Symbolic link to %.200s.", l->target);
    }
}

static int finish(aq_front *f, const char *path, aq_package *p, aq_err *err)
{
    int r = aq_image_seal(f->image, f->wrapper, f->budget->limit[AQ_BUDGET_PATH], p, err);

    if (r < 0)
        return r;
    p->form = f->form ? f->form : "unknown";
    p->name = last_part(f->arena, path);
    p->wrapper = f->wrapper ? aq_text_quoted(f->arena, f->wrapper, strlen(f->wrapper), 1024) : NULL;
    if (p->count == 0 && !f->findings->incomplete)
        aq_findings_add(f->findings, AQ_RULE_INTAKE_EMPTY, NULL, "There is no file in it.");
    seal_digest(f, p);
    tell_links(f, p);
    r = aq_front_inspect(f, p, err);
    p->unread = in_arena(f->arena, f->unread, f->unread_count, sizeof *f->unread);
    p->unread_count = f->unread_count;
    p->nested = in_arena(f->arena, f->nested, f->nested_count, sizeof *f->nested);
    p->nested_count = f->nested_count;
    f->budget->spent[AQ_BUDGET_NESTED] = f->nested_count;
    if (r < 0)
        aq_package_close(p);
    return r;
}

static int read_input(aq_front *f, int *fd, const char *path, const char *temp_dir, aq_package *p,
                      aq_err *err)
{
    struct stat st;
    int r;

    if (fstat(*fd, &st) < 0)
        return aq_fail_errno(err, "cannot look at %s", path);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return aq_fail(err, -EINVAL, "%s is neither a folder nor a file", path);
    r = aq_image_new(f->arena, temp_dir, &f->image, err);
    if (r < 0)
        return r;
    if (S_ISREG(st.st_mode))
        return read_artifact(f, *fd, &st, path, temp_dir, p, err);
    f->form = "folder";
    return aq_front_folder(f, aq_take_fd(*fd), err);
}

int aq_unpack(aq_arena *a, const char *path, const char *temp_dir, aq_budget *budget,
              aq_findings *findings, aq_progress progress, void *arg, aq_package *ret, aq_err *err)
{
    aq_auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    aq_front f = {.arena = a,
                  .budget = budget,
                  .findings = findings,
                  .early = aq_findings_new(a),
                  .progress = progress,
                  .progress_arg = arg};
    aq_package p = {.image = -1};
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "cannot open %s", path);
    r = read_input(&f, &fd, path, temp_dir, &p, err);
    if (r == 0)
        r = finish(&f, path, &p, err);
    if (r == -EBADMSG) /* only the seal is left to say this: the reader lied about paths */
        r = give_up(&f, temp_dir, p.packed_bytes, err) < 0 ? -EIO : finish(&f, path, &p, err);
    aq_image_free(f.image);
    free(f.unread);
    free(f.left);
    free(f.folders);
    free(f.nested);
    if (r == 0)
        *ret = p;
    return r;
}
