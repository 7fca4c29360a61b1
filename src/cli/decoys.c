/* aquarium decoys: shows the world that a seed makes. The place to look before a run, after one
 * (what was that value?), and while a private pack is written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/world.h"

static const aq_option options[] = {
    {"seed", "TEXT", "the seed, as --seed of run; otherwise a random one"},
    {"world", "A|B", "which of the seed's two worlds; otherwise A"},
    {"pack", "FILE[,FILE…]", "add private packs: names, shapes and files of your own"},
    {"file", "PATH", "print this file of the world; relative to the home"},
    {"start", "TIME",
     "when the world's clock starts, as 2026-05-01T09:00:00Z; otherwise last week"},
    {"json", NULL, "print one JSON object"},
    {"color", "WHEN", "auto, always or never"},
    {0}};

static const char *const place_words[] = {[AQ_PLACE_ENV] = "environment",
                                          [AQ_PLACE_FILE] = "file",
                                          [AQ_PLACE_PATH] = "path",
                                          [AQ_PLACE_FACT] = "fact"};

/* ---- JSON ---- */

/* A value that is no text is shown in hex. */
static bool is_bytes(const aq_decoy *d)
{
    return memchr(d->value, '\0', d->len) || !aq_utf8_valid(d->value, d->len);
}

static json_t *decoy_json(const aq_decoy *d)
{
    json_t *places = json_array(), *all;
    aq_auto_buf hex = {0};

    if (is_bytes(d))
        aq_hex(d->value, d->len, &hex);

    for (size_t i = 0; i < d->place_count; i++) {
        const aq_place *p = &d->places[i];
        json_t *place = json_pack("{s:s, s:s, s:I}", "kind", place_words[p->kind], "where",
                                  p->where, "offset", (json_int_t)p->offset);

        if (p->line)
            json_object_set_new(place, "line", json_integer(p->line));
        json_array_append_new(places, place);
    }
    all = json_pack("{s:s, s:s, s:s, s:o}", "name", d->name, "grade", aq_grade_name(d->grade),
                    "value", hex.len ? aq_buf_str(&hex) : d->value, "places", places);
    if (hex.len)
        json_object_set_new(all, "encoding", json_string("hex"));
    return all;
}

static json_t *file_json(const aq_decoy_file *f)
{
    char time[AQ_TIME_LEN], mode[8], hex[AQ_SHA256_HEX];
    json_t *j;

    snprintf(mode, sizeof mode, "%04o", f->mode & 07777);
    j = json_pack("{s:s, s:s, s:s, s:s}", "path", f->path, "kind", f->folder ? "folder" : "file",
                  "mode", mode, "mtime", aq_time_str(f->mtime, time));
    if (!f->folder)
        json_object_set_new(j, "size", json_integer((json_int_t)f->len));
    if (f->data) { /* a large file is not made to be summed up */
        aq_digest d = aq_sha256(f->data, f->len);

        json_object_set_new(j, "sha256", json_string(aq_digest_hex(&d, hex)));
    }
    return j;
}

static json_t *world_json(const aq_decoys *d, const char *seed)
{
    char time[AQ_TIME_LEN];
    json_t *decoys = json_array(), *files = json_array(), *env = json_object();
    json_t *facts = json_object();

    for (size_t i = 0; i < d->count; i++)
        json_array_append_new(decoys, decoy_json(&d->decoys[i]));
    for (size_t i = 0; i < d->file_count; i++)
        json_array_append_new(files, file_json(&d->files[i]));
    for (size_t i = 0; i < d->env_count; i++) {
        const char *value = strchr(d->env[i], '=') + 1;

        json_object_setn_new(env, d->env[i], (size_t)(value - 1 - d->env[i]), json_string(value));
    }
    for (size_t i = 0; i < d->machine.fact_count; i++)
        json_object_set_new(facts, d->machine.facts[i].name,
                            json_string(d->machine.facts[i].value));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "schema", "aquarium/decoys/v1",
                     "seed", seed, "world", aq_side_name(d->side), "start",
                     aq_time_str(d->start, time), "decoys", decoys, "files", files, "environment",
                     env, "facts", facts);
}

/* ---- text ---- */

enum { SHOWN = 34, NAME = 26, WIDTH = 90 };

static const char *value_of(const aq_decoys *d, const char *name)
{
    const aq_decoy *y = aq_decoys_find(d, name);

    return y ? y->value : "?";
}

/* The first line of a value, and no more than fits. */
static void add_short(aq_buf *out, const aq_decoy *d)
{
    aq_auto_buf hex = {0};
    const char *text = d->value;
    size_t len = d->len, line, n;
    bool cut;

    if (is_bytes(d)) {
        aq_hex(d->value, d->len, &hex);
        text = aq_buf_str(&hex);
        len = hex.len;
    }
    line = strcspn(text, "\n");
    n = line < SHOWN ? line : SHOWN - 1;
    cut = n < len;
    aq_buf_add(out, text, n);
    aq_buf_addf(out, "%s%*s", cut ? "…" : "", (int)(SHOWN - n - cut), "");
}

static void add_place(aq_buf *out, const aq_place *p, const char *home)
{
    size_t n = home ? strlen(home) : 0;

    if (p->kind == AQ_PLACE_ENV)
        aq_buf_addf(out, "$%s", p->where);
    else if (p->kind == AQ_PLACE_FACT)
        aq_buf_addf(out, "fact %s", p->where);
    else if (n && strncmp(p->where, home, n) == 0)
        aq_buf_addf(out, "~%s", p->where + n);
    else
        aq_buf_adds(out, p->where);
    if (p->line)
        aq_buf_addf(out, ":%u", p->line);
}

static void add_decoy(aq_buf *out, const aq_decoy *d, const char *home)
{
    size_t from = out->len, shown = 0;

    aq_buf_addf(out, "  %-*s ", NAME, d->name);
    add_short(out, d);
    for (; shown < d->place_count && out->len - from < WIDTH; shown++) {
        aq_buf_adds(out, shown ? ", " : "  ");
        add_place(out, &d->places[shown], home);
    }
    if (d->place_count > shown)
        aq_buf_addf(out, " +%zu", d->place_count - shown);
    aq_buf_addc(out, '\n');
}

static void add_title(aq_buf *out, bool colour, const char *title, const char *about)
{
    aq_buf_addf(out, colour ? "\n\033[1m%s\033[0m  %s\n" : "\n%s  %s\n", title, about);
}

static void add_decoys(aq_buf *out, const aq_decoys *d, bool colour)
{
    static const char *const about[] = {
#define AQ_GRADE(id, name, what) what,
#include "decoy/grades.def"
#undef AQ_GRADE
    };
    static const aq_grade order[] = {AQ_GRADE_SECRET, AQ_GRADE_IDENTITY, AQ_GRADE_MACHINE};
    const char *home = aq_decoys_fact(d, "person.home");

    for (size_t k = 0; k < sizeof order / sizeof *order; k++) { /* what people look for first */
        aq_grade g = order[k];

        add_title(out, colour, aq_grade_name(g), about[g]);
        for (size_t i = 0; i < d->count; i++)
            if (d->decoys[i].grade == g)
                add_decoy(out, &d->decoys[i], home);
    }
}

/* What lies in the home, a word for each thing there, folders with their number of files. */
static void add_files(aq_buf *out, const aq_decoys *d, bool colour)
{
    const char *home = aq_decoys_fact(d, "person.home");
    size_t n = home ? strlen(home) : 0, column = 0;

    add_title(out, colour, "home", "--file PATH prints one");
    for (size_t i = 0; i < d->file_count; i++) {
        const char *name = d->files[i].path + n + 1;
        size_t inside = 0, len = strlen(name);

        if (!home || strncmp(d->files[i].path, home, n) != 0 || d->files[i].path[n] != '/' ||
            strchr(name, '/'))
            continue;
        for (size_t k = 0; k < d->file_count; k++)
            inside += !d->files[k].folder &&
                      strncmp(d->files[k].path, d->files[i].path, n + 1 + len) == 0 &&
                      d->files[k].path[n + 1 + len] == '/';
        if (column == 0 || column + len + 8 > 78) {
            aq_buf_adds(out, column ? "\n  " : "  ");
            column = 2;
        }
        column += len + 2;
        aq_buf_adds(out, name);
        if (d->files[i].folder) {
            aq_buf_addf(out, "/ %zu", inside);
            column += 3;
        }
        aq_buf_adds(out, "  ");
    }
    aq_buf_addc(out, '\n');
}

static void add_head(aq_buf *out, const aq_decoys *d, const char *seed, bool colour)
{
    size_t folders = 0;

    for (size_t i = 0; i < d->file_count; i++)
        folders += d->files[i].folder;
    aq_buf_addf(out, colour ? "\033[1m%s\033[0m <%s>, %s\n" : "%s <%s>, %s\n",
                value_of(d, "person.name"), value_of(d, "person.mail"),
                value_of(d, "company.name"));
    aq_buf_addf(out, "%s on %s\n", aq_decoys_fact(d, "person.home"),
                aq_decoys_fact(d, "host.name"));
    aq_buf_addf(out, "seed %s, world %s: %zu decoys, %zu files, %zu folders, %zu variables\n", seed,
                aq_side_name(d->side), d->count, d->file_count - folders, folders, d->env_count);
}

static int put_file(const aq_decoy_file *f, aq_err *err)
{
    aq_auto_free char *made = f->large ? aq_alloc(f->len + 1) : NULL;
    aq_large large;

    if (made) {
        aq_large_begin(&large, f->path, f->large, f->len);
        aq_large_more(&large, made, f->len);
    }
    return aq_put("-", made ? made : f->data, f->len, err);
}

/* ---- the command ---- */

static int print_file(const aq_command *c, const aq_decoys *d, const char *path)
{
    const char *home = aq_decoys_fact(d, "person.home");
    aq_auto_buf full = {0};
    aq_err err = {0};

    if (path[0] == '~' && path[1] == '/')
        path += 2;
    if (path[0] != '/')
        aq_buf_addf(&full, "%s/", home ? home : "");
    aq_buf_adds(&full, path);
    for (size_t i = 0; i < d->file_count; i++)
        if (!d->files[i].folder && strcmp(d->files[i].path, aq_buf_str(&full)) == 0)
            return put_file(&d->files[i], &err) < 0 ? aq_say_failed(&err) : 0;
    return aq_say_usage(c, "--file %.300s: the world has no such file", path);
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_decoys;
    const char *side = aq_arg(c, args, "world"), *file = aq_arg(c, args, "file");
    const char *start = aq_arg(c, args, "start");
    aq_auto_arena a = aq_arena_new();
    aq_world_choice w = {.seed = aq_arg(c, args, "seed"), .packs = aq_arg(c, args, "pack")};
    aq_auto_json json_t *json = NULL;
    aq_auto_buf text = {0};
    aq_err err = {0};
    bool colour = aq_colour(aq_arg(c, args, "color"), STDOUT_FILENO);
    int r;

    if (!aq_act_find(c, args))
        return AQ_EXIT_USAGE;
    if (side && strcmp(side, "A") != 0 && strcmp(side, "B") != 0)
        return aq_say_usage(c, "--world is A or B, not '%.40s'", side);
    w.side = side && *side == 'B' ? AQ_SIDE_B : AQ_SIDE_A;
    if (start && aq_time_parse(start, &w.start) < 0)
        return aq_say_usage(c, "--start %.60s: a time is written 2026-05-01T09:00:00Z", start);
    w.check = true;
    if ((r = aq_world_choose(c, a, &w)) != AQ_PARSE_RUN)
        return r;
    if (file)
        return print_file(c, w.decoys, file);
    if (aq_flag(c, args, "json")) {
        json = world_json(w.decoys, w.seed);
        return aq_put_json("-", json, &err) < 0 ? aq_say_failed(&err) : 0;
    }
    add_head(&text, w.decoys, w.seed, colour);
    add_decoys(&text, w.decoys, colour);
    add_files(&text, w.decoys, colour);
    return aq_put("-", aq_buf_str(&text), text.len, &err) < 0 ? aq_say_failed(&err) : 0;
}

static const aq_act acts[] = {{.name = "show"}, {0}};

const aq_command aq_command_decoys = {
    .name = "decoys",
    .summary = "show the decoys of a world",
    .usage = "show [OPTION…]",
    .description =
        "Every run in quarantine happens in a world of decoys: a person, a home, a\n"
        "machine and secrets that open nothing, made from a seed. Each value has a name,\n"
        "a grade and its places. A seed makes two worlds, A and B, of the same shape and\n"
        "without a value in common.\n\n"
        "A private pack adds or replaces names, shapes and files; what it makes is\n"
        "checked as a pair. Its format is in docs/formats/decoys.md.",
    .options = options,
    .acts = acts,
    .examples = "  aquarium decoys show --seed 42\n"
                "  aquarium decoys show --seed 42 --world B --file .aws/credentials\n"
                "  aquarium decoys show --seed 42 --json | jq '.decoys[].name'\n"
                "  aquarium decoys show --pack ours.pack\n",
    .exits = "  0   shown\n"
             "  64  the command line was wrong, or a pack is\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
