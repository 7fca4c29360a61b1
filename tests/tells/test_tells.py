"""What a program can find out about where it runs: in a world only what open.tsv has; and every tell is one, because it is natural
somewhere and shows somewhere: in a plain sandbox or in a place that was bent for it (bent.py). unbent.tsv has the few for which
no such place could be made, and why."""
import json
import os
import re
import shutil
import subprocess

import pytest

import bent
import tells
from conftest import open_to_others

MOST = 5  # rows of open.tsv; may only be lowered

# What may be left at the end, by its cause. The list is closed: SECURITY.md has a row for each cause.
CLOSED = {
    "work takes no time": {"time.work_takes_time", "time.work_takes_processor_time", "time.counter_sees_work"},
    "nobody can trace": {"calls.trace_child"},
    "nobody gains rights": {"user.become_root"},
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    return {(seed, side): tells.in_world(tmp_path_factory.mktemp("world"), seed, side)
            for seed, side in (("1", "A"), ("1", "B"), ("other", "A"))}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    folder = tmp_path_factory.mktemp("native")
    open_to_others(folder)
    return tells.natively(folder)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    assert shutil.which("bwrap"), "bubblewrap is not installed; run tools/setup test"
    return tells.plainly(tmp_path_factory.mktemp("plain"))


def shown(found):
    return {name for name, t in found.items() if not t.natural}


def test_enough(worlds):
    found = worlds["1", "A"]
    groups = {name.split(".")[0] for name in found}
    assert len(found) >= 200 and groups >= {"files", "proc", "sys", "calls", "time", "network", "entropy", "processes", "persona",
                                            "user", "tools", "processor"}


def test_nothing_new_shows(worlds):
    known = tells.table("open.tsv")
    for world, found in worlds.items():
        new = {name: found[name].seen for name in shown(found) - set(known)}
        assert not new, (world, new)


def test_table_shrinks(worlds):
    """A row whose tell shows in no world any more must go."""
    over = set(tells.table("open.tsv")) - set.union(*map(shown, worlds.values()))
    assert not over, "covered, so it goes from open.tsv, from CLOSED and from SECURITY.md"
    assert all(len(row) == 2 for row in tells.table("open.tsv").values())
    assert len(tells.table("open.tsv")) <= MOST


def test_what_is_left_is_closed():
    """All that shows is on the closed list, every cause is told of, and nothing is on the list that is covered."""
    known, closed = tells.table("open.tsv"), set.union(*CLOSED.values())
    security = (tells.HERE.parent.parent / "SECURITY.md").read_text()
    told = dict(re.findall(r"^\| ([a-z0-9 ]+) \|.*\| ((?:`[a-z_.]+`(?:, )?)+) \|$", security, re.M))
    assert {cause: set(re.findall(r"`([^`]+)`", names)) for cause, names in told.items()} == CLOSED
    assert set(known) == closed


@pytest.mark.parametrize("name", bent.PLACES)
def test_bent(tmp_path, name):
    """Whatever a place was bent for shows there."""
    folder, laid = tmp_path / "folder", tmp_path / "laid"
    folder.mkdir()
    laid.mkdir()
    tells.place(folder)
    shutil.copy(bent.__file__, folder)
    found, done = bent.look(tells, name, folder, laid)
    wanted = set(bent.PLACES[name].shows.split())
    assert set(found) == wanted, done
    assert not {n: t.seen for n, t in found.items() if t.natural}


def test_children_that_cannot_come(tmp_path):
    """As a user who may have no third process."""
    tells.place(tmp_path)
    open_to_others(tmp_path)
    other = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"] if os.geteuid() == 0 else []
    said = subprocess.run([*other, "prlimit", "--nproc=2", "./probe", "processes.children"], cwd=tmp_path, capture_output=True,
                          check=True, timeout=60).stdout.decode()
    assert shown(tells.read(said)) == {"processes.children"}, said


def test_every_tell_can_show(plain):
    """Not for want of a place: a check that nobody saw fail may be one that cannot."""
    bends = {"processes.children"} | {n for place in bent.PLACES.values() for n in place.shows.split()}
    unbent = set(tells.table("unbent.tsv"))
    assert set(plain) - shown(plain) - bends <= unbent and not unbent & bends
    assert len(unbent) <= 3
    assert len(shown(plain)) >= 100


def test_no_tell_always_shows(worlds, native, plain):
    """What shows everywhere checks nothing either."""
    always = tells.table("native.tsv")
    nowhere = set(native) - shown(native) | set(plain) - shown(plain) | set.union(*(set(w) - shown(w) for w in worlds.values()))
    assert not set(native) - nowhere - set(always) - set(tells.table("open.tsv"))


def test_sides_show_alike(worlds):
    assert shown(worlds["1", "A"]) == shown(worlds["1", "B"])


def test_files_of_every_machine():
    """What a world brings has its empty place there: else /etc is made anew, at ten times the price. The kernel is the
    machine's."""
    machine = tells.PROGRAM.parent / "machine"
    world = json.loads(subprocess.run([tells.PROGRAM, "decoys", "show", "--seed", "1", "--json"], capture_output=True,
                                      check=True).stdout)
    brought = [f["path"] for f in world["files"] if f["path"].startswith(("/etc/", "/var/log/")) or f["path"] == "/run/utmp"]
    assert len(brought) > 8 and not [path for path in brought if not (machine / path[1:]).is_file()]
    assert (machine / f"boot/vmlinuz-{world['facts']['kernel.release']}").stat().st_size > 4_000_000
    rows = re.findall(r'AQ_(?:BASE|REST)\((\w+), "(/(?:etc|run|var|boot)/[^"]+)"', (tells.HERE.parent.parent / "src/sandbox/base.def").read_text())
    points = [path for kind, path in rows if kind != "SPACE"]
    assert len(points) > 15 and not [p for p in points if not os.path.lexists(machine / p[1:])]
