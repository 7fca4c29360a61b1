/* L0: may the package have this name? A name must be harmless in itself, written in one script, and
 * must not be, or be taken for, a name that another publisher has. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cleanroom/gate.h"

enum {
    NAME_MAX_BYTES = 214, /* the longest that a registry of packages allows */
    SHORT = 5,
    LONG = 10, /* letters: below SHORT no edit counts, below LONG one */
    TOLD = 5,  /* names that one finding may be about, of each sort */
};

/* ---- the name in itself ---- */

/* What a shell, a path or a terminal would act upon. */
static bool acts(int32_t c)
{
    return c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0) || aq_text_hidden(c) ||
           (c < 0x80 && strchr("\\`$;&|<>\"'*?{}[]!#%^~=", (char)c));
}

const char *aq_name_illegal(const char *name)
{
    const unsigned char *p = (const unsigned char *)name, *end = p + strlen(name);
    unsigned slashes = 0, letters = 0;

    if (p == end)
        return "is empty";
    if (end - p > NAME_MAX_BYTES)
        return "is longer than 214 bytes";
    if (*name == '-' || *name == '.' || *name == '/' || *name == ' ')
        return "starts with a character that commands and paths give a meaning";
    if (strstr(name, ".."))
        return "holds a step to the folder above";
    while (p < end) {
        int32_t c = aq_utf8_next(&p, end);
        if (c < 0)
            return "is not UTF-8";
        if (acts(c))
            return "holds a hidden character, or one that shells act upon";
        slashes += c == '/';
        letters += c >= 0x80 || isalnum((int)c);
    }
    if (slashes > 1 || name[strlen(name) - 1] == '/')
        return "holds path separators";
    return letters ? NULL : "has no letter and no digit";
}

typedef enum script {
    NEUTRAL,
    LATIN,
    GREEK,
    CYRILLIC,
    ARMENIAN,
    HEBREW,
    ARABIC,
    CHEROKEE,
    COPTIC,
    LISU,
    EAST_ASIAN,
    DISGUISE,
    OTHER, /* plus the block's number */
} script;

static unsigned script_of(int32_t code)
{
    static const struct {
        script script;
        int32_t first, last;
    } rows[] = {
#define AQ_SCRIPT(script, first, last) {script, first, last},
#include "cleanroom/l0_scripts.def"
#undef AQ_SCRIPT
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (code >= rows[i].first && code <= rows[i].last)
            return rows[i].script;
    return OTHER + (unsigned)code / 128;
}

const char *aq_name_mixed(const char *name)
{
    const unsigned char *p = (const unsigned char *)name, *end = p + strlen(name);
    unsigned seen = NEUTRAL;

    while (p < end) {
        unsigned s = script_of(aq_utf8_next(&p, end));

        if (s == NEUTRAL || s == seen)
            continue;
        if (s == DISGUISE)
            return "uses special forms of plain letters";
        /* East Asian names often carry Latin words; nothing there looks like a Latin letter. */
        if ((s == EAST_ASIAN && seen == LATIN) || (s == LATIN && seen == EAST_ASIAN))
            continue;
        if (seen != NEUTRAL)
            return "mixes letters of several scripts";
        seen = s;
    }
    return NULL;
}

/* The form that Agent Skills, plugins and arc packages ask for. */
static bool usual(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && !strchr("-_.@/", *p))
            return false;
    return true;
}

/* ---- the name among others ---- */

typedef struct question {
    const aq_stage_input *in;
    aq_findings *out;
    const char *name, *space, *publisher;
    aq_buf plain, fold, skeleton, space_fold;
    unsigned told[AQ_RULE_COUNT];
} question;

static void free_question(question *q)
{
    aq_buf_free(&q->plain);
    aq_buf_free(&q->fold);
    aq_buf_free(&q->skeleton);
    aq_buf_free(&q->space_fold);
}

static bool folds_to(const char *text, aq_buf *fold)
{
    aq_auto_buf other = {0};

    return aq_text_fold(&other, text, strlen(text)) == 0 &&
           strcmp(aq_buf_str(&other), aq_buf_str(fold)) == 0;
}

static bool has_skeleton(const char *text, aq_buf *skeleton)
{
    aq_auto_buf other = {0};

    return aq_text_skeleton(&other, text, strlen(text)) == 0 &&
           strcmp(aq_buf_str(&other), aq_buf_str(skeleton)) == 0;
}

static void tell(question *q, aq_rule_id rule, const aq_known *k, const char *how)
{
    if (q->told[rule]++ >= TOLD)
        return;
    aq_findings_add(q->out, rule, NULL, "%s%s%s %s %s%s%s of publisher %s", q->space,
                    *q->space ? "/" : "", q->name, how, k->namespace_, *k->namespace_ ? "/" : "",
                    k->name, k->publisher);
}

/* "gpt-4-tools" and "gpt-5-tools" are siblings, not an imitation. */
static bool only_digits_differ(const char *a, const char *b)
{
    while (*a || *b) {
        if (isdigit((unsigned char)*a))
            a++;
        else if (isdigit((unsigned char)*b))
            b++;
        else if (*a != *b || !*a)
            return false;
        else
            a++, b++;
    }
    return true;
}

static const char *const affixes[] = {
#define AQ_AFFIX(word) word,
#include "cleanroom/l0_affixes.def"
#undef AQ_AFFIX
};

enum { AFFIXES = sizeof affixes / sizeof *affixes };

/* The name without one affix at its start or end, if that leaves a name. */
static bool without_affix(const char *name, const char *affix, bool at_end, aq_buf *out)
{
    size_t n = strlen(name), a = strlen(affix);

    if (n < a + 4)
        return false;
    if (at_end ? strcasecmp(name + n - a, affix) != 0 || !strchr("-_.", name[n - a - 1])
               : strncasecmp(name, affix, a) != 0 || !strchr("-_.", name[a]))
        return false;
    aq_buf_add(out, at_end ? name : name + a + 1, n - a - 1);
    return true;
}

/* Is `longer` the other name and a common word? */
static bool adds_affix(const char *longer, const char *name)
{
    for (size_t i = 0; i < 2 * AFFIXES; i++) {
        aq_auto_buf bare = {0};
        if (without_affix(longer, affixes[i / 2], i % 2, &bare) &&
            strcasecmp(aq_buf_str(&bare), name) == 0)
            return true;
    }
    return false;
}

static void judge_same_name(question *q, const aq_known *k)
{
    if (!folds_to(k->namespace_, &q->space_fold))
        tell(q, AQ_RULE_L0_NAME_NEAR, k, "has the same name in another namespace as");
    else if (q->in->submission->local)
        tell(q, AQ_RULE_L0_NAME_KNOWN, k, "has the name of");
    else if (k->confirmed)
        tell(q, AQ_RULE_L0_NAME_TAKEN, k, "is the name of");
    else
        tell(q, AQ_RULE_L0_NAME_CLAIMED, k, "is the name of");
}

static void judge_known(question *q, const aq_known *k)
{
    aq_auto_buf plain = {0};

    if (strcmp(k->publisher, q->publisher) == 0)
        return;
    if (folds_to(k->name, &q->fold)) {
        judge_same_name(q, k);
        return;
    }
    if (aq_name_plain(&plain, k->name) < 0)
        return;
    if (has_skeleton(k->name, &q->skeleton))
        tell(q, AQ_RULE_L0_NAME_LOOKALIKE, k, "looks the same as");
    else if (strcmp(aq_buf_str(&plain), aq_buf_str(&q->plain)) == 0)
        tell(q, AQ_RULE_L0_NAME_LOOKALIKE, k, "differs in separators only from");
    else if (only_digits_differ(k->name, q->name))
        tell(q, AQ_RULE_L0_NAME_NEAR, k, "differs in a number only from");
    else if (adds_affix(k->name, q->name))
        tell(q, AQ_RULE_L0_NAME_NEAR, k, "lacks a common word of");
    else if (!adds_affix(q->name, k->name)) /* check_affixes tells that */
        tell(q, AQ_RULE_L0_NAME_LOOKALIKE, k, "is a slip away from");
}

/* Was this very name confirmed for this publisher? Then its likeness was looked at before. */
static bool own(const question *q, const aq_known *k, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (k[i].confirmed && strcmp(k[i].publisher, q->publisher) == 0 &&
            strcmp(k[i].name, q->name) == 0 && strcmp(k[i].namespace_, q->space) == 0)
            return true;
    return false;
}

static size_t distance_for(const question *q)
{
    size_t letters = q->plain.len, most = q->in->policy->name_distance;
    size_t distance = letters < SHORT ? 0 : letters < LONG ? 1 : 2;

    return distance < most ? distance : most;
}

static int check_affixes(question *q, aq_err *err)
{
    for (size_t i = 0; i < 2 * AFFIXES; i++) {
        aq_auto_buf bare = {0};
        aq_known *found;
        size_t count;
        int r;

        if (!without_affix(q->name, affixes[i / 2], i % 2, &bare))
            continue;
        if ((r = aq_store_alike(q->in->store, q->out->arena, aq_buf_str(&bare), 0, &found, &count,
                                err)) < 0)
            return r;
        for (size_t j = 0; j < count; j++)
            if (strcmp(found[j].publisher, q->publisher) != 0)
                tell(q, AQ_RULE_L0_NAME_NEAR, &found[j], "adds a common word to");
    }
    return 0;
}

static int check_index(question *q, aq_err *err)
{
    aq_known *found;
    size_t count;
    int r =
        aq_store_alike(q->in->store, q->out->arena, q->name, distance_for(q), &found, &count, err);

    if (r < 0)
        return r;
    if (own(q, found, count)) {
        for (size_t i = 0; i < count; i++)
            if (folds_to(found[i].name, &q->fold) && strcmp(found[i].publisher, q->publisher) != 0)
                judge_same_name(q, &found[i]);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        judge_known(q, &found[i]);
    return check_affixes(q, err);
}

/* Shown as it looks and as it is: on the screen the two cannot be told apart. */
static void tell_mixed(aq_findings *out, const char *name, const char *wrong)
{
    const unsigned char *p = (const unsigned char *)name, *end = p + strlen(name);
    aq_auto_buf spelled = {0};

    while (p < end) {
        int32_t code = aq_utf8_next(&p, end);
        if (code >= 0x80)
            aq_buf_addf(&spelled, "[U+%04X]", (unsigned)code);
        else
            aq_buf_addc(&spelled, code < 0 ? '?' : (char)code);
    }
    aq_findings_add(out, AQ_RULE_L0_NAME_MIXED, NULL, "The name \"%s\" %s: it is spelled %s", name,
                    wrong, aq_buf_str(&spelled));
}

int aq_gate_names(const aq_stage_input *in, aq_findings *out, aq_err *err)
{
    const char *space = aq_gate_namespace(in, out->arena), *wrong;
    __attribute__((cleanup(free_question)))
    question q = {.in = in,
                  .out = out,
                  .name = aq_gate_name(in, out->arena),
                  .space = space ? space : "",
                  .publisher = in->submission->publisher ? in->submission->publisher : "local"};

    if (!q.name)
        return 0;
    if ((wrong = aq_name_illegal(q.name))) {
        aq_findings_add(out, AQ_RULE_L0_NAME_ILLEGAL, NULL, "The name \"%.100s\" %s", q.name,
                        wrong);
        return 0;
    }
    if (*q.space && (wrong = aq_name_illegal(q.space))) {
        aq_findings_add(out, AQ_RULE_L0_NAME_ILLEGAL, NULL, "The namespace \"%.100s\" %s", q.space,
                        wrong);
        return 0;
    }
    if ((wrong = aq_name_mixed(q.name)) || (wrong = aq_name_mixed(q.space)))
        tell_mixed(out, aq_name_mixed(q.name) ? q.name : q.space, wrong);
    else if (!usual(q.name))
        aq_findings_add(out, AQ_RULE_L0_NAME_ODD, NULL,
                        "The name \"%s\" has other characters than lower-case letters, digits and "
                        "hyphens",
                        q.name);
    if (aq_name_plain(&q.plain, q.name) < 0 || aq_text_fold(&q.fold, q.name, strlen(q.name)) < 0 ||
        aq_text_skeleton(&q.skeleton, q.name, strlen(q.name)) < 0 ||
        aq_text_fold(&q.space_fold, q.space, strlen(q.space)) < 0)
        return 0; /* not UTF-8: told above */
    return check_index(&q, err);
}
