/* Job "unpack": from the bytes of an artifact to files and findings. Runs in the jail; reads one
 * descriptor and tells frames (answers.h). It writes no file: the front puts the contents that it
 * is told into the package's image, and hashes them as it does. */
#include "cleanroom/unpack_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cleanroom/paths.h"
#include "model/package.h"

enum { UNREAD_MAX = 1000, RATIO_FREE = 16 << 20, LINK_MAX = 4096 };

typedef struct job {
    const aq_teller *teller;
    aq_arena *arena;
    aq_archive archive;
    const aq_budget *limits;
    aq_path_set *seen;
    aq_buf path; /* of the entry at hand */
    aq_buf wrapper;
    bool wrapped, first; /* every entry so far lay in one folder */
    uint64_t files, left, passed, written;
    uint64_t entries, folders; /* of any kind, taken or not */
    bool told[AQ_RULE_COUNT];
    size_t unread_count;
    uint64_t unread_rest;
    aq_zip_ends ends; /* zip archives in a tar archive that no file accounts for yet */
} job;

static uint64_t limit(const job *j, aq_budget_kind kind)
{
    return j->limits->limit[kind];
}

static int unread(void *arg, const char *place, const char *reason, uint64_t bytes, aq_err *err)
{
    job *j = arg;

    if (j->unread_count++ < UNREAD_MAX)
        return aq_tell_unread(j->teller, place, strlen(place), reason, bytes, err);
    j->unread_rest += bytes;
    return 0;
}

/* Where an entry is packed by itself its packed bytes may be more than those that come out. */
static uint64_t at_least_packed(const job *j, uint64_t bytes)
{
    return bytes > j->archive.packed ? bytes : j->archive.packed;
}

/* An entry that is left out: says why, and names its bytes as unread. */
static int leave_out(job *j, const aq_entry *e, aq_rule_id rule, const char *reason, aq_err *err)
{
    int r = 0;

    aq_archive_finding(&j->archive, rule, true, e->name, e->name_len, "%s", reason);
    if (e->kind == AQ_ENTRY_FILE || e->kind == AQ_ENTRY_UNREAD || e->kind == AQ_ENTRY_HARD_LINK) {
        uint64_t bytes = at_least_packed(j, e->size);
        if (j->unread_count++ < UNREAD_MAX)
            r = aq_tell_unread(j->teller, e->name, e->name_len, reason, bytes, err);
        else
            j->unread_rest += bytes;
    }
    return r < 0 ? r : AQ_SINK_SKIP;
}

static int out_of(job *j, aq_budget_kind kind, const aq_entry *e)
{
    aq_archive_finding(
        &j->archive, kind == AQ_BUDGET_RATIO ? AQ_RULE_INTAKE_RATIO : AQ_RULE_INTAKE_BUDGET, true,
        e->name, e->name_len,
        "The budget %s (%llu %s) ends here; this entry and those after it were not "
        "read.",
        aq_budget_name(kind), (unsigned long long)limit(j, kind), aq_budget_what(kind));
    return AQ_SINK_STOP;
}

/* ---- names ---- */

/* Archives are usually made of one folder. It is left out of the paths if nothing lies beside it,
 * unless the archive says with an entry for "." where its root is, or the folder's name has a
 * meaning at the root of a package (".claude-plugin"). */
static void follow_wrapper(job *j, const aq_entry *e, aq_name state)
{
    const char *slash;
    size_t n;

    if (!j->wrapped)
        return;
    if (state == AQ_NAME_BAD || state == AQ_NAME_ROOT) {
        j->wrapped = false;
        return;
    }
    slash = memchr(j->path.data, '/', j->path.len);
    n = slash ? (size_t)(slash - j->path.data) : j->path.len;
    if (j->path.data[0] == '.' || (!slash && e->kind != AQ_ENTRY_FOLDER)) {
        j->wrapped = false;
    } else if (j->first) {
        j->first = false;
        aq_buf_add(&j->wrapper, j->path.data, n);
    } else {
        j->wrapped = j->wrapper.len == n && memcmp(j->wrapper.data, j->path.data, n) == 0;
    }
}

static const char *bad_name(aq_rule_id rule)
{
    if (rule == AQ_RULE_INTAKE_PATH_ABSOLUTE)
        return "absolute path";
    if (rule == AQ_RULE_INTAKE_PATH_PARENT)
        return "path that leads out of the package";
    return "impossible name";
}

static size_t depth_of(const aq_buf *path)
{
    size_t depth = 0;

    for (size_t i = 0; i < path->len; i++)
        depth += path->data[i] == '/';
    return depth;
}

/* AQ_SINK_TAKE when the name is good and new; the path is in j->path. */
static int check_name(job *j, const aq_entry *e, aq_err *err)
{
    aq_rule_id rule = AQ_RULE_INTAKE_PATH_INVALID;
    aq_name state;

    aq_buf_clear(&j->path);
    state = aq_name_canonical(e->name, e->name_len, &j->path, &rule);
    follow_wrapper(j, e, state);
    if (state == AQ_NAME_ROOT && e->kind == AQ_ENTRY_FOLDER && e->name_len > 0)
        return AQ_SINK_SKIP;
    if (state == AQ_NAME_BAD || state == AQ_NAME_ROOT)
        return leave_out(j, e, rule, bad_name(rule), err);
    if (j->path.len > limit(j, AQ_BUDGET_PATH))
        return leave_out(j, e, AQ_RULE_INTAKE_BUDGET, "budget path-bytes", err);
    if (depth_of(&j->path) > limit(j, AQ_BUDGET_DEPTH))
        return leave_out(j, e, AQ_RULE_INTAKE_BUDGET, "budget depth", err);
    if (state == AQ_NAME_UNTIDY)
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_PATH_UNTIDY, false, e->name, e->name_len,
                           "The path has empty or . parts.");
    return AQ_SINK_TAKE;
}

static int check_seen(job *j, const aq_entry *e, aq_err *err)
{
    bool folder = e->kind == AQ_ENTRY_FOLDER;

    switch (aq_path_set_add(j->seen, j->path.data, j->path.len, folder)) {
    case AQ_SEEN_NEW:
        return AQ_SINK_TAKE;
    case AQ_SEEN_FOLDER:
        return AQ_SINK_SKIP;
    case AQ_SEEN_FILE:
        return leave_out(
            j, e, AQ_RULE_INTAKE_PATH_DUPLICATE,
            "stands in the archive twice; programs differ in which of the two they take", err);
    case AQ_SEEN_CONFLICT:
        break;
    }
    return leave_out(j, e, AQ_RULE_INTAKE_PATH_CONFLICT, "the path is a file and a folder", err);
}

/* ---- entries ---- */

/* Links and devices are no files of the package, but its digest must know them. */
static int tell_left_out(job *j, const aq_entry *e, char kind, const char *what, size_t len,
                         aq_err *err)
{
    uint32_t path_len = (uint32_t)j->path.len;
    aq_auto_buf b = {0};
    int r;

    if (++j->left > limit(j, AQ_BUDGET_FILES))
        return out_of(j, AQ_BUDGET_FILES, e);
    aq_buf_addc(&b, kind);
    aq_buf_add(&b, (const char *)&path_len, sizeof path_len);
    aq_buf_add(&b, j->path.data, j->path.len);
    aq_buf_add(&b, what, len);
    r = aq_tell(j->teller, AQ_TELL_LEFT_OUT, b.data, b.len, err);
    return r < 0 ? r : AQ_SINK_SKIP;
}

static int link_entry(job *j, const aq_entry *e, aq_err *err)
{
    bool stays;

    if (e->kind == AQ_ENTRY_HARD_LINK)
        return leave_out(j, e, AQ_RULE_INTAKE_LINK_HARD, "hard link", err);
    if (e->link_len > LINK_MAX)
        return leave_out(j, e, AQ_RULE_INTAKE_LINK_ESCAPE, "link with an oversized target", err);
    stays =
        aq_link_stays(aq_buf_str(&j->path), e->link, e->link_len) &&
        (!e->short_link || aq_link_stays(aq_buf_str(&j->path), e->short_link, e->short_link_len));
    if (!stays)
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_LINK_ESCAPE, false, e->name, e->name_len,
                           "Symbolic link to %.*s.", (int)(e->link_len < 200 ? e->link_len : 200),
                           e->link);
    return tell_left_out(j, e, AQ_LEFT_LINK, e->link, e->link_len, err);
}

static int take_file(job *j, const aq_entry *e, aq_err *err)
{
    char executable = (e->mode & 0111) != 0;
    aq_auto_buf b = {0};
    int r;

    if (++j->files > limit(j, AQ_BUDGET_FILES))
        return out_of(j, AQ_BUDGET_FILES, e);
    if (e->size > limit(j, AQ_BUDGET_FILE_BYTES))
        return leave_out(j, e, AQ_RULE_INTAKE_BUDGET, "budget file-bytes", err);
    if (e->mode & (S_ISUID | S_ISGID))
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_SETUID, false, e->name, e->name_len,
                           "The file has mode %04o.", e->mode);
    aq_buf_addc(&b, executable);
    aq_buf_add(&b, j->path.data, j->path.len);
    r = aq_tell(j->teller, AQ_TELL_FILE, b.data, b.len, err);
    j->written = 0;
    return r < 0 ? r : AQ_SINK_TAKE;
}

/* Bytes that so many packed ones may become. For headers and padding it holds as for contents. */
static uint64_t unpacked_limit(const aq_budget *limits, uint64_t packed)
{
    uint64_t most;

    if (__builtin_mul_overflow(packed, limits->limit[AQ_BUDGET_RATIO], &most) ||
        most > limits->limit[AQ_BUDGET_BYTES])
        most = limits->limit[AQ_BUDGET_BYTES];
    return most > RATIO_FREE ? most : RATIO_FREE;
}

/* Counts what is unpacked, taken or not, so that skipping cannot be made expensive. */
static int spend(job *j, const aq_entry *e)
{
    if (++*(e->kind == AQ_ENTRY_FOLDER ? &j->folders : &j->entries) > limit(j, AQ_BUDGET_FILES))
        return out_of(j, AQ_BUDGET_FILES, e);
    if (__builtin_add_overflow(j->passed, e->size, &j->passed) ||
        j->passed > limit(j, AQ_BUDGET_BYTES))
        return out_of(j, AQ_BUDGET_BYTES, e);
    if (j->passed > unpacked_limit(j->limits, j->archive.source.size))
        return out_of(j, AQ_BUDGET_RATIO, e);
    return AQ_SINK_TAKE;
}

static int take_entry(job *j, const aq_entry *e, aq_err *err)
{
    int r = spend(j, e);

    if (r == AQ_SINK_TAKE)
        r = check_name(j, e, err);
    if (r == AQ_SINK_TAKE)
        r = check_seen(j, e, err);
    if (aq_path_set_folders(j->seen) > limit(j, AQ_BUDGET_FILES))
        return out_of(j, AQ_BUDGET_FILES, e);
    if (r != AQ_SINK_TAKE)
        return r;
    switch (e->kind) {
    case AQ_ENTRY_FILE:
        return take_file(j, e, err);
    case AQ_ENTRY_FOLDER:
        r = aq_tell(j->teller, AQ_TELL_FOLDER, j->path.data, j->path.len, err);
        return r < 0 ? r : AQ_SINK_SKIP;
    case AQ_ENTRY_SYMLINK:
    case AQ_ENTRY_HARD_LINK:
        return link_entry(j, e, err);
    case AQ_ENTRY_SPECIAL:
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_SPECIAL, false, e->name, e->name_len,
                           "The entry is %s.", e->reason);
        return tell_left_out(j, e, AQ_LEFT_SPECIAL, e->reason, strlen(e->reason), err);
    case AQ_ENTRY_UNREAD:
        break;
    }
    return leave_out(j, e, e->rule, e->reason, err);
}

static int entry(void *arg, const aq_entry *e, aq_err *err)
{
    job *j = arg;
    int told, verdict = take_entry(j, e, err);

    if (verdict < 0)
        return verdict;
    told = aq_tell_early(j->teller, j->archive.findings, j->told, err);
    return told < 0 ? told : verdict;
}

static int data(void *arg, const void *p, size_t len, aq_err *err)
{
    job *j = arg;
    size_t part;

    j->written += len;
    for (size_t at = 0; at < len; at += part) {
        int r;
        part = len - at < AQ_JAIL_FRAME ? len - at : AQ_JAIL_FRAME;
        if ((r = aq_tell(j->teller, AQ_TELL_DATA, (const char *)p + at, part, err)) < 0)
            return r;
    }
    return 0;
}

static int end(void *arg, bool whole, aq_err *err)
{
    job *j = arg;
    int r;

    if (whole)
        aq_zip_ends_listed(&j->ends, &j->archive.source, j->archive.from, j->archive.to);
    if (whole)
        return aq_tell(j->teller, AQ_TELL_DONE, &j->written, sizeof j->written, err);
    r = aq_tell(j->teller, AQ_TELL_DROP, NULL, 0, err);
    return r < 0 ? r
                 : unread(j, aq_buf_str(&j->path), "damaged or truncated",
                          at_least_packed(j, j->written), err);
}

/* ---- whole artifacts ---- */

static int read_wasm(job *j, const char *name, aq_err *err)
{
    static const uint8_t module[4] = {1, 0, 0, 0}, component[4] = {0x0d, 0, 1, 0};
    aq_archive *a = &j->archive;
    aq_entry e = {.name = name, .name_len = strlen(name), .size = a->source.size};
    uint8_t version[4];
    aq_stream *s;
    int r = entry(j, &e, err);

    if (r < 0)
        return r;
    if (r != AQ_SINK_TAKE)
        return aq_archive_unread(a, "(the module)", "budget", a->source.size, err);
    if (aq_source_read(&a->source, 4, version, 4) != 4 ||
        (memcmp(version, module, 4) != 0 && memcmp(version, component, 4) != 0))
        aq_archive_finding(a, AQ_RULE_INTAKE_WASM_VERSION, true, name, strlen(name),
                           "Neither version 1 of a core module nor a component.");
    s = aq_stream_new(&a->source, AQ_FILTER_NONE);
    for (;;) {
        const uint8_t *p;
        size_t n;
        r = aq_stream_next(s, SIZE_MAX, &p, &n, err);
        if (r < 0 || n == 0 || (r = data(j, p, n, err)) < 0)
            break;
    }
    a->read = aq_stream_given(s);
    aq_stream_free(s);
    return r < 0 ? r : end(j, a->read == a->source.size, err);
}

#define ACCEPTED "a folder, .tar, .tar.gz, .tar.zst, .zip or .wasm"

/* Says what to do: who names one file of a package meant the folder that it is in. */
static int not_accepted(job *j, const aq_format *f, const char *name, aq_err *err)
{
    const char *of = aq_part_of_package(name);

    if (j->archive.source.size == 0) {
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_EMPTY, true, NULL, 0,
                           "The file has no bytes: perhaps a download or a packer that failed.");
        return 0;
    }
    if (f->name)
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_FORMAT, true, NULL, 0,
                           "The input is %s, which is not accepted: send " ACCEPTED ".", f->name);
    else if (of)
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_FORMAT, true, NULL, 0,
                           "%s is one file of %s: name its folder.", name, of);
    else
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_FORMAT, true, NULL, 0,
                           "The input is no package that is known: send " ACCEPTED ".");
    return aq_archive_unread(&j->archive, "(the whole input)", "format not accepted",
                             j->archive.source.size, err);
}

static void also_zip(job *j, const aq_format *f)
{
    aq_archive_finding(&j->archive, AQ_RULE_INTAKE_AMBIGUOUS, true, NULL, 0,
                       "The input is %s, and a zip archive to programs that read from its end.",
                       f->name);
}

static int read_artifact(job *j, const char *name, aq_err *err)
{
    aq_format f;
    int r = aq_format_detect(&j->archive.source, &f, err);

    if (r < 0)
        return r;
    if (!f.accepted)
        return not_accepted(j, &f, name, err);
    if ((r = aq_tell(j->teller, AQ_TELL_FORM, f.name, strlen(f.name), err)) < 0)
        return r;
    if (!f.zip && (r = aq_zip_at_end(&j->archive.source, &f, &j->ends, err)) < 0)
        return r;
    if (j->ends.found)
        also_zip(j, &f);
    if (f.wasm && aq_tar_inside(&j->archive.source))
        aq_archive_finding(&j->archive, AQ_RULE_INTAKE_AMBIGUOUS, true, NULL, 0,
                           "The input is a module, and a tar archive to other programs.");
    if (f.wasm)
        return read_wasm(j, name, err);
    r = f.zip ? aq_zip_read(&j->archive, err) : aq_tar_read(&j->archive, f.filter, err);
    if (r == 0 && !j->ends.found && j->ends.count > 0)
        also_zip(j, &f);
    if (r == 0 && j->wrapped && j->wrapper.len > 0 && !j->archive.unseen)
        r = aq_tell(j->teller, AQ_TELL_WRAPPER, j->wrapper.data, j->wrapper.len, err);
    return r;
}

static int conclude(job *j, aq_err *err)
{
    aq_account account = {j->archive.read, j->archive.unread};
    int r = 0;

    if (j->unread_count > UNREAD_MAX)
        r = aq_tell_unread(j->teller, "(further entries)", 17, "see the findings", j->unread_rest,
                           err);
    if (r == 0)
        r = aq_tell_findings(j->teller, j->archive.findings, err);
    return r < 0 ? r : aq_tell(j->teller, AQ_TELL_ACCOUNT, &account, sizeof account, err);
}

int aq_unpack_core(const aq_source *source, const char *name, const aq_budget *limits,
                   const aq_teller *teller, aq_err *err)
{
    aq_auto_arena arena = aq_arena_new();
    job j = {.teller = teller, .arena = arena, .limits = limits, .wrapped = true, .first = true};
    const aq_sink sink = {.arg = &j, .entry = entry, .data = data, .end = end, .unread = unread};
    int r;

    j.seen = aq_path_set_new(arena);
    j.archive = (aq_archive){.source = *source,
                             .sink = &sink,
                             .findings = aq_findings_new(arena),
                             .decode_max = limits->limit[AQ_BUDGET_BYTES],
                             .overhead_max = unpacked_limit(limits, source->size)};
    r = read_artifact(&j, name, err);
    if (r == 0)
        r = conclude(&j, err);
    aq_path_set_free(j.seen);
    aq_buf_free(&j.path);
    aq_buf_free(&j.wrapper);
    free(j.ends.at);
    return r;
}

int aq_job_unpack(aq_jail_io *io, aq_err *err)
{
    aq_teller teller = aq_teller_jail(io);
    aq_auto_buf name = {0};
    aq_source source = {.fd = aq_jail_fd(io, 0)};
    aq_budget limits;
    int r = aq_answers_limits(io, &limits, &name, err);

    if (r < 0 || (r = aq_answers_size(source.fd, &source.size, err)) < 0)
        return r;
    return aq_unpack_core(&source, aq_buf_str(&name), &limits, &teller, err);
}
