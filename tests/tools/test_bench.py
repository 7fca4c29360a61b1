"""bench/world runs, and a peer that is not there is said, never left out."""
import json
import os
import pathlib
import subprocess

import pytest

from conftest import PROGRAM, ROOT


def rows(path):
    done = subprocess.run([ROOT / "bench/world", "--json", "--quick", "--only", "start", PROGRAM.parent],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
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
    found = rows(str(bare))
    assert set(found) >= {"bwrap", "crun", "runc", "runsc systrap", "runsc ptrace"}
    for peer in ("crun", "runc"):
        assert "is not installed" in found[peer]["missing"]
    row = found["bwrap"]
    assert row["unit"] == "ms" and row["rounds"] == 3 and row["must"] == 1
    for key in ("median", "best"):
        assert row["ours"][key] > 0 and row["theirs"][key] > 0
        assert row["ratio"][key] == pytest.approx(row["ours"][key] / row["theirs"][key])
    assert row["observes"]["peer"] == "nothing" and "counted" in row["observes"]["ours"]


def test_a_peer_that_fails_is_said(bare):
    (bare / "bwrap").write_text("#!/bin/sh\necho no such namespace >&2\nexit 9\n")
    row = rows(str(bare))["bwrap"]
    assert "ended with 9: no such namespace" in row["missing"] and "ratio" not in row
