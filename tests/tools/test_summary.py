"""tools/test-summary: no failure can hide from the last line."""
import json
import pathlib
import subprocess
import xml.sax.saxutils

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/test-summary"


def meson_log(folder, *tests):
    """(name, result, [(case, outcome)]) as meson 1.0 writes them."""
    logs = folder / "meson-logs"
    logs.mkdir(parents=True, exist_ok=True)
    suites, lines = [], []
    for name, result, cases in tests:
        lines.append(json.dumps({"name": name, "result": result, "returncode": 0, "stdout": "seen"}))
        inner = "".join(
            f"<testcase name={xml.sax.saxutils.quoteattr(case)}>{outcome}</testcase>"
            for case, outcome in cases
        )
        if cases:
            suites.append(f'<testsuite name="aquarium.{name}">{inner}</testsuite>')
    (logs / "testlog.json").write_text("\n".join(lines))
    (logs / "testlog.junit.xml").write_text(f"<testsuites>{''.join(suites)}</testsuites>")
    return folder


def run(*arguments, ci=""):
    out = subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, text=True,
                         env={"CI": ci, "PATH": "/usr/bin:/bin"}, check=False)  # fmt: skip
    assert not out.stderr
    return out.returncode, out.stdout.splitlines()


def test_good(tmp_path):
    meson_log(tmp_path, ("p:unit / a", "OK", [("1", ""), ("2", "")]), ("p:fuzz / b", "OK", []))
    assert run("--meson", tmp_path) == (0, ["3 passed, 0 failed, 0 skipped"])


@pytest.mark.parametrize(
    "test, line",
    [
        (("a", "FAIL", [("1", ""), ("2", "<failure/>")]), "1 passed, 1 failed, 0 skipped"),
        (("a", "ERROR", [("1", "")]), "1 passed, 1 failed, 0 skipped"),  # died after its last ok
        (("a", "TIMEOUT", []), "0 passed, 1 failed, 0 skipped"),
        (("a", "FAIL", []), "0 passed, 1 failed, 0 skipped"),
        (("a", "INTERRUPT", []), "0 passed, 1 failed, 0 skipped"),
    ],
)
def test_bad(tmp_path, test, line):
    status, lines = run("--meson", meson_log(tmp_path, test))
    assert status == 1 and lines[-1] == line


def test_nothing_ran(tmp_path):
    (tmp_path / "x.xml").write_text("<testsuites/>")
    assert run("--junit", tmp_path / "x.xml")[0] == 1
    assert run("--junit", tmp_path / "absent.xml")[0] == 1
    assert run("--meson", tmp_path / "absent")[0] == 1
    assert run()[0] == 1


@pytest.mark.parametrize(
    "reason, ci, status",
    [("no KVM: missing hardware", "1", 0), ("AQUARIUM_DATA: none", "1", 0), ("lazy", "1", 1),
     ("lazy", "", 0)],
)  # fmt: skip
def test_skips(tmp_path, reason, ci, status):
    path = tmp_path / "x.xml"
    path.write_text(f'<testsuites><testcase name="a"/><testcase name="b"><skipped message="{reason}"/>'
                    "</testcase></testsuites>")  # fmt: skip
    got, lines = run("--junit", path, ci=ci)
    assert got == status
    assert lines[-1] == ("1 passed, 0 failed, 1 skipped" if status == 0 else
                         "1 passed, 1 failed, 0 skipped")  # fmt: skip
