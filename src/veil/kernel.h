/* What the package of the machine's kernel left on its disk, in folders that are the host's: its
 * modules, and rows and files in the database of packages. The host has another kernel, or none.
 *
 * Pure functions, as in veil.h. The modules lie elsewhere inside the world (rules/machine), and a
 * path that would lead to them is turned there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/machine.h"

/* Where what `path` names really lies. False: it lies where it says. */
bool aq_kernel_elsewhere(const char *path, char *ret, size_t cap);
/* The other way: what a thing that really lies at `path` is to be called; in place, for that is
 * never longer. False: as it is. */
bool aq_kernel_shown(char *path);
/* Would `path` lead to where it really lies? Then there is nothing. */
bool aq_kernel_hidden(const char *path, char *ret, size_t cap);
/* Names that a folder has beside those of the host, from 0 on. NULL: there are no more. */
const char *aq_kernel_added(const aq_machine *m, const char *folder, size_t nth, bool *is_folder,
                            char *ret, size_t cap);
/* By how many bytes a file of the host is longer for the program. */
size_t aq_kernel_adds(const aq_machine *m, const char *path);
/* A name of that folder which nobody sees; NULL: there is none. */
const char *aq_kernel_lacks(const char *folder);
