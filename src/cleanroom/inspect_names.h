/* The names of a package, one by one and against each other. Part of job "inspect". */
#pragma once

#include <stddef.h>

#include "model/finding.h"

/* Characters and forms that are not what they look like, or not a file of this name elsewhere. */
void aq_inspect_name(aq_findings *to, const char *path);
/* Paths that are one on some file system; the folders above them count too. Puts `paths` in order.
 * Memory does not grow with what a name becomes when it is folded. */
void aq_inspect_alike(aq_findings *to, const char **paths, size_t count);
