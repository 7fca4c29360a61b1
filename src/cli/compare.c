/* aquarium compare: are two recorded runs the same, and if not, where do they part? Reads streams
 * of `aquarium run --stream`, which come from the hostile side, and runs nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/world.h"
#include "observe/compare.h"

enum { EXIT_DIFFERENT = 1, EXIT_INCOMPLETE = 3, SHOWN = 24, LINE_SHOWN = 150, OF_A_THREAD = 4 };

static const size_t STREAM_MOST = (size_t)512 << 20;

static const aq_option options[] = {
    {"seed", "TEXT", "the seed of the two worlds; then values of their decoys count as equal"},
    {"pack", "FILE[,FILE…]", "the private packs of decoys that the runs had"},
    {"json", NULL, "print one JSON object"},
    {"color", "WHEN", "auto, always or never"},
    {0}};

/* ---- JSON ---- */

static json_t *side_json(const aq_run_side *s)
{
    char hex[AQ_SHA256_HEX];

    return json_pack("{s:s,s:s,s:I,s:I,s:b,s:b}", "world", s->observation.world, "canonical_digest",
                     aq_digest_hex(&s->digest, hex), "events", (json_int_t)s->observation.events,
                     "threads", (json_int_t)s->threads, "complete", s->incomplete == NULL,
                     "repeatable", s->repeatable);
}

/* A line is canonical JSON of ours; in the object it stands as such. */
static json_t *line_json(const char *line)
{
    json_t *value = NULL;

    if (!line || aq_json_parse(line, strlen(line), "line", &value, NULL) < 0)
        return json_null();
    return value;
}

static const char *result_of(const aq_comparison *c)
{
    bool whole = !c->side[0].incomplete && !c->side[1].incomplete;

    return !whole ? "incomplete" : c->equal ? "identical" : "different";
}

static json_t *comparison_json(const aq_comparison *c)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < c->count; i++) {
        const aq_difference *d = &c->rows[i];

        json_array_append_new(rows, json_pack("{s:s,s:s,s:b,s:o,s:o}", "kind",
                                              aq_difference_name(d->kind), "where", d->where,
                                              "first", d->first, "a", line_json(d->line[0]), "b",
                                              line_json(d->line[1])));
    }
    return json_pack("{s:s,s:s,s:b,s:o,s:o,s:o,s:I,s:I}", "schema", "aquarium/comparison/v1",
                     "result", result_of(c), "equal", c->equal, "a", side_json(&c->side[0]), "b",
                     side_json(&c->side[1]), "differences", rows, "left_out", (json_int_t)c->more,
                     "coarse", (json_int_t)c->coarse);
}

/* ---- text ---- */

typedef struct page {
    aq_buf *out;
    bool colour;
    const char *side[2]; /* what the two are called */
} page;

static void heading(const page *p, const char *title)
{
    aq_buf_addf(p->out, p->colour && *title ? "\033[1m%-10s\033[0m  " : "%-10s  ", title);
}

/* Text of a line is quoted already; what is too long for one is cut at a character. */
static void add_cut(aq_buf *out, const char *text, size_t most)
{
    size_t n = strlen(text);

    if (n <= most) {
        aq_buf_adds(out, text);
        return;
    }
    for (n = most; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    aq_buf_add(out, text, n);
    aq_buf_adds(out, "…");
}

static const char *text_of(const json_t *v)
{
    return json_is_object(v) ? aq_json_str(v, "text") : json_string_value(v);
}

static void add_value(aq_buf *out, const json_t *v)
{
    if (json_is_integer(v))
        aq_buf_addf(out, "%lld", (long long)json_integer_value(v));
    else
        add_cut(out, text_of(v) ? text_of(v) : "…", LINE_SHOWN / 2);
}

/* "file open /etc/passwd flags=0 → -2" */
static void add_act(aq_buf *out, const json_t *line)
{
    const char *object = text_of(json_object_get(line, "object")), *name;
    const json_t *args = json_object_get(line, "args");
    json_t *value;

    aq_buf_addf(out, "%s %s", aq_json_str(line, "kind"), aq_json_str(line, "op"));
    if (object) {
        aq_buf_addc(out, ' ');
        add_cut(out, object, LINE_SHOWN);
    }
    json_object_foreach ((json_t *)(uintptr_t)args, name, value) {
        aq_buf_addf(out, " %s=", name);
        add_value(out, value);
    }
    aq_buf_adds(out, " → ");
    add_value(out, json_object_get(line, "result"));
}

static void add_remain(aq_buf *out, const json_t *line)
{
    const json_t *output = json_object_get(line, "output"),
                 *change = json_object_get(line, "change");
    const json_t *ended = json_object_get(line, "exit");
    const char *digest = aq_json_str(output ? output : change, "digest");

    if (output)
        aq_buf_addf(out, "%lld bytes, digest %.12s… ", (long long)aq_json_int(output, "bytes", 0),
                    digest ? digest : "");
    if (output)
        add_cut(out, aq_json_str(output, "head"), LINE_SHOWN);
    else if (change)
        aq_buf_addf(out, "%s, %lld bytes, digest %.12s", aq_json_str(change, "change"),
                    (long long)aq_json_int(change, "size", 0), digest ? digest : "none");
    else if (ended)
        aq_buf_addf(out, "%s %lld", aq_json_str(ended, "kind"),
                    (long long)aq_json_int(ended, "value", 0));
    else
        aq_buf_adds(out, "there");
}

static void add_sides(const page *p, const aq_difference *d)
{
    for (int i = 0; i < 2; i++) {
        aq_auto_json json_t *line = d->line[i] ? line_json(d->line[i]) : NULL;

        heading(p, "");
        aq_buf_addf(p->out, "%-*s  ", (int)strlen(p->side[1]), p->side[i]);
        if (!line)
            aq_buf_adds(p->out,
                        d->kind == AQ_DIFFERENCE_ACT ? "(does not do that)" : "(not there)");
        else if (d->kind == AQ_DIFFERENCE_ACT || d->kind == AQ_DIFFERENCE_THREAD)
            add_act(p->out, line);
        else
            add_remain(p->out, line);
        aq_buf_addc(p->out, '\n');
    }
}

static void add_title(const page *p, const aq_difference *d)
{
    unsigned long long n = d->count[0] ? d->count[0] : d->count[1];

    heading(p, aq_difference_name(d->kind));
    add_cut(p->out, d->where, LINE_SHOWN);
    if (d->kind == AQ_DIFFERENCE_ACT)
        aq_buf_addf(p->out, ", after %llu equal acts", n);
    else if (d->kind == AQ_DIFFERENCE_THREAD)
        aq_buf_addf(p->out, ", %llu acts", n);
    aq_buf_addc(p->out, '\n');
}

static void add_differences(const page *p, const aq_comparison *c)
{
    uint64_t left = c->more;
    size_t shown = 0, here = 0;

    for (size_t i = 0; i < c->count; i++) {
        const aq_difference *d = &c->rows[i];

        here = d->first ? 0 : here + 1;
        if (shown == SHOWN || here >= OF_A_THREAD) {
            left++;
            continue;
        }
        shown++;
        if (d->first)
            add_title(p, d);
        add_sides(p, d);
    }
    if (left) {
        heading(p, "");
        aq_buf_addf(p->out, "… and %llu more; --json has %s\n", (unsigned long long)left,
                    c->more ? "the first of them" : "them");
    }
    if (c->coarse) {
        heading(p, "");
        aq_buf_addf(p->out,
                    "%llu of the threads differ in so much that only the first place is told\n",
                    (unsigned long long)c->coarse);
    }
}

static void add_verdict(const page *p, const aq_comparison *c)
{
    const aq_run_side *s = c->side;
    char hex[AQ_SHA256_HEX];

    heading(p, result_of(c));
    if (c->equal)
        aq_buf_addf(p->out, "%llu acts in threads: %llu, files left behind: %zu\n",
                    (unsigned long long)s->observation.events, (unsigned long long)s->threads,
                    s->observation.change_count);
    else
        aq_buf_addf(p->out, "%s has %llu acts in threads: %llu; %s %llu in %llu\n", p->side[0],
                    (unsigned long long)s[0].observation.events, (unsigned long long)s[0].threads,
                    p->side[1], (unsigned long long)s[1].observation.events,
                    (unsigned long long)s[1].threads);
    for (int i = 0; i < 2; i++) {
        if (s[i].incomplete) {
            heading(p, "");
            aq_buf_addf(p->out, "the record of %s is not whole: %s\n", p->side[i], s[i].incomplete);
        }
        if (!s[i].repeatable) {
            heading(p, "");
            aq_buf_addf(p->out, "the host's clock decided who ran when in %s: it may not repeat\n",
                        p->side[i]);
        }
    }
    if (c->equal) {
        heading(p, "digest");
        aq_buf_addf(p->out, "%s\n", aq_digest_hex(&s->digest, hex));
    }
}

/* ---- the command ---- */

static int read_stream(const char *path, aq_buf *into)
{
    aq_err err = {0};

    if (aq_read_file(AT_FDCWD, path, STREAM_MOST, into, &err) < 0)
        return aq_say_usage(&aq_command_compare, "%s", err.text);
    return AQ_PARSE_RUN;
}

/* What `--seed` makes of the world that a stream says it ran in. */
static int choose_form(const aq_args *args, const char *path, aq_arena *a, aq_compared *s,
                       const char **world)
{
    const aq_command *c = &aq_command_compare;
    aq_world_choice w = {
        .seed = aq_arg(c, args, "seed"), .packs = aq_arg(c, args, "pack"), .start = 1};
    aq_observation o;
    aq_err err = {0};
    int r;

    if (aq_observation_read(a, s->data, s->len, NULL, NULL, &o, &err) < 0)
        return aq_say_usage(c, "%.200s: %s", path, err.text);
    *world = o.world;
    if (!w.seed)
        return AQ_PARSE_RUN;
    if (strcmp(o.world, "A") != 0 && strcmp(o.world, "B") != 0)
        return aq_say_usage(c, "--seed: a stream is of the world %s, and a seed makes A and B",
                            o.world);
    w.side = *o.world == 'B' ? AQ_SIDE_B : AQ_SIDE_A;
    r = aq_world_choose(c, a, &w);
    if (r == AQ_PARSE_RUN)
        s->marks = aq_decoys_marks(a, w.decoys);
    return r;
}

static int tell(const aq_args *args, const aq_comparison *c, const char *const world[2])
{
    const aq_command *command = &aq_command_compare;
    aq_auto_buf text = {0};
    bool apart = strcmp(world[0], world[1]) != 0;
    page p = {&text,
              aq_colour(aq_arg(command, args, "color"), STDOUT_FILENO),
              {apart ? world[0] : "first", apart ? world[1] : "second"}};
    aq_err err = {0};
    int r;

    if (aq_flag(command, args, "json")) {
        aq_auto_json json_t *json = comparison_json(c);

        r = aq_put_json("-", json, &err);
    } else {
        add_verdict(&p, c);
        if (!c->equal)
            add_differences(&p, c);
        if (!c->equal && apart && !aq_arg(command, args, "seed"))
            aq_buf_adds(
                &text,
                "            without --seed the values of decoys differ between the worlds\n");
        r = aq_put("-", aq_buf_str(&text), text.len, &err);
    }
    if (r < 0)
        return aq_say_failed(&err);
    return c->side[0].incomplete || c->side[1].incomplete ? EXIT_INCOMPLETE
           : c->equal                                     ? 0
                                                          : EXIT_DIFFERENT;
}

static int run(const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf first = {0}, second = {0};
    aq_buf *streams[2] = {&first, &second};
    aq_compared sides[2] = {0};
    const char *world[2] = {0};
    aq_comparison c;
    aq_err err = {0};

    for (int i = 0; i < 2; i++) {
        int r = read_stream(args->operand[i], streams[i]);

        sides[i].data = aq_buf_str(streams[i]);
        sides[i].len = streams[i]->len;
        if (r == AQ_PARSE_RUN)
            r = choose_form(args, args->operand[i], a, &sides[i], &world[i]);
        if (r != AQ_PARSE_RUN)
            return r;
    }
    if (aq_compare(a, sides, &c, &err) < 0)
        return aq_say_failed(&err);
    return tell(args, &c, world);
}

const aq_command aq_command_compare = {
    .name = "compare",
    .summary = "say whether two runs did the same, and where they part",
    .usage = "[OPTION…] STREAM STREAM",
    .description =
        "Compares two records of 'aquarium run --stream FILE'. Threads are compared each\n"
        "by itself, in its own order, by its place in the tree of births; then outputs,\n"
        "files left behind and the exit. The act 'after' says what threads did to each\n"
        "other: who woke it, whose bytes it read. Who merely ran first does not count.\n"
        "Two runs of one program with the same --seed and --start are identical, unless\n"
        "the program got its chance from somewhere else, or sees the record of the first:\n"
        "keep records outside of the folder that it runs in.\n\n"
        "Between the two worlds of a seed give --seed: values of decoys count as equal\n"
        "then, and what is left is what the program made of them.",
    .options = options,
    .examples = "  aquarium run --quarantine --seed 7 --stream /tmp/a -- ./x\n"
                "  aquarium run --quarantine --seed 7 --world B --stream /tmp/b -- ./x\n"
                "  aquarium compare --seed 7 /tmp/a /tmp/b\n",
    .exits = "  0   identical\n"
             "  1   different\n"
             "  3   a record is not whole, so nothing can be said\n"
             "  64  the command line was wrong, or a file is no stream\n"
             "  70  our own failure\n",
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
