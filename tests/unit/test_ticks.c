/* The tracer's own ticks: none of them is an answer to a question that does not wait. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "observe/internal.h"

static void on_tick(int sig)
{
    (void)sig;
}

/* A plain poll() is interrupted in some of a hundred of these. */
static void test_asked_while_it_ticks(void **state)
{
    struct sigaction sa = {.sa_handler = on_tick}, before;
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct itimerspec every = {{0, 20000}, {0, 20000}};
    timer_t timer;
    int ends[2], wrong = 0;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sigaction(SIGRTMIN, &sa, &before), 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &e, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);
    for (int i = 0; i < 20000; i++)
        wrong += aq_io_poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}) != 0;
    timer_delete(timer);
    sigaction(SIGRTMIN, &before, NULL);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_asked_while_it_ticks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
