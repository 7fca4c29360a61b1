/* aquarium-internet: the private internet of one world. Started by the front with the descriptors
 * of docs/formats/internet.md; reads its world, locks itself in, says hello, and serves steps until
 * the line closes. It has no options, writes no file and prints nothing but the reason why it
 * ended. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "internet/internal.h"
#include "internet/ports.h"
#include "kernel/process.h"

static int serve(aq_arena *a, aq_err *err)
{
    static aq_net net;
    aq_internet_world *world = aq_arena_alloc(a, sizeof *world);
    aq_line_message hello = {.type = AQ_LINE_HELLO};
    aq_auto_buf text = {0};
    int r = aq_process_close_from(AQ_LINE_SOCKETS + AQ_NET_SOCKETS, err);

    if (r == 0 && lseek(AQ_LINE_WORLD, 0, SEEK_SET) < 0)
        r = aq_fail_errno(err, "the world is no file");
    if (r < 0 || (r = aq_read_fd(AQ_LINE_WORLD, "the world", AQ_INTERNET_WORLD, &text, err)) < 0 ||
        (r = aq_internet_world_read(a, text.data, text.len, world, err)) < 0)
        return r;
    explicit_bzero(text.data, text.len);
    close(AQ_LINE_WORLD);
    if ((r = aq_net_open(&net, world, err)) < 0 || (r = aq_net_lock(&hello.hello, err)) < 0)
        return r;
    hello.hello.sockets = (uint32_t)net.socket_count;
    if ((r = aq_line_send(AQ_LINE_FD, &hello, err)) < 0)
        return r;
    return aq_net_serve(&net, err);
}

int main(int argc, char **argv)
{
    aq_arena *a = aq_arena_new(); /* for as long as the program lives */
    aq_err err = {0};

    (void)argv;
    if (argc > 1) {
        fputs("aquarium-internet: takes no arguments; aquarium run starts it\n", stderr);
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    if (serve(a, &err) < 0) {
        aq_line_message failed = {.type = AQ_LINE_FAILED, .failed.text = err.text};

        (void)aq_line_send(AQ_LINE_FD, &failed, NULL);
        return 70;
    }
    return 0;
}
