/* Small pieces that text and HTML share: sentences about the whole, numbers, and the one way in
 * which a character from a stranger is shown. */
#include "cleanroom/report_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { HEADLINE = 64 }; /* bytes of a package's name that the first line gives it */

const char *aq_part_str(const json_t *object, const char *key, const char *fallback)
{
    const char *s = aq_json_str(object, key);

    return s ? s : fallback;
}

const char *aq_part_at(const json_t *object, const char *outer, const char *key,
                       const char *fallback)
{
    return aq_part_str(json_object_get(object, outer), key, fallback);
}

int64_t aq_part_int(const json_t *object, const char *outer, const char *key)
{
    return aq_json_int(json_object_get(object, outer), key, 0);
}

void aq_part_count(aq_buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            aq_buf_addc(out, ',');
        aq_buf_addc(out, digits[i]);
    }
}

void aq_part_bytes(aq_buf *out, uint64_t n)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t scale = 1000;
    size_t unit = 0;

    if (n < 1000) {
        aq_buf_addf(out, "%llu %s", (unsigned long long)n, n == 1 ? "byte" : "bytes");
        return;
    }
    while (unit + 1 < sizeof units / sizeof *units && n / scale >= 1000) {
        scale *= 1000;
        unit++;
    }
    if (n / scale < 10)
        aq_buf_addf(out, "%llu.%llu %s", (unsigned long long)(n / scale),
                    (unsigned long long)(n % scale / (scale / 10)), units[unit]);
    else
        aq_buf_addf(out, "%llu %s", (unsigned long long)(n / scale), units[unit]);
}

void aq_part_plural(aq_buf *out, uint64_t n, const char *one, const char *many)
{
    aq_part_count(out, n);
    aq_buf_addf(out, " %s", n == 1 ? one : many);
}

unsigned aq_part_percent(uint64_t part, uint64_t whole)
{
    uint64_t percent;

    if (whole == 0 || part == 0)
        return 0;
    if (part >= whole)
        return 100;
    percent = part > UINT64_MAX / 100 ? part / (whole / 100) : part * 100 / whole;
    return percent < 1 ? 1 : percent > 99 ? 99 : (unsigned)percent;
}

size_t aq_part_show(aq_buf *out, const char *s)
{
    const unsigned char *from = (const unsigned char *)s, *p = from;
    const unsigned char *end = from + strnlen(s, 4);
    int32_t c;

    if (p == end)
        return 0;
    c = aq_utf8_next(&p, end);
    if (c < 0)
        aq_buf_addf(out, "\\x%02x", *from);
    else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || aq_text_hidden(c))
        aq_buf_addf(out, "\\u{%x}", (unsigned)c);
    else
        aq_buf_add(out, from, (size_t)(p - from));
    return (size_t)(p - from);
}

static size_t stages_with(const json_t *report, const char *decision, const json_t **first)
{
    const json_t *stage;
    size_t i, count = 0;

    json_array_foreach (json_object_get(report, "stages"), i, stage) {
        if (strcmp(aq_part_str(stage, "decision", ""), decision) == 0 && count++ == 0)
            *first = stage;
    }
    return count;
}

static uint64_t findings_of(const json_t *report, const char *severity, const json_t **first)
{
    const json_t *row;
    uint64_t count = 0;
    size_t i;

    json_array_foreach (json_object_get(report, "findings"), i, row) {
        if (strcmp(aq_part_str(row, "severity", ""), severity) == 0 && count++ == 0)
            *first = row;
    }
    json_array_foreach (json_object_get(report, "more"), i, row) {
        if (strcmp(aq_part_str(row, "severity", ""), severity) == 0)
            count += (uint64_t)aq_json_int(row, "count", 0);
    }
    return count;
}

/* Names the layers that did not run: "L1, L2 and L3 did not run". */
static void not_run(const json_t *report, aq_buf *out)
{
    const json_t *layers = json_object_get(json_object_get(report, "coverage"), "layers_not_run");
    const json_t *row;
    size_t i, n = json_array_size(layers);

    json_array_foreach (layers, i, row) {
        const char *name = aq_part_str(row, "layer", "?");
        aq_buf_adds(out, i == 0 ? "" : i + 1 < n ? ", " : " and ");
        for (const char *p = name; *p; p++)
            aq_buf_addc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
    }
    aq_buf_adds(out, " did not run");
}

static void inconclusive(const json_t *report, aq_buf *out)
{
    const json_t *coverage = json_object_get(report, "coverage"), *first = NULL;
    size_t unread = json_array_size(json_object_get(coverage, "unread")), begun = out->len;

    if (unread) {
        aq_part_plural(out, unread, "place", "places");
        aq_buf_adds(out, " of the package could not be read");
    }
    if (stages_with(report, "inconclusive", &first)) {
        aq_buf_adds(out, out->len > begun ? ", and " : "");
        aq_buf_addf(out, "%s could not finish", aq_part_str(first, "title", "a stage"));
    }
    if (json_array_size(json_object_get(coverage, "layers_not_run"))) {
        aq_buf_adds(out, out->len > begun ? ", and " : "");
        not_run(report, out);
    }
    if (out->len == begun)
        aq_buf_adds(out, "something in the package was not read to its end");
    aq_buf_adds(out, ": what was not checked is not known to be safe.");
}

void aq_part_reason(const json_t *report, aq_buf *out)
{
    const char *verdict = aq_part_str(report, "verdict", "inconclusive");
    const json_t *first = NULL;
    uint64_t count;

    if (strcmp(verdict, "pass") == 0) {
        aq_buf_adds(out, "Every stage ran to its end and nothing was found that needs a person.");
    } else if (strcmp(verdict, "reject") == 0 && (count = findings_of(report, "reject", &first))) {
        aq_part_plural(out, count, "finding rejects", "findings reject");
        aq_buf_addf(out, " this package; first: %s.", aq_part_str(first, "title", "?"));
    } else if (strcmp(verdict, "reject") == 0 && stages_with(report, "reject", &first)) {
        aq_buf_addf(out, "%s rejects this package: %s", aq_part_str(first, "title", "A stage"),
                    aq_part_str(first, "reason", "no reason was given."));
    } else if (strcmp(verdict, "review") == 0) {
        count = findings_of(report, "review", &first);
        aq_part_plural(out, count, "finding needs", "findings need");
        aq_buf_addf(out, " a person's eye; first: %s.", aq_part_str(first, "title", "see below"));
    } else {
        size_t at = out->len;
        inconclusive(report, out);
        if (out->data[at] >= 'a' && out->data[at] <= 'z')
            out->data[at] = (char)(out->data[at] - 32);
    }
}

void aq_part_what(const json_t *report, aq_buf *out)
{
    const json_t *package = json_object_get(report, "package");
    const char *name =
        aq_part_str(package, "name", aq_part_str(package, "input", "without a name"));
    const char *version = aq_part_str(package, "version", NULL);
    aq_auto_arena a = aq_arena_new();

    aq_buf_addf(out, "%s “%s”", aq_part_str(package, "kind_title", "package"),
                aq_text_printable(a, name, HEADLINE));
    if (version)
        aq_buf_addf(out, " %s", aq_text_printable(a, version, HEADLINE / 2));
    aq_buf_adds(out, ", ");
    aq_part_plural(out, (uint64_t)aq_json_int(package, "files", 0), "file", "files");
    aq_buf_adds(out, ", ");
    aq_part_bytes(out, (uint64_t)aq_json_int(package, "bytes", 0));
}
