/* What a world shows of its host, handed over by the front when the program first looks around: the
 * keeper has no right to take it any more, and init is inside. Both ends have the same list. */
#include <unistd.h>

#include "sandbox/world.h"

static bool is_handed(const aq_root *root, const aq_entry *e)
{
    return aq_root_is_rest(root, e) && (e->kind == TREE || e->kind == DEVICE);
}

static int send_all(int line, int *fds, size_t *count, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_TREES};
    int r = *count ? aq_message_send(line, &m, fds, *count, err) : 0;

    for (size_t i = 0; i < *count; i++)
        close(fds[i]);
    *count = 0;
    return r;
}

int aq_hand_over(aq_root *root, int line, aq_err *err)
{
    int fds[AQ_MESSAGE_FDS], r = 0, sent;
    size_t n = 0;

    for (size_t i = 0; i < root->count && r == 0; i++) {
        aq_entry *e = &root->entry[i];

        if (!is_handed(root, e) || (r = aq_root_take_one(e, err)) < 0)
            continue;
        fds[n++] = e->mount;
        e->mount = -1;
        if (n == AQ_MESSAGE_FDS)
            r = send_all(line, fds, &n, err);
    }
    sent = send_all(line, fds, &n, r < 0 ? NULL : err);
    return r < 0 ? r : sent;
}

int aq_hand_take(aq_root *root, int line, aq_err *err)
{
    int fds[AQ_MESSAGE_FDS], r;
    size_t n = AQ_MESSAGE_FDS;
    aq_message m;

    for (size_t i = 0; i < root->count; i++) {
        aq_entry *e = &root->entry[i];

        if (!is_handed(root, e))
            continue;
        if (n == AQ_MESSAGE_FDS) {
            if ((r = aq_message_recv(line, &m, fds, NULL, err)) < 0)
                return aq_err_within(err, "the front");
            n = 0;
        }
        e->mount = fds[n++];
        if (e->mount < 0)
            return aq_fail(err, -EPROTO, "the front handed over too little");
    }
    return 0;
}
