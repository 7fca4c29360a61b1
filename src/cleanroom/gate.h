/* What the files of the attribute gate (L0) share. Two kinds of functions are in it: those that
 * read bytes of a package are pure, bounded, and run in the jailed job "gate"; the others look at
 * the bounded fields of the manifest and make findings in the front. */
#pragma once

#include "cleanroom/stage.h"
#include "jail/jail.h"

/* ---- licences ---- */

enum { AQ_LICENSE_TEXT = 512, AQ_LICENSE_IDS = 16 };

typedef enum aq_license_state {
    AQ_LICENSE_GOOD,     /* an SPDX expression; `ids` are its licences, as SPDX spells them */
    AQ_LICENSE_SLOPPY,   /* means what `suggestion` says */
    AQ_LICENSE_SEE_FILE, /* points to a file of the package */
    AQ_LICENSE_CLOSED,   /* says that nothing is granted */
    AQ_LICENSE_UNKNOWN,
} aq_license_state;

typedef struct aq_license {
    aq_license_state state;
    const char *ids[AQ_LICENSE_IDS];
    size_t count;
    const char *deprecated, *instead; /* the first deprecated id, and its replacement or NULL */
    bool other_case;                  /* an id is not spelt as in the list */
    const char *suggestion;
    char reason[112]; /* UNKNOWN: what could not be read */
} aq_license;

/* Reads a licence field: SPDX first, then the usual loose spellings. */
void aq_license_parse(const char *text, aq_license *ret);

/* Families of licences that are recognised by their text: bits of one mask. */
typedef enum aq_license_family {
#define AQ_LICENSE_FAMILY(id, name, ids) AQ_LICENSE_##id,
#define AQ_LICENSE_PHRASES(id, all, none)
#include "cleanroom/l0_licenses.def"
#undef AQ_LICENSE_FAMILY
#undef AQ_LICENSE_PHRASES
    AQ_LICENSE_FAMILIES
} aq_license_family;

const char *aq_license_family_name(aq_license_family family);
/* Families that an SPDX id belongs to. */
uint32_t aq_license_families(const char *id);
/* Families whose text stands in `text`. */
uint32_t aq_license_recognise(const char *text, size_t len);

/* ---- facts about files, from the jail ---- */

typedef struct aq_readme_facts {
    bool text;          /* UTF-8 without control characters */
    uint32_t prose;     /* letters outside titles, code, tables and placeholders */
    uint32_t titles;    /* lines that are titles */
    bool names_package; /* the name stands in it */
    uint32_t left_over; /* line of the first placeholder of a template; 0: none */
} aq_readme_facts;

void aq_readme_look(const char *text, size_t len, const char *name, aq_readme_facts *ret);

/* Does `copy` (the envelope's, JSON) say the same as the manifest `file` of the package? The path
 * of the first difference goes to `where`. */
int aq_manifest_same(const char *file, const char *text, size_t len, const char *copy,
                     size_t copy_len, aq_buf *where, aq_err *err);

typedef struct aq_gate_facts {
    bool have_readme, have_license, have_manifest;
    uint64_t readme_bytes;
    aq_readme_facts readme;
    uint32_t license_families;
    bool manifest_same;
    const char *manifest_difference; /* NULL when the same */
} aq_gate_facts;

/* Asks the jail; negative when it gave no answer. */
int aq_gate_ask(const aq_stage_input *in, aq_arena *a, aq_gate_facts *ret, aq_err *err);
/* The job's body, for the table of jailed jobs. */
int aq_gate_job(aq_jail_io *io, aq_err *err);
void aq_gate_warm(void); /* before the lock */

/* ---- findings ---- */

/* The README that speaks for the package: for a skill its SKILL.md, if there is no other. */
const char *aq_gate_readme(const aq_manifest *m);
/* Who the package claims to be: the envelope's word, else the manifest's. Raw text in the arena;
 * NULL when neither says it. */
const char *aq_gate_name(const aq_stage_input *in, aq_arena *a);
const char *aq_gate_namespace(const aq_stage_input *in, aq_arena *a);
/* What a quoted field or path of the manifest stands for. */
const char *aq_gate_raw(aq_arena *a, const char *quoted);
/* An attribute of the manifest that the type's row of l0_attributes.def asks for. */
typedef enum aq_attribute {
    AQ_ATTRIBUTE_NAME,
    AQ_ATTRIBUTE_VERSION,
    AQ_ATTRIBUTE_DESCRIPTION,
    AQ_ATTRIBUTE_LICENSE,
    AQ_ATTRIBUTE_AUTHOR,
    AQ_ATTRIBUTE_README,
    AQ_ATTRIBUTE_CAPABILITIES,
    AQ_ATTRIBUTE_ENTRY,
    AQ_ATTRIBUTE_REFERENCES,
    AQ_ATTRIBUTES
} aq_attribute;

typedef enum aq_need { AQ_NOT_NEEDED, AQ_WANTED, AQ_REQUIRED, AQ_MUST } aq_need;

aq_need aq_gate_need(const aq_manifest *m, aq_attribute attribute);

void aq_gate_attributes(const aq_stage_input *in, aq_findings *out);
void aq_gate_readme_check(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out);
void aq_gate_license(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out);
int aq_gate_names(const aq_stage_input *in, aq_findings *out, aq_err *err);
void aq_gate_envelope(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out);
void aq_gate_rate(const aq_stage_input *in, aq_findings *out);

/* Other forms of a name that a reader takes for it. */
typedef enum aq_name_form {
    AQ_FORM_BARE,    /* without words around it, or without a word that stands twice */
    AQ_FORM_UNGLUED, /* without a word that no separator parts from it */
    AQ_FORM_ORDER    /* the same words in another order */
} aq_name_form;

enum { AQ_NAME_FORMS = 48 };

typedef struct aq_name_forms {
    struct {
        aq_name_form kind;
        const char *text;
    } item[AQ_NAME_FORMS];
    size_t count;
    const char *core; /* the shortest of the first kind, or the name itself */
} aq_name_forms;

void aq_name_forms_of(aq_arena *a, const char *name, aq_name_forms *ret);
/* The words of l0_affixes.def; NULL after the last. */
const char *aq_name_affix(size_t i);
/* The plain form letter by letter, in which "rn" is not yet one with "m": a slip that makes or
 * breaks such a pair is one slip here, and three there. -EILSEQ if it is not UTF-8. */
int aq_name_letters(aq_buf *out, const char *name);
/* Do they differ by two neighbours that changed places? By one letter that is doubled? */
bool aq_name_swapped(const char *a, const char *b);
bool aq_name_doubled(const char *a, const char *b);

/* What is wrong with a name in itself; NULL when nothing. */
const char *aq_name_illegal(const char *name);
/* Does it mix scripts, or use letters that only look like plain ones? NULL when not. */
const char *aq_name_mixed(const char *name);
