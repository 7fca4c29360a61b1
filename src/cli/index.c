/* aquarium index: the known names that look-alikes are compared with. A registry loads its own
 * list; names from envelopes join it provisionally as they come. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"

enum { IMPORT_BYTES = 256 << 20, PAGE = 1000 };

static const aq_option options[] = {{"json", NULL, "print JSON; list prints one object a line"},
                                    {"state", "DIR", "state folder"},
                                    {0}};

/* NAMESPACE/NAME; the namespace may hold slashes itself, a name never does. */
static int split(aq_arena *a, const char *full, aq_known *ret)
{
    const char *slash = strrchr(full, '/');

    if (!slash || slash == full || !slash[1])
        return -EINVAL;
    ret->namespace_ = aq_arena_strndup(a, full, (size_t)(slash - full));
    ret->name = slash + 1;
    return 0;
}

static int say(const aq_args *args, json_t *json, aq_buf *text)
{
    aq_err err = {0};
    int r = aq_flag(&aq_command_index, args, "json")
                ? aq_put_json("-", json, &err)
                : aq_put("-", aq_buf_str(text), text->len, &err);

    return r < 0 ? aq_say_failed(&err) : 0;
}

/* Tells of other publishers that have this name, and whether this one had it; `others` is set. */
static int tell_others(aq_home *home, const aq_known *known, aq_buf *text, size_t *others,
                       bool *before, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    const aq_known first = {.namespace_ = known->namespace_, .name = known->name, .publisher = ""};
    aq_known *rows;
    size_t count;
    int r = aq_store_known_list(home->store, a, &first, PAGE, &rows, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (strcmp(rows[i].namespace_, known->namespace_) != 0 ||
            strcmp(rows[i].name, known->name) != 0)
            break;
        if (strcmp(rows[i].publisher, known->publisher) == 0) {
            *before = rows[i].confirmed;
            continue;
        }
        ++*others;
        aq_buf_addf(text, "Note: publisher %s has this name, too%s.\n",
                    aq_text_quoted(a, rows[i].publisher, strlen(rows[i].publisher), 300),
                    rows[i].confirmed ? "" : " (provisionally)");
    }
    if (*others)
        aq_buf_adds(text, "A package with it is a conflict for whoever is not its publisher; "
                          "'index remove' takes a name out.\n");
    return r;
}

static int add(aq_home *home, const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *json = NULL;
    aq_auto_buf text = {0}, notes = {0};
    aq_known known = {.publisher = args->operand[2], .confirmed = true};
    size_t others = 0;
    bool before = false;
    aq_err err = {0};

    if (split(a, args->operand[1], &known) < 0)
        return aq_say_usage(&aq_command_index, "add needs NAMESPACE/NAME and PUBLISHER");
    if (tell_others(home, &known, &notes, &others, &before, &err) < 0 ||
        aq_store_know(home->store, &known, &err) < 0)
        return aq_say_failed(&err);
    json = json_pack("{s:s, s:i, s:I}", "schema", "aquarium/index-change/v1", "added", !before,
                     "other_publishers", (json_int_t)others);
    aq_buf_addf(&text, before ? "That name was known already.\n%s" : "1 name added.\n%s",
                aq_buf_str(&notes));
    return say(args, json, &text);
}

static int take_out(aq_home *home, const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *json =
        json_pack("{s:s, s:i}", "schema", "aquarium/index-change/v1", "removed", 1);
    aq_auto_buf text = {0};
    aq_known known = {.publisher = args->operand[2]};
    aq_err err = {0};
    int r;

    if (split(a, args->operand[1], &known) < 0)
        return aq_say_usage(&aq_command_index, "remove needs NAMESPACE/NAME and PUBLISHER");
    r = aq_store_forget(home->store, &known, &err);
    if (r == -ENOENT)
        return aq_say_usage(&aq_command_index, "%s", err.text);
    aq_buf_adds(&text, "1 name removed.\n");
    return r < 0 ? aq_say_failed(&err) : say(args, json, &text);
}

static int read_line(aq_arena *a, const char *line, size_t len, const char *place, aq_known *ret,
                     aq_err *err)
{
    static const char *const keys[] = {"namespace", "name", "publisher", "confirmed", NULL};
    aq_auto_json json_t *j = NULL;
    int r = aq_json_parse(line, len, place, &j, err);

    if (r == 0)
        r = aq_json_only_keys(j, place, keys, err);
    if (r < 0)
        return r;
    if (!aq_json_str(j, "namespace") || !aq_json_str(j, "name") || !aq_json_str(j, "publisher"))
        return aq_fail(err, -EBADMSG, "%s: namespace, name and publisher are needed, as text",
                       place);
    *ret = (aq_known){.namespace_ = aq_arena_strdup(a, aq_json_str(j, "namespace")),
                      .name = aq_arena_strdup(a, aq_json_str(j, "name")),
                      .publisher = aq_arena_strdup(a, aq_json_str(j, "publisher")),
                      .confirmed = !json_is_false(json_object_get(j, "confirmed"))};
    return 0;
}

/* All lines or none: a list that is half loaded would answer half right. */
static int read_lines(aq_arena *a, const char *text, const char *file, aq_known **ret,
                      size_t *count, aq_err *err)
{
    size_t cap = 0, number = 0;
    int r;

    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        char place[300];

        number++;
        snprintf(place, sizeof place, "%.250s line %zu", file, number);
        if (len > 0) {
            if (*count == cap)
                *ret = aq_realloc(*ret, cap = cap ? 2 * cap : 256, sizeof **ret);
            r = read_line(a, line, len, place, &(*ret)[*count], err);
            if (r < 0)
                return r;
            (*count)++;
        }
        line += len + (line[len] == '\n');
    }
    return 0;
}

static int import(aq_home *home, const aq_args *args)
{
    const char *file = args->operand[1];
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *json = NULL;
    aq_auto_buf text = {0};
    aq_auto_free aq_known *known = NULL;
    uint64_t before = 0, after = 0;
    size_t count = 0;
    aq_err err = {0};
    int r;

    r = strcmp(file, "-") == 0
            ? aq_read_fd(STDIN_FILENO, "standard input", IMPORT_BYTES, &text, &err)
            : aq_read_file(AT_FDCWD, file, IMPORT_BYTES, &text, &err);
    if (r == 0 && strlen(aq_buf_str(&text)) != text.len)
        r = aq_fail(&err, -EBADMSG, "%s holds a NUL byte: it is no text", file);
    if (r == 0)
        r = read_lines(a, aq_buf_str(&text), file, &known, &count, &err);
    if (r < 0) {
        fprintf(stderr, "aquarium: %s\n", err.text);
        return AQ_EXIT_USAGE;
    }
    if (aq_store_known_count(home->store, &before, &err) < 0 ||
        aq_store_know_many(home->store, known, count, &err) < 0 ||
        aq_store_known_count(home->store, &after, &err) < 0)
        return aq_say_failed(&err);
    json = json_pack("{s:s, s:I, s:I}", "schema", "aquarium/index-change/v1", "added",
                     (json_int_t)(after > before ? after - before : 0), "lines", (json_int_t)count);
    aq_buf_clear(&text);
    aq_buf_addf(&text, "%llu name%s added; %zu line%s read.\n",
                (unsigned long long)(after > before ? after - before : 0),
                after == before + 1 ? "" : "s", count, count == 1 ? "" : "s");
    return say(args, json, &text);
}

static void list_one(const aq_known *k, bool json, aq_arena *a, aq_buf *out)
{
    if (!json) {
        aq_buf_addf(out, "%s/%s  %s%s\n",
                    aq_text_quoted(a, k->namespace_, strlen(k->namespace_), 300),
                    aq_text_quoted(a, k->name, strlen(k->name), 300),
                    aq_text_quoted(a, k->publisher, strlen(k->publisher), 300),
                    k->confirmed ? "" : "  (provisional)");
        return;
    }
    aq_buf_addf(out, "{\"confirmed\":%s,\"name\":", k->confirmed ? "true" : "false");
    aq_json_string(out, k->name);
    aq_buf_adds(out, ",\"namespace\":");
    aq_json_string(out, k->namespace_);
    aq_buf_adds(out, ",\"publisher\":");
    aq_json_string(out, k->publisher);
    aq_buf_adds(out, "}\n");
}

/* On standard error: an empty list is an answer that a script can read. */
static void say_none(void)
{
    fputs("aquarium: no names are known yet; load them with 'aquarium index import FILE'\n",
          stderr);
}

static int list(aq_home *home, const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    bool json = aq_flag(&aq_command_index, args, "json");
    const aq_known *after = NULL;
    aq_err err = {0};
    size_t count = 0;

    do {
        aq_auto_buf out = {0};
        aq_known *page;
        if (aq_store_known_list(home->store, a, after, PAGE, &page, &count, &err) < 0)
            return aq_say_failed(&err);
        for (size_t i = 0; i < count; i++)
            list_one(&page[i], json, a, &out);
        if (count)
            after = &page[count - 1];
        if (aq_put("-", aq_buf_str(&out), out.len, &err) < 0)
            return aq_say_failed(&err);
    } while (count == PAGE);
    if (!after)
        say_none();
    return 0;
}

static const aq_act acts[] = {
    {"add", add, "NAMESPACE/NAME and PUBLISHER", 2, 2},
    {"remove", take_out, "NAMESPACE/NAME and PUBLISHER", 2, 2},
    {"import", import, "a FILE of JSON lines, or -", 1, 1},
    {"list", list, NULL, 0, 0},
    {0},
};

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_index;
    const aq_act *act = aq_act_find(c, args);
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_err err = {0};
    int r;

    if (!act)
        return AQ_EXIT_USAGE;
    if (act->run == list) { /* looking makes no state */
        r = aq_home_open_existing(aq_arg(c, args, "state"), &home, &err);
        if (r == -ENOENT)
            say_none();
        if (r < 0)
            return r == -ENOENT ? 0 : aq_say_failed(&err);
        return list(&home, args);
    }
    r = aq_open_home(c, args, true, &home);
    return r == AQ_PARSE_RUN ? act->run(&home, args) : r;
}

const aq_command aq_command_index = {
    .name = "index",
    .summary = "load, list and remove known package names",
    .usage = "[OPTION…] ACT [ARGUMENT…]",
    .description =
        "  add NAMESPACE/NAME PUBLISHER     enter a name, confirmed\n"
        "  remove NAMESPACE/NAME PUBLISHER  take it out again\n"
        "  import FILE                      enter many\n"
        "  list                             print them all\n\n"
        "L0 compares the name of each package with the names known here: one that belongs\n"
        "to another publisher is a conflict, one that looks alike is a finding. A file to\n"
        "import has one JSON object a line:\n"
        "  {\"namespace\":…, \"name\":…, \"publisher\":…}\n"
        "with \"confirmed\": false for a name that is only claimed; - is standard input.\n"
        "All of its lines are added, or none.",
    .options = options,
    .acts = acts,
    .examples = "  aquarium index import registry-names.jsonl\n"
                "  aquarium index add acme/invoice-tools acme\n"
                "  aquarium index remove acme/invoice-tools acme\n"
                "  aquarium index --json list > names.jsonl\n",
    .exits = "  0   done\n"
             "  64  the command line or a line of the file was wrong\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 3,
    .run = run,
};
