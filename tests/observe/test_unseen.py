"""A program cannot blind the tracer without the record saying so."""
import os
import resource
import shutil
import subprocess

import pytest

import test_truth
from conftest import open_to_others
from test_truth import BUILD, watch


@pytest.fixture
def as_nobody(tmp_path, monkeypatch):
    """A folder that nobody may use, with copies of the programs; watch runs as nobody."""
    if os.geteuid() != 0:
        return tmp_path / "tests/observe"
    open_to_others(tmp_path)
    place = tmp_path / "tests/observe"
    place.mkdir(parents=True)
    for name in ("watch", "undumpable"):
        shutil.copy(BUILD / "tests/observe" / name, place)
    tmp_path.chmod(0o777)
    script = (place / "watch").rename(place / "watch.bin").with_name("watch")
    script.write_text("#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "
                      f'{script}.bin "$@"\n')  # fmt: skip
    script.chmod(0o755)
    monkeypatch.setattr(test_truth, "BUILD", tmp_path)
    return place


def check_named(tmp_path, how):
    out, events, _ = watch(tmp_path, test_truth.BUILD / "tests/observe/undumpable", how=how)
    assert out == "1 0 0 0 -1\n"  # it believes that it is hidden
    opened = {e["object"] for e in events if e["op"] == "open"}
    assert {"/etc/passwd", "/etc/hostname"} <= opened
    assert not [e for e in events if e["op"] == "unseen"]
    assert [e for e in events if e["op"] == "control" and e["args"] == {"option": 4, "value": 0}]


@pytest.mark.parametrize("how", [[], ["--apart"]], ids=["beside", "apart"])
def test_undumpable(tmp_path, how):
    check_named(tmp_path, how)


@pytest.mark.parametrize("how", [[], ["--apart"]], ids=["beside", "apart"])
def test_undumpable_as_nobody(tmp_path, as_nobody, how):
    check_named(tmp_path, how)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_a_program_that_may_not_be_read(tmp_path, as_nobody):
    """As an ordinary user: refused when it is called, ended before it runs as an interpreter."""
    hidden = tmp_path / "hidden"
    shutil.copy("/bin/cat", hidden)
    hidden.chmod(0o111)
    _, events, _ = watch(tmp_path, "/bin/sh", "-c", f"{hidden} /etc/hostname || exit 0")
    refused = [e for e in events if e["op"] == "exec" and e["object"] == str(hidden)]
    assert [(e["result"], e["rule"]) for e in refused] == [(-13, "unreadable.refused")]
    assert not [e for e in events if e["op"] == "unseen"]
    script = tmp_path / "script"
    script.write_text(f"#!{hidden}\nsecret\n")
    script.chmod(0o755)
    out, events, _ = watch(tmp_path, "/bin/sh", "-c", f"{script}; echo $?")
    assert out == "137\n"
    assert [e["args"]["what"] for e in events if e["op"] == "unseen"] == ["program"]
    # Its twin that may be read runs.
    hidden.chmod(0o755)
    out, events, _ = watch(tmp_path, "/bin/sh", "-c", f"{script}; echo $?")
    assert out.endswith("secret\n0\n") and not [e for e in events if e["op"] == "unseen"]


def test_a_crowd_does_not_use_up_our_descriptors(tmp_path):
    """300 processes at once, each with pipes that are looked at, where 64 files may be open."""
    code = """
import os
r, w = os.pipe(); a, b = os.pipe()
for i in range(300):
    if os.fork() == 0:
        os.write(b, b'x'); os.read(r, 1); os.stat(f'/dev/fd/{r}'); os._exit(0)
for i in range(300): os.read(a, 1)
os.write(w, b'y' * 300)
print(sum(os.wait()[1] for i in range(300)))
"""
    events = tmp_path / "events.jsonl"
    done = subprocess.run([BUILD / "tests/observe/watch", events, "/usr/bin/python3", "-c", code],
                          capture_output=True, timeout=120, preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_NOFILE, (64, 64)))  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"0\n"), done.stderr
    text = events.read_text()
    assert text.count('"op":"exit"') == 301 and '"op":"unseen"' not in text
