"""Each check of rooms.py complains about a small tree that is wrong, and not about its twin."""
import subprocess

import pytest
import rooms

TABLE = """# x

| room | job | may use | state |
|---|---|---|---|
| `low` | a | nothing | built |
| `mid` | b | `low` | built |
| `top` | c | `low`, `mid` | planned |

after
"""


@pytest.fixture
def tree(tmp_path):
    put(tmp_path, "ARCHITECTURE.md", TABLE)
    put(tmp_path, "src/low/low.h", "int low(void);\n")
    put(tmp_path, "src/mid/mid.c", '#include <stdio.h>\n#include "low/low.h"\n')
    return tmp_path


def put(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_right_tree_passes(tree):
    for check in (rooms.check_table, rooms.check_includes, rooms.check_sizes, rooms.check_banned,
                  rooms.check_words):  # fmt: skip
        assert check(tree) == []


@pytest.mark.parametrize(
    "name, text, complaint",
    [
        ("src/low/low.c", '#include "mid/mid.h"\n', "low may not use mid"),
        ("src/low/low.c", '  #  include "mid/mid.h"\n', "low may not use mid"),
        ("src/mid/sub/x.h", '#include "top/top.h"\n', "mid may not use top"),
        ("src/mid/x.def", '#include "top/top.h"\n', "mid may not use top"),
        ("src/mid/x.c", '#include "low/internal.h"\n', "for low alone"),
        ("src/mid/x.c", '#include "low.h"\n', "does not start with a room"),
        ("src/mid/x.c", '#include "mid/../low/low.h"\n', "does not start with a room"),
        ("src/mid/x.c", '#include "attic/x.h"\n', "of no room"),
    ],
)
def test_forbidden_include(tree, name, text, complaint):
    put(tree, name, text)
    wrong = rooms.check_includes(tree)
    assert len(wrong) == 1 and complaint in wrong[0], wrong
    assert wrong[0].startswith(f"{name}:1:")


def test_own_internal_header_and_generated_data_are_fine(tree):
    put(tree, "src/mid/x.c", '#include "mid/internal.h"\n#include "names.inc"\n#include "made.h"\n')
    assert rooms.check_includes(tree) == []


def test_room_without_row(tree):
    put(tree, "src/attic/x.c", "")
    assert rooms.check_table(tree) == ["src/attic: no row in the room table"]


def test_row_without_room(tree):
    (tree / "src/mid/mid.c").unlink()
    (tree / "src/mid").rmdir()
    assert "mid is called built" in rooms.check_table(tree)[0]


def test_planned_room_with_code(tree):
    put(tree, "src/top/x.c", "")
    assert "top is called planned" in rooms.check_table(tree)[0]


def test_circle_and_unknown_room(tree):
    put(tree, "ARCHITECTURE.md", TABLE.replace("| a | nothing |", "| a | `mid` |"))
    assert any("in a circle" in w for w in rooms.check_table(tree))
    put(tree, "ARCHITECTURE.md", TABLE.replace("| a | nothing |", "| a | `attic` |"))
    assert any("is no room" in w for w in rooms.check_table(tree))


def test_lost_table(tree):
    put(tree, "ARCHITECTURE.md", "# no table\n")
    assert rooms.check_table(tree) == ["ARCHITECTURE.md: no room table found"]


def test_sizes(tree):
    body = "    x();\n"
    for folder in ("tests/unit", "fuzz", "bench"):
        path = put(tree, f"{folder}/a.c", "void f(void)\n{\n" + body * (rooms.MAX_FUNCTION + 1) + "}\n")
        assert f"{folder}/a.c:2: function of 61 lines" in rooms.check_sizes(tree)[0]
        path.unlink()
    put(tree, "src/low/a.c", "void f(void)\n{\n" + body * rooms.MAX_FUNCTION + "}\n")
    assert rooms.check_sizes(tree) == []
    put(tree, "src/low/a.c", "void f(void)\n{\n" + body * (rooms.MAX_FUNCTION + 1) + "}\n")
    assert "src/low/a.c:2: function of 61 lines" in rooms.check_sizes(tree)[0]
    put(tree, "src/low/a.c", "namespace\n{\n" + body * 70 + "}\n")
    assert rooms.check_sizes(tree) == []
    inner = "namespace\n{\n    int f()\n    {\n" + body * 61 + "    }\n}\n"
    put(tree, "src/low/a.c", inner)
    assert "src/low/a.c:4: function of 61 lines" in rooms.check_sizes(tree)[0]
    put(tree, "src/low/a.c", "int x;\n" * (rooms.MAX_FILE + 1))
    assert "801 lines" in rooms.check_sizes(tree)[0]


@pytest.mark.parametrize("call", sorted(rooms.BANNED))
def test_banned_call(tree, call):
    put(tree, "src/low/a.c", f"void f(void)\n{{\n    x = {call} (y);\n}}\n")
    wrong = rooms.check_banned(tree)
    assert len(wrong) == 1 and wrong[0].startswith(f"src/low/a.c:3: {call}()")


def test_banned_call_twins(tree):
    put(tree, "src/low/a.c", '/* strcpy(a, b) */\nf("gets(x)"); // system(x)\n'
        "aq_strcpy(x); ops->system(x); snprintf(b, n, f);\n")  # fmt: skip
    assert rooms.check_banned(tree) == []


def test_unfinished(tree):
    put(tree, "src/low/a.c", "/* " + "TO" + "DO: later */\n")
    assert "unfinished" in rooms.check_words(tree)[0]


@pytest.mark.parametrize(
    "text", ["/" + "work/main/x", "see /tmp/" + "wt/build", "https://py" + "pi.org/simple"]
)
def test_places(tree, text):
    path = put(tree, "README.md", f"first\n{text}\n")
    assert rooms.check_places(tree, [path])[0].startswith("README.md:2: names")
    put(tree, "README.md", "the work/main idea, /home/me/work\n")
    assert rooms.check_places(tree, [path]) == []


def test_links(tree):
    path = put(tree, "docs/a.md", "[x](b.md) [y](../ARCHITECTURE.md#z) [w](https://example.org/)\n")
    assert rooms.check_links(tree, [path]) == ["docs/a.md:1: link to b.md leads nowhere"]


def test_pages(tree):
    put(tree, "src/model/adversaries.def", 'AQ_ADVERSARY(1, "one, two", "how")\n')
    put(tree, "src/model/event_kinds.def", 'AQ_EVENT_KIND(FILE, "file", "what")\n')
    put(tree, "src/cli/commands.def", "AQ_COMMAND(validate)\n")
    put(tree, "src/cli/validate.c", "")
    put(tree, "THREATS.md", "### A1 one, two\n")
    put(tree, "docs/formats/event.md", "`file`\n")
    put(tree, "docs/formats/README.md", "[event](event.md)\n")
    put(tree, "docs/meson.build", "pages = ['validate']\n")
    assert rooms.check_pages(tree) == []
    put(tree, "docs/meson.build", "")
    (tree / "src/cli/validate.c").unlink()
    put(tree, "THREATS.md", "### A2 one, two\n")
    put(tree, "docs/formats/event.md", "file\n")
    put(tree, "docs/formats/new.md", "x\n")
    assert len(rooms.check_pages(tree)) == 5


def test_format(tree):
    for name in (".clang-format",):
        put(tree, name, (rooms.repository() / name).read_text())
    good = put(tree, "src/low/a.c", "int f(int x)\n{\n    return x;\n}\n")
    assert rooms.check_format(tree, [good]) == []
    put(tree, "src/low/a.c", "int f(int x) { return x; }\n")
    wrong = rooms.check_format(tree, [good])
    assert wrong and wrong[0].startswith("src/low/a.c:1:")


def test_names_of_tests(tree):
    files = [put(tree, f"tests/{name}", "") for name in ("a/test_x.py", "b/test_y.py", "b/run.py", "a/run.py")]
    assert rooms.check_tests(tree, files) == []
    files.append(put(tree, "tests/b/test_x.py", ""))
    assert rooms.check_tests(tree, files) == ["tests/b/test_x.py: the name of tests/a/test_x.py as well"]


def test_tracked_without_git(tree):
    put(tree, "build/x", "")
    assert {p.name for p in rooms.tracked(tree)} == {"ARCHITECTURE.md", "low.h", "mid.c"}


def test_rules_page_tool_refuses(tmp_path):
    for name in ("tools/gen-rules-page", "src/model/layers.def"):
        path = put(tmp_path, name, (rooms.repository() / name).read_text())
        path.chmod(0o755)
    put(tmp_path, "src/model/rules.def", '#include "model/rules_x.def"\n')
    put(tmp_path, "src/model/rules_x.def", 'AQ_RULE(A, "l0.a", L0, 3, AQ_INFO, "T (x)", "W" "w", "F")\n')
    (tmp_path / "docs").mkdir()
    assert rooms.check_rules_page(tmp_path)
    subprocess.run([str(tmp_path / "tools/gen-rules-page")], check=True)
    assert rooms.check_rules_page(tmp_path) == []
    assert "**T (x)** (info, A3). Ww *What to do:* F" in (tmp_path / "docs/rules.md").read_text()
