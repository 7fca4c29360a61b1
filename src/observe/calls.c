/* The table of calls (calls.def), and the filter that the kernel gets from it. */
#include <errno.h>
#include <linux/seccomp.h>

#include "kernel/callfilter.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

_Static_assert((int)AQ_CALL_NUMBERS == (int)AQ_SYSCALL_NUMBERS,
               "one size for all tables of numbers");

#define AQ_COUNT(name, attempt, after)
#define AQ_SEE(name, attempt, after, kind, op, shape, look, note)                                  \
    static const aq_decoder decode_##name = {AQ_EVENT_##kind, op, shape, look, note};
#define AQ_REFUSE(name, code, shape)                                                               \
    static const aq_decoder decode_##name = {AQ_EVENT_SYSCALL, "refused", shape, aq_shape_look,    \
                                             aq_note_refused};
#include "observe/calls.def"
#undef AQ_COUNT
#undef AQ_SEE
#undef AQ_REFUSE

static const aq_call_row rows[AQ_CALL_NUMBERS] = {
#define AQ_COUNT(name, attempt, after)                                                             \
    [AQ_NR_##name] = {#name, AQ_TREAT_COUNT, 0, attempt, after, NULL},
#define AQ_SEE(name, attempt, after, kind, op, shape, look, note)                                  \
    [AQ_NR_##name] = {#name, AQ_TREAT_SEE, 0, attempt, after, &decode_##name},
#define AQ_REFUSE(name, code, shape)                                                               \
    [AQ_NR_##name] = {#name, AQ_TREAT_REFUSE, code, NULL, NULL, &decode_##name},
#include "observe/calls.def"
#undef AQ_COUNT
#undef AQ_SEE
#undef AQ_REFUSE
};

const aq_call_row *aq_call_row_of(long nr)
{
    static const aq_call_row unknown = {
        .treat = AQ_TREAT_UNKNOWN, .code = ENOSYS, .decoder = &aq_decode_refusal};

    return nr >= 0 && nr < AQ_CALL_NUMBERS && rows[nr].name ? &rows[nr] : &unknown;
}

int aq_tracer_enter(aq_err *err)
{
    aq_call_verdict of[AQ_CALL_NUMBERS];
    aq_callfilter f;
    int r;

    /* The processor's counter is a clock that needs no call: reading it traps from here on, in all
     * programs and children too (guard.c keeps it so). */
    if ((r = aq_process_trap_counter(err)) < 0)
        return r;
    for (long i = 0; i < AQ_CALL_NUMBERS; i++) {
        bool shown = rows[i].treat == AQ_TREAT_COUNT || rows[i].treat == AQ_TREAT_SEE;

        of[i] = (aq_call_verdict){.action = shown ? SECCOMP_RET_TRACE : SECCOMP_RET_TRAP};
    }
    r = aq_callfilter_make(of, AQ_CALL_NUMBERS, SECCOMP_RET_TRAP, &f, err);
    return r < 0 ? r : aq_callfilter_install(&f, err);
}
