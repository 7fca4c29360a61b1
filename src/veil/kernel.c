/* See kernel.h. */
#include "veil/kernel.h"

#include <stdio.h>
#include <string.h>

#include "veil/internal.h"

static const char status[] = "/var/lib/dpkg/status", info[] = "/var/lib/dpkg/info",
                  modules[] = "/usr/lib/modules", kept[] = "/var/backups/lib";

/* ---- files ---- */

static bool within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Without "." and "..", which mean what they say: no link lies on the way. */
static bool straight(const char *path, char *ret, size_t cap)
{
    size_t len = 0;

    while (*path) {
        size_t n = strcspn(path += strspn(path, "/"), "/");

        if (n == 2 && strncmp(path, "..", 2) == 0) {
            while (len && ret[--len] != '/')
                continue;
        } else if (n && !(n == 1 && *path == '.')) {
            if (len + n + 2 > cap)
                return false;
            ret[len++] = '/';
            memcpy(ret + len, path, n);
            len += n;
        }
        path += n;
    }
    ret[len] = '\0';
    return len > 0;
}

bool aq_kernel_elsewhere(const char *path, char *ret, size_t cap)
{
    static const char image[] = "/linux-image-";
    char plain[4096];
    size_t above = within(path, "/lib") ? strlen("/lib") : strlen("/usr/lib");

    if (strncmp(path, info, sizeof info - 1) == 0 &&
        strncmp(path + sizeof info - 1, image, sizeof image - 1) == 0 && !strstr(path, ".."))
        return snprintf(ret, cap, "%s/info%s", kept, path + sizeof info - 1) < (int)cap;
    if (!within(path, modules) && !within(path, modules + strlen("/usr")))
        return false;
    if (!straight(path, plain, sizeof plain))
        return false;
    if (!within(plain, modules) && !within(plain, modules + strlen("/usr")))
        return snprintf(ret, cap, "%s", plain) < (int)cap; /* it came out again */
    return snprintf(ret, cap, "%s%s", kept, plain + above) < (int)cap;
}

bool aq_kernel_shown(char *path)
{
    static const char own[] = "/usr/lib";
    const size_t n = sizeof kept - 1;
    const char *rest = path + n;
    size_t to;

    if (!within(path, kept))
        return false;
    to = within(rest, "/info") ? sizeof info - 1 : sizeof own - 1;
    rest += within(rest, "/info") ? strlen("/info") : 0;
    memmove(path + to, rest, strlen(rest) + 1);
    memcpy(path, to == sizeof info - 1 ? info : own, to);
    return true;
}

/* One letter more, and it is missing in the same folder. */
bool aq_kernel_hidden(const char *path, char *ret, size_t cap)
{
    char plain[4096];

    return strstr(path, "lib") && straight(path, plain, sizeof plain) && within(plain, kept) &&
           snprintf(ret, cap, "%s-%s", kept, plain + sizeof kept - 1) < (int)cap;
}

const char *aq_kernel_lacks(const char *folder)
{
    const char *name = strrchr(kept, '/');
    size_t n = (size_t)(name - kept);

    return strncmp(folder, kept, n) == 0 && folder[n] == '\0' ? name + 1 : NULL;
}

const char *aq_kernel_added(const aq_machine *m, const char *folder, size_t nth, bool *is_folder,
                            char *ret, size_t cap)
{
    static const char *const endings[] = {"list", "md5sums"};
    const char *release = aq_machine_fact(m, "kernel.release");

    *is_folder = strcmp(folder, "/usr/lib") == 0;
    if (*is_folder && nth == 0)
        return strrchr(modules, '/') + 1;
    if (strcmp(folder, info) != 0 || nth >= sizeof endings / sizeof *endings || !release)
        return NULL;
    snprintf(ret, cap, "linux-image-%s.%s", release, endings[nth]);
    return ret;
}

/* ---- the database ---- */

/* "… Debian 6.6.13-1~bpo12+1 (2024-02-15)": what the kernel says of itself is its package's. */
static void add_row(aq_buf *ret, const aq_machine *m)
{
    const char *release = aq_machine_fact(m, "kernel.release");
    const char *said = aq_machine_fact(m, "kernel.version");
    const char *version = said ? strstr(said, "Debian ") : NULL;

    if (!release || !version)
        return;
    version += strlen("Debian ");
    aq_buf_addf(ret,
                "Package: linux-image-%s\nStatus: install ok installed\nPriority: optional\n"
                "Section: kernel\nInstalled-Size: 514087\n"
                "Maintainer: Debian Kernel Team <debian-kernel@lists.debian.org>\n"
                "Architecture: amd64\nSource: linux-signed-amd64\nVersion: %.*s\n"
                "Description: Linux kernel for 64-bit PCs (signed)\n"
                " The kernel, its modules and its map of symbols.\n"
                "Homepage: https://www.kernel.org/\n\n",
                release, (int)strcspn(version, " "), version);
}

void aq_make_packages(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_buf_add(ret, truth, len);
    if (len)
        add_row(ret, s->machine);
}

size_t aq_kernel_adds(const aq_machine *m, const char *path)
{
    aq_auto_buf row = {0};

    if (strcmp(path, status) == 0)
        add_row(&row, m);
    return row.len;
}
