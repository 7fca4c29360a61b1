"""aquarium compare: identical, or where two runs part."""
import hashlib
import json
import re

import pytest

from conftest import ROOT, schema

START = ("--seed", "7", "--start", "2026-05-01T09:00:00Z", "--quiet")


@pytest.fixture
def record(aquarium, tmp_path):
    """Runs a command and returns the path of its stream."""
    def run(name, *words, options=(), world="A"):
        aquarium.run("run", "--quarantine", *START, "--world", world, "--stream", tmp_path / name, *options,
                     "--", *words, cwd="/", timeout=60)
        return tmp_path / name
    return run


def compared(aquarium, check, *args):
    said = json.loads(aquarium.run("compare", "--json", *args, check=check).stdout)
    schema("comparison.schema.json").validate(said)
    return said


def test_identical(aquarium, record):
    one, two = (record(name, "sh", "-c", "echo hi; ls / | wc -l") for name in "ab")
    said = compared(aquarium, 0, one, two)
    assert said["result"] == "identical" and said["equal"] and said["differences"] == []
    text = aquarium.run("compare", one, two, check=0).stdout.decode()
    assert text.startswith("identical") and said["a"]["canonical_digest"] in text and "1 threads" not in text


def test_one_act_more(aquarium, record):
    one = record("a", "sh", "-c", "ls /; (ls /etc); echo done")
    two = record("b", "sh", "-c", "ls /; (cat /etc/shadow); echo done")
    said = compared(aquarium, 1, one, two)
    acts = [d for d in said["differences"] if d["kind"] == "act"]
    assert acts[0]["where"] == "p1" and acts[0]["first"]  # the shell's own words
    child = [d for d in acts if d["where"] == "p1.p2"]
    assert child[0]["first"] and not any(d["first"] for d in child[1:])
    assert "/usr/bin/ls" in str([d["a"] for d in child]) and "/usr/bin/cat" in str([d["b"] for d in child])
    assert not [d for d in acts if d["where"] == "p1.p1"]
    assert {"output"} <= {d["kind"] for d in said["differences"]}
    text = aquarium.run("compare", one, two, check=1).stdout.decode()
    assert text.startswith("different") and "p1.p2" in text and "/etc/shadow" in text


def test_process_that_one_side_alone_has(aquarium, record):
    one, two = record("a", "sh", "-c", ":; echo x"), record("b", "sh", "-c", "ls>/dev/null; echo x")
    said = compared(aquarium, 1, one, two)
    assert [d["where"] for d in said["differences"] if d["kind"] == "thread"] == ["p1.p1"]
    assert said["differences"][-1]["kind"] != "exit"


def test_worlds_of_a_seed(aquarium, record):
    """What a program does with its decoys is the same act in both worlds; what it makes of them is not."""
    use = "cat ~/.aws/credentials; test -e ~/.ssh/id_rsa; echo $HOME > /tmp/x"
    one, two = record("a", "sh", "-c", use), record("b", "sh", "-c", use, world="B")
    assert compared(aquarium, 0, "--seed", "7", one, two)["result"] == "identical"
    use += "; echo $HOME | tr a-z n-za-m > /tmp/y"
    one, two = record("a", "sh", "-c", use), record("b", "sh", "-c", use, world="B")
    assert compared(aquarium, 1, one, two)["result"] == "different"
    assert "without --seed" in aquarium.run("compare", one, two, check=1).stdout.decode()
    said = compared(aquarium, 1, "--seed", "7", one, two)
    assert {(d["kind"], d["where"]) for d in said["differences"]} == {("act", "p1.p3"), ("change", "/tmp/y")}


def test_what_depends_on_a_value(aquarium, record):
    """One reads the secret and does nothing with it, the other asks which one it is."""
    quiet = [record("q" + world, "sh", "-c", 'test -n "$AWS_SECRET_ACCESS_KEY"', world=world) for world in "AB"]
    assert compared(aquarium, 0, "--seed", "7", *quiet)["equal"]
    asks = 'case "$(printf %s "$AWS_SECRET_ACCESS_KEY" | sha256sum)" in HASH*) ls /tmp;; esac'
    shown = json.loads(aquarium.run("decoys", "show", "--seed", "7", "--json", check=0).stdout)
    value = shown["environment"]["AWS_SECRET_ACCESS_KEY"]
    asks = asks.replace("HASH", hashlib.sha256(value.encode()).hexdigest()[:16])
    said = compared(aquarium, 1, "--seed", "7",
                    *(record(world, "sh", "-c", asks, world=world) for world in "AB"))
    alone = [d for d in said["differences"] if d["kind"] == "thread"]
    assert len(alone) == 1 and "/usr/bin/ls" in str(alone[0]["a"]) and alone[0]["b"] is None


def test_incomplete(aquarium, record):
    one = record("a", "sh", "-c", "while :; do :; done", options=("--limit", "wall-ms=300"))
    said = compared(aquarium, 3, one, one)
    assert said["result"] == "incomplete" and said["equal"] and not said["a"]["complete"]
    assert "not whole: a limit ended it" in aquarium.run("compare", one, one, check=3).stdout.decode()


def test_what_is_no_stream(aquarium, tmp_path, record):
    good = record("good", "true")
    data = good.read_bytes()
    for name, bad in {"empty": b"", "text": b"hello\n", "cut": data[:-5], "changed": data[:40] + b"x" + data[41:]}.items():
        (tmp_path / name).write_bytes(bad)
        done = aquarium.run("compare", good, tmp_path / name, check=64)
        assert b"observation at byte" in done.stderr
    aquarium.run("compare", good, tmp_path / "absent", check=64)
    aquarium.run("compare", good, check=64)
    aquarium.run("compare", good, good, good, check=64)
    aquarium.run("compare", "--seed", "no good", good, good, check=64)


def test_kinds_are_documented():
    rows = re.findall(r'AQ_DIFFERENCE\(\w+, "([^"]+)", "([^"]+)"\)',
                      (ROOT / "src/observe/differences.def").read_text())
    page = (ROOT / "docs/formats/comparison.md").read_text()
    assert rows and all(f"| `{name}` | {what} |" in page for name, what in rows)
