/* Chance that every run of a target has in common. The tables of base and of jansson are keyed, so
 * that no stranger can choose where an entry lies; drawn anew, such a key would make two runs of a
 * fuzzer part, and an input that failed once might not fail again. */
#include <jansson.h>
#include <string.h>
#include <sys/random.h>

/* In place of the C library's. */
ssize_t getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memset(to, 0x5a, len);
    return (ssize_t)len;
}

__attribute__((constructor)) static void seed(void)
{
    json_object_seed(1);
}
