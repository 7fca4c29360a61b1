/* Intake, the whole of it: envelope, unpacking, manifest; see intake.h. */
#include "cleanroom/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/answers.h"
#include "cleanroom/paths.h"

enum { MODEL_MAX = 16 << 20 };

/* ---- the manifest, through the jail ---- */

static int hear_manifest(aq_jail *j, aq_findings *heard, aq_buf *model, aq_err *err)
{
    int r = 0;

    while (r == 0) {
        const void *payload;
        uint16_t type;
        size_t len;
        int got = aq_jail_next(j, &type, &payload, &len, err);
        if (got <= 0)
            return got;
        if (type != AQ_TELL_MODEL)
            r = aq_answers_take(heard, type, payload, len, err);
        else if (len > MODEL_MAX - model->len)
            r = aq_fail(err, -EBADMSG, "the manifest's model is too large");
        else
            aq_buf_add(model, payload, len);
    }
    return r;
}

static int ask_manifest(aq_arena *a, const aq_package *p, const aq_budget *budget,
                        aq_findings *heard, aq_manifest *ret, const char **contained, aq_err *err)
{
    aq_auto_json json_t *o = NULL;
    aq_auto_buf model = {0}, jail = {0};
    aq_jail *j;
    int r = aq_jail_start("manifest", &p->image, 1, &j, err);

    if (r < 0)
        return r;
    if ((r = aq_ask_limits(j, budget, p->form, err)) == 0 && (r = aq_ask_files(j, p, err)) == 0 &&
        (r = aq_jail_finish(j, err)) == 0)
        r = hear_manifest(j, heard, &model, err);
    if (r == 0) {
        aq_jail_containment(j, &jail);
        *contained = aq_arena_strdup(a, aq_buf_str(&jail));
    }
    aq_jail_stop(j);
    if (r < 0)
        return r;
    if (aq_json_parse(aq_buf_str(&model), model.len, "jail answer", &o, err) < 0 ||
        aq_manifest_read(a, o, ret, err) < 0)
        return -EBADMSG;
    return 0;
}

/* Without an answer the manifest is empty, and a finding says why. What the job said before it
 * died is left out, so that the same package always gives the same findings; but not what rejects
 * it, or killing the job would pay. */
static int read_manifest(aq_arena *a, const aq_budget *budget, aq_findings *findings, aq_intake *in,
                         aq_err *err)
{
    aq_findings before = *findings, after;
    int r = ask_manifest(a, &in->package, budget, findings, &in->manifest, &in->jail, err);

    if (!aq_jail_blames(r))
        return r;
    after = *findings;
    *findings = before;
    aq_findings_keep(findings, &after, AQ_REJECT);
    in->manifest = (aq_manifest){0};
    aq_capabilities_seal(&in->manifest.declared);
    aq_findings_add_incomplete(findings, AQ_RULE_INTAKE_UNPACKER, NULL,
                               "The manifest could not be read: %s", err->text);
    return 0;
}

/* ---- the envelope ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n > m && strcmp(s + n - m, end) == 0;
}

static bool is_envelope(const char *path)
{
    struct stat st;

    if (aq_part_of_package(aq_path_last(path)))
        return false;
    return ends_with(path, ".json") && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* "x.tar.gz.json" speaks for "x.tar.gz", and "x.json" for the one "x.…" beside it. */
static int find_artifact(aq_arena *a, const char *envelope, const char **ret, aq_err *err)
{
    static const char *const endings[] = {"",     ".tar.gz", ".tgz", ".tar.zst",
                                          ".tar", ".zip",    ".wasm"};
    size_t stem = strlen(envelope) - strlen(".json");
    const char *found = NULL;

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const char *path = aq_arena_printf(a, "%.*s%s", (int)stem, envelope, endings[i]);
        if (access(path, F_OK) < 0)
            continue;
        if (found)
            return aq_fail(err, -EINVAL,
                           "both %s and %s could be the artifact of %s; name it (--artifact)",
                           found, path, envelope);
        found = path;
    }
    if (!found)
        return aq_fail(err, -ENOENT, "no artifact beside %s; name it (--artifact)", envelope);
    *ret = found;
    return 0;
}

static int read_envelope(aq_arena *a, const char *path, const char **artifact, aq_submission *ret,
                         aq_err *err)
{
    aq_auto_buf text = {0};
    int r = aq_read_file(AT_FDCWD, path, AQ_ENVELOPE_BYTES, &text, err);

    /* These messages are part of the verdict digest: how the file is called and where it lay on
     * this host is not. */
    if (r == -EFBIG)
        return aq_fail(err, r, "envelope: it has more than the %d bytes allowed",
                       AQ_ENVELOPE_BYTES);
    /* What is no envelope has no artifact to look for. */
    if (r == 0)
        r = aq_submission_read(a, aq_buf_str(&text), text.len, "envelope", ret, err);
    if (r == 0 && !*artifact && (r = find_artifact(a, path, artifact, err)) < 0)
        aq_submission_close(ret);
    return r;
}

/* ---- the whole ---- */

static void tell_signature(const aq_submission *s, aq_findings *findings)
{
    if (s->local)
        aq_findings_add(findings, AQ_RULE_INTAKE_UNSIGNED, NULL,
                        "A local folder or archive: nobody signed it.");
    else if (s->signature == AQ_SIGNATURE_NONE)
        aq_findings_add_incomplete(findings, AQ_RULE_INTAKE_UNSIGNED, NULL,
                                   "The envelope has no signature: who sent it is not known.");
}

/* One finding, however many files there are. */
static void tell_git(const aq_package *p, aq_findings *findings)
{
    uint64_t files = 0;

    for (size_t i = 0; i < p->count; i++)
        files += strncmp(p->files[i].path, ".git/", 5) == 0;
    if (files)
        aq_findings_add(findings, AQ_RULE_INTAKE_GIT, ".git",
                        "%llu file%s of version control count%s in the digest; an archive made by "
                        "git archive would differ.",
                        (unsigned long long)files, files == 1 ? "" : "s", files == 1 ? "s" : "");
}

static int unpack_and_read(aq_arena *a, const char *artifact, const char *temp_dir,
                           aq_budget *budget, aq_findings *findings, aq_progress progress,
                           void *arg, aq_intake *in, aq_err *err)
{
    int r = aq_unpack(a, artifact, temp_dir, budget, findings, progress, arg, &in->package, err);

    if (r < 0)
        return r;
    tell_signature(&in->submission, findings);
    tell_git(&in->package, findings);
    if (progress)
        progress(arg, "reading the manifest", in->package.count, in->package.bytes);
    r = read_manifest(a, budget, findings, in, err);
    if (r < 0) {
        aq_package_close(&in->package);
        return r;
    }
    in->broken = findings->per_rule[AQ_RULE_INTAKE_UNPACKER] > 0;
    return 0;
}

/* Two refused envelopes are two submissions: the digest of nothing would make them one. */
static aq_digest envelope_digest(const char *path)
{
    aq_auto_free char *text = aq_realloc(NULL, AQ_ENVELOPE_BYTES + 1, 1);
    aq_auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : aq_pread_full(fd, text, AQ_ENVELOPE_BYTES + 1, 0);
    aq_left_out left = {"envelope", "", aq_sha256(text, n < 0 ? 0 : (size_t)n), NULL};

    return aq_package_digest(NULL, 0, &left, 1);
}

/* An envelope that cannot be read is a bad submission, not a failure of ours: nothing in it is
 * believed, and the walk records that it was refused. */
static int refuse(aq_arena *a, const char *path, const char *why, aq_findings *findings,
                  aq_intake *ret, aq_err *err)
{
    aq_intake in = {.package = {.form = "none", .image = -1}};
    static const char said[] = "envelope: "; /* the sentence says it already */
    char reason[sizeof err->text];
    int r;

    memcpy(reason, why, sizeof reason);
    r = aq_submission_local(a, &in.submission, err);
    if (r < 0)
        return r;
    in.submission.local = false;
    in.submission.publisher = "unknown";
    in.submission.tier = AQ_TIER_NEW;
    in.package.name = aq_text_quoted(a, aq_path_last(path), strlen(aq_path_last(path)), 1024);
    in.package.digest = envelope_digest(path);
    aq_capabilities_seal(&in.manifest.declared);
    aq_findings_add(findings, AQ_RULE_INTAKE_ENVELOPE, NULL, "Not an Intake v1 envelope: %s",
                    strncmp(reason, said, strlen(said)) == 0 ? reason + strlen(said) : reason);
    *ret = in;
    return 0;
}

/* Who names one file of a package meant its folder. */
static int refuse_part(const char *path, aq_err *err)
{
    const char *of = aq_part_of_package(aq_path_last(path));
    struct stat st;

    if (!of || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return aq_fail(err, -EINVAL, "%.300s is one file of %s: name its folder", aq_path_last(path),
                   of);
}

int aq_intake_open(aq_arena *a, const char *path, const char *artifact, const char *temp_dir,
                   aq_budget *budget, aq_findings *findings, aq_progress progress, void *arg,
                   aq_intake *ret, aq_err *err)
{
    aq_intake in = {.package = {.image = -1}};
    int r;

    if (artifact || is_envelope(path)) {
        r = read_envelope(a, path, &artifact, &in.submission, err);
        if (r == -EBADMSG || r == -E2BIG || r == -EFBIG)
            return refuse(a, path, err->text, findings, ret, err);
    } else if ((r = refuse_part(path, err)) == 0) {
        artifact = path;
        r = aq_submission_local(a, &in.submission, err);
    }
    if (r < 0)
        return r;
    r = unpack_and_read(a, artifact, temp_dir, budget, findings, progress, arg, &in, err);
    if (r < 0) {
        aq_submission_close(&in.submission);
        return r;
    }
    *ret = in;
    return 0;
}

void aq_intake_close(aq_intake *in)
{
    if (!in)
        return;
    aq_package_close(&in->package);
    aq_submission_close(&in->submission);
}
