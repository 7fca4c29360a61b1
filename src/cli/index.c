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

static int say_count(const aq_args *args, size_t count)
{
    aq_auto_json json_t *json = json_pack("{s:I}", "names", (json_int_t)count);
    aq_auto_buf text = {0};
    aq_err err = {0};
    int r;

    aq_buf_addf(&text, "%zu name%s taken in.\n", count, count == 1 ? "" : "s");
    r = aq_flag(&aq_command_index, args, "json") ? aq_put_json("-", json, &err)
                                                 : aq_put("-", text.data, text.len, &err);
    return r < 0 ? aq_say_failed(&err) : 0;
}

static int add(aq_home *home, const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    aq_known known = {.publisher = args->operand[2], .confirmed = true};
    aq_err err = {0};

    if (args->operands < 3 || split(a, args->operand[1], &known) < 0)
        return aq_say_usage(&aq_command_index, "add needs NAMESPACE/NAME and PUBLISHER");
    return aq_store_know(home->store, &known, &err) < 0 ? aq_say_failed(&err) : say_count(args, 1);
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
    const char *file = args->operands > 1 ? args->operand[1] : NULL;
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf text = {0};
    aq_auto_free aq_known *known = NULL;
    size_t count = 0;
    aq_err err = {0};
    int r;

    if (!file)
        return aq_say_usage(&aq_command_index, "import needs a FILE of JSON lines, or -");
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
    if (aq_store_know_many(home->store, known, count, &err) < 0)
        return aq_say_failed(&err);
    return say_count(args, count);
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

static int list(aq_home *home, const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    bool json = aq_flag(&aq_command_index, args, "json");
    const aq_known *after = NULL;
    aq_err err = {0};
    size_t count;

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
    return 0;
}

static const aq_act acts[] = {
    {"add", add, NULL}, {"import", import, NULL}, {"list", list, NULL}, {0}};

static int run(const aq_args *args)
{
    const aq_act *act = aq_act_find(&aq_command_index, args);
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_err err = {0};

    if (!act)
        return AQ_EXIT_USAGE;
    if (aq_home_open(aq_arg(&aq_command_index, args, "state"), &home, &err) < 0)
        return aq_say_failed(&err);
    return act->run(&home, args);
}

const aq_command aq_command_index = {
    .name = "index",
    .summary = "load and list known package names",
    .usage = "[OPTION…] add NAMESPACE/NAME PUBLISHER | import FILE | list",
    .description =
        "L0 compares the name of each package with the names known here: one that belongs to\n"
        "another publisher is a conflict, one that looks alike is a finding. A file to import has\n"
        "one JSON object a line: {\"namespace\":…,\"name\":…,\"publisher\":…}, with\n"
        "\"confirmed\": false for a name that is only claimed; - is standard input.\n"
        "All of its lines are taken, or none.",
    .options = options,
    .acts = acts,
    .examples = "  aquarium index import registry-names.jsonl\n"
                "  aquarium index add acme/invoice-tools acme\n"
                "  aquarium index --json list > names.jsonl\n",
    .exits = "  0   done\n"
             "  64  the command line or a line of the file was wrong\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 3,
    .run = run,
};
