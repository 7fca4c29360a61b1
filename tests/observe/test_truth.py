"""What a program did and got, by its own words, against what was recorded of it."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT, open_to_others

BUILD = pathlib.Path(os.environ.get("AQUARIUM_BUILD", ROOT / "build"))


def watch(tmp_path, *command, code=0, how=()):
    events = tmp_path / "events.jsonl"
    done = subprocess.run([BUILD / "tests/observe/watch", *how, events, *command], cwd=tmp_path, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == code, (done.returncode, done.stderr[-2000:])
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    return done.stdout.decode(), lines[1:-1], lines[-1]


def matches(event, said):
    kind, op = said["act"].split()
    return (event["kind"] == kind and event["op"] == op
            and (said["object"] is None or event["object"] == said["object"])
            and event["result"] == said["result"]
            and all(event["args"].get(name) == value for name, value in said["args"].items()))  # fmt: skip


def in_world(folder, side):
    """As users run it: with the whole machine around the program, or with none."""
    events = folder.with_name(folder.name + "-events")
    shutil.copy(BUILD / "tests/observe/truth", folder)
    done = subprocess.run([BUILD / "aquarium", "run", "--quarantine", "--world", side, "--events", events, "--quiet", "--",
                           "./truth", folder / "w"], cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    return [json.loads(line) for line in done.stdout.splitlines()], lines[1:-1], lines[-1]


@pytest.fixture(scope="module", params=["beside", "apart", "A", "none"])
def run(request, tmp_path_factory):
    """Once in our own namespaces, once in others: then pids and /proc differ inside and outside; and in whole worlds."""
    folder = tmp_path_factory.mktemp("truth").resolve()
    world = folder / "w"
    world.mkdir()
    if request.param in ("A", "none"):
        open_to_others(folder)
        return in_world(folder, request.param)
    how = ["--apart"] if request.param == "apart" else []
    out, events, end = watch(folder, BUILD / "tests/observe/truth", world, how=how)
    return [json.loads(line) for line in out.splitlines()], events, end


def test_every_act_is_recorded_as_it_was(run):
    said, events, _ = run
    own, at, wrong = [e for e in events if e["process"] == 0], 0, []
    for line in said:
        for i in range(at, len(own)):
            if matches(own[i], line):
                at = i + 1
                break
        else:
            near = [e for e in own[at:at + 4]]
            wrong.append(f"{line}\n   next: {near}")
    assert not wrong, "\n".join(wrong)
    assert len({line["call"] for line in said}) >= 60
    assert sum(line["result"] < 0 for line in said) >= 20


def test_refusals_name_their_rule(run):
    _, events, _ = run
    refused = [e for e in events if e["op"] == "refused"]
    assert {e["object"] for e in refused} >= {"mount", "io_uring_setup", "bpf", "chroot", "unknown"}
    refused += [e for e in events if e["op"] in ("unshare", "ptrace", "personality")]
    refused += [e for e in events if e["op"] == "socket" and e["args"]["family"] in (38, 40)]
    refused += [e for e in events if e["op"] == "ioctl" and e["args"]["request"] == 0x5412]
    refused += [e for e in events if e["op"] == "control" and e["args"].get("command") == 1024]
    for e in refused:
        # A machine lets itself be traced, and answers who asks by an old call who it is: in words only.
        assert e["rule"] and (e["result"] < 0 or e["op"] == "ptrace" or e["object"] == "other-architecture"), e
    assert len([e for e in events if e["rule"]]) == len(refused) + 1  # and a new pid namespace


def test_children_and_programs(run):
    _, events, _ = run
    child = [e for e in events if e["process"] == 2]
    assert child[0]["op"] == "exec" and child[0]["args"]["argv"] == "sh\\x00-c\\x00exit 7"
    assert child[0]["object"] == os.path.realpath("/bin/sh")
    assert [e["args"]["status"] for e in child if e["op"] == "exit"] == [7]
    fork = next(i for i, e in enumerate(events) if e["op"] == "fork" and e["args"].get("child") == 2)
    assert fork < events.index(child[0])


def test_arguments_are_those_of_the_new_program(tmp_path):
    """What a new program was given is read there: the kernel puts the words of a script's first line before the caller's."""
    inner, script = tmp_path / "inner", tmp_path / "script"
    inner.write_text("#!/bin/sh -e\nexit 0\n")
    script.write_text(f"#!{inner} plain\n")
    for path in (inner, script):
        path.chmod(0o755)
    _, events, _ = watch(tmp_path, "/bin/sh", "-c", f"exec {script} one two")
    told = [e["args"] for e in events if e["op"] == "exec"][-1]
    assert told["argv"].split("\\x00") == ["/bin/sh", "-e", str(inner), "plain", str(script), "one", "two"]
    assert told["given"] == str(script)


def test_counts_are_complete(run):
    said, events, _ = run
    counts = [e for e in events if e["op"] == "counts" and e["process"] == 0]
    assert len(counts) == 1
    calls = dict(pair.split("=") for pair in counts[0]["args"]["calls"].split())
    for line in said:
        assert line["call"] in calls or line["call"] in ("510", "int-80", "x32"), line
    assert counts[0]["args"]["unknown"] == 3
    assert counts[0]["args"]["total"] == sum(map(int, calls.values())) + 3


def test_twice_the_same(tmp_path):
    """Two runs of one program differ in nothing."""
    (tmp_path / "x").write_text("y\n")
    script = f"cat {tmp_path}/x; sleep 2; (exit 3) || cat /proc/self/stat > /dev/null"
    first, second = (watch(tmp_path, "/bin/sh", "-c", script, how=["--apart"]) for _ in range(2))
    assert first[0] == second[0] == "y\n"
    assert [e for e in first[1]] == [e for e in second[1]]
    assert first[2]["digest"] == second[2]["digest"]
    assert any(e["op"] == "sleep" and e["args"]["ns"] == 2 * 10**9 for e in first[1])
