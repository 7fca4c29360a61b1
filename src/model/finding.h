/* A finding: one fact about a package that a reviewer should weigh.
 *
 * Rules are rows of rules.def; a finding names its row, a place, and a sentence. Text in it was
 * quoted by base/text, and a matched secret is never in it: only a keyed hash and a shape (R12). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

typedef enum aq_layer {
#define AQ_LAYER(id, name, title) AQ_LAYER_##id,
#include "model/layers.def"
#undef AQ_LAYER
    AQ_LAYER_COUNT
} aq_layer;

typedef enum aq_severity {
    AQ_INFO,   /* worth knowing; never changes a verdict */
    AQ_REVIEW, /* a person must look */
    AQ_REJECT, /* ends the walk */
} aq_severity;

typedef enum aq_rule_id {
#define AQ_RULE(id, name, layer, adversary, severity, title, why, fix) AQ_RULE_##id,
#include "model/rules.def"
#undef AQ_RULE
    AQ_RULE_COUNT
} aq_rule_id;

typedef struct aq_rule {
    const char *name; /* "intake.path.duplicate": stable, what waivers and SARIF refer to */
    aq_layer layer;
    uint8_t adversary; /* 1…10, 0 when it serves none in particular */
    aq_severity severity;
    const char *title, *why, *fix;
} aq_rule;

const aq_rule *aq_rule_get(aq_rule_id id);
int aq_rule_find(const char *name, aq_rule_id *ret); /* -ENOENT */
const char *aq_layer_name(aq_layer layer);
const char *aq_layer_title(aq_layer layer);
const char *aq_severity_name(aq_severity severity);
const char *aq_adversary_title(unsigned number); /* NULL unless 1…10 */

/* The severity is the rule's own: a fact of two grades is two rules. Otherwise a package could hide
 * a grave one behind a hundred harmless ones of the same rule. */
typedef struct aq_finding {
    aq_rule_id rule;
    bool incomplete;       /* something was not read or not finished: the verdict cannot be pass */
    const char *file;      /* quoted path inside the package, or NULL for the whole package */
    uint32_t line;         /* 1-based, 0 when the file as a whole is meant */
    uint32_t column, span; /* 1-based column and length in bytes; 0 when unknown */
    const char *message;
    char *room;             /* where its texts lie if they may be replaced; NULL: for ever */
    const char *match_hash; /* keyed, hex; NULL when nothing was matched. Not in the digest */
} aq_finding;

/* An append-only list. Of one rule the AQ_FINDINGS_PER_RULE that sort first are kept and the others
 * only counted, so that a package cannot drown its reviewer or our memory (A10), and which are kept
 * does not depend on the order in which they came; aq_findings_extra tells the count. */
enum { AQ_FINDINGS_PER_RULE = 100, AQ_FINDING_MESSAGE = 400 };

typedef struct aq_findings {
    aq_arena *arena;
    aq_finding *items;
    size_t count, cap;
    uint32_t per_rule[AQ_RULE_COUNT];      /* all of them, kept or not */
    bool incomplete;                       /* one of them says that something was not read */
    bool layer_incomplete[AQ_LAYER_COUNT]; /* the same for each layer, kept or not */
    aq_finding newest;                     /* of a rule whose share is full, not settled yet */
    bool unsettled;
    char *room; /* for the texts of `newest` */
} aq_findings;

aq_findings *aq_findings_new(aq_arena *a); /* lives in the arena */

/* Appends and returns the new finding; a caller may set line, column and match_hash on what it
 * gets, until the next call. `file` and the message are quoted here; pass raw bytes. */
aq_finding *aq_findings_add(aq_findings *f, aq_rule_id rule, const char *file, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A finding of a rule marks something as unread or unfinished. */
aq_finding *aq_findings_add_incomplete(aq_findings *f, aq_rule_id rule, const char *file,
                                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Appends a stage's own list. Every rule of `from` must be of `layer`: -EINVAL, and nothing is
 * appended, when one is not. */
int aq_findings_take(aq_findings *to, aq_findings *from, aq_layer layer, aq_err *err);
/* Appends what `from` has of rules that `to` has nothing of, if it is at least this severe. */
void aq_findings_keep(aq_findings *to, const aq_findings *from, aq_severity least);
uint32_t aq_findings_extra(const aq_findings *f, aq_rule_id rule);
aq_severity aq_finding_severity(const aq_finding *f);
aq_severity aq_findings_worst(const aq_findings *f);
/* By severity (worst first), layer, rule, file, line, message: the order of every report. Call it,
 * or aq_findings_settle, before reading `items`. */
void aq_findings_sort(aq_findings *f);
/* Decides whether the newest finding of a full rule is kept. */
void aq_findings_settle(aq_findings *f);

/* {rule, layer, adversary, severity, file, line, column, span, message, why, fix, match_hash} */
json_t *aq_finding_json(const aq_finding *f);
/* The form that enters the verdict digest: no keyed hash, no prose of the rule table. */
json_t *aq_finding_canonical(const aq_finding *f);
/* Reads what a jailed parser sent: rule must be of `layer`, text is bounded and quoted again. */
int aq_finding_read(aq_findings *to, aq_layer layer, const json_t *from, aq_err *err);
