/* What differs from run to run, or from one machine and one rule set to the next, held still for
 * the golden documents: the clock, random ids, the engine, the digest and number of rules, and what
 * the report says of this host's jail (the jail itself is the real one). The linker's --wrap sends
 * the rooms' calls here; see meson.build. The instance key is a file, which the tests write. */
#include <string.h>
#include <sys/random.h>

#include "base/io.h"
#include "cleanroom/report.h"
#include "jail/jail.h"

int64_t __wrap_aq_now(void);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags);
aq_digest __wrap_aq_rules_digest(void);
size_t __wrap_aq_rules_count(void);
const char *__wrap_aq_engine(void);
void __wrap_aq_jail_containment(const aq_jail *j, aq_buf *text);

int64_t __wrap_aq_now(void)
{
    return 1767268800; /* 2026-01-01T12:00:00Z */
}

/* Every byte is one more than the last, so that no two ids are the same. */
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags)
{
    static unsigned char next;
    unsigned char *p = data;

    (void)flags;
    for (size_t i = 0; i < len; i++)
        p[i] = next++;
    return (ssize_t)len;
}

aq_digest __wrap_aq_rules_digest(void)
{
    static const char text[] = "the rules of the golden documents";

    return aq_sha256(text, sizeof text - 1);
}

size_t __wrap_aq_rules_count(void)
{
    return 100;
}

const char *__wrap_aq_engine(void)
{
    return "0.1.0";
}

void __wrap_aq_jail_containment(const aq_jail *j, aq_buf *text)
{
    (void)j;
    aq_buf_adds(text, "{\"landlock\": 7, \"seccomp\": true, \"namespaces\": true, "
                      "\"capabilities\": \"none\", \"unprivileged\": true, "
                      "\"memory_limit\": true}");
}
