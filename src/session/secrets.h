/* Which secrets of a world a run touched: the files of them that it opened, and the values that
 * were seen to leave, in what it sent and in what it printed.
 *
 * Made from the record and the decoys. A value is found as it is, in base64 and in hexadecimal; one
 * that was wrapped in another way is not, and neither is one that was taken from the environment
 * and kept. So what is told here happened, and what is not told may have happened too. */
#pragma once

#include <jansson.h>

#include "decoy/decoy.h"
#include "model/observation.h"

enum { AQ_SECRET_ROWS = 256 };

typedef enum aq_secret_act { AQ_SECRET_SENT, AQ_SECRET_PRINTED, AQ_SECRET_READ } aq_secret_act;

typedef struct aq_secret_row {
    aq_secret_act act;
    const char *where;  /* quoted: a host or an address, the name of an output, a path */
    const char **names; /* of the decoys */
    size_t name_count;
} aq_secret_row;

typedef struct aq_secrets {
    aq_arena *arena; /* the caller's; everything lives in it */
    const aq_decoys *decoys;
    aq_secret_row *rows; /* in the order of first appearance */
    size_t count;
    uint64_t more; /* rows that did not fit */
    struct aq_secret_form *forms;
    size_t form_count;
    uint32_t first[256]; /* the forms that begin with a byte: numbers from 1 */
} aq_secrets;

/* `d` is borrowed; NULL: there are none. */
void aq_secrets_begin(aq_secrets *s, aq_arena *a, const aq_decoys *d);
void aq_secrets_event(aq_secrets *s, const aq_event *e);
/* What was printed, after the last event. */
void aq_secrets_end(aq_secrets *s, const aq_observation *o);
size_t aq_secrets_count(const aq_secrets *s, aq_secret_act act);
json_t *aq_secrets_json(const aq_secrets *s);
