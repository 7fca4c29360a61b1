"""One act that hangs on one bit of one decoy is seen, at that act and nowhere else; what hangs on nothing is not."""
import functools
import json
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others

DEPEND = PROGRAM.parent / "tests/sensitivity/depend"
START = ("--start", "2026-05-01T09:00:00Z", "--resolve", "odd.example.org", "--quiet")

# What the side that acts has more: operations in order, what they are done to, and what else of the run differs by it.
ACTS = {
    "open": (["open"], "/etc/hostname", set()),
    "stat": (["stat"], "/usr/bin/env", set()),
    "write": (["open", "write", "totals"], "/tmp/left", {"change"}),
    "put": (["write", "totals"], "/tmp/open", {"change"}),
    "mkdir": (["mkdir"], "/tmp/folder", {"change"}),
    "unlink": (["unlink"], "/tmp/left", {"change"}),
    "connect": (["socket", "connect"], "127.0.0.1:9", set()),
    "reach": (["socket", "connect", "peer-connection", "peer-closed"], "93.184.216.34:80", set()),
    "exec": (["fork", "signal", "wait", "exec"], "/usr/bin/true", {"thread"}),
    "thread": (["thread", "after"], "depend", {"thread"}),
    "sleep": (["sleep"], None, set()),
    "signal": (["kill"], None, set()),
    "code": (["writable-code"], None, set()),
}
SOURCE = "AWS_SECRET_ACCESS_KEY"
SOURCES = [SOURCE, "DATABASE_URL", "VAULT_TOKEN", "./.vault-token", ".cache/huggingface/token"]


@functools.lru_cache(maxsize=None)
def value(seed, world, source):
    """What depend looks at: the last byte of the first line."""
    form = ["--file", source.removeprefix("./")] if "/" in source else ["--json"]
    said = subprocess.run([PROGRAM, "decoys", "show", "--seed", seed, "--world", world, *form], capture_output=True,
                          check=True).stdout
    text = said if "/" in source else json.loads(said)["environment"][source].encode()
    return text.split(b"\n")[0][-1]


def seed_where(a_acts, source):
    """A seed in which that world alone has an odd byte there."""
    for seed in map(str, range(200)):
        a, b = value(seed, "A", source) & 1, value(seed, "B", source) & 1
        if a != b and bool(a) == a_acts:
            return seed
    raise AssertionError(source)


@pytest.fixture
def compare(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    open_to_others(tmp_path)
    shutil.copy(DEPEND, place)
    place.chmod(0o755)

    def run(seed, *words, worlds="AB"):
        for name, world in zip("ab", worlds):
            done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", seed, "--world", world, *START, "--stream",
                                   tmp_path / name, "--events", tmp_path / f"{name}.events", "--", "./depend", *words],
                                  cwd=place, capture_output=True, timeout=60)
            assert done.returncode in (0, 7), done
        done = subprocess.run([PROGRAM, "compare", "--json", "--seed", seed, tmp_path / "a", tmp_path / "b"],
                              capture_output=True, timeout=60)
        assert done.returncode in (0, 1), done
        return json.loads(done.stdout)

    return run


def acts_of(said, side):
    """Acts that one side alone has; the sums of a process, told at its end, are no act."""
    other = "b" if side == "a" else "a"
    rows = [d for d in said["differences"] if d["kind"] in ("act", "thread")]
    rows = [d for d in rows if "calls" not in (d["a"] or d["b"] or {"args": {}})["args"]]
    assert all(d[other] is None for d in rows), rows
    return [d[side] for d in rows if d[side]]


@pytest.mark.parametrize("a_acts", [True, False], ids=["A-acts", "B-acts"])
@pytest.mark.parametrize("act", ACTS)
def test_one_act(compare, act, a_acts):
    """It is on the side that acts, the other does nothing instead, and nothing else differs."""
    said = compare(seed_where(a_acts, SOURCE), act, SOURCE, "odd")
    ops, target, more = ACTS[act]
    done = acts_of(said, "a" if a_acts else "b")
    assert said["result"] == "different" and not said["left_out"] and not said["coarse"]
    assert [line["op"] for line in done] == ops, done
    assert target is None or any(target in (line["object"] or "") for line in done), done
    assert {d["kind"] for d in said["differences"]} - {"act"} == more, said["differences"]
    first = [d for d in said["differences"] if d["first"] and d["kind"] == "act"]
    assert len(first) == 1 and (first[0]["a"] or first[0]["b"]) == done[0]


@pytest.mark.parametrize("a_acts", [True, False], ids=["A-acts", "B-acts"])
def test_one_byte(compare, a_acts):
    """One byte more of output."""
    said = compare(seed_where(a_acts, SOURCE), "output", SOURCE, "odd")
    side, other = ("a", "b") if a_acts else ("b", "a")
    output = [d for d in said["differences"] if d["kind"] == "output"]
    assert len(output) == 1 and output[0]["where"] == "stdout"
    assert output[0][side]["output"]["bytes"] == output[0][other]["output"]["bytes"] + 1
    assert {d["kind"] for d in said["differences"]} == {"act", "output"}
    told = [d for d in said["differences"] if d["kind"] == "act" and "calls" not in (d["a"] or d["b"])["args"]]
    assert [(d["a"] or d["b"])["op"] for d in told] == ["write", "totals"]
    assert told[0]["first"] and told[0][other] is None and told[0][side]["object"] == "pipe"
    assert told[1][side]["args"]["written"] == told[1][other]["args"]["written"] + 1


# The same acts in both worlds, and one byte is another one: the act that shows it, on what, by which argument, and what
# else of the run differs by it.
BYTES = {
    "removed": ("write", "/tmp/gone", "content", set()),
    "overwritten": ("write", "/tmp/twice", "content", set()),
    "kept": ("write", "/tmp/kept", "content", {"change"}),
    "letter": ("write", "pipe", "content", {"output"}),
    "pipe": ("write", "pipe", "content", set()),
    "vector": ("write", "pipe", "content", set()),
    "waiting": ("write", "pipe", "content", set()),
    "datagram": ("send", "socket:2/2", "content", set()),
    "message": ("send", "socket:1/1", "content", set()),
    "child": ("exec", "/usr/bin/true", "environment", set()),
    "many": ("totals", "/tmp/gone", "content", set()),
    "again": ("repeat", "/tmp/gone", "content", set()),
}


@pytest.mark.parametrize("a_odd", [True, False], ids=["A-odd", "B-odd"])
@pytest.mark.parametrize("way", BYTES)
def test_another_byte(compare, way, a_odd):
    """One byte is another one, wherever it went: at that act, and nowhere else."""
    said = compare(seed_where(a_odd, SOURCE), way, SOURCE, "odd")
    op, target, argument, more = BYTES[way]
    (row,) = [d for d in said["differences"] if d["kind"] == "act"]
    assert {d["kind"] for d in said["differences"]} - {"act"} == more, said["differences"]
    assert row["first"] and row["a"]["op"] == row["b"]["op"] == op and row["a"]["object"] == row["b"]["object"] == target
    assert row["a"]["args"].pop(argument) != row["b"]["args"].pop(argument)
    assert row["a"] == row["b"]


# The same through the internet: who shows it, the first first.
SENT = {
    "request": [("http-request", "target"), ("peer-http", "target"), ("peer-closed", "digest")],
    "body": [("peer-http", "body"), ("peer-closed", "digest")],
}


@pytest.mark.parametrize("way", SENT)
def test_another_byte_sent(compare, way):
    """A letter of a request is told by who sent it and by who read it, and nothing else differs."""
    said = compare(seed_where(True, SOURCE), way, SOURCE, "odd")
    rows = said["differences"]
    assert [(d["kind"], d["a"]["op"], d["b"]["op"]) for d in rows] == [("act", op, op) for op, _ in SENT[way]]
    for d, (_, argument) in zip(rows, SENT[way]):
        assert d["a"]["object"] == d["b"]["object"] and d["a"]["result"] == d["b"]["result"]
        assert d["a"]["args"][argument] != d["b"]["args"][argument]


@pytest.mark.parametrize("a_acts", [True, False], ids=["A-acts", "B-acts"])
def test_one_name(compare, a_acts):
    """One asks for a host, the other for none."""
    said = compare(seed_where(a_acts, SOURCE), "name", SOURCE, "odd")
    done = acts_of(said, "a" if a_acts else "b")
    assert {line["object"] for line in done if line["op"] in ("dns-query", "peer-dns")} == {"odd.example.org"}
    assert {d["kind"] for d in said["differences"]} == {"act"}


@pytest.mark.parametrize("a_acts", [True, False], ids=["A-acts", "B-acts"])
def test_status(compare, a_acts):
    """It ends there, with another status."""
    said = compare(seed_where(a_acts, SOURCE), "status", SOURCE, "odd")
    ends = [d for d in said["differences"] if d["kind"] == "exit"]
    assert len(ends) == 1 and ends[0]["a" if a_acts else "b"]["exit"]["value"] == 7
    assert ends[0]["b" if a_acts else "a"]["exit"]["value"] == 0


@pytest.mark.parametrize("a_odd", [True, False], ids=["A-odd", "B-odd"])
def test_who_woke_it(compare, a_odd):
    """The same acts in every thread, but another one woke it: that edge, and nothing else."""
    said = compare(seed_where(a_odd, SOURCE), "waker", SOURCE, "odd")
    (row,) = said["differences"]
    odd, even = ("a", "b") if a_odd else ("b", "a")
    assert said["result"] == "different" and row["kind"] == "act" and row["where"] == "p1.t2" and row["first"]
    assert row[odd]["op"] == row[even]["op"] == "after"
    assert row[odd]["args"] == {"how": "futex", "thread": "p1.t1"} and row[even]["args"] == {"how": "futex", "thread": "p1"}


def test_who_came_first(compare, tmp_path):
    """Threads that have nothing to do with each other, in another order: the same run."""
    said = compare(seed_where(True, SOURCE), "order", SOURCE, "odd")
    assert said["result"] == "identical" and not said["differences"]
    order = [[e["object"] for line in (tmp_path / f"{name}.events").read_text().splitlines()[1:-1]
              if (e := json.loads(line))["op"] == "open" and e["object"] in ("/etc/hostname", "/etc/hosts")] for name in "ab"]
    assert order == [["/etc/hosts", "/etc/hostname"], ["/etc/hostname", "/etc/hosts"]]


@pytest.mark.parametrize("source", SOURCES)
def test_every_source(compare, source):
    """Wherever the decoy was read."""
    seed = seed_where(True, source)
    said = compare(seed, "open", source, "odd")
    assert any("/etc/hostname" in str(d["a"]) for d in said["differences"]), said
    assert compare(seed, "open", source, "never")["result"] == "identical"


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("act", [*ACTS, "output", "name", *BYTES, *SENT])
def test_no_act_hangs_on_it(compare, act, when):
    """The same program that reads and does not care is identical: in both worlds, and twice in one."""
    seed = seed_where(True, SOURCE)
    said = compare(seed, act, SOURCE, when)
    assert said["result"] == "identical" and said["equal"] and not said["differences"], said["differences"]


def test_same_world(compare):
    """What hangs on a decoy does the same where the decoy is the same."""
    seed = seed_where(True, SOURCE)
    for world in "AB":
        assert compare(seed, "open", SOURCE, "odd", worlds=2 * world)["result"] == "identical"
