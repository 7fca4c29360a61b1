/* The report as SARIF 2.1.0, for code hosts and editors.
 *
 * Levels: info is note, review is warning, reject is error. Grave lines of the survey are warnings,
 * its other places to look and what runs by itself are notes, under rules of their own. What did
 * not run or was not read is a notification of the invocation, and executionSuccessful says whether
 * the walk was whole, so that an empty list of results is never taken for a clean bill. */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/report.h"
#include "cleanroom/report_parts.h"

static const char *level_of(const char *severity)
{
    if (strcmp(severity, "reject") == 0)
        return "error";
    return strcmp(severity, "review") == 0 ? "warning" : "note";
}

static json_t *text_object(const char *text)
{
    json_t *o = json_object();

    json_object_set_new(o, "text", json_string(text));
    return o;
}

/* Rule names are for scripts; SARIF wants a name in PascalCase for people. */
static json_t *pascal(const char *name)
{
    aq_auto_buf b = {0};
    bool start = true;

    for (; *name; name++) {
        bool letter = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9');
        if (letter)
            aq_buf_addc(&b, start && *name >= 'a' ? (char)(*name - 32) : *name);
        start = !letter;
    }
    return json_string(aq_buf_str(&b));
}

static json_t *rule_json(const aq_rule *rule)
{
    json_t *o = json_object(), *tags = json_array(), *properties = json_object();
    aq_auto_buf full = {0};

    json_object_set_new(o, "id", json_string(rule->name));
    json_object_set_new(o, "name", pascal(rule->name));
    aq_buf_addf(&full, "%s.", rule->title);
    json_object_set_new(o, "shortDescription", text_object(aq_buf_str(&full)));
    json_object_set_new(o, "fullDescription", text_object(rule->why));
    json_object_set_new(o, "help", text_object(rule->fix));
    json_object_set_new(o, "defaultConfiguration",
                        json_pack("{s:s}", "level", level_of(aq_severity_name(rule->severity))));
    json_array_append_new(tags, json_string("security"));
    json_array_append_new(tags, json_string(aq_layer_name(rule->layer)));
    if (rule->adversary)
        json_array_append_new(tags, json_sprintf("A%u", rule->adversary));
    json_object_set_new(properties, "tags", tags);
    json_object_set_new(properties, "layer", json_string(aq_layer_name(rule->layer)));
    if (rule->adversary)
        json_object_set_new(properties, "adversary",
                            json_string(aq_adversary_title(rule->adversary)));
    json_object_set_new(o, "properties", properties);
    return o;
}

/* What the survey ranks makes no finding and no verdict, but a planted line must not be missing
 * from the one face that a code host shows. */
enum { LOOK_GRAVE, LOOK_OTHER, LOOK_STARTS, LOOK_RULES };

static const aq_rule look_rules[LOOK_RULES] = {
    [LOOK_GRAVE] = {"survey.grave", AQ_LAYER_INTAKE, 10, AQ_REVIEW, "Line that could do harm",
                    "It holds words of weight, or hides something; the survey ranks it and judges "
                    "nothing.",
                    "Read the line and what is around it before anything else."},
    [LOOK_OTHER] = {"survey.look", AQ_LAYER_INTAKE, 10, AQ_INFO, "Line worth a look",
                    "It is unlike the others, or holds a word of weight.", "Read the line."},
    [LOOK_STARTS] = {"survey.starts", AQ_LAYER_INTAKE, 1, AQ_INFO, "Runs without being asked",
                     "The host or the installer starts it, whatever the user does.",
                     "Read what is started, and decide whether it may."},
};

/* All rules are listed, also those without a result: a reader sees what was looked for. */
static json_t *driver_json(const json_t *report)
{
    json_t *o = json_object(), *rules = json_array();

    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++)
        json_array_append_new(rules, rule_json(aq_rule_get(i)));
    for (size_t i = 0; i < LOOK_RULES; i++)
        json_array_append_new(rules, rule_json(&look_rules[i]));
    json_object_set_new(o, "name", json_string("Aquarium"));
    json_object_set_new(o, "fullName", json_string("Aquarium clean room"));
    json_object_set_new(o, "semanticVersion",
                        json_string(aq_part_at(report, "rules", "engine", aq_engine())));
    json_object_set_new(o, "rules", rules);
    return o;
}

/* A path of the package as a relative URI: the raw bytes behind the quoted form, each outside the
 * unreserved set of RFC 3986 percent-encoded. */
static void path_uri(aq_buf *out, const char *quoted)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    aq_auto_buf raw = {0};

    if (aq_text_unquote(&raw, quoted, strlen(quoted)) < 0) {
        aq_buf_clear(&raw);
        aq_buf_adds(&raw, quoted); /* cut in the middle: as it is shown */
    }
    for (size_t i = 0; i < raw.len; i++) {
        unsigned char c = (unsigned char)raw.data[i];
        if (c && strchr(plain, c))
            aq_buf_addc(out, (char)c);
        else
            aq_buf_addf(out, "%%%02X", c);
    }
    aq_buf_str(out);
}

static json_t *region_json(const json_t *finding)
{
    /* The line alone: SARIF counts columns in characters, findings count bytes. */
    return json_pack("{s:I}", "startLine", (json_int_t)aq_json_int(finding, "line", 0));
}

/* Code hosts drop a result without a place: what concerns the whole package stands at its manifest,
 * or at its root when it has none. */
static json_t *locations_json(const json_t *finding, const char *manifest)
{
    const char *file = aq_part_str(finding, "file", NULL);
    json_t *physical = json_object();
    aq_auto_buf uri = {0};

    path_uri(&uri, file ? file : manifest);
    json_object_set_new(physical, "artifactLocation",
                        json_pack("{s:s, s:s}", "uri", aq_buf_str(&uri), "uriBaseId", "PACKAGE"));
    if (file && aq_json_int(finding, "line", 0) > 0)
        json_object_set_new(physical, "region", region_json(finding));
    return json_pack("[{s:o}]", "physicalLocation", physical);
}

/* Rule, file and message: the same for the same fact when lines above it come and go. `nth` tells
 * equal ones apart. */
static json_t *fingerprint(const json_t *finding, unsigned nth)
{
    aq_auto_buf b = {0};
    char hex[AQ_SHA256_HEX];
    aq_digest d;

    aq_buf_addf(&b, "%s\n%s\n%s\n%u", aq_part_str(finding, "rule", ""),
                aq_part_str(finding, "file", ""), aq_part_str(finding, "message", ""), nth);
    d = aq_sha256(b.data, b.len);
    return json_string(aq_digest_hex(&d, hex));
}

static json_t *fingerprints_json(const json_t *finding, unsigned nth)
{
    const char *match = aq_part_str(finding, "match_hash", NULL);
    json_t *o = json_object();

    json_object_set_new(o, "aquariumFinding/v1", fingerprint(finding, nth));
    if (match)
        json_object_set_new(o, "matchHash/v1", json_string(match));
    return o;
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
    return strcmp(aq_part_str(a, key, ""), aq_part_str(b, key, "")) == 0;
}

static json_t *result_json(const json_t *finding, const char *manifest, unsigned nth)
{
    const char *rule = aq_part_str(finding, "rule", "");
    json_t *o = json_object();
    aq_rule_id id;

    json_object_set_new(o, "ruleId", json_string(rule));
    if (aq_rule_find(rule, &id) == 0)
        json_object_set_new(o, "ruleIndex", json_integer(id));
    for (size_t i = 0; i < LOOK_RULES; i++)
        if (strcmp(rule, look_rules[i].name) == 0)
            json_object_set_new(o, "ruleIndex", json_integer((json_int_t)(AQ_RULE_COUNT + i)));
    json_object_set_new(o, "level",
                        json_string(level_of(aq_part_str(finding, "severity", "review"))));
    json_object_set_new(o, "message", text_object(aq_part_str(finding, "message", "")));
    json_object_set_new(o, "locations", locations_json(finding, manifest));
    json_object_set_new(o, "partialFingerprints", fingerprints_json(finding, nth));
    if (json_is_true(json_object_get(finding, "incomplete")))
        json_object_set_new(o, "properties", json_pack("{s:b}", "incomplete", 1));
    return o;
}

/* One result of the survey, in the form of a finding. */
static void add_look(json_t *list, json_t *before, size_t rule, const json_t *from,
                     const char *message, const char *manifest)
{
    aq_auto_json json_t *o = json_pack(
        "{s:s, s:s, s:s?, s:I, s:s}", "rule", look_rules[rule].name, "severity",
        aq_severity_name(look_rules[rule].severity), "file", aq_part_str(from, "file", NULL),
        "line", (json_int_t)aq_json_int(from, "line", 0), "message", message);
    const json_t *row;
    unsigned nth = 0;
    size_t i;

    json_array_foreach (before, i, row)
        nth += same(row, o, "rule") && same(row, o, "file") && same(row, o, "message");
    json_array_append_new(list, result_json(o, manifest, nth));
    json_array_append(before, o);
}

static void add_looks(json_t *list, const json_t *report, const char *manifest)
{
    aq_auto_json json_t *before = json_array();
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(report, "survey"), "looks"), i, row) {
        aq_auto_buf b = {0};
        aq_part_sentence(&b, aq_part_str(row, "why", ""));
        aq_buf_addf(&b, ": %s", aq_part_str(row, "text", ""));
        add_look(list, before,
                 aq_json_int(row, "weight", 0) >= AQ_LOOK_GRAVE ? LOOK_GRAVE : LOOK_OTHER, row,
                 aq_buf_str(&b), manifest);
    }
    json_array_foreach (json_object_get(json_object_get(report, "package"), "entry_points"), i,
                        row) {
        const char *role = aq_part_str(row, "role", "");
        aq_auto_buf b = {0};
        if (!aq_part_automatic(role))
            continue;
        aq_part_starts(&b, role, aq_part_str(row, "matcher", NULL));
        aq_buf_addf(&b, ": %s", aq_part_str(row, "command", "?"));
        add_look(list, before, LOOK_STARTS, row, aq_buf_str(&b), manifest);
    }
}

static json_t *results_json(const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings"), *row, *last = NULL;
    const char *manifest = aq_part_at(report, "package", "manifest", ".");
    json_t *list = json_array();
    unsigned nth = 0;
    size_t i;

    json_array_foreach (findings, i, row) {
        /* The list is sorted, so equal facts of one file that differ in line only are neighbours
         * often enough; where they are not, the message differs. */
        bool twin = last && same(last, row, "rule") && same(last, row, "file") &&
                    same(last, row, "message");
        nth = twin ? nth + 1 : 0;
        json_array_append_new(list, result_json(row, manifest, nth));
        last = row;
    }
    add_looks(list, report, manifest);
    return list;
}

static void notify(json_t *list, const char *level, aq_buf *text)
{
    json_array_append_new(
        list, json_pack("{s:s, s:o}", "level", level, "message", text_object(aq_buf_str(text))));
    aq_buf_clear(text);
}

static json_t *notifications_json(const json_t *report, bool *whole)
{
    const json_t *coverage = json_object_get(report, "coverage"), *row;
    json_t *list = json_array();
    aq_auto_buf b = {0};
    size_t i;

    json_array_foreach (json_object_get(report, "stages"), i, row) {
        const char *decision = aq_part_str(row, "decision", "");
        bool failed = strcmp(decision, "inconclusive") == 0;
        if (!failed && strcmp(decision, "not-run") != 0)
            continue;
        *whole = false;
        aq_buf_addf(&b, "%s %s: %s", aq_part_str(row, "title", "?"),
                    failed ? "could not finish" : "did not run",
                    aq_part_str(row, "reason", "no reason was given."));
        notify(list, failed ? "error" : "warning", &b);
    }
    json_array_foreach (json_object_get(coverage, "unread"), i, row) {
        *whole = false;
        aq_buf_addf(&b, "Not read: %s, %s", aq_part_str(row, "place", "?"),
                    aq_part_str(row, "reason", "?"));
        notify(list, "warning", &b);
    }
    json_array_foreach (json_object_get(report, "more"), i, row) {
        aq_buf_addf(&b, "%lld more findings of %s are counted and not listed.",
                    (long long)aq_json_int(row, "count", 0), aq_part_str(row, "rule", "?"));
        notify(list, "note", &b);
    }
    return list;
}

static json_t *invocation_json(const json_t *report)
{
    json_t *o = json_object(), *notes;
    bool whole = true;

    notes = notifications_json(report, &whole);
    json_object_set_new(o, "executionSuccessful", json_boolean(whole));
    json_object_set_new(o, "endTimeUtc", json_string(aq_part_str(report, "time", "")));
    json_object_set_new(o, "toolExecutionNotifications", notes);
    return o;
}

static json_t *properties_json(const json_t *report)
{
    json_t *o = json_object();

    json_object_set_new(o, "verdict", json_string(aq_part_str(report, "verdict", "inconclusive")));
    json_object_set_new(o, "verdictDigest", json_string(aq_part_str(report, "verdict_digest", "")));
    json_object_set_new(o, "packageDigest",
                        json_string(aq_part_at(report, "package", "digest", "")));
    json_object_set_new(o, "rulesDigest", json_string(aq_part_at(report, "rules", "digest", "")));
    return o;
}

json_t *aq_report_sarif(const json_t *report)
{
    json_t *log = json_object(), *run = json_object(), *base = json_object();

    json_object_set_new(base, "description", text_object("The root of the package."));
    json_object_set_new(run, "tool", json_pack("{s:o}", "driver", driver_json(report)));
    json_object_set_new(run, "invocations", json_pack("[o]", invocation_json(report)));
    json_object_set_new(run, "originalUriBaseIds", json_pack("{s:o}", "PACKAGE", base));
    json_object_set_new(run, "results", results_json(report));
    json_object_set_new(run, "properties", properties_json(report));
    json_object_set_new(log, "$schema",
                        json_string("https://json.schemastore.org/sarif-2.1.0.json"));
    json_object_set_new(log, "version", json_string("2.1.0"));
    json_object_set_new(log, "runs", json_pack("[o]", run));
    return log;
}
