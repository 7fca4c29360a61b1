/* Admission: the few facts that hold for one submission at one moment, not for its bytes.
 *
 * Whether an envelope came before, how much its publisher has sent lately, whether it is dated
 * ahead of our clock: each can end the walk, so each can change the verdict digest. They are
 * established here, once, before the first stage, as plain yes or no, and the report lists them. A
 * stage gets no clock and no count, so nothing else of the moment can reach a finding. */
#include "cleanroom/stage.h"

enum { AHEAD = 24 * 60 * 60 }; /* seconds that clocks may differ */

int aq_admit(const aq_submission *s, const aq_policy *policy, aq_store *store, int64_t now,
             aq_admission *ret, aq_err *err)
{
    aq_admission a = *ret;
    uint64_t count = 0;
    int r;

    if (s->local)
        return 0;
    if (policy->rate_limit > 0) {
        r = aq_store_rate(store, s->publisher, s->signature == AQ_SIGNATURE_GOOD,
                          now - policy->rate_window, &count, err);
        if (r < 0)
            return r;
    }
    a.over_rate = policy->rate_limit > 0 && count > policy->rate_limit;
    a.dated_ahead = s->time > now + AHEAD;
    *ret = a;
    return 0;
}
