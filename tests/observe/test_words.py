"""What is written keeps to what docs/formats/event.md and its schema say: every act that real programs make has its
row there, with the names of its arguments."""
import json
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT, open_to_others, schema
from test_truth import BUILD

NET = """
import socket, time
for command in ("curl -s -d @/etc/hostname https://api.example.org/", "curl -s http://api.example.org/a?b=c", "dig api.example.org"):
    __import__("subprocess").run(command.split(), stdout=-3)
s = socket.create_connection(("93.184.216.34", 25)); s.recv(200); s.sendall(b"EHLO x"); s.close()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in (123, 443, 5353, 9999): u.sendto(bytes([0x1b]) + bytes(47), ("93.184.216.34", port))
"""
PROGRAMS = {
    "meets": ["./meets", "/tmp"],
    "slip": ["./slip"],
    "network": ["/usr/bin/python3", "-c", NET],
    "shell": ["sh", "-c", "sleep 3 & wait; for i in $(seq 50); do cat /etc/passwd; done; getfacl /tmp; kill -TERM $$"],
}


def rows():
    """(kind, op) → what is said of it."""
    text = (ROOT / "docs/formats/event.md").read_text()
    found = {(m[1], m[2]): m[3] for m in re.finditer(r"^\| `(\w+)` \| `([\w-]+)` \| (.*) \|$", text, re.M)}
    first = found["file", "repeat"]
    return {key: said.replace("see file repeat", first) for key, said in found.items()}


def wrong_words(events):
    """What is said nowhere. A call that never ran has its arguments under its own names."""
    known = rows()
    for e in events:
        key = (e["kind"], e["op"])
        if key not in known:
            yield f"{key}: no row"
        elif key != ("syscall", "refused"):
            yield from (f"{key}: {name}" for name in e["args"]
                        if name != "given" and not re.search(rf"\b{re.escape(name)}\b", known[key]))


def check(lines):
    events = [json.loads(line) for line in lines]
    event, whole = schema("event.schema.json"), schema("observation.schema.json")
    assert events[0].keys() == {"backend", "schema", "world"} and not list(whole.iter_errors(events[-1]))
    wrong = {f"{e['op']}: {problem.message}" for e in events[1:-1] for problem in event.iter_errors(e)}
    assert not wrong and not set(wrong_words(events[1:-1]))
    assert [e["seq"] for e in events[1:-1]] == list(range(len(events) - 2))
    return {(e["kind"], e["op"]) for e in events[1:-1]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_real_programs(tmp_path, name):
    open_to_others(tmp_path)
    for program in ("meets", "slip"):
        shutil.copy(BUILD / "tests/run" / program, tmp_path / program)
    subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "1", "--quiet", "--resolve", "api.example.org", "--events",
                    tmp_path / "events", "--", *PROGRAMS[name]], cwd=tmp_path, timeout=120, stdout=subprocess.DEVNULL)
    acts = check((tmp_path / "events").read_text().splitlines())
    assert len(acts) >= 15


def test_every_call_of_the_truth(tmp_path):
    (tmp_path / "w").mkdir()
    subprocess.run([BUILD / "tests/observe/watch", tmp_path / "events", BUILD / "tests/observe/truth", tmp_path / "w"],
                   cwd=tmp_path, timeout=120, stdout=subprocess.DEVNULL)
    acts = check((tmp_path / "events").read_text().splitlines())
    assert len(acts) >= 55
    # What the observer must tell apart, by name: each has an act of its own here.
    assert acts >= {("file", op) for op in "open read write chmod chown times truncate link symlink rename unlink xattr-set "
                    "xattr-get xattr-list xattr-remove mkdir rmdir mknod list stat access memfd".split()}
    assert acts >= {("network", op) for op in "socket bind listen connect send receive descriptor option".split()}
    assert acts >= {("process", op) for op in "fork exec exit wait kill signal ptrace unshare pidfd".split()}
    assert acts >= {("clock", "now"), ("clock", "sleep"), ("clock", "timer"), ("entropy", "getrandom"), ("entropy", "read"),
                    ("syscall", "writable-code"), ("syscall", "refused"), ("syscall", "counts")}


def test_words_can_be_wrong():
    good = {"kind": "file", "op": "open", "args": {"flags": 0}}
    assert not list(wrong_words([good]))
    assert list(wrong_words([{**good, "args": {"colour": 1}}, {**good, "op": "opened"}])) == [
        "('file', 'open'): colour", "('file', 'opened'): no row"]
