/* All kinds of manifests through aq_manifest_detect: the first byte chooses the file name, the rest
 * is the file. What comes out must survive the border to the front unchanged, because the front
 * takes a manifest that it cannot read back for a broken jail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses a chunk on texts with several doubled quotes. The child that reads
 * manifests ends soon after; our own leaks are still found. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

static const char *const names[] = {
    "arc-manifest.yaml", "arc-bundle.yaml",   ".claude-plugin/plugin.json",
    "hooks/hooks.json",  ".mcp.json",         "server.json",
    "package.json",      "pyproject.toml",    "SKILL.md",
    "tool.wasm",         "skills/a/SKILL.md", "commands/c.md",
};
enum { NAMES = sizeof names / sizeof *names };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char plugin[] = "{\"name\":\"p\"}";
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf image = {0};
    aq_file files[2] = {{.path = ".claude-plugin/plugin.json", .size = sizeof plugin - 1}};
    aq_package package = {.form = "folder", .files = files, .count = 1};
    aq_manifest m, back;
    aq_err err = {0};
    size_t at = 0;

    if (size == 0)
        return 0;
    aq_buf_add(&image, plugin, sizeof plugin - 1);
    aq_buf_add(&image, data + 1, size - 1);
    if (strncmp(names[data[0] % NAMES], "hooks/", 6) == 0 ||
        strncmp(names[data[0] % NAMES], "commands/", 9) == 0)
        at = package.count++; /* only beside a plugin */
    files[at] =
        (aq_file){.path = names[data[0] % NAMES], .offset = sizeof plugin - 1, .size = size - 1};
    package.bytes = image.len;
    if (aq_manifest_detect(a, &package, (const unsigned char *)image.data, aq_findings_new(a), &m,
                           &err) < 0)
        abort();
    aq_auto_json json_t *there = aq_manifest_json(&m);
    if (aq_manifest_read(a, there, &back, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    aq_auto_json json_t *again = aq_manifest_json(&back);
    if (!json_equal(there, again))
        abort();
    return 0;
}
