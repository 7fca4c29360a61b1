"""The clocks that a program reads without a call: the library of the kernel, the pages beside it, the counter of the
processor. All of them say virtual time, and nothing brings the host's back."""
import json
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

FUNCTIONS = {"monotonic": 1, "coarse": 1, "invalid": -22, "resolution": 1, "day": 1, "time": 1, "cpu": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clocks")
    open_to_others(folder)
    shutil.copy(BUILD / "tests/observe/clocks", folder / "clocks")
    return folder


def run(place, *command, options=()):
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "1", "--quiet", *options, "--", *command],
                          cwd=place, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode()


@pytest.fixture(scope="module")
def said(place):
    """(name, number) in order, and the events."""
    out = run(place, "./clocks", options=["--events", place / "events.jsonl"])
    events = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
    return [(line.split()[0], int(line.split()[1])) for line in out.splitlines()], events


def test_the_library_makes_calls(said):
    rows, events = said
    at = rows.index(("functions", 1))
    assert ("there", 1) in rows and dict(rows[at + 1:at + 8]) == FUNCTIONS
    clocks = {(e["args"]["call"], e["args"]["clock"]) for e in events if e.get("op") == "now"}
    assert {("clock_gettime", 1), ("clock_gettime", 5), ("gettimeofday", 0), ("time", 0)} <= clocks


def test_nothing_brings_the_hosts_clock_back(said):
    rows, _ = said
    names = [name for name, _ in rows]
    assert dict(rows)["clock-page"] == 0, "the pages of the clock are empty"
    dropped, moved = names.index("dropped"), names.index("moved")
    assert rows[dropped:dropped + 3] == [("dropped", 0), ("dropped-locked", 0), ("same", 1)]
    assert dict(rows[dropped + 3:moved]) == FUNCTIONS
    assert rows[moved:moved + 2] == [("moved", 1), ("same", 1)]
    assert dict(rows[moved + 2:moved + 9]) == FUNCTIONS
    assert rows[-3:] == [("same-in-child", 1), ("unmapped", 0), ("once-more", 17)]


def test_the_counter_runs_at_the_machines_rate(place, said):
    rows = dict(said[0])
    khz = round(1000 * float(run(place, "grep", "-m1", "MHz", "/proc/cpuinfo").split(":")[1]))
    assert abs(rows["khz"] - khz) < khz / 1000 and abs(rows["since-start"] - khz) <= 1
    assert rows["forward"] == 1 and rows["aux"] < 4


def test_what_was_asked_of_the_counter_is_what_happens(place, said):
    """As natively, where nobody traps it."""
    native = subprocess.run([place / "clocks", "no library"], stdout=subprocess.PIPE, timeout=60, check=True)
    rows = [line.split() for line in native.stdout.decode().splitlines()]
    first = [name for name, _ in said[0]].index("set-odd")
    asked = [[name, str(value)] for name, value in said[0][first:first + 11]]
    assert asked == [row for row in rows if row[0] not in ("khz", "forward", "aux", "since-start")]


def test_atomic_time_is_the_days(said):
    rows = dict(said[0])
    assert rows["tai"] == 1 and rows["tai-sleep"] == 1000, "tenths of a second"


def test_clocks_there_are(place):
    """Which clocks exist, and what they can be used for, is as natively."""
    native = subprocess.run([place / "clocks", "numbers"], stdout=subprocess.PIPE, timeout=60, check=True)
    assert run(place, "./clocks", "numbers").splitlines() == native.stdout.decode().splitlines()


def test_maps_and_vector_agree(place):
    """The library is where the vector says, in the file as on the stack; the empty pages right below."""
    code = ("import ctypes, struct; v = open('/proc/self/auxv', 'rb').read(); "
            "v = dict(struct.unpack('QQ', v[i:i + 16]) for i in range(0, len(v), 16)); "
            "g = ctypes.CDLL(None).getauxval; g.restype = ctypes.c_ulong; "
            "rows = [r.split() for r in open('/proc/self/maps')]; "
            "i = [r[-1] for r in rows].index('[vdso]'); at = [int(x, 16) for x in rows[i][0].split('-')]; "
            "below = [int(x, 16) for x in rows[i - 1][0].split('-')]; "
            "print(v[33] == g(33) == at[0] == below[1], at[1] - at[0], below[1] - below[0], rows[i][1], rows[i - 1][1], rows[i - 1][-1])")  # fmt: skip
    assert run(place, "/usr/bin/python3", "-c", code).split() == ["True", "8192", "16384", "r-xp", "r--p", "[vvar]"]


PACE = """
import os, time
c = time.perf_counter_ns
def took(f):
    a = c(); f(); return c() - a
def child():
    if os.fork() == 0: os._exit(0)
    os.wait()
def many(): [os.getppid() for _ in range(1000)]
reads = [c() for _ in range(50)]
print([b - a for a, b in zip(reads, reads[1:])])
print([took(f) for f in (many, lambda: os.stat("/"), child, lambda: os.system("true"), lambda: time.sleep(0.01))])
print(took(lambda: open("/tmp/large", "wb").write(bytes(10**7))), time.clock_gettime_ns(5) % 4000000, time.clock_getres(6))
a = c(); n = 0
while c() - a < 10**7: n += 1
print(n)
"""


def test_time_passes_as_on_a_machine(place):
    """Reads of the clock, calls, births and sleeps take about what they take anywhere, and never the same twice. What
    is computed in between takes none: that cannot be measured the same way twice."""
    out = run(place, "/usr/bin/python3", "-c", PACE)
    reads, calls, (bytes_ns, coarse, resolution), (spins,) = [
        [float(x) for x in line.strip("[]").split(", " if "," in line else " ")] for line in out.splitlines()]
    assert all(20 <= ns <= 200 for ns in reads) and len(set(reads)) > 3
    many, stat, birth, system, sleep = calls
    assert 100_000 <= many <= 600_000 and 500 <= stat <= 5_000, calls
    assert 50_000 <= birth <= 1_000_000 and 400_000 <= system <= 10_000_000, calls
    assert 10_050_000 <= sleep <= 10_200_000, "a sleep ends a little late"
    assert 1_000_000 <= bytes_ns <= 50_000_000 and coarse == 0 and resolution == 0.004
    assert 500 <= spins <= 20_000, "who waits for the clock by reading it gets there"
    assert run(place, "/usr/bin/python3", "-c", PACE) == out


def test_a_short_program_is_short(place):
    run(place, "date", options=["--events", place / "events.jsonl"])
    last = json.loads((place / "events.jsonl").read_text().splitlines()[-2])
    assert 100_000 < last["time"] < 20_000_000


ALARM = """
import signal
rang = []
signal.signal(signal.SIGALRM, lambda *a: rang.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05)
while not rang: pass
print("rang")
"""
SPIN = """
import threading, time
done = []
def spin():
    while not done: pass
t = threading.Thread(target=spin)
t.start(); time.sleep(0.1); done.append(1); t.join()
print("met")
"""


COUNT = SPIN.replace("while not done: pass", "n = 0\n    while not done: n += 1")


@pytest.mark.parametrize("code, said, proven", [(ALARM, "rang", True), (SPIN, "met", True), (COUNT, "met", False)])
def test_work_without_a_call_does_not_stop_the_clock_for_ever(place, code, said, proven):
    """Alarms ring and sleepers wake while somebody works. Who only waits is seen to; who counts meanwhile
    is interrupted by the host's clock, and that this run does not repeat is told."""
    out = run(place, "/usr/bin/python3", "-c", code, options=["--events", place / "events.jsonl"])
    events = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
    assert out == said + "\n"
    told = any(e.get("op") == "preempted" and e["args"]["why"] == "computing" for e in events)
    assert told != proven


def test_nothing_but_the_library_is_in_its_page(place):
    """What a program did for us before it began (observe/script.h) is gone."""
    code = ("row = next(l for l in open('/proc/self/maps') if '[vdso]' in l); at = int(row.split('-')[0], 16)\n"
            "m = open('/proc/self/mem', 'rb'); m.seek(at); page = m.read(4096)\n"
            "print(page[:4] == b'\\x7fELF', any(page[0x8a0:]))")
    assert run(place, "/usr/bin/python3", "-c", code).split() == ["True", "False"]
