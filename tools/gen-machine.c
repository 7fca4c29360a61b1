/* Makes the folder of files that every machine of a world has and that are the same in all of them:
 * `gen-machine FOLDER TABLE…`, run once at build time. Worlds show parts of it, read-only, each
 * with one mount, where files of their own would cost time at every start.
 *
 * The format is in rules/machine/README.md. The tables are ours: what is wrong ends it. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 16384, FOLDERS = 4096 };

static const char *table;
static unsigned line_number;

/* Folders get their time when all is in them. */
static struct {
    char *path;
    struct timespec at;
    mode_t mode;
} folders[FOLDERS];
static size_t folder_count;

_Noreturn static void __attribute__((format(printf, 1, 2))) wrong(const char *format, ...)
{
    va_list more;

    fprintf(stderr, "%s line %u: ", table, line_number);
    va_start(more, format);
    vfprintf(stderr, format, more);
    va_end(more);
    fputc('\n', stderr);
    exit(1);
}

/* At some time of a working day, which the name decides. */
static struct timespec moment(const char *date, const char *name)
{
    struct tm day = {0};
    unsigned mix = 5381;

    if (!strptime(date, "%Y-%m-%d", &day))
        wrong("'%s' is no day", date);
    for (; *name; name++)
        mix = mix * 33 + (unsigned char)*name;
    return (struct timespec){timegm(&day) + 8 * 3600 + (time_t)(mix % 36000),
                             (long)(mix % 999999937)};
}

/* Paths are below the folder, which is the current one. */
static const char *below(const char *path)
{
    if (path[0] != '/' || !path[1])
        wrong("'%s' is no path", path);
    return path + 1;
}

static void make_folder(mode_t mode, const char *date, const char *path)
{
    if (mkdir(below(path), 0755) < 0 && errno != EEXIST)
        wrong("%s: %s", path, strerror(errno));
    if (folder_count == FOLDERS)
        wrong("more than %d folders", FOLDERS);
    folders[folder_count].path = strdup(below(path));
    folders[folder_count].mode = mode;
    folders[folder_count++].at = moment(date, path);
}

/* Says when it was written, and what may be done with it: at the end, so that it can be written. */
static void settle(int fd, mode_t mode, struct timespec at)
{
    if (futimens(fd, (struct timespec[]){at, at}) < 0 || fchmod(fd, mode) < 0)
        wrong("%s", strerror(errno));
    close(fd);
}

static int begin_file(const char *path)
{
    int fd = open(below(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        wrong("%s: %s", path, strerror(errno));
    return fd;
}

/* `d` and `e` rows: names in one folder. */
static void make_many(char kind, mode_t mode, const char *date, char *rest)
{
    char *colon = strchr(rest, ':'), *save = NULL;

    if (!colon)
        wrong("FOLDER: NAME…");
    *colon = '\0';
    for (char *name = strtok_r(colon + 1, " \n", &save); name;
         name = strtok_r(NULL, " \n", &save)) {
        char path[1024];

        snprintf(path, sizeof path, "%s/%s", strcmp(rest, "/") == 0 ? "" : rest, name);
        if (kind == 'd')
            make_folder(mode, date, path);
        else
            settle(begin_file(path), mode, moment(date, path));
    }
}

typedef struct open_file {
    int fd;
    mode_t mode;
    struct timespec at;
} open_file;

static void end_file(open_file *f)
{
    if (f->fd >= 0)
        settle(f->fd, f->mode, f->at);
    f->fd = -1;
}

static void row(char *line, open_file *f)
{
    char kind = 0, date[32] = "", first[1024] = "", second[1024] = "";
    unsigned mode = 0;
    int at = 0;

    if (line[0] == '|') {
        if (f->fd < 0 || write(f->fd, line + 1, strlen(line + 1)) < 0)
            wrong("a line of no file");
        return;
    }
    if (sscanf(line, "s %1023s", first) == 1) {
        if (f->fd < 0 || ftruncate(f->fd, atoll(first)) < 0)
            wrong("a size of no file");
        return;
    }
    end_file(f);
    if (line[0] == '#' || line[0] == '\n')
        return;
    if (sscanf(line, "l %1023s %1023s", first, second) == 2) {
        const struct timespec made = moment("2024-01-16", second);

        if (symlink(first, below(second)) < 0 ||
            utimensat(AT_FDCWD, below(second), (struct timespec[]){made, made},
                      AT_SYMLINK_NOFOLLOW) < 0)
            wrong("%s: %s", second, strerror(errno));
        return;
    }
    if (sscanf(line, "%c %o %31s %n", &kind, &mode, date, &at) != 3)
        wrong("d, e, f, l or s");
    if (kind == 'f') {
        line[strcspn(line, "\n")] = '\0';
        *f = (open_file){begin_file(line + at), (mode_t)mode, moment(date, line + at)};
    } else if (kind == 'd' || kind == 'e') {
        make_many(kind, (mode_t)mode, date, line + at);
    } else {
        wrong("d, e, f, l or s");
    }
}

static void read_table(int fd)
{
    FILE *from = fdopen(fd, "r");
    open_file f = {.fd = -1};
    static char line[LINE];

    for (line_number = 1; from && fgets(line, sizeof line, from); line_number++)
        row(line, &f);
    end_file(&f);
    if (!from || ferror(from))
        wrong("cannot be read");
    fclose(from);
}

static void settle_folders(void)
{
    while (folder_count-- > 0) {
        const struct timespec at = folders[folder_count].at;

        if (chmod(folders[folder_count].path, folders[folder_count].mode) < 0 ||
            utimensat(AT_FDCWD, folders[folder_count].path, (struct timespec[]){at, at}, 0) < 0)
            wrong("%s: %s", folders[folder_count].path, strerror(errno));
        free(folders[folder_count].path);
    }
}

static int take_away(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Folders that may not be written to first may be. */
static int open_up(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    return S_ISDIR(st->st_mode) && kind != FTW_SL ? chmod(path, 0755) : 0;
}

int main(int argc, char **argv)
{
    int tables[16];

    if (argc < 3 || argc > 18)
        return 64;
    umask(0);
    for (int i = 2; i < argc; i++) {
        table = argv[i];
        if ((tables[i - 2] = open(argv[i], O_RDONLY | O_CLOEXEC)) < 0)
            wrong("%s", strerror(errno));
    }
    table = argv[1];
    nftw(argv[1], open_up, 16, FTW_PHYS);
    nftw(argv[1], take_away, 16, FTW_PHYS | FTW_DEPTH);
    if ((mkdir(argv[1], 0755) < 0 && errno != EEXIST) || chdir(argv[1]) < 0)
        wrong("%s", strerror(errno));
    for (int i = 2; i < argc; i++) {
        table = argv[i];
        read_table(tables[i - 2]);
    }
    settle_folders();
    return 0;
}
