"""A program cannot blind the tracer without the record saying so."""
import os
import shutil

import pytest

import test_truth
from test_truth import BUILD, watch


@pytest.mark.parametrize("how", [[], ["--apart"]], ids=["beside", "apart"])
@pytest.mark.parametrize("user", [0, 65534], ids=["as we are", "as nobody"])
def test_named_or_said(tmp_path, monkeypatch, how, user):
    if user and os.geteuid() == 0:
        # A folder that nobody may use, with copies of the programs.
        for folder in (tmp_path, *list(tmp_path.parents)[:2]):
            folder.chmod(0o755)
        (tmp_path / "tests/observe").mkdir(parents=True)
        for name in ("watch", "undumpable"):
            shutil.copy(BUILD / "tests/observe" / name, tmp_path / "tests/observe")
        tmp_path.chmod(0o777)
        (tmp_path / "tests/observe/watch").rename(tmp_path / "tests/observe/watch.bin")
        script = tmp_path / "tests/observe/watch"
        script.write_text("#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "
                          f'{script}.bin "$@"\n')  # fmt: skip
        script.chmod(0o755)
        monkeypatch.setattr(test_truth, "BUILD", tmp_path)
    program = test_truth.BUILD / "tests/observe/undumpable"
    _, events, _ = watch(tmp_path, program, how=how)
    named = [e for e in events if e["op"] == "open" and e["object"] == "/etc/passwd"]
    unseen = [e for e in events if e["op"] == "unseen"]
    assert bool(named) != bool(unseen), events
    if how:
        assert named, "the owner of a user namespace may read what is in it"
