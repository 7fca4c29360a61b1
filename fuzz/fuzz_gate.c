/* What L0 reads from strangers: README, licence text, licence field, names, a copy of a manifest.
 * The first byte chooses; the invariants of each are checked. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses a chunk on some texts; our own leaks are still found. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void look_at_readme(const char *text, size_t len)
{
    aq_readme_facts f;

    aq_readme_look(text, len, "log-reader", &f);
    must(f.prose <= 3 * len);
    must(f.text || (!f.prose && !f.titles));
}

static void look_at_field(const char *text)
{
    aq_license l, one;

    aq_license_parse(text, &l);
    must(l.count <= AQ_LICENSE_IDS);
    must(l.state != AQ_LICENSE_SLOPPY || l.suggestion);
    must(l.state != AQ_LICENSE_UNKNOWN || l.reason[0]);
    for (size_t i = 0; i < l.count; i++) {
        aq_license_parse(l.ids[i], &one); /* an id of the list means itself */
        must(one.state == AQ_LICENSE_GOOD && one.count == 1 && one.ids[0] == l.ids[i]);
    }
}

static void look_at_name(const char *name)
{
    aq_auto_buf plain = {0}, fold = {0}, again = {0};

    if (aq_name_illegal(name))
        return;
    must(aq_utf8_valid(name, strlen(name)));
    aq_name_mixed(name);
    must(aq_name_plain(&plain, name) == 0);
    must(aq_text_fold(&fold, name, strlen(name)) == 0);
    must(aq_name_plain(&again, aq_buf_str(&fold)) == 0);
    must(strcmp(aq_buf_str(&plain), aq_buf_str(&again)) == 0);
}

/* The text up to the first NUL is the file, the rest the copy. */
static void compare(const char *text, size_t len)
{
    static const char *const files[] = {"a.yaml", "a.json", "a.toml", "SKILL.md"};
    size_t file = strlen(text);
    aq_auto_buf where = {0};
    aq_err err = {0};

    if (file >= len)
        return;
    for (size_t i = 0; i < 4; i++)
        aq_manifest_same(files[i], text, file, text + file + 1, len - file - 1, &where, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_buf text = {0};

    if (size == 0)
        return 0;
    aq_buf_add(&text, data + 1, size - 1);
    switch (data[0] % 5) {
    case 0:
        look_at_readme(aq_buf_str(&text), text.len);
        break;
    case 1:
        must(aq_license_recognise(aq_buf_str(&text), text.len) < 1u << AQ_LICENSE_FAMILIES);
        break;
    case 2:
        look_at_field(aq_buf_str(&text));
        break;
    case 3:
        look_at_name(aq_buf_str(&text));
        break;
    case 4:
        compare(aq_buf_str(&text), text.len);
        break;
    }
    return 0;
}
