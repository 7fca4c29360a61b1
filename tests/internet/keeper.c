/* A small keeper for the tests of the private internet: makes a network in which every address is
 * ours, starts aquarium-internet with its sockets, runs a command there, and steps the internet
 * while the command lives. What the internet records goes to a file, one JSON object a line.
 *
 *   keeper INTERNET WORLD RECORDS START_NS ADVANCE_NS COMMAND [ARGUMENT…]
 *
 * Each step tells START_NS plus ADVANCE_NS for every step before. Ends as the command ended; 70
 * when the internet did not serve. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "internet/line.h"
#include "internet/ports.h"
#include "kernel/network.h"

/* After so many steps in which nothing moved it sleeps between steps. */
enum { ADDRESS = 0x0a00020f, PREFIX = 24, PATIENCE = 200 };

static void die(const aq_err *err)
{
    fprintf(stderr, "keeper: %s\n", err->text);
    exit(70);
}

static void put(const char *path, const char *text)
{
    aq_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || aq_write_full(fd, text, strlen(text)) < 0)
        perror(path);
}

static void make_network(void)
{
    uid_t uid = getuid();
    gid_t gid = getgid();
    char map[64];
    aq_err err = {0};

    if (unshare(CLONE_NEWNET | (uid ? CLONE_NEWUSER : 0)) < 0) {
        perror("keeper: unshare");
        exit(77);
    }
    if (uid) {
        put("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        put("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        put("/proc/self/gid_map", map);
    }
    if (aq_network_local(ADDRESS, PREFIX, &err) < 0)
        die(&err);
}

static void start_internet(const char *program, const char *world, int line)
{
    static int fds[512];
    char *const argv[] = {(char *)"aquarium-internet", NULL};
    aq_auto_buf text = {0};
    aq_err err = {0};
    int memory;

    if (aq_read_file(AT_FDCWD, world, 4 << 20, &text, &err) < 0 || aq_ports_open(fds, &err) < 0)
        die(&err);
    memory = memfd_create("world", 0);
    if (aq_write_full(memory, text.data, text.len) < 0 || lseek(memory, 0, SEEK_SET) != 0)
        die(&err);
    /* High first, so that nothing is overwritten; then down to their places. */
    line = fcntl(line, F_DUPFD, 600);
    memory = fcntl(memory, F_DUPFD, 600);
    for (size_t i = 0; i < aq_port_sockets(); i++)
        fds[i] = fcntl(fds[i], F_DUPFD, 600);
    dup2(line, AQ_LINE_FD);
    dup2(memory, AQ_LINE_WORLD);
    for (size_t i = 0; i < aq_port_sockets(); i++)
        dup2(fds[i], AQ_LINE_SOCKETS + (int)i);
    syscall(SYS_close_range, AQ_LINE_SOCKETS + (unsigned)aq_port_sockets(), ~0u, 0);
    execv(program, argv);
    perror(program);
    _exit(70);
}

static json_t *text_of(const char *bytes, size_t len)
{
    aq_auto_buf quoted = {0};

    aq_text_quote(&quoted, bytes, len);
    return json_string(aq_buf_str(&quoted));
}

static void print_record(FILE *to, const aq_line_record *r)
{
    json_t *all = json_object(), *args = json_object();
    char end[AQ_LINE_END_TEXT];

    json_object_set_new(all, "flow", json_integer((json_int_t)r->flow));
    json_object_set_new(all, "protocol", json_integer(r->protocol));
    json_object_set_new(all, "client", json_string(aq_line_end_text(&r->client, end)));
    json_object_set_new(all, "server", json_string(aq_line_end_text(&r->server, end)));
    json_object_set_new(all, "op", json_string(r->op));
    if (r->object)
        json_object_set_new(all, "object", text_of(r->object, r->object_len));
    for (size_t i = 0; i < r->arg_count; i++) {
        const aq_event_arg *a = &r->args[i];

        json_object_set_new(args, a->name,
                            a->bytes ? text_of(a->bytes, a->len) : json_integer(a->number));
    }
    json_object_set_new(all, "args", args);
    json_object_set_new(all, "result", json_integer(r->result));
    json_dumpf(all, to, JSON_COMPACT);
    fputc('\n', to);
    json_decref(all);
}

static int next_message(int line, aq_line_message *m)
{
    static char packet[AQ_LINE_PACKET + 1];
    aq_err err = {0};
    int r = aq_line_receive(line, packet, m, &err);

    if (r < 0)
        die(&err);
    if (r == 0) {
        fputs("keeper: the internet is gone\n", stderr);
        exit(70);
    }
    if (m->type == AQ_LINE_FAILED) {
        fprintf(stderr, "keeper: the internet failed: %s\n", m->failed.text);
        exit(70);
    }
    return r;
}

static uint64_t step(int line, FILE *records, uint64_t number, int64_t now)
{
    aq_line_message m = {.type = AQ_LINE_STEP, .step = {number, now}};
    aq_err err = {0};

    if (aq_line_send(line, &m, &err) < 0)
        die(&err);
    for (;;) {
        next_message(line, &m);
        if (m.type == AQ_LINE_DONE) {
            if (m.done.number != number) {
                fputs("keeper: another step was done\n", stderr);
                exit(70);
            }
            return m.done.moved;
        }
        print_record(records, &m.record);
    }
}

static int serve(int line, FILE *records, pid_t command, int64_t now, int64_t advance)
{
    aq_line_message m;
    uint64_t number = 0;
    int status, quiet = 0;

    next_message(line, &m);
    if (m.type != AQ_LINE_HELLO) {
        fputs("keeper: no hello\n", stderr);
        exit(70);
    }
    fprintf(records, "{\"op\":\"hello\",\"landlock\":%d,\"seccomp\":%d,\"namespaces\":%d}\n",
            m.hello.landlock, m.hello.seccomp, m.hello.namespaces);
    kill(command, SIGCONT);
    for (;;) {
        pid_t gone = waitpid(command, &status, WNOHANG);
        uint64_t moved = step(line, records, ++number, now);

        now += advance;
        quiet = moved > 0 ? 0 : quiet + 1;
        if (gone == command) {
            while (step(line, records, ++number, now) > 0)
                ;
            fflush(records);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (quiet > PATIENCE)
            poll(NULL, 0, 1);
        else if (quiet > 0)
            sched_yield();
    }
}

int main(int argc, char **argv)
{
    int line[2];
    pid_t internet, command;
    FILE *records;
    char text[32], home[512];

    if (argc < 7) {
        fputs("usage: keeper INTERNET WORLD RECORDS START_NS ADVANCE_NS COMMAND…\n", stderr);
        return 64;
    }
    make_network();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
        return 70;
    internet = fork();
    if (internet == 0)
        start_internet(argv[1], argv[2], line[1]);
    close(line[1]);
    snprintf(text, sizeof text, "INTERNET_PID=%d", internet);
    snprintf(home, sizeof home, "HOME=%s", getenv("HOME") ? getenv("HOME") : "/");
    command = fork();
    if (command == 0) {
        char *const env[] = {text, (char *)"PATH=/usr/bin:/bin:/usr/sbin", (char *)"LANG=C.UTF-8",
                             home, NULL};

        raise(SIGSTOP);
        execvpe(argv[6], argv + 6, env);
        perror(argv[6]);
        _exit(127);
    }
    waitpid(command, NULL, WUNTRACED);
    records = fopen(argv[3], "w");
    if (!records)
        return 70;
    return serve(line[0], records, command, strtoll(argv[4], NULL, 10), strtoll(argv[5], NULL, 10));
}
