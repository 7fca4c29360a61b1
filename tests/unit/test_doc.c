/* The three document readers: one tree, right lines, bounds before memory. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/doc.h"

typedef int reader(aq_arena *, const char *, size_t, const char *, const aq_node **, aq_err *);

static const aq_node *must_read(reader *read, aq_arena *a, const char *text)
{
    const aq_node *root = NULL;
    aq_err err = {0};

    if (read(a, text, strlen(text), "in", &root, &err) < 0)
        fail_msg("%s\n%s", err.text, text);
    return root;
}

static void must_refuse(reader *read, const char *text, size_t len, const char *why)
{
    aq_auto_arena a = aq_arena_new();
    const aq_node *root = NULL;
    aq_err err = {0};

    if (read(a, text, len, "in", &root, &err) == 0)
        fail_msg("accepted: %.80s", text);
    assert_null(root);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" lacks \"%s\" for %.80s", err.text, why, text);
}

/* Prints a tree in one line: kind, key, line, text. */
static void print(aq_buf *out, const aq_node *n)
{
    static const char kinds[] = "~bir"; /* null bool int real */

    aq_buf_addf(out, "%u", n->line);
    if (n->key)
        aq_buf_addf(out, "%s=", n->key);
    else
        aq_buf_addc(out, ':');
    if (n->kind < AQ_NODE_STR) {
        aq_buf_addf(out, "%c(%s)", kinds[n->kind], n->text);
    } else if (n->kind == AQ_NODE_STR) {
        aq_buf_addf(out, "'%s'", n->text);
    } else {
        size_t count = 0;
        aq_buf_addc(out, n->kind == AQ_NODE_MAP ? '{' : '[');
        for (const aq_node *c = n->first; c; c = c->next, count++) {
            if (count)
                aq_buf_addc(out, ' ');
            print(out, c);
        }
        assert_int_equal(count, n->count);
        aq_buf_addc(out, n->kind == AQ_NODE_MAP ? '}' : ']');
    }
}

static void same_tree(reader *read, const char *text, const char *want)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};

    print(&b, must_read(read, a, text));
    assert_string_equal(aq_buf_str(&b), want);
}

static void yaml_trees(void **state)
{
    (void)state;
    same_tree(aq_doc_yaml, "", "1:~()");
    same_tree(aq_doc_yaml, "# nothing\n", "1:~()");
    same_tree(aq_doc_yaml, "a: 1\nb:\n  - x\n  -\n    c: 'y'\n\nd: {e: [1, 2]}\n",
              "1:{1a=i(1) 2b=[3:'x' 5:{5c='y'}] 7d={7e=[7:i(1) 7:i(2)]}}");
}

static void yaml_scalars(void **state)
{
    static const struct {
        const char *text;
        aq_node_kind kind;
        int64_t number;
    } rows[] = {
        {"no", AQ_NODE_STR, 0},
        {"on", AQ_NODE_STR, 0},
        {"true", AQ_NODE_BOOL, 1},
        {"False", AQ_NODE_BOOL, 0},
        {"1.10", AQ_NODE_REAL, 0},
        {"1.2.3", AQ_NODE_STR, 0},
        {"0x1F", AQ_NODE_INT, 31},
        {"0o17", AQ_NODE_INT, 15},
        {"017", AQ_NODE_INT, 17},
        {"-12", AQ_NODE_INT, -12},
        {"1e3", AQ_NODE_REAL, 0},
        {".inf", AQ_NODE_REAL, 0},
        {"1_000", AQ_NODE_STR, 0},
        {"2024-01-01", AQ_NODE_STR, 0},
        {"~", AQ_NODE_NULL, 0},
        {"'1'", AQ_NODE_STR, 0},
        {"!!str 1", AQ_NODE_STR, 0},
        {".", AQ_NODE_STR, 0},
        {"99999999999999999999", AQ_NODE_REAL, 0},
        {"+x", AQ_NODE_STR, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_arena a = aq_arena_new();
        const aq_node *n = must_read(aq_doc_yaml, a, rows[i].text);
        if (n->kind != rows[i].kind || n->number != rows[i].number)
            fail_msg("%s became %s %lld", rows[i].text, aq_node_kind_name(n->kind),
                     (long long)n->number);
    }
}

static void yaml_block_text_and_lines(void **state)
{
    (void)state;
    same_tree(aq_doc_yaml,
              "\xef\xbb\xbf"
              "a: |\r\n  one\r\n  two\r\nb: >-\r\n  x\r\n  y\r\nc: z\r\n",
              "1:{1a='one\ntwo\n' 4b='x y' 7c='z'}");
    same_tree(aq_doc_yaml, "---\na: 1\n...\n", "2:{2a=i(1)}");
}

static void yaml_refusals(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"a: &x 1\n", "in:1:7: anchors"},
        {"a: 1\nb: *x\n", "in:2:5: aliases"},
        {"a: 1\n<<: {b: 2}\n", "in:2:1: merge keys"},
        {"a: !!python/object:os.system x\n", "tags"},
        {"a: !x 1\n", "tags"},
        {"a: 1\nb: 2\na: 3\n", "in:3: the key \"a\" is here and on line 1"},
        {"a: {b: 1, 'b': 2}\n", "in:1: the key \"b\""},
        {"a: 1\n---\nb: 2\n", "more than one document"},
        {"? [a]\n: b\n", "a key must be text"},
        {"a: \"x\\0y\"\n", "NUL"},
        {"a: \"\\ud800\"\n", "in:1"},
        {"a: [1\n", "in:"},
        {"a: b: c\n", "in:1"},
        {"\ta: 1\n", "in:1"},
        {"a: \xff\n", "in:1: not valid UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        must_refuse(aq_doc_yaml, rows[i].text, strlen(rows[i].text), rows[i].why);
    must_refuse(aq_doc_yaml, "a: \0", 4, "NUL");
}

static void repeat(aq_buf *b, const char *what, size_t times)
{
    for (size_t i = 0; i < times; i++)
        aq_buf_adds(b, what);
}

static void bombs_are_refused_small(void **state)
{
    static const struct {
        reader *read;
        const char *head, *body;
        size_t times;
    } rows[] = {
        {aq_doc_yaml, "", "[", 1000000},        {aq_doc_yaml, "", "- ", 500000},
        {aq_doc_yaml, "", "{a: ", 250000},      {aq_doc_yaml, "", "? ", 500000},
        {aq_doc_yaml, "[", "1,", 500000},       {aq_doc_yaml, "", "- a\n", 250000},
        {aq_doc_json, "", "[", 1000000},        {aq_doc_json, "", "{\"a\":", 200000},
        {aq_doc_json, "[1", ",1", 500000},      {aq_doc_json, "[[]", ",[]", 300000},
        {aq_doc_toml, "a = ", "[", 1000000},    {aq_doc_toml, "a", ".a", 500000},
        {aq_doc_toml, "[a", ".a", 500000},      {aq_doc_toml, "a = [1", ",1", 500000},
        {aq_doc_toml, "", "[[a]]\n", 170000},   {aq_doc_toml, "a = ", "{a = ", 200000},
        {aq_doc_toml, "a = \"\"\"", "\\\"", 1}, {aq_doc_yaml, "", "\"", 1000001},
        {aq_doc_yaml, "x", "x", 1 << 20},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_buf b = {0};
        aq_buf_adds(&b, rows[i].head);
        repeat(&b, rows[i].body, rows[i].times);
        must_refuse(rows[i].read, b.data, b.len, "in:");
    }
}

/* One below each limit is fine, one above is not. */
static void limits_are_exact(void **state)
{
    (void)state;
    for (size_t depth = AQ_DOC_DEPTH; depth <= AQ_DOC_DEPTH + 1; depth++) {
        aq_auto_arena a = aq_arena_new();
        aq_auto_buf b = {0};
        const aq_node *root = NULL;
        aq_err err;
        int want = depth > AQ_DOC_DEPTH ? -EBADMSG : 0;
        repeat(&b, "[", depth);
        repeat(&b, "]", depth);
        assert_int_equal(aq_doc_yaml(a, b.data, b.len, "in", &root, &err), want);
        assert_int_equal(aq_doc_json(a, b.data, b.len, "in", &root, &err), want);
    }
    for (size_t nodes = AQ_DOC_NODES; nodes <= AQ_DOC_NODES + 1; nodes++) {
        aq_auto_arena a = aq_arena_new();
        aq_auto_buf b = {0};
        const aq_node *root = NULL;
        aq_err err;
        int want = nodes > AQ_DOC_NODES ? -EBADMSG : 0;
        aq_buf_adds(&b, "[1");
        repeat(&b, ",1", nodes - 2);
        aq_buf_adds(&b, "]");
        assert_int_equal(aq_doc_yaml(a, b.data, b.len, "in", &root, &err), want);
        assert_int_equal(aq_doc_json(a, b.data, b.len, "in", &root, &err), want);
    }
}

static void many_keys_are_quick(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};

    (void)state;
    for (int i = 0; i < 19000; i++)
        aq_buf_addf(&b, "key-%d: %d\n", i, i);
    assert_int_equal(must_read(aq_doc_yaml, a, aq_buf_str(&b))->count, 19000);
    aq_buf_adds(&b, "key-77: 0\n");
    must_refuse(aq_doc_yaml, b.data, b.len, "in:19001: the key \"key-77\" is here and on line 78");
}

static void json_trees(void **state)
{
    (void)state;
    same_tree(aq_doc_json,
              "{\"a\": [1, -2.50,\n true], \"b\\n\":\n{\"c\": null, \"d\": \"x\\u00e9\"}}",
              "1:{1a=[1:i(1) 1:r(-2.50) 2:b(true)] 2b\n={3c=~(null) 3d='xé'}}");
    same_tree(aq_doc_json, "\xef\xbb\xbf\n{ }", "2:{}");
    same_tree(aq_doc_json, "[ [] , [ ] ,\n{ } , \"]\\\"\" ]", "1:[1:[] 1:[] 2:{} 2:']\"']");
    same_tree(aq_doc_json, "\"x\"", "1:'x'");
    must_refuse(aq_doc_json, "{\"a\":1,\n\"a\":2}", 15, "in:2:");
    must_refuse(aq_doc_json, "{\"a\":1} x", 9, "in:1:");
    must_refuse(aq_doc_json, "", 0, "in:1");
    must_refuse(aq_doc_json, "[\"\\u0000\"]", 10, "in:1:");
}

static void toml_trees(void **state)
{
    (void)state;
    same_tree(aq_doc_toml,
              "# c\n[project]\nname = 'x'\nversion = \"1\"\n\n[project.scripts]\nrun = \"m:f\"\n"
              "[tool.z]\nb = 1.50\na = [1,\n 2]\nd = 2024-01-01\ne = true\n",
              "1:{2project={3name='x' 4version='1' 6scripts={7run='m:f'}} "
              "8tool={8z={9b=r(1.50) 10a=[10:i(1) 11:i(2)] 12d='2024-01-01' 13e=b(true)}}}");
    same_tree(aq_doc_toml, "\"é é\" = { n = 7 }\n", "1:{1é é={1n=i(7)}}");
    same_tree(aq_doc_toml, "a = \"\"\"x\"\"\"\"\"\nb.c = '''q'''\n", "1:{1a='x\"\"' 2b={2c='q'}}");
    must_refuse(aq_doc_toml, "a = 1\na = 2\n", 12, "in:2:");
    must_refuse(aq_doc_toml, "[[:>:>", 6, "in:1: ");
    must_refuse(aq_doc_toml, "[:]", 3, "in:1: ");
    must_refuse(aq_doc_toml, "\xca\x8f = 1", 6, "in:1:"); /* a letter beyond ASCII is no key */
    must_refuse(aq_doc_toml, "a.: = 1", 7, "in:1:");
    must_refuse(aq_doc_toml, "a = \"x\n", 7, "in:1: a text");
    must_refuse(aq_doc_toml, "a = \"\\u0000\"", 12, "in:1");
    must_refuse(aq_doc_toml, "[a\n", 3, "in:");
}

static void questions(void **state)
{
    aq_auto_arena a = aq_arena_new();
    const aq_node *n =
        must_read(aq_doc_json, a, "{\"a\":{\"b\":{\"c\":\"x\"}},\"t\":true,\"l\":[1]}");

    (void)state;
    assert_string_equal(aq_node_str(aq_node_path(n, "a.b.c")), "x");
    assert_null(aq_node_path(n, "a.x.c"));
    assert_null(aq_node_path(n, "a.b.c.d"));
    assert_null(aq_node_path(n, "l.a"));
    assert_null(aq_node_path(NULL, "a"));
    assert_null(aq_node_get(aq_node_get(n, "l"), "a"));
    assert_null(aq_node_get_str(n, "t"));
    assert_true(aq_node_truth(aq_node_get(n, "t"), false));
    assert_true(aq_node_truth(aq_node_get(n, "a"), true));
    assert_false(aq_node_truth(NULL, false));
    assert_string_equal(aq_node_kind_name(AQ_NODE_LIST), "a list");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_trees),
        cmocka_unit_test(yaml_scalars),
        cmocka_unit_test(yaml_block_text_and_lines),
        cmocka_unit_test(yaml_refusals),
        cmocka_unit_test(bombs_are_refused_small),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(many_keys_are_quick),
        cmocka_unit_test(json_trees),
        cmocka_unit_test(toml_trees),
        cmocka_unit_test(questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
