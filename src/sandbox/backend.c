/* The table of backends, and the one way to run a plan; see backend.h.
 *
 * A run either gives a whole observation stream that adds up, or nothing: a stream that is cut,
 * malformed or doubled makes the result INCONCLUSIVE, never a shorter observation. */
#include "sandbox/backend.h"

#include <errno.h>
#include <string.h>

#include "model/observation.h"

#define AQ_BACKEND(symbol) extern const aq_backend symbol;
#include "sandbox/backends.def"
#undef AQ_BACKEND

static const aq_backend *const backends[] = {
#define AQ_BACKEND(symbol) &symbol,
#include "sandbox/backends.def"
#undef AQ_BACKEND
    NULL,
};

const aq_backend *const *aq_backends(void)
{
    return backends;
}

const aq_backend *aq_backend_find(const char *name)
{
    for (const aq_backend *const *b = backends; *b; b++)
        if (strcmp((*b)->name, name) == 0)
            return *b;
    return NULL;
}

const char *aq_sandbox_tier_name(aq_sandbox_tier t)
{
    static const char *const names[] = {[AQ_T0] = "t0", [AQ_T1] = "t1", [AQ_T2] = "t2"};

    return names[t];
}

/* What a backend returns as an error must be one, with words; a backend that forgot either is
 * still a failure. */
static int failed(const aq_backend *b, const char *step, int r, aq_err *err)
{
    aq_err why = err ? *err : (aq_err){0};

    if (r == -AQ_EPLAN && why.code && why.text[0])
        return r;
    if (r > 0)
        r = -EPROTO;
    return aq_fail(err, r, "backend %s: %s: %s", b->name, step,
                   why.code && why.text[0] ? why.text : strerror(-r));
}

static int check_stream(const aq_backend *b, const aq_buf *stream, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    aq_observation o;
    int r = aq_observation_read(a, stream->data, stream->len, NULL, NULL, &o, err);

    if (r == 0 && strcmp(o.backend, b->name) != 0)
        r = aq_fail(err, -EBADMSG, "the observation says that backend %s made it", o.backend);
    return r;
}

int aq_backend_observe(const aq_backend *b, const aq_plan *plan, aq_aquarium **ret, aq_buf *stream,
                       aq_err *err)
{
    aq_auto_buf mine = {0}; /* so that a failed run hands on nothing */
    const char *step = "prepare";
    aq_err own = {0};
    int r;

    *ret = NULL;
    if (!err)
        err = &own;
    *err = (aq_err){0};
    r = aq_plan_check(plan, err);
    if (r == 0)
        r = b->prepare(plan, ret, err);
    if (r == 0 && !*ret)
        r = aq_fail(err, -EPROTO, "it gave no aquarium");
    if (r == 0)
        step = "launch", r = b->launch(*ret, err);
    if (r == 0)
        step = "wait", r = b->wait(*ret, &mine, err);
    if (r == 0)
        step = "observation", r = check_stream(b, &mine, err);
    if (r != 0)
        return failed(b, step, r, err);
    aq_buf_add(stream, mine.data, mine.len);
    return 0;
}

int aq_backend_run(const aq_backend *b, const aq_plan *plan, aq_buf *stream, aq_err *err)
{
    aq_aquarium *aq;
    int r = aq_backend_observe(b, plan, &aq, stream, err);

    b->teardown(aq);
    return r;
}

static json_t *word(const char *s)
{
    return s ? json_string(s) : json_null();
}

json_t *aq_containment_json(const aq_containment *c)
{
    return json_pack("{s:i,s:b,s:b,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I}", "landlock", c->landlock,
                     "own_ids", c->own_ids, "clocks", c->clocks, "proc", c->proc, "memory",
                     word(c->memory), "processes", word(c->processes), "cpu", word(c->cpu), "rate",
                     word(c->rate), "io", word(c->io), "disk", word(c->disk), "output",
                     word(c->output), "left_out", (json_int_t)c->left_out);
}
