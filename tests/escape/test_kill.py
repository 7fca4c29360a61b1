"""Whoever is killed first, nothing stays: rounds of start, kill -9 of a random process of ours at a
random moment, and a look at what is left. AQUARIUM_KILL_ROUNDS sets how many (tests/soak: 1,000)."""
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from worlds import PLAIN, as_root, worlds  # fixtures

ROUNDS = int(os.environ.get("AQUARIUM_KILL_ROUNDS", "50"))
KINDS = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time")


def processes(mark):
    """{pid: name} of all processes that come from our driver or carry the mark."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            program = os.readlink(f"/proc/{entry}/exe")
            line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace")
            name = pathlib.Path(f"/proc/{entry}/comm").read_text().strip()
        except OSError:
            continue
        if mark in program or mark in line:
            found[int(entry)] = name
    return found


def namespaces(pids):
    found = set()
    for pid in pids:
        for kind in KINDS:
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                pass
    return found


def owner(pid):
    """As the names of groups tell it: numbers of processes are given out again soon on a busy machine."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return (str(pid), stat.rsplit(")", 1)[1].split()[19])


def cgroups(owners):
    """Names of groups of ours that these made."""
    found = set()
    for root, folders, _ in os.walk("/sys/fs/cgroup"):
        found |= {f for f in folders if f.startswith("aquarium-") and tuple(f.split("-")[2:4]) in owners}
    return found


def wait_until_gone(mark, but=None):
    """Who is still there after ten seconds, `but` one who is not yet reaped."""
    end = time.monotonic() + 10
    while (left := processes(mark).keys() - {but}) and time.monotonic() < end:
        time.sleep(0.002)
    return left


def ours_in_tmp():
    """Of an identity that only worlds have; others work in that folder too."""
    found = set()
    for entry in os.scandir("/tmp"):
        try:
            owner = entry.stat(follow_symlinks=False).st_uid
        except OSError:
            continue
        if owner == PLAIN or owner >= 0x70000000:
            found.add(entry.name)
    return found


def wait_until_removed(owners):
    """Before another start sweeps: whoever was killed, the others have removed the groups."""
    end = time.monotonic() + 10
    while (left := cgroups(owners)) and time.monotonic() < end:
        time.sleep(0.002)
    return left


class Spaces:
    """The namespaces of some processes. They are held: the kernel gives the number of one that is gone out
    again at once, and others on this machine make some too, so that only a held one can be told apart."""

    def __init__(self, but):
        self.but, self.held = but, {}

    def take(self, pids):
        for pid in pids:
            for kind in KINDS:
                try:
                    fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
                except OSError:
                    continue
                name = f"{kind}:[{os.fstat(fd).st_ino}]"
                if name in self.held or name in self.but:
                    os.close(fd)
                else:
                    self.held[name] = fd

    def users(self):
        """Who is in one of them, as {process: namespaces}."""
        found = {p: namespaces([p]) & self.held.keys() for p in os.listdir("/proc") if p.isdigit()}
        return {p: used for p, used in found.items() if used}

    def wait_until_empty(self):
        end = time.monotonic() + 10
        while (users := self.users()) and time.monotonic() < end:
            time.sleep(0.05)
        return users

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in self.held.values():
            os.close(fd)


def kill(pid, mark):
    """Kills a process of ours, and nobody who got its number since."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if pid in processes(mark):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)


def one_round(worlds, mark, chance, whole, spaces):
    """Whom it killed, and the owner of the world's groups."""
    # Sleeps cost nothing inside, so the payload waits for input that never comes.
    front = subprocess.Popen(
        worlds.command("sh", "-c", f"exec 3<&0; cat <&3 & cat; echo {mark}", limits=["wall-ms=20000"]),
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made_by = owner(front.pid)
    time.sleep(whole * 1.5 * chance.random())
    ours = processes(mark)
    spaces.take(ours)
    victim = chance.choice(sorted(ours)) if ours else front.pid
    kill(victim, mark)
    front.stdin.close()  # a world that lost its warden or part of its payload goes on to its end
    front.wait(timeout=30)
    return ours.get(victim, "front"), made_by


def test_nothing_survives_a_kill(worlds):
    chance = random.Random(20)
    mark = worlds.driver.name
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    own = namespaces(["self"])
    files = set(os.listdir(worlds.place)) | ours_in_tmp()
    seen, victims = set(), {}
    begun = time.monotonic()
    worlds.run("true")
    whole = min(time.monotonic() - begun, 1)  # how long a world takes here
    for number in range(ROUNDS):
        with Spaces(own) as spaces:
            victim, made_by = one_round(worlds, mark, chance, whole, spaces)
            victims[victim] = victims.get(victim, 0) + 1
            assert not (left := wait_until_gone(mark)), (number, victim, left)
            assert not (left := wait_until_removed({made_by})), (number, victim, left)
            assert not (left := spaces.wait_until_empty()), (number, victim, left)
            seen |= spaces.held.keys()
    assert seen, "no round ever saw a world"
    assert pathlib.Path("/proc/self/mountinfo").read_text() == mounts
    assert not (set(os.listdir(worlds.place)) | ours_in_tmp()) - files - {"out.json"}
    said, out = worlds.run("echo", "well")
    assert out == "well\n", (worlds.stderr, victims)


def test_what_a_lost_owner_left_is_swept(as_root):
    """All of ours killed at once: only then a group can stay, and the next start removes it."""
    mark = as_root.driver.name
    front = subprocess.Popen(as_root.command("bash", "-c", f"exec -a {mark} cat"),
                             stdin=subprocess.PIPE)
    end = time.monotonic() + 20
    expected = {"aquarium-keeper", "aquarium-warden", "init", "cat"}
    made_by = owner(front.pid)
    while not expected <= set((ours := processes(mark)).values()) and time.monotonic() < end:
        time.sleep(0.005)
    assert expected <= set(ours.values()), ours
    for pid in [p for p, n in ours.items() if n == "aquarium-warden"]:
        os.kill(pid, signal.SIGKILL)
    front.kill()
    front.wait()
    assert not wait_until_gone(mark)
    assert cgroups({made_by}), "nothing was left, so nothing was shown"
    as_root.run("true")
    assert not cgroups({made_by})


@pytest.mark.parametrize("busy", [False, True], ids=["waiting", "busy"])
@pytest.mark.parametrize("victim", ["front", "aquarium-keeper", "init"])
def test_whoever_is_killed_first(worlds, victim, busy):
    """Everything dies, at once, though the payload would go on for ever: its input stays open."""
    mark = worlds.driver.name
    code = f"echo up; {'while :; do :; done' if busy else 'cat'}; echo {mark}"
    front = subprocess.Popen(worlds.command("sh", "-c", code, limits=["wall-ms=60000"]),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    made_by = owner(front.pid)
    assert front.stdout.readline() == b"up\n"
    pids = {name: pid for pid, name in processes(mark).items()} | {"front": front.pid}
    os.kill(pids[victim], signal.SIGKILL)
    assert not wait_until_gone(mark, but=front.pid)
    front.wait(timeout=10)
    assert front.returncode == (-9 if victim == "front" else 70 if victim == "aquarium-keeper" else front.returncode)
    assert not wait_until_removed({made_by})


def test_init_dies_with_its_keeper(worlds):
    """Even when nobody can tell it: front and init stand still, and only the kernel can act."""
    mark = worlds.driver.name
    front = subprocess.Popen(worlds.command("cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    front.stdin.write(b"up\n")
    front.stdin.flush()
    assert front.stdout.readline() == b"up\n"
    ours = {name: pid for pid, name in processes(mark).items()}
    stopped = [front.pid, ours["init"]]
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        os.kill(ours["aquarium-keeper"], signal.SIGKILL)
        end = time.monotonic() + 5
        while ours["init"] in processes(mark) and time.monotonic() < end:
            time.sleep(0.01)
        assert ours["init"] not in processes(mark)
    finally:
        os.kill(front.pid, signal.SIGCONT)
        front.stdin.close()
        front.wait(timeout=30)
    assert front.returncode == 70 and not wait_until_gone(mark)
