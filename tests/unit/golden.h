/* Golden vectors: files that a format must not change. */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "unit.h"

/* A folder below tests/golden; the caller closes it. */
static inline int golden_folder(const char *name)
{
    const char *source = getenv("AQUARIUM_SOURCE");
    aq_auto_buf path = {0};
    int dir;

    aq_buf_addf(&path, "%s/tests/golden/%s", source ? source : ".", name);
    dir = open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    return dir;
}

/* Fails where the file says something else; with AQUARIUM_GOLDEN_WRITE it is written first. */
static inline void golden_equal(int dir, const char *name, const char *suffix, const aq_buf *is)
{
    aq_auto_buf file = {0}, path = {0};
    aq_err err = {0};

    aq_buf_addf(&path, "%s.%s", name, suffix);
    if (getenv("AQUARIUM_GOLDEN_WRITE"))
        assert_int_equal(aq_write_file(dir, path.data, is->data, is->len, 0644, &err), 0);
    if (aq_read_file(dir, path.data, 1 << 20, &file, &err) < 0)
        fail_msg("%s", err.text);
    if (file.len != is->len || memcmp(file.data, is->data, is->len) != 0)
        fail_msg("%s: the format changed; that needs a new version", path.data);
}
