"""Identical twins: a program that runs again in the same world does the same again, thread by thread, whatever
else the machine does; and in the seed's other world it does the same as long as it makes nothing of decoys."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from conftest import PROGRAM, ROOT, open_to_others

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import programs  # noqa: E402

BUILD = PROGRAM.parent
ROWS = programs.rows()
SH = programs.SH
WORLD = programs.WORLD


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    programs.prepare(folder, BUILD)
    open_to_others(folder)
    return folder


@pytest.fixture(scope="session")
def load():
    """Something else that wants the processors."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"]) for _ in range(2)]
    yield busy
    for b in busy:
        b.kill()
        b.wait()


def run(place, tmp_path, name, words, world):
    stream = tmp_path / name
    done = subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, "--world", world, "--stream", stream, "--json",
                           "--limit", "wall-ms=100000", "--", *words], cwd=place, capture_output=True, timeout=150)
    said = json.loads(done.stdout)
    assert said["complete"] and said["repeatable"], (said["observation"]["exit"], said["not_repeatable"], compare(stream, stream))
    return said, stream


def compare(one, two, *options):
    done = subprocess.run([PROGRAM, "compare", "--seed", "twin", *options, one, two], capture_output=True, timeout=60)
    return done.stdout.decode()


def differs_in_content(d):
    """The same act or output of the same length, and other bytes."""
    if d["kind"] == "output":
        return d["a"]["output"]["bytes"] == d["b"]["output"]["bytes"]
    a, b = (dict(d[side], args=dict(d[side]["args"])) for side in "ab")
    return d["kind"] == "act" and a["args"].pop("content") != b["args"].pop("content") and a == b


@pytest.mark.parametrize("name, words", ROWS, ids=[name for name, _ in ROWS])
def test_twins(place, tmp_path, load, name, words):
    """Twenty runs in one world and one in the other; two and one of the slow ones, of which tests/soak/twins makes twenty."""
    del load
    worlds = "A" * (2 if name in programs.SLOW else 20) + "B"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(run, place, tmp_path, f"{n}-{world}", words, world) for n, world in enumerate(worlds)]
        (first, a), *again, (other, c) = (r.result() for r in runs)
    assert first["exit_status"] == other["exit_status"] == 0
    for one, b in again:
        assert one["exit_status"] == 0
        assert first["canonical_digest"] == one["canonical_digest"], compare(a, b)
        assert first["observation_digest"] == one["observation_digest"], "the order of events differs"
    if name in programs.TELL_DECOYS:
        said = json.loads(compare(a, c, "--json"))
        assert not said["left_out"] and all(differs_in_content(d) for d in said["differences"]), said["differences"]
    elif name not in programs.USE_DECOYS:
        assert first["canonical_digest"] == other["canonical_digest"], compare(a, c)


def test_there_are_enough():
    """Our own small programs do what few others do; they do not count."""
    often = [name for name, _ in programs.real() if name not in programs.SLOW]
    assert len(often) >= 40 and len(programs.SLOW) < 10 and programs.SLOW <= {name for name, _ in programs.real()}


def test_tools_are_installed_with_the_tests():
    listed = {words[1]: words[0] for line in (ROOT / "tools/packages.txt").read_text().splitlines()
              if len(words := line.split()) > 1 and not line.startswith("#")}
    assert {package: listed.get(package) for package in programs.TOOLS.values()
            if listed.get(package) not in ("build", "test")} == {}


def _count(place, tmp_path):
    """A program with a loop that counts while it waits."""
    source, program = tmp_path / "count.c", place / "count"
    source.write_text('''#include <pthread.h>
volatile int go; volatile long n;
static void *f(void *a) { go = 1; return a; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); while (!go) n++; return 0; }
''')
    subprocess.run(["cc", "-pthread", "-o", program, source], check=True)


def test_what_cannot_be_proven_is_recorded(place, tmp_path):
    """Such a loop comes to no state twice: the host's clock decides, and the record says so."""
    _count(place, tmp_path)
    done = subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, "--events", tmp_path / "e", "--json", "--", "./count"],
                          cwd=place, capture_output=True, timeout=150)
    said = json.loads(done.stdout)
    assert said["exit_status"] == 0 and said["complete"]
    assert not said["repeatable"] and said["not_repeatable"] == ["computing"]
    events = [json.loads(line) for line in (tmp_path / "e").read_text().splitlines()[1:-1]]
    assert [e["args"]["why"] for e in events if e["op"] == "preempted"] == ["computing"]


def test_a_run_that_the_clock_ends_is_not_repeatable(place):
    assert limited(place, SH, "-c", "while :; do :; done")["not_repeatable"] == ["wall-ms"]


def test_compare_says_what_may_not_repeat(place, tmp_path):
    """Two runs that the host's clock had a hand in: whatever they say, compare says that as well."""
    _count(place, tmp_path)
    for name in "ab":
        subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, "--quiet", "--stream", tmp_path / name, "--", "./count"],
                       cwd=place, capture_output=True, check=True, timeout=150)
    assert compare(tmp_path / "a", tmp_path / "b").count("it may not repeat") == 2
    said = json.loads(compare(tmp_path / "a", tmp_path / "b", "--json"))
    assert not said["a"]["repeatable"] and not said["b"]["repeatable"]


LIMITED = {"the signal": ("ulimit -St 1; trap 'exit 5' XCPU; while :; do :; done", 5),
           "the end": ("ulimit -t 1; while :; do :; done", 137)}


@pytest.mark.parametrize("how", LIMITED)
def test_a_limit_on_work_is_not_repeatable(place, how):
    """The program set it for itself, and the host's clock says when it is met."""
    command, status = LIMITED[how]
    said = report(place, "bash", "-c", command)
    assert said["exit_status"] == status and said["not_repeatable"] == ["limit"]


ENDS = {"disk-bytes=40000000": "open(f'/tmp/{n}', 'wb').write(b'x' * 999999)",
        "disk-bytes=8000000": "os.write(f, b'x' * 3000)",
        "output-bytes=100000": "os.write(1 + n % 2, b'x' * 777); os.stat('/tmp')",
        "output-bytes=1000000": "os.write(1, b'x' * 300000); os.stat('/tmp')",
        "output-bytes=70000": "os.lseek(f, 0, 0); os.sendfile(1, z, 0, 777); os.stat('/tmp')",
        "inodes=2000": "os.mkdir(f'/tmp/{n}'); os.stat('/tmp')",
        "io-bytes=3000000": "open('/dev/zero', 'rb', 0).read(1000)",
        "processes=20": "os.fork() or signal.pause()",
        "calls=5000": "os.getppid()",
        "memory=60000000": "kept.append(bytearray(100000)); os.getppid()"}


@pytest.mark.parametrize("limit", ENDS)
def test_a_limit_ends_a_run_at_the_same_place(place, load, limit):
    """Or says that it may not. The host is busy, and has looked at the run in between, or has not."""
    del load
    code = ("import os, signal\nkept, f = [], os.open('/tmp/f', os.O_RDWR | os.O_CREAT)\n"
            "z = os.open('/usr/bin/env', 0)\nfor n in range(10**9): " + ENDS[limit])
    said = [report(place, programs.PY, "-c", code, options=["--limit", limit]) for _ in range(3)]
    assert {one["exit_status"] for one in said} == {3}
    if limit.startswith("memory"):
        assert all(one["not_repeatable"] == ["memory"] for one in said)
    else:
        assert all(one["repeatable"] for one in said)
        assert len({one["observation_digest"] for one in said}) == 1
    if limit.startswith("output"):
        assert {sum(o["bytes"] for o in one["observation"]["outputs"]) for one in said} == {int(limit.split("=")[1])}


def test_all_that_a_limit_leaves_is_no_limit(place):
    """The twin: to the last byte."""
    said = report(place, programs.PY, "-c", "import os; os.write(1, b'x' * 60000); os.write(2, b'y' * 40000)",
                  options=["--limit", "output-bytes=100000"])
    assert said["exit_status"] == 0 and said["complete"]


def test_a_limit_that_is_not_met_changes_nothing(place):
    said = report(place, "bash", "-c", "ulimit -t 100; sleep 9 & kill -9 $!; wait $!")
    assert said["exit_status"] == 137 and said["repeatable"]


def report(place, *words, options=()):
    done = subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, *options, "--json", "--", *words], cwd=place,
                          capture_output=True, timeout=60)
    return json.loads(done.stdout)


def limited(place, *words):
    """A run that a limit ends, and how long it took."""
    done = subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, "--json", "--limit", "wall-ms=2000", "--", *words],
                          cwd=place, capture_output=True, timeout=60)
    said = json.loads(done.stdout)
    assert said["exit_status"] == 3 and said["observation"]["exit"]["kind"] == "budget"
    return said


def test_a_leader_that_computes_for_ever_can_be_killed(place):
    """It is not reported before its threads are reaped, and one of them waits."""
    limited(place, "./twins_acts", "leader-computes")


def test_who_spins_for_nothing_is_asleep(place):
    said = limited(place, "./twins_acts", "spins-for-nothing")
    assert said["repeatable"] and said["elapsed_ms"] < 2000


def test_a_child_of_vfork_that_is_stopped_holds_up_nobody(place):
    assert limited(place, "./twins_acts", "vfork-stopped")["elapsed_ms"] < 2000


def test_who_yields_lets_others_go_first(place):
    done = subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, "--quiet", "--", "./twins_waits", "yields"],
                          cwd=place, capture_output=True, timeout=60)
    assert done.returncode == 0 and 0 < int(done.stdout) < 10, done


def test_turns_do_not_depend_on_whoever_reads_the_output(place, tmp_path):
    """Once all output goes out at once, once nobody takes it before the end: the same events in the same order."""
    for name in "taken", "kept":
        ours, theirs = os.pipe()
        if name == "kept":
            os.set_blocking(theirs, False)
            with pytest.raises(BlockingIOError):
                while True:
                    os.write(theirs, bytes(4096))
            os.set_blocking(theirs, True)
        run = subprocess.Popen([PROGRAM, "run", "--quarantine", *WORLD, "--quiet", "--events", tmp_path / name, "--",
                                "./twins_waits", "in-vain"], cwd=place, stdout=theirs)
        os.close(theirs)
        if name == "kept":
            time.sleep(1)
        with open(ours, "rb") as stream:
            out = stream.read().lstrip(b"\0")
        assert run.wait(timeout=60) == 0 and out == b"o" * 48000
    taken, kept = ([json.loads(line) for line in (tmp_path / name).read_text().splitlines()] for name in ("taken", "kept"))
    assert taken[:-1] == kept[:-1] and taken[-1]["digest"] == kept[-1]["digest"]


KERNEL = [("twins_acts", act) for act in ("bad-masks", "lock-circle")]
KERNEL += [("twins_waits", "inotify")]
KERNEL += [("twins_unsent", act) for act in ("pipe", "socket", "folder", "urgent", "key", "hang-up", "background",
                                             "file-limit", "held-back", "halted", "too-much")]


@pytest.mark.parametrize("program, act", KERNEL, ids=[act for _, act in KERNEL])
def test_answers_are_those_of_the_kernel(place, tmp_path, program, act):
    inside = subprocess.run([PROGRAM, "run", "--quarantine", *WORLD, "--quiet", "--", f"./{program}", act],
                            cwd=place, capture_output=True, timeout=60)
    outside = subprocess.run([place / program, act], cwd=tmp_path, capture_output=True, timeout=60)
    assert inside.stdout == outside.stdout and inside.returncode == outside.returncode == 0
