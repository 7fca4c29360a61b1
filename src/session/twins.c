/* Twins; see twins.h. */
#include "session/twins.h"

static void redact(const void *decoys, const char *text, size_t len, aq_buf *out)
{
    aq_decoys_redact(decoys, text, len, out);
}

aq_canon_form aq_twins_form(const aq_decoys *d)
{
    return d ? (aq_canon_form){redact, d} : (aq_canon_form){0};
}
