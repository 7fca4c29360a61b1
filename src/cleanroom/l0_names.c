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
    SHUFFLED = 6, /* letters: from here on the same ones in another order count */
    FIRM = 8,     /* letters: from here on two edits between the same ends count */
    LONG = 10,    /* letters: below SHORT no edit counts, below LONG one */
    TOLD = 5,     /* names that one finding may be about, of each sort */
    SEEN = 64,
    PAIRS = 64, /* forms that are asked for because a pair of letters may have been one */
    SLIP = 6,   /* letters: below, a name without its affixes must be met exactly */
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
    bool verified; /* the publisher is who it says */
    aq_buf plain, letters, fold, skeleton, space_fold;
    aq_name_forms forms;
    unsigned told[AQ_RULE_COUNT];
    const aq_known *about[SEEN]; /* what was told already */
    size_t about_count;
} question;

static void free_question(question *q)
{
    aq_buf_free(&q->plain);
    aq_buf_free(&q->letters);
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

/* A publisher's own names do not stand against it. Before its signature is checked anyone can say
 * to be that publisher, so then they do. */
static bool is_own(const question *q, const aq_known *k)
{
    return q->verified && strcmp(k->publisher, q->publisher) == 0;
}

static const char *skip_sigil(const char *space)
{
    return space + (*space == '@');
}

static void tell(question *q, aq_rule_id rule, const aq_known *k, const char *how)
{
    for (size_t i = 0; i < q->about_count; i++)
        if (strcmp(q->about[i]->name, k->name) == 0 &&
            strcmp(q->about[i]->namespace_, k->namespace_) == 0 &&
            strcmp(q->about[i]->publisher, k->publisher) == 0)
            return;
    if (q->about_count < SEEN)
        q->about[q->about_count++] = k;
    if (q->told[rule]++ >= TOLD)
        return;
    aq_findings_add(q->out, rule, NULL, "%s%s%s %s %s%s%s of publisher %s", q->space,
                    *q->space ? "/" : "", q->name, how, k->namespace_, *k->namespace_ ? "/" : "",
                    k->name, k->publisher);
}

/* How many slips count in a name of so many letters. */
static size_t slips_for(const question *q, size_t letters)
{
    size_t most = q->in->policy->name_distance;
    size_t slips = letters < SHORT ? 0 : letters < LONG ? 1 : 2;

    return slips < most ? slips : most;
}

/* What to ask the index for: the other name may be longer by as many letters, and even the shortest
 * names can have two letters swapped. */
static size_t reach(const question *q)
{
    size_t most = q->in->policy->name_distance, slips = slips_for(q, q->plain.len + 2);

    if (q->plain.len >= SHUFFLED)
        return most < 2 ? most : 2;
    return slips == 0 && most > 0 && q->plain.len >= 3 ? 1 : slips;
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

/* Is it a namespace that a reader takes for the other? */
static bool spaces_alike(const question *q, const char *other)
{
    aq_auto_buf mine = {0}, theirs = {0};
    size_t most;

    if (!*q->space || !*other || aq_name_plain(&mine, q->space) < 0 ||
        aq_name_plain(&theirs, other) < 0)
        return false;
    if (q->in->policy->name_distance > 0 &&
        (aq_name_swapped(mine.data, theirs.data) || aq_name_doubled(mine.data, theirs.data)))
        return true;
    most = slips_for(q, mine.len > theirs.len ? mine.len : theirs.len);
    return aq_text_distance(aq_buf_str(&mine), aq_buf_str(&theirs), most) <= most;
}

static void judge_same_name(question *q, const aq_known *k)
{
    bool same_space = folds_to(k->namespace_, &q->space_fold);

    if (!same_space && spaces_alike(q, k->namespace_))
        tell(q, AQ_RULE_L0_NAME_LOOKALIKE, k, "has the same name in a namespace that looks like");
    else if (!same_space)
        tell(q, AQ_RULE_L0_NAME_NEAR, k, "has the same name in another namespace as");
    else if (q->in->submission->local)
        tell(q, AQ_RULE_L0_NAME_KNOWN, k, "has the name of");
    else if (strcmp(k->publisher, q->publisher) == 0)
        tell(q, AQ_RULE_L0_NAME_UNPROVEN, k, "says to be, without a checked signature,");
    else if (k->confirmed)
        tell(q, AQ_RULE_L0_NAME_TAKEN, k, "is the name of");
    else
        tell(q, AQ_RULE_L0_NAME_CLAIMED, k, "is the name of");
}

/* Do they differ in the words around them only? */
static bool same_core(const question *q, const char *name)
{
    aq_auto_buf mine = {0}, other = {0};
    aq_name_forms f;

    aq_name_forms_of(q->out->arena, name, &f);
    return aq_name_plain(&mine, q->forms.core) == 0 && aq_name_plain(&other, f.core) == 0 &&
           strcmp(aq_buf_str(&mine), aq_buf_str(&other)) == 0;
}

typedef enum likeness { APART, NEAR, ALIKE } likeness;

static bool same_letters(const char *a, const char *b)
{
    int count[256] = {0};

    for (; *a; a++)
        count[(unsigned char)*a]++;
    for (; *b; b++)
        count[(unsigned char)*b]--;
    for (size_t i = 0; i < 256; i++)
        if (count[i])
            return false;
    return true;
}

/* Two slips in a name of middle length: the same letters in another order, or the same ends. */
static bool two_slips(const question *q, const char *a, const char *b, size_t least)
{
    size_t m = strlen(a), n = strlen(b);

    if (q->in->policy->name_distance < 2 || least < SHUFFLED || a[0] != b[0] ||
        aq_text_distance(a, b, 2) > 2)
        return false;
    return same_letters(a, b) || (least >= FIRM && a[m - 1] == b[n - 1]);
}

/* Another first letter, or one more or less in front, makes another word and is seen at once;
 * fingers seldom slip there. Two letters more at the end are no slip. */
static bool other_word(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b), shared = m < n ? m : n, apart = m < n ? n - m : m - n;

    if (shared < FIRM && a[0] != b[0])
        return true;
    return apart == 2 && strncmp(a, b, shared) == 0;
}

/* The longer of two names says how many slips count. In short ones a letter makes another word, so
 * only what fingers do counts: two letters that changed places, one that was hit twice. */
static likeness slip_between(const question *q, const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b), most = slips_for(q, m > n ? m : n);

    if (aq_name_swapped(a, b) || aq_name_doubled(a, b))
        return ALIKE;
    if (two_slips(q, a, b, m < n ? m : n))
        return ALIKE;
    if (strcmp(a, b) != 0 && aq_text_distance(a, b, most) > most)
        return APART;
    return m < SHORT || n < SHORT || other_word(a, b) ? NEAR : ALIKE;
}

static void judge_slip(question *q, const aq_known *k, const char *plain)
{
    aq_auto_buf letters = {0};
    likeness worst = slip_between(q, aq_buf_str(&q->plain), plain), other;

    if (aq_name_letters(&letters, k->name) == 0) {
        other = slip_between(q, aq_buf_str(&q->letters), aq_buf_str(&letters));
        worst = other > worst ? other : worst;
    }
    if (worst == ALIKE)
        tell(q, AQ_RULE_L0_NAME_LOOKALIKE, k, "is a slip away from");
    else if (worst == NEAR)
        tell(q, AQ_RULE_L0_NAME_NEAR, k, "differs in a letter or two from");
}

static void judge_known(question *q, const aq_known *k)
{
    aq_auto_buf plain = {0};

    if (is_own(q, k))
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
    else if (same_core(q, k->name))
        tell(q, AQ_RULE_L0_NAME_NEAR, k, "has other common words around it than");
    else
        judge_slip(q, k, aq_buf_str(&plain));
}

/* Was this very name confirmed for this publisher? Then its likeness was looked at before. */
static bool own(const question *q, const aq_known *k, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (k[i].confirmed && is_own(q, &k[i]) && strcmp(k[i].name, q->name) == 0 &&
            strcmp(k[i].namespace_, q->space) == 0)
            return true;
    return false;
}

static int ask(question *q, const char *name, size_t distance, aq_known **found, size_t *count,
               aq_err *err)
{
    *count = 0;
    if (strlen(name) > AQ_NAME_MAX)
        return 0;
    return aq_store_alike(q->in->store, q->out->arena, name, distance, found, count, err);
}

/* Tells of all names that are `name` in their plain form, or at a slip from it. */
static int meet(question *q, const char *name, bool slip, const char *how, aq_err *err)
{
    aq_auto_buf mine = {0};
    aq_known *found;
    size_t count;
    int r;

    if (aq_name_plain(&mine, name) < 0)
        return 0;
    slip = slip && mine.len >= SLIP && q->in->policy->name_distance > 0;
    if ((r = ask(q, name, slip, &found, &count, err)) < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        aq_auto_buf plain = {0};
        if (is_own(q, &found[i]) || aq_name_plain(&plain, found[i].name) < 0)
            continue;
        if (strcmp(aq_buf_str(&plain), aq_buf_str(&mine)) == 0)
            tell(q, AQ_RULE_L0_NAME_NEAR, &found[i], how);
        else if (!only_digits_differ(aq_buf_str(&plain), aq_buf_str(&mine)))
            tell(q, AQ_RULE_L0_NAME_LOOKALIKE, &found[i], "adds common words to a slip of");
    }
    return 0;
}

/* The name with each common word at its end and at its start: "github" and "github-mcp". */
static int meet_with_affixes(question *q, const char *bare, aq_err *err)
{
    const char *affix;
    int r = 0;

    for (size_t i = 0; r == 0 && (affix = aq_name_affix(i)); i++) {
        const char *end = aq_arena_printf(q->out->arena, "%s-%s", bare, affix);
        const char *start = aq_arena_printf(q->out->arena, "%s-%s", affix, bare);
        if ((r = meet(q, end, false, "has other common words around it than", err)) == 0)
            r = meet(q, start, false, "has other common words around it than", err);
    }
    return r;
}

static int check_forms(question *q, aq_err *err)
{
    static const char *const how[] = {
        [AQ_FORM_BARE] = "adds a common word to",
        [AQ_FORM_UNGLUED] = "adds a common word to",
        [AQ_FORM_ORDER] = "has the words in another order than",
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < q->forms.count; i++)
        if (strcmp(q->forms.item[i].text, q->name) != 0)
            r = meet(q, q->forms.item[i].text, q->forms.item[i].kind != AQ_FORM_ORDER,
                     how[q->forms.item[i].kind], err);
    if (r == 0)
        r = meet_with_affixes(q, q->forms.core, err);
    for (size_t i = 0; r == 0 && i < q->forms.count; i++)
        if (q->forms.item[i].kind == AQ_FORM_UNGLUED)
            r = meet_with_affixes(q, q->forms.item[i].text, err);
    return r;
}

/* "acme-reader" and "acme/reader" of namespace "" are taken for reader of namespace acme. */
static int check_joined(question *q, aq_err *err)
{
    for (const char *p = q->name + 1; *q->name && (p = strpbrk(p, "-_./")); p++) {
        const char *head = aq_arena_strndup(q->out->arena, q->name, (size_t)(p - q->name));
        aq_auto_buf space = {0};
        aq_known *found;
        size_t count;
        int r;

        if (!p[1] || aq_name_plain(&space, head) < 0)
            continue;
        if ((r = ask(q, p + 1, 0, &found, &count, err)) < 0)
            return r;
        for (size_t i = 0; i < count; i++) {
            aq_auto_buf other = {0};
            if (*found[i].namespace_ && !is_own(q, &found[i]) &&
                aq_name_plain(&other, found[i].namespace_) == 0 &&
                strcmp(skip_sigil(aq_buf_str(&space)), skip_sigil(aq_buf_str(&other))) == 0)
                tell(q, AQ_RULE_L0_NAME_LOOKALIKE, &found[i], "joins namespace and name of");
        }
    }
    return 0;
}

static int ask_plain(question *q, const char *plain, size_t distance, aq_err *err)
{
    aq_known *found;
    size_t count;
    int r = aq_store_alike_plain(q->in->store, q->out->arena, plain, distance, &found, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++)
        judge_known(q, &found[i]);
    return r;
}

/* The index holds "rn" as "m" and "vv" as "w". A slip that made such a pair is found by the letters
 * themselves, one that broke a pair by putting the one letter back where the pair may have been. */
static int check_pairs(question *q, aq_err *err)
{
    static const char pairs[][4] = {"rnm", "vvw"};
    const char *s = aq_buf_str(&q->letters);
    size_t n = q->letters.len, asked = 0;
    int r = 0;

    if (q->in->policy->name_distance == 0 || n < 3)
        return 0;
    if (strcmp(s, aq_buf_str(&q->plain)) != 0)
        r = ask_plain(q, s, reach(q), err);
    for (size_t i = 0; r == 0 && i + 1 < 2 * n && asked < PAIRS; i++) {
        const char *at = s + i / 2, *pair = pairs[i % 2];
        bool two = at[1] &&
                   (at[0] == pair[0] || at[1] == pair[1] || (at[0] == pair[1] && at[1] == pair[0]));
        bool three = at[1] && at[2] && at[0] == pair[0] && at[2] == pair[1];
        for (size_t gone = 2; r == 0 && gone <= 3; gone++) {
            aq_auto_buf form = {0}, plain = {0};
            if (!(gone == 2 ? two : three))
                continue;
            aq_buf_add(&form, s, (size_t)(at - s));
            aq_buf_addc(&form, pair[2]);
            aq_buf_adds(&form, at + gone);
            if (aq_name_plain(&plain, aq_buf_str(&form)) == 0)
                r = ask_plain(q, aq_buf_str(&plain), 0, err);
            asked++;
        }
    }
    return r;
}

static int check_index(question *q, aq_err *err)
{
    aq_known *found;
    size_t count;
    int r = ask(q, q->name, reach(q), &found, &count, err);

    if (r < 0)
        return r;
    if (own(q, found, count)) {
        for (size_t i = 0; i < count; i++)
            if (folds_to(found[i].name, &q->fold) && !is_own(q, &found[i]))
                judge_same_name(q, &found[i]);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        judge_known(q, &found[i]);
    if ((r = check_pairs(q, err)) < 0 || (r = check_joined(q, err)) < 0)
        return r;
    return check_forms(q, err);
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
    aq_findings_add(out, AQ_RULE_L0_NAME_MIXED, NULL, "The name “%s” %s: it is spelled %s", name,
                    wrong, aq_buf_str(&spelled));
}

int aq_gate_names(const aq_stage_input *in, aq_findings *out, aq_err *err)
{
    const char *space = aq_gate_namespace(in, out->arena), *wrong;
    __attribute__((cleanup(free_question))) question q = {
        .in = in,
        .out = out,
        .name = aq_gate_name(in, out->arena),
        .space = space ? space : "",
        .verified = in->submission->local || in->submission->signature == AQ_SIGNATURE_GOOD,
        .publisher = in->submission->publisher ? in->submission->publisher : "local"};

    if (!q.name)
        return 0;
    if ((wrong = aq_name_illegal(q.name))) {
        aq_findings_add(out, AQ_RULE_L0_NAME_ILLEGAL, NULL, "The name “%.100s” %s", q.name, wrong);
        return 0;
    }
    if (*q.space && (wrong = aq_name_illegal(q.space))) {
        aq_findings_add(out, AQ_RULE_L0_NAME_ILLEGAL, NULL, "The namespace “%.100s” %s", q.space,
                        wrong);
        return 0;
    }
    if ((wrong = aq_name_mixed(q.name)) || (wrong = aq_name_mixed(q.space)))
        tell_mixed(out, aq_name_mixed(q.name) ? q.name : q.space, wrong);
    else if (!usual(q.name))
        aq_findings_add(out, AQ_RULE_L0_NAME_ODD, NULL,
                        "The name “%s” has other characters than lower-case letters, digits and "
                        "hyphens",
                        q.name);
    if (aq_name_plain(&q.plain, q.name) < 0 || aq_name_letters(&q.letters, q.name) < 0 ||
        aq_text_fold(&q.fold, q.name, strlen(q.name)) < 0 ||
        aq_text_skeleton(&q.skeleton, q.name, strlen(q.name)) < 0 ||
        aq_text_fold(&q.space_fold, q.space, strlen(q.space)) < 0)
        return 0; /* not UTF-8: told above */
    aq_name_forms_of(out->arena, q.name, &q.forms);
    return check_index(&q, err);
}
