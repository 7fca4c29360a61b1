/* Every right that Landlock knows, tried by an act that needs this one: without the rule that gives
 * it the kernel refuses, and with it the same act succeeds. So no right can be lost unnoticed, from
 * the set that is taken away or from a rule. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "kernel/landlock.h"
#include "kernel/process.h"

enum {
    TCP = 1 << 8, /* beside the rights of rules */
    ALL = AQ_LANDLOCK_READ | AQ_LANDLOCK_RUN | AQ_LANDLOCK_FILL | AQ_LANDLOCK_CHANGE |
          AQ_LANDLOCK_DEVICES | TCP,
    NO_ANSWER = 255,
};

static int told(int r)
{
    return r < 0 ? errno : 0;
}

static int opened(const char *path, int flags)
{
    return told(open(path, flags | O_CLOEXEC, 0600));
}

static int run(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/true", "true", NULL);
        _exit(errno);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : NO_ANSWER;
}

static int read_file(void)
{
    return opened("file", O_RDONLY);
}

static int read_folder(void)
{
    return opened("from", O_RDONLY | O_DIRECTORY);
}

static int write_file(void)
{
    return opened("file", O_WRONLY);
}

static int cut_file(void)
{
    return told(truncate("file", 0));
}

static int remove_file(void)
{
    return told(unlink("file"));
}

static int remove_dir(void)
{
    return told(rmdir("to"));
}

static int make_dir(void)
{
    return told(mkdir("new", 0700));
}

static int make_file(void)
{
    return told(mknod("new", S_IFREG | 0600, 0));
}

static int make_socket(void)
{
    return told(mknod("new", S_IFSOCK | 0600, 0));
}

static int make_pipe(void)
{
    return told(mkfifo("new", 0600));
}

static int make_link(void)
{
    return told(symlink("file", "new"));
}

static int move(void)
{
    return told(rename("from/file", "to/file"));
}

/* A device that does not know the request was asked all the same. */
static int ask_device(void)
{
    int r = told(ioctl(open("/dev/zero", O_RDONLY | O_CLOEXEC), TIOCGWINSZ, NULL));

    return r == ENOTTY ? 0 : r;
}

static int take_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return told(bind(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (void *)&a, sizeof a));
}

/* Nobody listens there: refused by the other side is not refused by the kernel. */
static int reach_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(1)};
    int r;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r = told(connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (void *)&a, sizeof a));
    return r == ECONNREFUSED ? 0 : r;
}

static const struct {
    const char *name;
    int (*act)(void);
    unsigned may;
    int abi, refused;
} rights[] = {
    {"execute", run, AQ_LANDLOCK_RUN, 1, EACCES},
    {"write_file", write_file, AQ_LANDLOCK_FILL, 1, EACCES},
    {"read_file", read_file, AQ_LANDLOCK_READ, 1, EACCES},
    {"read_dir", read_folder, AQ_LANDLOCK_READ, 1, EACCES},
    {"remove_dir", remove_dir, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"remove_file", remove_file, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"make_dir", make_dir, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"make_reg", make_file, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"make_sock", make_socket, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"make_fifo", make_pipe, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"make_sym", make_link, AQ_LANDLOCK_CHANGE, 1, EACCES},
    {"refer", move, AQ_LANDLOCK_CHANGE, 2, EACCES},
    {"truncate", cut_file, AQ_LANDLOCK_FILL, 3, EACCES},
    {"bind_tcp", take_port, TCP, 4, EACCES},
    {"connect_tcp", reach_port, TCP, 4, EACCES},
    {"ioctl_dev", ask_device, AQ_LANDLOCK_DEVICES, 5, EACCES},
};

/* What `act` gets in a process that may do `may` everywhere; NO_ANSWER where it could not begin. */
static int try_with(int (*act)(void), unsigned may)
{
    const aq_landlock_rule rule = {"/", may & ~(unsigned)TCP};
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        bool ready = aq_process_no_new_privileges(NULL) == 0 &&
                     aq_landlock_allow(&rule, 1, may & TCP, NULL) > 0;
        _exit(ready ? act() : NO_ANSWER);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void clean(void)
{
    unlink("file");
    unlink("from/file");
    unlink("to/file");
    unlink("new");
    rmdir("new");
    rmdir("from");
    rmdir("to");
}

static void lay_out(void)
{
    clean();
    assert_int_equal(mkdir("from", 0700) | mkdir("to", 0700), 0);
    close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    close(open("from/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void every_right(void **state)
{
    char folder[64], before[256];

    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(make_folder(folder)), 0);
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        int without, with;

        if (aq_landlock_abi() < rights[i].abi)
            continue;
        lay_out();
        without = try_with(rights[i].act, ALL & ~rights[i].may);
        lay_out();
        with = try_with(rights[i].act, ALL);
        if (without != rights[i].refused || with != 0)
            fail_msg("%s: %d without, %d with", rights[i].name, without, with);
    }
    clean();
    assert_int_equal(chdir(before), 0);
    remove_folder(folder);
}

/* ---- what no rule gives ---- */

static int make_devices(void)
{
    static const mode_t kinds[] = {S_IFCHR, S_IFBLK};

    for (int i = 0; i < 2; i++)
        if (mknod("/tmp/aq-landlock-node", kinds[i] | 0600, 0x103) == 0) {
            unlink("/tmp/aq-landlock-node");
            return 0;
        }
    return errno;
}

static struct sockaddr_un abstract;
static socklen_t abstract_len;

static int reach_abstract(void)
{
    return told(
        connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (void *)&abstract, abstract_len));
}

static int signal_parent(void)
{
    return told(kill(getppid(), 0));
}

static int free_twin(int (*act)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        aq_process_no_new_privileges(NULL);
        _exit(act());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void what_no_rule_gives(void **state)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

    (void)state;
    r = try_with(make_devices, ALL);
    assert_true(r == EACCES || r == EPERM);
    if (aq_landlock_abi() < 6)
        return;
    abstract.sun_family = AF_UNIX;
    snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "aq-landlock-%d", (int)getpid());
    abstract_len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract.sun_path + 1));
    assert_int_equal(bind(fd, (void *)&abstract, abstract_len) | listen(fd, 8), 0);
    assert_int_equal(free_twin(reach_abstract), 0);
    assert_int_equal(free_twin(signal_parent), 0);
    assert_int_equal(try_with(reach_abstract, ALL), EPERM);
    assert_int_equal(try_with(signal_parent, ALL), EPERM);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_right),
        cmocka_unit_test(what_no_rule_gives),
    };

    return cmocka_run_group_tests_name("landlock", tests, NULL, NULL);
}
