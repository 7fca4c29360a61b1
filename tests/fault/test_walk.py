"""The whole walk under bad luck: killed, on a full disk, without its database, many at once."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PROGRAM, ROOT

SKILL = ROOT / "examples/hello-skill"
BIG = ROOT / "examples/attack-buried.tar.zst"


def environment(aquarium):
    return {"PATH": os.environ["PATH"], "HOME": str(aquarium.state), "LANG": "C.UTF-8",
            "AQUARIUM_HOME": str(aquarium.state / "state")}


def ours_alive(mark):
    """Processes that carry our state folder in their environment or are jails below it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = f.read()
        except OSError:
            continue
        if mark in env or (line.startswith(b"aquarium-jail") and mark in line):
            found.append((pid, line))
    return found


def jails():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().startswith(b"aquarium-jail"):
                    found.add(pid)
        except OSError:
            continue
    return found


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_killed_at_any_moment(aquarium):
    """kill -9 at random points of the walk: no process, no temporary file, a ledger that verifies."""
    rng = random.Random(20260101)
    env = environment(aquarium)
    before = jails()
    aquarium.run("validate", SKILL, check=3)
    whole = min(_timed(env) for _ in range(3))
    for _ in range(40):
        child = subprocess.Popen([PROGRAM, "validate", "--quiet", BIG], env=env)
        time.sleep(rng.uniform(0, whole))
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert wait_until(lambda: jails() <= before), "a jail outlived its parent"
    assert ours_alive(str(aquarium.state).encode()) == []
    left = [p for p in (aquarium.state / "state").rglob("*") if p.name.startswith("aquarium.")]
    assert left == []
    audit = json.loads(aquarium.run("ledger", "--json", "verify", check=0).stdout)
    assert audit["holds"]
    report = aquarium.validate(BIG, check=3)
    assert report["package"]["files"] == 5001
    aquarium.run("ledger", "verify", check=0)
    assert not [p for p in (aquarium.state / "state").rglob("*.tmp")], "a temporary file stayed"


def _timed(env):
    start = time.monotonic()
    subprocess.run([PROGRAM, "validate", "--quiet", BIG], env=env, check=False)
    return time.monotonic() - start


def test_many_at_once(aquarium):
    env = environment(aquarium)
    children = [subprocess.Popen([PROGRAM, "validate", "--json", SKILL], env=env,
                                 stdout=subprocess.PIPE) for _ in range(8)]
    reports = [json.loads(c.communicate()[0]) for c in children]
    assert [c.returncode for c in children] == [3] * 8
    assert len({r["verdict_digest"] for r in reports}) == 1
    assert len({r["submission"]["id"] for r in reports}) == 8
    audit = json.loads(aquarium.run("ledger", "--json", "verify", check=0).stdout)
    assert audit["entries"] == 8 * 3


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                const posix_spawnattr_t *, char *const[], char *const[]) =
        dlsym(RTLD_NEXT, "posix_spawn");
    if (strcmp(argv[1], JOB) == 0)
        kill(getpid(), SIGKILL);
    return real(pid, path, actions, attr, argv, envp);
}
/* A child that was started ahead gets its job in a frame of type 0xfffc (docs/formats/jail.md). */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
    struct { uint32_t len; uint16_t type, fds; } head;
    if (m->msg_iovlen == 2 && m->msg_iov[0].iov_len == sizeof head) {
        memcpy(&head, m->msg_iov[0].iov_base, sizeof head);
        if (head.type == 0xfffc && head.len == strlen(JOB) &&
            memcmp(m->msg_iov[1].iov_base, JOB, head.len) == 0)
            kill(getpid(), SIGKILL);
    }
    return real(fd, m, flags);
}
"""


def killed_when_starting(job, aquarium, *args):
    """Runs the program and kills it at the moment when it starts the given job."""
    source, shim = aquarium.state / "shim.c", aquarium.state / f"{job}.so"
    source.write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", f'-DJOB="{job}"', "-o", shim, source], check=True)
    env = environment(aquarium) | {"LD_PRELOAD": str(shim)}
    done = subprocess.run([PROGRAM, *map(str, args)], env=env, stdout=subprocess.PIPE)
    assert done.returncode == -signal.SIGKILL


def entries(aquarium):
    count = json.loads(aquarium.run("ledger", "--json", "verify", check=0).stdout)["entries"]
    shown = [json.loads(aquarium.run("ledger", "show", i).stdout) for i in range(count)]
    return [(e["kind"], e.get("stage")) for e in shown]


def test_each_decision_is_recorded_before_the_next_stage(aquarium):
    killed_when_starting("survey", aquarium, "validate", SKILL)  # intake has not decided
    assert entries(aquarium) == []
    killed_when_starting("gate", aquarium, "validate", SKILL)  # L0 begins
    assert entries(aquarium) == [("decision", "intake")]
    aquarium.run("validate", SKILL, check=3)
    assert entries(aquarium)[1:] == [("decision", "intake"), ("decision", "l0"), ("verdict", None)]


def test_a_killed_walk_does_not_cost_the_submission(aquarium, tmp_path):
    """The same envelope walks again after a kill, and only then counts as seen."""
    envelope = ROOT / "examples/attack-envelope.json"
    killed_when_starting("gate", aquarium, "validate", envelope)
    first = aquarium.validate(envelope, check=2)
    assert "intake.replayed" not in {f["rule"] for f in first["findings"]}
    again = aquarium.validate(envelope, check=2)
    assert "intake.replayed" in {f["rule"] for f in again["findings"]}


def test_lost_database(aquarium):
    aquarium.run("validate", SKILL, check=3)
    state = aquarium.state / "state"
    for file in state.glob("store.db*"):
        file.unlink()
    aquarium.run("validate", SKILL, check=3)
    audit = json.loads(aquarium.run("ledger", "--json", "verify", check=0).stdout)
    assert audit["entries"] == 6


def test_damaged_database_is_named(aquarium):
    aquarium.run("validate", SKILL, check=3)
    state = aquarium.state / "state"
    for file in state.glob("store.db-*"):
        file.unlink()
    (state / "store.db").write_bytes(b"this is no database" * 1000)
    done = aquarium.run("validate", SKILL, check=70)
    assert b"store.db" in done.stderr
    aquarium.run("ledger", "verify")


def test_full_disk(aquarium):
    """On a full disk the walk fails with a reason, and the ledger still verifies afterwards."""
    small = aquarium.state / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", small],
                             stderr=subprocess.PIPE)
    if mounted.returncode:
        pytest.skip("hardware: cannot mount a small tmpfs here (needs root)")
    try:
        small.chmod(0o700)
        done = aquarium.run("validate", "--state", small, SKILL)
        assert done.returncode == 3, done.stderr
        filler = small / "filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass
        for _ in range(3):
            done = aquarium.run("validate", "--state", small, SKILL)
            assert done.returncode == 70, (done.returncode, done.stdout[-300:], done.stderr)
            assert done.stderr
        filler.unlink()
        aquarium.run("ledger", "verify", "--state", small, check=0)
        assert aquarium.run("validate", "--state", small, SKILL).returncode == 3
        aquarium.run("ledger", "verify", "--state", small, check=0)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_read_only_package_and_no_home(aquarium, tmp_path):
    """A package is never written to; without HOME the message says what to set."""
    copy = tmp_path / "ro"
    shutil.copytree(SKILL, copy)
    before = sorted((p, p.stat().st_mtime_ns) for p in copy.rglob("*"))
    aquarium.run("validate", copy, check=3)
    assert sorted((p, p.stat().st_mtime_ns) for p in copy.rglob("*")) == before
    done = subprocess.run([PROGRAM, "validate", copy], env={"PATH": os.environ["PATH"]},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 64 and b"AQUARIUM_HOME" in done.stderr
