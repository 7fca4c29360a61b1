"""What a program looked at in /proc and /sys: told where it says something, and in few lines."""
import re
import shutil

import pytest

from test_run import runner  # fixture


def looks(text):
    """The rows below the heading."""
    found = re.search(r"^looked at (.*\n(?: {10}.*\n)*)", text, re.M)
    return [line.strip() for line in found.group(1).splitlines()] if found else []


def looked(runner, *command, options=()):
    return looks(runner.run(*command, options=options).stderr.decode())


def test_other_processes_and_the_machine_are_told(runner):
    rows = looked(runner, "sh", "-c", "cat /proc/1/environ; cat /proc/1/cmdline /proc/2419/cmdline /proc/net/tcp "
                  "/proc/self/environ /sys/class/dmi/id/product_name")
    assert rows == ["/proc/*/cmdline  ×2", "/proc/net/tcp", "/proc/self/environ",
                    "/sys/devices/virtual/dmi/id/product_name", "/proc/1/environ"]
    rows = looked(runner, "sh", "-c", "cat /proc/1/comm /proc/self/environ", options=("--world", "none"))
    assert rows == ["/proc/1/comm", "/proc/self/environ"]


def test_many_processes_are_few_rows(runner):
    rows = looked(runner, "ps", "aux")
    assert 1 <= len(rows) <= 8 and any(row.startswith("/proc/*/") and "cmdline" in row for row in rows)


@pytest.mark.parametrize("command", [
    ["bash", "-c", "ls -la / | cat; id"], ["git", "init", "-q", "x"], ["java", "-version"], ["perl", "-e", "print `id`"],
    ["python3", "-c", "import asyncio, multiprocessing, os, ssl, subprocess; os.cpu_count(); subprocess.run(['true'])"],
    ["node", "-e", "new (require('worker_threads').Worker)('1', {eval: true}); require('os').cpus()"]], ids=lambda c: c[0])
def test_what_runtimes_read_is_not_told(runner, command):
    if not shutil.which(command[0]):
        pytest.skip(f"missing hardware: no {command[0]} on this machine")
    done = runner.run(*command)
    assert done.returncode == 0 and looks(done.stderr.decode()) == []
    assert " of the system\n" in done.stderr.decode() and not re.search(r"^read +/(proc|sys)\b", done.stderr.decode(), re.M)


def test_a_service_that_only_waits(runner):
    """Sleeps of one length are summed up though few of them are events; a limit says what it ended."""
    code = "import time\nwhile True: time.sleep(1)"
    hour = ("--limit", "virtual-ns=3600000000000")
    text = runner.run("python3", "-c", code, options=hour).stderr.decode()
    assert "by the limit virtual-ns (3600 s)" in text and "--limit virtual-ns=N sets another limit" in text
    assert re.search(r"it slept 3[56]\d\d times, nearly all of its own time", text)
    said, events = runner.json("python3", "-c", code, options=hour)
    assert 3590e9 < said["summary"]["slept_ns"] < 3601e9
    assert sum(e["op"] == "sleep" for e in events) < 3000
    said, _ = runner.json("python3", "-c", "import time\nfor i in range(100): time.sleep(1)")
    assert 99e9 < said["summary"]["slept_ns"] < 101e9
    assert "nearly all" not in runner.run("sleep", "1000").stderr.decode()
