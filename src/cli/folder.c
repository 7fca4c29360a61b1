/* Folders of the host; see folder.h. */
#include "cli/folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool aq_folder_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

bool aq_folder_of_world(const char *path)
{
    static const char *const own[] = {"/proc", "/sys", "/dev"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (aq_folder_below(path, own[i]))
            return true;
    return false;
}

/* The current folder is what people mean when they name a script; a home or the root would show too
 * much of the host, and a world has folders of the system itself. */
bool aq_folder_too_wide(const char *folder)
{
    static const char *const own[] = {"/",    "/tmp", "/var/tmp", "/home", "/etc", "/usr",
                                      "/var", "/run", "/root",    "/opt",  "/srv", "/mnt"};
    const char *home = getenv("HOME");
    aq_auto_free char *real = home ? realpath(home, NULL) : NULL;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(folder, own[i]) == 0)
            return true;
    return real && strcmp(folder, real) == 0;
}
