/* L0: does the envelope tell the truth about the package that came with it? A local submission has
 * no envelope, and nothing of this applies. */
#include <string.h>
#include <strings.h>

#include "cleanroom/gate.h"

static void check_artifact(const aq_stage_input *in, aq_findings *out)
{
    const aq_submission *s = in->submission;
    const aq_package *p = in->package;
    char claimed[AQ_SHA256_HEX], real[AQ_SHA256_HEX];

    if (!aq_digest_equal(&s->artifact, &p->packed))
        aq_findings_add(out, AQ_RULE_L0_ENVELOPE_ARTIFACT, NULL,
                        "The envelope names SHA-256 %s, the artifact has %s",
                        aq_digest_hex(&s->artifact, claimed), aq_digest_hex(&p->packed, real));
    else if (s->artifact_size != p->packed_bytes)
        aq_findings_add(out, AQ_RULE_L0_ENVELOPE_ARTIFACT, NULL,
                        "The envelope names %llu bytes, the artifact has %llu",
                        (unsigned long long)s->artifact_size, (unsigned long long)p->packed_bytes);
}

/* Readers that go by the declared type would take the same bytes for something else. */
static void check_media_type(const aq_stage_input *in, aq_findings *out)
{
    static const struct {
        const char *type, *form;
    } types[] = {
        {"application/x-tar", "tar"},        {"application/tar", "tar"},
        {"application/gzip", "tar.gz"},      {"application/x-gzip", "tar.gz"},
        {"application/x-gtar", "tar.gz"},    {"application/x-tgz", "tar.gz"},
        {"application/tar+gzip", "tar.gz"},  {"application/zstd", "tar.zst"},
        {"application/tar+zstd", "tar.zst"}, {"application/zip", "zip"},
        {"application/wasm", "wasm"},
    };
    const char *said = in->submission->media_type;

    for (size_t i = 0; said && i < sizeof types / sizeof *types; i++) {
        if (strcasecmp(types[i].type, said) != 0)
            continue;
        if (strcmp(types[i].form, in->package->form) != 0)
            aq_findings_add(out, AQ_RULE_L0_ENVELOPE_ARTIFACT, NULL,
                            "The envelope calls the artifact %s, it is of the form %s", said,
                            in->package->form);
        return;
    }
    aq_findings_add(out, AQ_RULE_L0_ENVELOPE_TYPE, NULL,
                    "The media type %s is none of those that say what an artifact is",
                    said ? said : "(none)");
}

/* What the package does not say about itself cannot be contradicted. */
static void check_field(const char *what, const char *claimed, const char *quoted, aq_findings *out)
{
    const char *inside = aq_gate_raw(out->arena, quoted);

    if (claimed && inside && *inside && strcmp(claimed, inside) != 0)
        aq_findings_add(out, AQ_RULE_L0_ENVELOPE_IDENTITY, NULL,
                        "The envelope says %s %s, the package says %s", what, claimed, inside);
}

static void check_identity(const aq_stage_input *in, aq_findings *out)
{
    const aq_submission *s = in->submission;
    const aq_manifest *m = in->manifest;

    check_field("name", s->name, m->name, out);
    check_field("namespace", s->namespace_, m->namespace_, out);
    check_field("version", s->version, m->version, out);
    if (s->type != AQ_TYPE_NONE && m->type != AQ_TYPE_NONE)
        check_field("type", aq_type_name(s->type), aq_type_name(m->type), out);
}

static void check_manifest(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out)
{
    const json_t *copy = in->submission->manifest;

    if (!copy || json_is_null(copy))
        return;
    if (!in->manifest->file) {
        /* A bare WebAssembly module has no place for a manifest: the envelope's is the only one. */
        if (in->manifest->kind != AQ_KIND_WASM)
            aq_findings_add(out, AQ_RULE_L0_ENVELOPE_MANIFEST, NULL,
                            "The envelope carries a manifest, the package has none");
    } else if (facts->have_manifest && !facts->manifest_same) {
        aq_findings_add(out, AQ_RULE_L0_ENVELOPE_MANIFEST, NULL,
                        "The envelope's copy differs from %s at %s", in->manifest->file,
                        facts->manifest_difference ? facts->manifest_difference : "(its start)");
    }
}

void aq_gate_envelope(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out)
{
    const aq_submission *s = in->submission;

    if (s->local)
        return;
    check_artifact(in, out);
    check_media_type(in, out);
    check_identity(in, out);
    check_manifest(in, facts, out);
    if (in->admission.dated_ahead)
        /* No date here: the message is part of the verdict digest. */
        aq_findings_add(out, AQ_RULE_L0_ENVELOPE_FUTURE, NULL,
                        "The envelope's time is more than a day ahead of this machine's clock");
    if (s->signature == AQ_SIGNATURE_UNCHECKED)
        aq_findings_add_incomplete(out, AQ_RULE_L0_SIGNATURE_UNCHECKED, NULL,
                                   "The envelope's signature was not verified");
    if (s->signature == AQ_SIGNATURE_BAD)
        aq_findings_add(out, AQ_RULE_L0_SIGNATURE_BAD, NULL,
                        "The envelope's signature does not verify");
}
