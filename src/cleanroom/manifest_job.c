/* Job "manifest": finds and reads the manifest of a sealed package. Runs in the jail with the
 * image, read-only; answers with the model as JSON (in parts, if it is long) and with findings. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/json.h"
#include "cleanroom/unpack_job.h"
#include "model/manifest.h"

/* What the readers' libraries open or ask on first use. */
void aq_job_manifest_warm(void)
{
    aq_auto_arena a = aq_arena_new();
    const aq_node *node;
    aq_err err = {0};

    aq_doc_yaml(a, "a: 1\n", 5, "warm", &node, &err);
    aq_doc_toml(a, "a = 1\n", 6, "warm", &node, &err);
    aq_sha256("", 0);
}

static int tell_model(const aq_teller *t, const aq_manifest *m, aq_err *err)
{
    aq_auto_json json_t *o = aq_manifest_json(m);
    aq_auto_buf b = {0};
    size_t part;
    int r = 0;

    if (!o || aq_json_canonical(o, &b) < 0)
        return aq_fail(err, -EINVAL, "the manifest cannot be written as JSON");
    for (size_t at = 0; at < b.len && r == 0; at += part) {
        part = b.len - at < AQ_JAIL_FRAME ? b.len - at : AQ_JAIL_FRAME;
        r = aq_tell(t, AQ_TELL_MODEL, b.data + at, part, err);
    }
    return r;
}

int aq_job_manifest(aq_jail_io *io, aq_err *err)
{
    aq_teller teller = aq_teller_jail(io);
    aq_auto_arena a = aq_arena_new();
    aq_findings *findings = aq_findings_new(a);
    aq_package p = {.image = aq_jail_fd(io, 0)};
    const unsigned char *image = NULL;
    aq_auto_buf form = {0};
    aq_budget limits;
    aq_manifest m;
    int r;

    if ((r = aq_answers_limits(io, &limits, &form, err)) < 0 ||
        (r = aq_answers_size(p.image, &p.bytes, err)) < 0 ||
        (r = aq_answers_files(io, a, p.bytes, &p.files, &p.count, err)) < 0 ||
        (r = aq_package_map(&p, &image, err)) < 0)
        return r;
    p.form = aq_buf_str(&form);
    r = aq_manifest_detect(a, &p, image, findings, &m, err);
    if (r == 0)
        r = tell_model(&teller, &m, err);
    if (r == 0)
        r = aq_tell_findings(&teller, findings, err);
    aq_package_unmap(&p, image);
    return r;
}
