"""What a run leaves in its writable places, as told of runs that make it hard: too deep, too long, too
much, closed, named to deceive. The result is given all the same, and what is not told is said."""
import os
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others
from test_run import Runner

PLAIN = 12345  # a user who exists nowhere


class LeavingRunner(Runner):
    """Runs as root or as a plain user."""

    def __init__(self, place, user):
        super().__init__(place)
        self.user = user
        self.program = shutil.copy(PROGRAM, place.parent / "aquarium")

    def run(self, *command, options=(), input=None, timeout=120):
        drop = ["setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups"]
        start = drop if self.user == "plain" and os.geteuid() == 0 else []
        return subprocess.run([*start, self.program, "run", "--quarantine", *map(str, options), "--",
                               *map(str, command)], cwd=self.place, timeout=timeout, capture_output=True)

    def python(self, code, **more):
        said, events = self.json("/usr/bin/python3", "-c", code, **more)
        return said, {c["path"]: c["change"] for c in said["observation"]["changes"]}


@pytest.fixture(params=["root", "plain"])
def runner(request, tmp_path):
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    place = tmp_path / "place"
    place.mkdir()
    tmp_path.chmod(0o777)
    open_to_others(tmp_path)
    return LeavingRunner(place, request.param)


DEEP = """
import os
os.chdir({where!r})
for i in range({depth}):
    os.mkdir({name!r}); os.chdir({name!r})
open("bottom", "w").write("x")
"""


def test_folders_in_folders(runner):
    for where in (str(runner.place), "/tmp"):
        said, changes = runner.python(DEEP.format(where=where, depth=128, name="d"))
        assert said["exit_status"] == 0 and said["truncated"] is False
        assert changes[where + "/d" * 128 + "/bottom"] == "A" and len(changes) == 129
        said, changes = runner.python(DEEP.format(where=where, depth=1000, name="d"))
        assert said["exit_status"] == 0 and said["truncated"] is True
        deepest = where + "/d" * 129 + "/"
        assert changes[deepest] == "U" and len(changes) == 129
        assert [p for p, c in changes.items() if c != "A"] == [deepest]


def test_long_names(runner):
    """Beyond what one path of the kernel may have, and beyond what ours may."""
    said, changes = runner.python(DEEP.format(where="/tmp", depth=40, name="n" * 250))
    assert said["truncated"] is False and max(map(len, changes)) > 10000
    said, changes = runner.python(DEEP.format(where="/tmp", depth=128, name="n" * 255))
    assert said["exit_status"] == 0 and said["truncated"] is True
    assert list(changes.values()).count("U") == 1


@pytest.mark.large
def test_more_than_can_be_told(runner):
    code = DEEP.format(where="/tmp", depth=120, name="n" * 250) + "for i in range(1300): open(f'{i}', 'w').close()"
    said, changes = runner.python(code)
    assert said["exit_status"] == 0 and said["truncated"] is True
    assert changes["/tmp/"] == "U" and changes["/tmp/" + "n" * 250 + "/"] == "A"
    assert sum(map(len, changes)) < 40 << 20
    said, changes = runner.python("for i in range(10**6): open(f'/tmp/{i}', 'w').close()",
                                  options=["--limit", "inodes=3000"])
    assert said["observation"]["exit"] == {"kind": "budget", "value": 7} and said["truncated"] is False
    assert len(changes) > 2900


def test_closed_places(runner):
    said, changes = runner.python("import os\nos.mkdir('closed'); open('closed/x', 'w').write('1'); "
                                  "os.chmod('closed/x', 0); os.chmod('closed', 0); os.mkdir('/tmp/shut', 0)")
    here = str(runner.place)
    assert changes == {f"{here}/closed/": "A", f"{here}/closed/x": "A", "/tmp/shut/": "A"}
    assert said["truncated"] is False


NAMES = ["a\nb", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "x\r", "\u202eevil", "tab\t", "-rf", "*"]


def test_names_that_deceive(runner):
    code = f"import os\nfor n in {NAMES!r}: open('/tmp/' + n, 'w').write(n)\nopen(b'/tmp/\\xff', 'w').close()"
    said, changes = runner.python(code)
    assert said["exit_status"] == 0 and len(changes) == len(NAMES) + 1
    text = runner.run("/usr/bin/python3", "-c", code).stderr.decode()
    assert not [c for c in text if c != "\n" and (ord(c) < 32 or ord(c) == 127 or c == "\u202e")]
    assert "\\x1b[31mred" in text


def test_unread_is_said(runner):
    text = runner.run("/usr/bin/python3", "-c", DEEP.format(where="/tmp", depth=300, name="\x1bd")).stderr.decode()
    line, = [x for x in text.splitlines() if x.startswith("unread")]
    assert "is not told" in line and "\x1b" not in line and len(line) < 600


def test_changes_against_the_original(runner):
    for name in ("kept", "changed", "gone"):
        (runner.place / name).write_text(name)
    said, changes = runner.python("import os\nopen('changed', 'a').write('+'); os.remove('gone'); open('new', 'w')")
    here = str(runner.place)
    assert changes == {f"{here}/changed": "M", f"{here}/gone": "D", f"{here}/new": "A"}


def test_files_move_between_folders(runner):
    """As an editor, a package manager or git does it: into another folder of the same place."""
    said, changes = runner.python("""
import os
os.makedirs('/tmp/a/inner')
for n in ('/tmp/a/file', '/tmp/a/linked', 'here'): open(n, 'w').write('x')
os.rename('/tmp/a/inner', '/tmp/inner')
os.rename('/tmp/a/file', '/tmp/inner/file')
os.link('/tmp/a/linked', '/tmp/linked')
os.mkdir('below')
os.rename('here', 'below/there')
""")
    assert said["exit_status"] == 0
    assert {"/tmp/inner/file", "/tmp/linked", f"{runner.place}/below/there"} <= set(changes)
