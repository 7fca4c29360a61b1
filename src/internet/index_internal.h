/* What the files of the package indexes share (index.c, index_go.c). */
#pragma once

#include "internet/ware.h"

/* Ends a reply whose body is made. */
bool aq_index_reply(aq_reply *r, const char *type);
/* The reply is one version of a ware. */
bool aq_index_archive(aq_ask *q, aq_reply *r, const char *kind, const char *name,
                      const char *version, const char *type);
const char *aq_index_part(const aq_ask *q, size_t number);
