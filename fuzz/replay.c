/* Replays a corpus: every file of the given folder goes once through the fuzz target. Fails when
 * the folder is empty, so that a lost corpus is noticed. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    struct dirent **names;
    int count = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    int done = 0;

    if (count < 0) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 64;
    }
    aq_auto_fd int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < count; i++) {
        aq_auto_buf b = {0};
        aq_err err = {0};
        if (names[i]->d_name[0] != '.') {
            if (aq_read_file(dir, names[i]->d_name, 64 << 20, &b, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
            }
            LLVMFuzzerTestOneInput((const uint8_t *)aq_buf_str(&b), b.len);
            done++;
        }
        free(names[i]);
    }
    free(names);
    printf("%d inputs replayed\n", done);
    return done > 0 ? 0 : 1;
}
