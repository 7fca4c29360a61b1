"""The record names what was opened, whoever changes the path meanwhile."""
import subprocess

from test_truth import BUILD, watch


def test_the_object_is_what_was_opened(tmp_path):
    out, events, _ = watch(tmp_path, BUILD / "tests/observe/race")
    said = [e for e in events if e["op"] == "open" and e["process"] == 0
            and e["object"].startswith("/etc/") and e["result"] >= 0]  # fmt: skip
    repeats = [e for e in events if e["op"] == "repeat" and e["args"]["op"] == "open"]
    opened = [line for line in out.splitlines() if line]
    assert len(set(opened)) > 1, "the threads did not race"
    for name in set(opened):
        seen = sum(e["object"] == name for e in said)
        left = sum(e["args"]["left-out"] for e in repeats if e["object"] == name)
        assert seen + left == opened.count(name), name


def test_those_who_need_each_other(tmp_path):
    """Without a sandbox around them; here POSIX queues are allowed, too."""
    for name in ("out", "in"):
        (tmp_path / name).mkdir()
    meets = BUILD / "tests/run/meets"
    outside = subprocess.run([meets, tmp_path / "out"], capture_output=True, timeout=120)
    inside, _, _ = watch(tmp_path, meets, tmp_path / "in")
    assert inside == outside.stdout.decode() and inside.count("\n") == 18


def test_a_request_is_what_was_sent(tmp_path):
    out, events, _ = watch(tmp_path, BUILD / "tests/observe/resend")
    assert out == "/evil\n"
    assert [(e["object"], e["args"]["target"]) for e in events if e["op"] == "http-request"] == [
        ("evil.example", "/evil")]  # fmt: skip


def test_memory_of_others(tmp_path):
    out, events, _ = watch(tmp_path, BUILD / "tests/observe/reach", how=["--apart"])
    assert out.startswith("2 ")
    pokes = [e for e in events if e["op"] == "poke"]
    forks = [e["result"] for e in events if e["op"] == "fork"]
    assert [e["args"]["target"] for e in pokes] == [1, *forks]
    assert [e["object"] for e in pokes] == [f"/proc/{n}/mem" for n in (1, *forks)]
    assert not [e for e in events if e["op"] == "peek"]  # /proc/meminfo is nobody's memory
