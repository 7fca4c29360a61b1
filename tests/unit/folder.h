/* A folder of its own for a test, gone with everything in it at the end. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline char *make_folder(char buf[static 64])
{
    const char *base = getenv("TMPDIR");

    snprintf(buf, 64, "%.40s/aq-test-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
    assert_non_null(mkdtemp(buf));
    return buf;
}

/* Flat: the tests that use it make no folders inside. */
static inline void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}
