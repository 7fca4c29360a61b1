"""bench/world runs, and a peer that is not there is said, never left out."""
import json
import os
import pathlib
import subprocess

import pytest

from conftest import PROGRAM, ROOT


def rows(path, status):
    done = subprocess.run([ROOT / "bench/world", "--json", "--quick", "--only", "start", PROGRAM.parent],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": path})
    assert done.returncode == status, done.stderr
    assert ("MISSED cold start to exit of true, against bwrap: ratio" in done.stderr) == (status == 1)
    assert ("not measured: cold start to exit of true, against bwrap" in done.stderr) == (status == 0)
    head, *found = [json.loads(line) for line in done.stdout.splitlines()]
    assert head["cpus"] == os.cpu_count() and head["ours"]
    assert [row["row"] for row in found if row["peer"] == "bwrap"][1].endswith("without decoys")
    return {row["peer"]: row for row in reversed(found)}  # the first of each


@pytest.fixture
def bare(tmp_path):
    """A PATH with the compiler, nothing to compare with but a bwrap that does nothing."""
    for name in ("gcc", "as", "ld", "sh"):
        (tmp_path / name).symlink_to(pathlib.Path("/usr/bin") / name)
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bwrap").chmod(0o755)
    return tmp_path


def test_both_sides_and_who_is_missing(bare):
    found = rows(str(bare), 1)  # nobody is faster than one that does nothing
    assert set(found) >= {"bwrap", "crun", "runc", "runsc systrap", "runsc ptrace"}
    for peer in ("crun", "runc"):
        assert "is not installed" in found[peer]["missing"]
    row = found["bwrap"]
    assert row["unit"] == "ms" and row["rounds"] == 3 and row["must"] == 1 and row["met"] is False
    for key in ("median", "best"):
        assert row["ours"][key] > 0 and row["theirs"][key] > 0
        assert row["ratio"][key] == pytest.approx(row["ours"][key] / row["theirs"][key])
    assert row["observes"]["peer"] == "nothing" and "counted" in row["observes"]["ours"]


def test_a_peer_that_fails_is_said(bare):
    (bare / "bwrap").write_text("#!/bin/sh\necho no such namespace >&2\nexit 9\n")
    row = rows(str(bare), 0)["bwrap"]
    assert "ended with 9: no such namespace" in row["missing"] and "ratio" not in row


# ---- musts ----

def musts(*arguments):
    return subprocess.run([ROOT / "bench/musts.py", *arguments], capture_output=True, text=True)


def test_a_missed_must_is_a_failure():
    row = ("ledger", "appends, the lowest ratio of all batches", "SQLite", "ratio")
    met, missed = musts(*row, "0.5"), musts(*row, "0.49")
    assert met.returncode == 0 and "MISSED" not in met.stdout and "1 musts reached, 0 missed" in met.stdout
    assert missed.returncode == 1 and missed.stdout.startswith("MISSED appends") and "0.49" in missed.stdout
    assert musts("validate", "a 26 KB skill without code, ms", "none", "ours", "50.1").returncode == 1
    assert "no such row" in musts("ledger", "no such row", "SQLite", "ratio", "1").stderr


def test_every_must_is_of_a_row():
    """What the table names the benches print: the words of a row stand in the code that makes it."""
    code = "".join((ROOT / "bench" / name).read_text() for name in ("world", "ledger-run", "run"))
    for line in (ROOT / "bench/musts.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            bench, row, peer, figure, side, must, goal = line.split("\t")
            head = row.partition(", pinned")[0].partition(": ")
            for part in (head[0].removeprefix("one "), head[2]):
                assert part in code, row
            assert (float(goal) <= float(must)) == (side == "most")
