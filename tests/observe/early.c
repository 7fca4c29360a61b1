/* Opens the files that are its arguments before it does anything else, and says of each whether it
 * is the same a little later, by the descriptor and by its name: "same" or "changed". Files of a
 * world that are made late must be there before anybody can tell. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 16, HEAD = 4096 };

typedef struct sight {
    int fd;
    ssize_t len;
    struct stat is;
    char head[HEAD];
} sight;

static void look(int fd, sight *s)
{
    s->fd = fd;
    s->len = fd < 0 ? -1 : pread(fd, s->head, HEAD, 0);
    if (fd >= 0)
        fstat(fd, &s->is);
}

static int same(const sight *a, const sight *b)
{
    return (a->fd < 0) == (b->fd < 0) && a->len == b->len && memcmp(a->head, b->head, HEAD) == 0 &&
           a->is.st_ino == b->is.st_ino && a->is.st_size == b->is.st_size &&
           a->is.st_mtim.tv_sec == b->is.st_mtim.tv_sec;
}

int main(int argc, char **argv)
{
    static sight first[FILES], held[FILES], again[FILES];
    char folder[4096];

    for (int i = 1; i < argc && i < FILES; i++)
        look(open(argv[i], O_RDONLY | O_CLOEXEC), &first[i]);
    if (!getcwd(folder, sizeof folder))
        return 1;
    for (int i = 1; i < argc && i < FILES; i++) {
        look(first[i].fd, &held[i]);
        look(open(argv[i], O_RDONLY | O_CLOEXEC), &again[i]);
        printf("%s %s\n", argv[i],
               same(&first[i], &held[i]) && same(&first[i], &again[i]) ? "same" : "changed");
    }
    return 0;
}
