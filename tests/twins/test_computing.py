"""Threads that compute for long beside others, or count while they wait for them. The host's clock decides who runs
then, and the record says so; and with that record as the schedule of other runs nothing is left to the clock."""
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import PROGRAM, open_to_others, schema

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import programs  # noqa: E402

NODE = shutil.which("node")
ROUNDS = 3
PYTHON = {
    "python-count": """
import threading, time
done = []
def spin():
    n = 0
    while not done: n += 1
    print(n)
t = threading.Thread(target=spin)
t.start(); time.sleep(0.1); done.append(1); t.join()""",
    "python-turns": """
import threading, sys
sys.setswitchinterval(1e-4)
out, here = [], []
def work(me):
    n = 0
    here.append(me)
    while len(here) < 3: n += 1
    for i in range(200000):
        n += i
        if i % 20000 == 0: out.append((me, i))
    print(me, n)
ts = [threading.Thread(target=work, args=(m,)) for m in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
print(out)""",
}
WORKER = """
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
if (isMainThread) {
  const a = new Int32Array(new SharedArrayBuffer(8));
  const w = new Worker(__filename, { workerData: a }), i = setInterval(() => { Atomics.add(a, 0, 1); }, 20);
  w.on('message', m => { clearInterval(i); console.log(m, a[0]); });
} else {
  let n = 0, s = 0;
  while (Atomics.load(workerData, 0) < 3) n++;
  for (let i = 0; i < 1e7; i++) s = (s * 31 + i) % 1000003;
  parentPort.postMessage([n, s]);
}
"""
SHARED = """
const { Worker, isMainThread, workerData } = require('worker_threads');
if (isMainThread) {
  const a = new Int32Array(new SharedArrayBuffer(8));
  new Worker(__filename, { workerData: a });
  setTimeout(() => { let n = 0; while (!a[0]) n++; console.log('met', n); }, 50);
} else setTimeout(() => { workerData[0] = 1; }, 100);
"""
# What no other thread could tell from a proven spin is not here: all of them count.
ACTS = ["flag", "turns", "sleeper", "alarms", "ball", "adds", "copies", "blocks", "traps", "changes", "registers"]


def rows():
    yield from ((name, ["./twins_computes", name]) for name in ACTS)
    yield from ((name, [programs.PY, "-c", code]) for name, code in PYTHON.items())
    if NODE:
        yield from ((name, [NODE, f"{name}.js"]) for name in ("node-worker", "node-shared"))


ROWS = dict(rows())


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("computing")
    shutil.copy(PROGRAM.parent / "tests/twins/twins_computes", folder)
    (folder / "node-worker.js").write_text(WORKER)
    (folder / "node-shared.js").write_text(SHARED)
    open_to_others(folder)
    return folder


@pytest.fixture(scope="session")
def load():
    busy = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"]) for _ in range(2)]
    yield busy
    for b in busy:
        b.kill()
        b.wait()


def run(place, words, stream, *options):
    done = subprocess.run([PROGRAM, "run", "--quarantine", *programs.WORLD, "--stream", stream, "--json", *options, "--",
                           *words], cwd=place, capture_output=True, timeout=280)
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    schema("run.schema.json").validate(said)
    assert said["complete"] and said["exit_status"] == 0, (said["observation"]["exit"], done.stderr)
    return said, done.stderr.decode()


def hasty(place, words, stream):
    """A run that the clock decides soon, by what the programs are: each waits until it was interrupted."""
    return run(place, words, stream, "--limit", "turn-ms=20")


def repeats(place, words, tmp_path):
    """The record of a run that nothing but program and schedule decided, and what that said."""
    said, _ = hasty(place, words, tmp_path / "0")
    assert said["not_repeatable"] == ["computing"]
    for n in range(1, ROUNDS + 1):
        said, out = run(place, words, tmp_path / f"{n}", "--schedule", tmp_path / f"{n - 1}")
        if said["repeatable"]:
            return tmp_path / f"{n}", said, out
        assert said["not_repeatable"] == ["computing"]
    pytest.fail(f"not repeatable after {ROUNDS} rounds")


@pytest.mark.parametrize("name", ROWS)
def test_a_schedule_makes_it_repeat(place, tmp_path, load, name):
    """The record of the run is the schedule of four more, one of them in the other world."""
    del load
    words = ROWS[name]
    schedule, first, out = repeats(place, words, tmp_path)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        more = [pool.submit(run, place, words, tmp_path / f"again-{n}", "--schedule", schedule, "--world", world)
                for n, world in enumerate("AAAB")]
        for one, said in (m.result() for m in more):
            assert one["repeatable"] and said == out
            assert one["canonical_digest"] == first["canonical_digest"]
            if one["world"]["side"] == "A":
                assert one["observation_digest"] == first["observation_digest"], "the order of events differs"


def acts(place, tmp_path, words, *options):
    run(place, words, tmp_path / "s", "--events", tmp_path / "e", *options)
    return [json.loads(line) for line in (tmp_path / "e").read_text().splitlines()[1:-1]]


def test_the_record_is_the_schedule(place, tmp_path):
    """Where the clock decided in the one, the other gives way by count; the canonical form has neither."""
    words = ["./twins_computes", "turns"]
    by_clock = [e for e in acts(place, tmp_path, words, "--limit", "turn-ms=20") if e["op"] == "preempted"]
    (tmp_path / "s").rename(tmp_path / "first")
    planned = acts(place, tmp_path, words, "--schedule", tmp_path / "first")
    made = [e for e in planned if e["op"] == "switched"]
    assert len(by_clock) > 3 and all(e["args"].pop("why") == "computing" for e in by_clock)
    assert [(e["process"], e["thread"], e["args"]) for e in made] == [(e["process"], e["thread"], e["args"]) for e in by_clock]
    assert not any(e["op"] == "preempted" for e in planned)


def test_the_schedule_of_something_else_changes_no_claim(place, tmp_path):
    """Its places are not met, or mean nothing: then the clock decides as ever, and that is told."""
    hasty(place, ["./twins_computes", "turns"], tmp_path / "other")
    said, _ = run(place, ["./twins_computes", "alarms"], tmp_path / "s", "--schedule", tmp_path / "other",
                  "--limit", "turn-ms=20")
    assert said["not_repeatable"] == ["computing"]
    said, _ = run(place, ["/bin/echo", "x"], tmp_path / "s", "--schedule", tmp_path / "other")
    assert said["repeatable"]


@pytest.mark.parametrize("name, told", [("ignores", "blocked 0 ignored 1 default 0 trapped 0"), ("nowhere", "over 1")])
def test_what_cannot_be_counted_is_recorded(place, tmp_path, name, told):
    """A program that ignores traps, and one that comes to no place often: no schedule comes of that, and no claim."""
    words = ["./twins_computes", name]
    _, out = hasty(place, words, tmp_path / "0")
    said, again = run(place, words, tmp_path / "1", "--schedule", tmp_path / "0", "--limit", "turn-ms=20")
    assert told in out and told in again
    assert said["not_repeatable"] == ["computing"]


@pytest.mark.parametrize("name, told", [("blocks", "blocked 1 ignored 0 default 0 trapped 0"),
                                        ("traps", "blocked 0 ignored 0 default 0 trapped 2"),
                                        ("spins", "blocked 1 ignored 0 default 0 trapped 0")])
def test_a_program_keeps_what_it_knows_of_traps(place, tmp_path, name, told):
    words = ["./twins_computes", name]
    _, out = hasty(place, words, tmp_path / "0")
    _, again = run(place, words, tmp_path / "1", "--schedule", tmp_path / "0")
    assert told in out and told in again


def test_who_only_reads_the_counter_lets_others_go(place, tmp_path):
    said, _ = run(place, ["./twins_computes", "counter"], tmp_path / "0")
    assert said["repeatable"]


def test_a_file_that_is_no_record_is_refused(place, tmp_path):
    (tmp_path / "x").write_text("AQOBSV2\nno")
    for name in "x", "missing":
        done = subprocess.run([PROGRAM, "run", "--quarantine", *programs.WORLD, "--schedule", tmp_path / name, "--",
                               "true"], cwd=place, capture_output=True, timeout=60)
        assert done.returncode == 64 and b"--schedule" in done.stderr
