/* What a program looked at in /proc and /sys: other processes, the network, the machine. */
#pragma once

#include "model/summary.h"

/* Is it a file of /proc or /sys that says nothing of who reads it? In a world with a machine of its
 * own the numbers of the run's processes begin above those of everybody else. */
bool aq_look_ordinary(const char *path, bool machine);

/* The others that were read, or denied: as /proc/self for a process of the run; the same file of
 * several other processes is one row, counted. In the summary's arena. */
aq_summary_list aq_looks(const aq_summary *s, bool machine);
