/* Which folders of the host a run may show. */
#pragma once

#include <stdbool.h>

/* Is it one that a world has of its own, which the host's would cover? */
bool aq_folder_of_world(const char *path);
/* Is it that folder, or in it? */
bool aq_folder_below(const char *path, const char *folder);
/* Is it too much to be shown only because somebody stands in it? */
bool aq_folder_too_wide(const char *folder);
