/* Patterns of capabilities: the first byte chooses the group, the rest is the pattern. A canonical
 * form is its own canonical form, or a manifest would not survive the border to the front. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/capability.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_capabilities once = {0}, twice = {0};
    aq_capability group;
    const char *form;
    aq_err err = {0};

    if (size == 0)
        return 0;
    group = (aq_capability)(data[0] % AQ_CAP_COUNT);
    if (aq_capabilities_add(&once, a, group, aq_arena_strndup(a, (const char *)data + 1, size - 1),
                            &err) < 0)
        return 0;
    form = once.group[group].patterns[0];
    if (aq_capabilities_add(&twice, a, group, form, &err) < 0 ||
        strcmp(twice.group[group].patterns[0], form) != 0) {
        fprintf(stderr, "\"%s\" is no canonical form: %s\n", form, err.text);
        abort();
    }
    return 0;
}
