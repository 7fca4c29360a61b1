"""What a wait answers that a signal met: what the kernel answers. restarts.c printed these lines outside of any world."""
import json
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

# After a handler, after a handler that asks for a restart, after a stop that nobody handled: result, error, tenths of a second.
SAID = {
    "read": ("-1 EINTR 1", "1 - 3", "1 - 3"),
    "receive": ("-1 EINTR 1", "1 - 3", "1 - 3"),
    "receive-timed": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 2"),
    "futex": ("-1 EINTR 1", "0 - 3", "0 - 3"),
    "futex-timed": ("-1 EINTR 1", "-1 EINTR 1", "0 - 3"),
    "futex-until": ("-1 EINTR 1", "-1 EINTR 1", "0 - 3"),
    "owned": ("0 - 3", "0 - 3", "0 - 3"),
    "sleep": ("-3 EINTR 1", "-3 EINTR 1", "2 - 4"),
    "sleep-until": ("-1 EINTR 1", "-1 EINTR 1", "0 - 4"),
    "poll": ("-1 EINTR 1", "-1 EINTR 1", "1 - 3"),
    "poll-timed": ("-1 EINTR 1", "-1 EINTR 1", "0 - 4"),
    "select": ("-3 EINTR 1", "-3 EINTR 1", "0 - 5"),
    "select-masked": ("-3 EINTR 1", "-3 EINTR 1", "0 - 5"),
    "poll-masked": ("-3 EINTR 1", "-3 EINTR 1", "0 - 5"),
    "select-blocked": ("-3 EINTR 1", "-3 EINTR 1", "0 - 5"),
    "poll-blocked": ("-3 EINTR 1", "-3 EINTR 1", "0 - 5"),
    "epoll-blocked": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 2"),
    "epoll": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 2"),
    "pause": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 3"),
    "suspend": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 3"),
    "wait": ("-1 EINTR 1", "1 - 4", "1 - 4"),
    "flock": ("-1 EINTR 1", "0 - 3", "0 - 3"),
    "record-lock": ("-1 EINTR 1", "0 - 3", "0 - 3"),
    "message": ("-1 EINTR 1", "-1 EINTR 1", "8 - 3"),
    "semaphore": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 2"),
    "signal-wait": ("-1 EINTR 1", "-1 EINTR 1", "-1 EINTR 2"),
    "accept": ("-1 EINTR 1", "1 - 3", "1 - 3"),
}


@pytest.mark.parametrize("world", ["A", "none"])
@pytest.mark.parametrize("filtered", [[], ["filtered"]], ids=["plain", "filtered"])
def test_answers_are_those_of_the_kernel(tmp_path, world, filtered):
    open_to_others(tmp_path)
    shutil.copy(BUILD / "tests/observe/restarts", tmp_path / "restarts")
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--world", world, "--quiet", "--events", tmp_path / "events", "--",
                           "./restarts", "/tmp/lock", *filtered],
                          cwd=tmp_path, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(": ") for line in done.stdout.splitlines()]
    ways = ("handled", "restarted", "stopped")
    assert dict(rows) == {f"{name} {way}": answer for name, answers in SAID.items() for way, answer in zip(ways, answers)}
    results = [json.loads(line).get("result") for line in (tmp_path / "events").read_text().splitlines()]
    assert not {-512, -513, -514, -515, -516} & set(results), "codes that never leave the kernel"
