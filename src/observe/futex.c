/* Futexes, emulated: nobody sleeps in the kernel, and wakes go in the order of the waits. The
 * kernel itself wakes a futex when a thread ends; that is noticed by the word's change. */
#include <errno.h>
#include <linux/futex.h>

#include "observe/internal.h"

/* A shared futex is known by the file behind its mapping, so that processes meet in it. */
static bool find_shared(const aq_mapping *m, void *arg)
{
    aq_futex_key *key = arg;

    if (key->at < m->from || key->at >= m->to)
        return false;
    if (m->shared)
        *key =
            (aq_futex_key){1ULL << 63 | m->device << 40 | m->inode, key->at - m->from + m->offset};
    return true;
}

static aq_futex_key key_of(const aq_task *k, uint64_t at, bool private)
{
    aq_futex_key key = {k->proc->space, at};

    if (!private)
        aq_tracee_maps(k, find_shared, &key);
    return key;
}

static aq_task *first_waiter(aq_tracer *t, aq_futex_key key, uint32_t bits)
{
    aq_task *best = NULL;

    for (aq_task *k = t->tasks; k; k = k->next)
        if (k->state == AQ_TASK_PARKED && k->park == AQ_PARK_FUTEX && k->futex.space == key.space &&
            k->futex.at == key.at && (k->futex_bits & bits) &&
            (!best || k->futex_order < best->futex_order))
            best = k;
    return best;
}

static long wake(aq_tracer *t, const aq_task *by, aq_futex_key key, uint64_t count, uint32_t bits)
{
    long woken = 0;
    aq_task *k;

    while ((uint64_t)woken < count && (k = first_waiter(t, key, bits)) != NULL) {
        aq_edge(t, k, by->proc->ordinal, by->ordinal, "futex");
        aq_wake(t, k, 0);
        woken++;
    }
    return woken;
}

static aq_step wait_on(aq_tracer *t, aq_task *k, aq_futex_key key, uint64_t at, uint32_t bits)
{
    k->futex = key;
    k->futex_at = at;
    k->futex_bits = bits;
    k->futex_order = ++t->next_wait;
    aq_park(t, k, AQ_PARK_FUTEX);
    return AQ_STEP_PARKED;
}

/* FUTEX_WAIT has a relative timeout, all others an absolute one. */
static int set_deadline(aq_tracer *t, aq_task *k, int op, bool absolute)
{
    return aq_clock_until(t, k, aq_regs_arg(k, 3),
                          op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, absolute);
}

static aq_step try_wait(aq_tracer *t, aq_task *k, int op, uint32_t bits)
{
    uint64_t at = aq_regs_arg(k, 0);
    uint32_t word;
    int r;

    if (at % 4 || !bits)
        return aq_answer(k, -EINVAL);
    if (!aq_tracee_get(k, at, &word, sizeof word))
        return aq_answer(k, -EFAULT);
    if (word != (uint32_t)aq_regs_arg(k, 2))
        return aq_answer(k, -EAGAIN);
    r = set_deadline(t, k, op, (op & FUTEX_CMD_MASK) != FUTEX_WAIT);
    if (r < 0)
        return aq_answer(k, r);
    if (k->timed && k->deadline <= t->clock)
        return aq_answer(k, -ETIMEDOUT);
    k->futex_value = word;
    k->futex_owned = false;
    return wait_on(t, k, key_of(k, at, op & FUTEX_PRIVATE_FLAG), at, bits);
}

/* It waits for another word from now on, because of `by`. */
static void move(aq_tracer *t, const aq_task *by, aq_task *q, aq_futex_key to, uint32_t word)
{
    aq_edge(t, q, by->proc->ordinal, by->ordinal, "futex");
    q->futex = to;
    q->futex_at = aq_regs_arg(by, 4);
    q->futex_value = word;
    q->futex_order = ++t->next_wait;
}

static aq_step try_requeue(aq_tracer *t, aq_task *k, int op)
{
    bool private = op & FUTEX_PRIVATE_FLAG;
    aq_futex_key from = key_of(k, aq_regs_arg(k, 0), private);
    aq_futex_key to = key_of(k, aq_regs_arg(k, 4), private);
    uint64_t limit = (uint32_t)aq_regs_arg(k, 3);
    uint32_t word;
    aq_task *q;
    long moved = 0, woken;

    if ((op & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE) {
        if (!aq_tracee_get(k, aq_regs_arg(k, 0), &word, sizeof word))
            return aq_answer(k, -EFAULT);
        if (word != (uint32_t)aq_regs_arg(k, 5))
            return aq_answer(k, -EAGAIN);
    }
    if (!aq_tracee_get(k, aq_regs_arg(k, 4), &word, sizeof word))
        return aq_answer(k, -EFAULT);
    woken = wake(t, k, from, (uint32_t)aq_regs_arg(k, 2), ~0U);
    while ((uint64_t)moved < limit && (q = first_waiter(t, from, ~0U)) != NULL) {
        move(t, k, q, to, word);
        moved++;
    }
    return aq_answer(k, woken + moved);
}

/* The operation and comparison that FUTEX_WAKE_OP packs into one word. */
static bool operate(uint32_t packed, uint32_t old, uint32_t *new)
{
    uint32_t arg = packed >> 12 & 0xfff, against = packed & 0xfff;
    int op = packed >> 28 & 7;
    int32_t was = (int32_t)old;
    int32_t right = (int32_t)(against << 20) >> 20;

    arg = (uint32_t)((int32_t)(arg << 20) >> 20);
    if (packed >> 31)
        arg = 1U << (arg & 31);
    *new = op == FUTEX_OP_SET    ? arg
           : op == FUTEX_OP_ADD  ? old + arg
           : op == FUTEX_OP_OR   ? old | arg
           : op == FUTEX_OP_ANDN ? old & ~arg
                                 : old ^ arg;
    switch (packed >> 24 & 0xf) {
    case FUTEX_OP_CMP_EQ:
        return was == right;
    case FUTEX_OP_CMP_NE:
        return was != right;
    case FUTEX_OP_CMP_LT:
        return was < right;
    case FUTEX_OP_CMP_LE:
        return was <= right;
    case FUTEX_OP_CMP_GT:
        return was > right;
    default:
        return was >= right;
    }
}

static aq_step try_wake_op(aq_tracer *t, aq_task *k, int op)
{
    bool private = op & FUTEX_PRIVATE_FLAG, also;
    uint64_t second = aq_regs_arg(k, 4);
    uint32_t old, new;
    long woken;

    if (!aq_tracee_get(k, second, &old, sizeof old))
        return aq_answer(k, -EFAULT);
    also = operate((uint32_t)aq_regs_arg(k, 5), old, &new);
    if (!aq_tracee_put(k, second, &new, sizeof new))
        return aq_answer(k, -EFAULT);
    woken = wake(t, k, key_of(k, aq_regs_arg(k, 0), private), (uint32_t)aq_regs_arg(k, 2), ~0U);
    if (also)
        woken += wake(t, k, key_of(k, second, private), (uint32_t)aq_regs_arg(k, 3), ~0U);
    return aq_answer(k, woken);
}

static aq_step try_lock_pi(aq_tracer *t, aq_task *k, int op, bool wait)
{
    uint64_t at = aq_regs_arg(k, 0);
    uint32_t word, mine = (uint32_t)aq_task_inner(k);
    int r;

    if (!aq_tracee_get(k, at, &word, sizeof word))
        return aq_answer(k, -EFAULT);
    if ((word & FUTEX_TID_MASK) == 0) {
        mine |= word & FUTEX_OWNER_DIED;
        return aq_answer(k, aq_tracee_put(k, at, &mine, sizeof mine) ? 0 : -EFAULT);
    }
    if ((word & FUTEX_TID_MASK) == mine)
        return aq_answer(k, -EDEADLK);
    if (!wait)
        return aq_answer(k, -EAGAIN);
    r = set_deadline(t, k, (op & FUTEX_CMD_MASK) == FUTEX_LOCK_PI ? FUTEX_CLOCK_REALTIME : op,
                     true);
    if (r < 0)
        return aq_answer(k, r);
    word |= FUTEX_WAITERS;
    if (!aq_tracee_put(k, at, &word, sizeof word))
        return aq_answer(k, -EFAULT);
    k->futex_value = word;
    k->futex_owned = true;
    return wait_on(t, k, key_of(k, at, op & FUTEX_PRIVATE_FLAG), at, ~0U);
}

/* The first who waits gets the other word when nobody has it; the rest wait to own it. */
static aq_step try_requeue_pi(aq_tracer *t, aq_task *k, int op)
{
    bool private = op & FUTEX_PRIVATE_FLAG;
    aq_futex_key from = key_of(k, aq_regs_arg(k, 0), private);
    aq_futex_key to = key_of(k, aq_regs_arg(k, 4), private);
    uint64_t limit = 1 + (uint64_t)(uint32_t)aq_regs_arg(k, 3), done = 0;
    uint32_t word, owned;
    aq_task *q;

    if ((uint32_t)aq_regs_arg(k, 2) != 1 || (from.space == to.space && from.at == to.at))
        return aq_answer(k, -EINVAL);
    if (!aq_tracee_get(k, aq_regs_arg(k, 0), &word, sizeof word) ||
        !aq_tracee_get(k, aq_regs_arg(k, 4), &owned, sizeof owned))
        return aq_answer(k, -EFAULT);
    if (word != (uint32_t)aq_regs_arg(k, 5))
        return aq_answer(k, -EAGAIN);
    while (done < limit && (q = first_waiter(t, from, ~0U)) != NULL) {
        if (owned & FUTEX_TID_MASK) {
            owned |= FUTEX_WAITERS;
            move(t, k, q, to, owned);
            q->futex_owned = true;
        } else {
            owned = (owned & FUTEX_OWNER_DIED) | (uint32_t)aq_task_inner(q);
            wake(t, k, from, 1, ~0U);
        }
        done++;
    }
    if (done && !aq_tracee_put(k, aq_regs_arg(k, 4), &owned, sizeof owned))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, (long)done);
}

/* Hands the word on to the first who waits for it. */
static aq_step try_unlock_pi(aq_tracer *t, aq_task *k, int op)
{
    uint64_t at = aq_regs_arg(k, 0);
    aq_futex_key key = key_of(k, at, op & FUTEX_PRIVATE_FLAG);
    uint32_t word, next = 0;
    aq_task *heir;

    if (!aq_tracee_get(k, at, &word, sizeof word))
        return aq_answer(k, -EFAULT);
    if ((word & FUTEX_TID_MASK) != (uint32_t)aq_task_inner(k))
        return aq_answer(k, -EPERM);
    heir = first_waiter(t, key, ~0U);
    if (heir) {
        aq_edge(t, heir, k->proc->ordinal, k->ordinal, "futex");
        aq_wake(t, heir, 0);
        next = (uint32_t)aq_task_inner(heir);
        if (first_waiter(t, key, ~0U))
            next |= FUTEX_WAITERS;
    }
    return aq_answer(k, aq_tracee_put(k, at, &next, sizeof next) ? 0 : -EFAULT);
}

aq_step aq_try_futex(aq_tracer *t, aq_task *k)
{
    int op = (int)aq_regs_arg(k, 1);
    bool private = op & FUTEX_PRIVATE_FLAG;

    switch (op & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return try_wait(t, k, op, ~0U);
    case FUTEX_WAIT_BITSET:
        return try_wait(t, k, op, (uint32_t)aq_regs_arg(k, 5));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
        uint32_t bits = (op & FUTEX_CMD_MASK) == FUTEX_WAKE ? ~0U : (uint32_t)aq_regs_arg(k, 5);
        uint32_t count = (uint32_t)aq_regs_arg(k, 2);

        if (!bits)
            return aq_answer(k, -EINVAL);
        return aq_answer(
            k, wake(t, k, key_of(k, aq_regs_arg(k, 0), private), count ? count : 1, bits));
    }
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        return try_requeue(t, k, op);
    case FUTEX_WAIT_REQUEUE_PI:
        if (aq_regs_arg(k, 0) == aq_regs_arg(k, 4))
            return aq_answer(k, -EINVAL);
        return try_wait(t, k, op, ~0U);
    case FUTEX_CMP_REQUEUE_PI:
        return try_requeue_pi(t, k, op);
    case FUTEX_WAKE_OP:
        return try_wake_op(t, k, op);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        return try_lock_pi(t, k, op, true);
    case FUTEX_TRYLOCK_PI:
        return try_lock_pi(t, k, op, false);
    case FUTEX_UNLOCK_PI:
        return try_unlock_pi(t, k, op);
    default:
        return aq_answer(k, -ENOSYS);
    }
}

static bool is_there(const aq_tracer *t, uint32_t inner)
{
    for (aq_task *k = t->tasks; k; k = k->next)
        if ((uint32_t)aq_task_inner(k) == inner)
            return true;
    return false;
}

/* Its owner is gone: whoever waits first has the word, and is told by a bit in it. The kernel does
 * so for the waits that it knows, and it knows none of these. */
static void take_over(aq_tracer *t, aq_task *k, uint32_t word, uint32_t process, uint32_t thread)
{
    const aq_futex_key key = k->futex;
    const uint64_t at = k->futex_at;
    uint32_t next;

    if (first_waiter(t, key, ~0U) != k ||
        ((word & FUTEX_TID_MASK) && is_there(t, word & FUTEX_TID_MASK)))
        return;
    aq_edge(t, k, process, thread, "futex");
    aq_wake(t, k, 0);
    next = (uint32_t)aq_task_inner(k) | FUTEX_OWNER_DIED;
    if (first_waiter(t, key, ~0U))
        next |= FUTEX_WAITERS;
    aq_tracee_put(k, at, &next, sizeof next);
}

void aq_futex_changed(aq_tracer *t, uint32_t process, uint32_t thread, bool joined)
{
    for (aq_task *k = t->tasks; k; k = k->next) {
        uint32_t word;

        if (k->state != AQ_TASK_PARKED || k->park != AQ_PARK_FUTEX ||
            !aq_tracee_get(k, k->futex_at, &word, sizeof word))
            continue;
        if (k->futex_owned) {
            take_over(t, k, word, process, thread);
        } else if (word != k->futex_value) {
            if (joined)
                aq_edge(t, k, process, thread, "join");
            aq_wake(t, k, 0);
        }
    }
}
