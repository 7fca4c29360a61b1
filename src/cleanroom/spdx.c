/* Reads what a package writes into its licence field: an SPDX expression (licence and exception
 * lists are in rules/), or one of the loose spellings that people use instead. Bounded: the field
 * has at most AQ_LICENSE_TEXT bytes, parentheses nest at most DEPTH deep. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "cleanroom/gate.h"

enum { DEPTH = 16, WORD = 128 };

typedef struct listed {
    const char *id, *instead; /* NULL: current; "-": deprecated without replacement */
} listed;

static const listed licenses[] = {
#include "spdx_licenses.inc"
};

static const listed exceptions[] = {
#include "spdx_exceptions.inc"
};

static int by_id(const void *key, const void *row)
{
    return strcasecmp(key, ((const listed *)row)->id);
}

static const listed *find(const listed *table, size_t count, const char *id)
{
    return bsearch(id, table, count, sizeof *table, by_id);
}

/* ---- expressions ---- */

typedef struct reader {
    const char *at;
    char word[WORD]; /* the token at hand; "" at the end, "(" and ")" are tokens */
    bool broken;
    aq_license *out;
} reader;

static bool id_byte(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '+' || c == ':';
}

static void next(reader *r)
{
    size_t n = 0;

    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
    if (*r->at == '(' || *r->at == ')') {
        r->word[n++] = *r->at++;
    } else {
        while (id_byte(*r->at) && n < WORD - 1)
            r->word[n++] = *r->at++;
        if (n == 0 && *r->at)
            r->broken = true; /* a byte that no token has */
    }
    r->word[n] = 0;
}

static bool fail(reader *r, const char *what)
{
    if (!r->broken || !r->out->reason[0])
        snprintf(r->out->reason, sizeof r->out->reason, "%s %.40s", what, r->word);
    r->broken = true;
    return false;
}

static void add_id(aq_license *out, const char *id)
{
    if (out->count < AQ_LICENSE_IDS)
        out->ids[out->count++] = id;
}

/* LicenseRef-x, DocumentRef-y:LicenseRef-x: the package brings its own text. */
static bool own_text(const char *word)
{
    const char *ref = strchr(word, ':');

    if (ref && strncmp(word, "DocumentRef-", 12) != 0)
        return false;
    ref = ref ? ref + 1 : word;
    return strncmp(ref, "LicenseRef-", 11) == 0 && ref[11] && !strchr(ref, '+');
}

static bool read_license(reader *r)
{
    char id[WORD];
    size_t n = strlen(r->word);
    const listed *row;

    memcpy(id, r->word, n + 1);
    if (own_text(id))
        return true;
    row = find(licenses, sizeof licenses / sizeof *licenses, id);
    if (!row && n > 1 && id[n - 1] == '+') { /* "or any later version" */
        id[n - 1] = 0;
        row = find(licenses, sizeof licenses / sizeof *licenses, id);
    }
    if (!row)
        return fail(r, "no SPDX licence:");
    if (strcmp(row->id, id) != 0)
        r->out->other_case = true;
    if (row->instead && !r->out->deprecated) {
        r->out->deprecated = row->id;
        r->out->instead = strcmp(row->instead, "-") == 0 ? NULL : row->instead;
    }
    add_id(r->out, row->id);
    return true;
}

static bool read_choice(reader *r, unsigned depth);

static bool read_unit(reader *r, unsigned depth)
{
    if (r->broken || !r->word[0])
        return fail(r, "a licence is missing at the end or after a word");
    if (strcmp(r->word, "(") == 0) {
        if (depth >= DEPTH)
            return fail(r, "too many parentheses:");
        next(r);
        if (!read_choice(r, depth + 1))
            return false;
        if (strcmp(r->word, ")") != 0)
            return fail(r, "a closing parenthesis is missing before");
        next(r);
        return true;
    }
    if (!read_license(r))
        return false;
    next(r);
    if (strcasecmp(r->word, "WITH") != 0)
        return true;
    next(r);
    if (!find(exceptions, sizeof exceptions / sizeof *exceptions, r->word))
        return fail(r, "no SPDX exception:");
    next(r);
    return true;
}

static bool read_choice(reader *r, unsigned depth)
{
    if (!read_unit(r, depth))
        return false;
    while (strcasecmp(r->word, "AND") == 0 || strcasecmp(r->word, "OR") == 0) {
        next(r);
        if (!read_unit(r, depth))
            return false;
    }
    return true;
}

static bool read_expression(const char *text, aq_license *out)
{
    reader r = {.at = text, .out = out};

    *out = (aq_license){.state = AQ_LICENSE_GOOD};
    next(&r);
    if (!read_choice(&r, 0))
        return false;
    return r.word[0] || r.broken || *r.at ? fail(&r, "not understood:") : true;
}

/* ---- loose spellings ---- */

static const struct {
    const char *key, *means;
} spellings[] = {
#define AQ_SPELLING(key, means) {key, means},
#include "cleanroom/l0_spellings.def"
#undef AQ_SPELLING
};

static bool noise(const char *word)
{
    static const char *const words[] = {"the",     "license",  "licence", "licensed", "under",
                                        "version", "software", "a",       "terms"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* "Apache License, Version 2.0" → "apache 2.0". */
static void loosen(const char *text, char out[static AQ_LICENSE_TEXT + 2])
{
    char word[AQ_LICENSE_TEXT + 1];
    size_t n = 0, used = 0;

    for (size_t i = 0;; i++) {
        char c = text[i];
        bool part = isalnum((unsigned char)c) || (c == '+' && n) ||
                    (c == '.' && n && isalnum((unsigned char)text[i + 1]));

        if (part && n < AQ_LICENSE_TEXT) {
            word[n++] = (char)tolower((unsigned char)c);
            continue;
        }
        word[n] = 0;
        if (n && !noise(word) && used + n + 1 < AQ_LICENSE_TEXT) {
            if (used)
                out[used++] = ' ';
            memcpy(out + used, word, n);
            used += n;
        }
        n = 0;
        if (!c)
            break;
    }
    out[used] = 0;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static bool read_loose(const char *text, aq_license *out)
{
    char key[AQ_LICENSE_TEXT + 2];

    loosen(text, key);
    if (strcmp(key, "none") == 0 || strcmp(key, "noassertion") == 0 ||
        strcmp(key, "unlicensed") == 0 || strstr(key, "proprietary") ||
        strstr(key, "all rights reserved") || strcmp(key, "commercial") == 0) {
        out->state = AQ_LICENSE_CLOSED;
        return true;
    }
    if (strcmp(key, "see") == 0 || starts(key, "see ") || starts(key, "complete in ") ||
        strstr(key, ".txt") || strstr(key, ".md") || strcasecmp(text, "license") == 0 ||
        strcasecmp(text, "file") == 0) {
        out->state = AQ_LICENSE_SEE_FILE;
        return true;
    }
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        if (strcmp(key, spellings[i].key) == 0) {
            out->state = AQ_LICENSE_SLOPPY;
            out->suggestion = spellings[i].means;
            return true;
        }
    }
    return false;
}

/* "MIT/Apache-2.0", as some package managers once wrote. */
static bool read_slashes(const char *text, aq_license *out)
{
    aq_auto_buf b = {0};

    if (!strchr(text, '/'))
        return false;
    for (const char *p = text; *p; p++) {
        if (*p == '/')
            aq_buf_adds(&b, " OR ");
        else
            aq_buf_addc(&b, *p);
    }
    if (!read_expression(aq_buf_str(&b), out))
        return false;
    out->state = AQ_LICENSE_SLOPPY;
    out->suggestion = "the same with OR in place of the slash";
    return true;
}

void aq_license_parse(const char *text, aq_license *ret)
{
    aq_license loose = {0}, other;

    *ret = (aq_license){.state = AQ_LICENSE_UNKNOWN};
    if (strlen(text) > AQ_LICENSE_TEXT) {
        snprintf(ret->reason, sizeof ret->reason, "longer than %d bytes", AQ_LICENSE_TEXT);
        return;
    }
    if (read_expression(text, ret))
        return;
    if (read_loose(text, &loose))
        *ret = loose;
    else if (read_slashes(text, &other))
        *ret = other;
    else
        ret->state = AQ_LICENSE_UNKNOWN;
}
