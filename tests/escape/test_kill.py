"""Whoever is killed first, nothing stays: rounds of start, kill -9 of a random process of ours at a
random moment, in part of the rounds of a second one right after or a little later, and a look at what is left.
AQUARIUM_KILL_ROUNDS sets how many (tests/soak: 1,000)."""
import itertools
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from worlds import PLAIN, Worlds, as_root, product, worlds  # fixtures

ROUNDS = int(os.environ.get("AQUARIUM_KILL_ROUNDS", "20"))
INTERNET = "aquarium-internet"[:15]  # as the kernel has it
OWN = ("front", "aquarium-keeper", "aquarium-warden", "init", INTERNET)
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


def our_files():
    """Of an identity that only worlds have, or of our name where no test makes files; others work in those folders too."""
    found = set()
    for folder, named in (("/tmp", False), ("/var/tmp", False), ("/run", True), ("/dev/shm", True), ("/dev/mqueue", True)):
        for entry in os.scandir(folder) if os.path.isdir(folder) else ():
            try:
                owner = entry.stat(follow_symlinks=False).st_uid
            except OSError:
                continue
            if owner == PLAIN or owner >= 0x70000000 or (named and "aquarium" in entry.name):
                found.add(entry.path)
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
    files = set(os.listdir(worlds.place)) | our_files()
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
    assert not (set(os.listdir(worlds.place)) | our_files()) - files - {"out.json"}
    said, out = worlds.run("echo", "well")
    assert out == "well\n", (worlds.stderr, victims)


BUSY = """
import glob, os, socket, sys
glob.glob(os.path.expanduser("~/*"))
s = socket.create_connection(("93.184.216.34", 80))
s.send(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
s.recv(10)
print("up", flush=True)
sys.stdin.read()
"""


def start_busy(product):
    """A furnished world with a connection to its internet that stays open. The mark stands in the command line."""
    return subprocess.Popen(product.command("/usr/bin/python3", "-c", BUSY, product.mark, limits=["wall-ms=60000"]),
                            cwd=product.place / "cwd", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def roles(mark, front):
    """{pid: role} of our own processes, without those of the program that runs inside."""
    found = {pid: "front" if pid == front else name for pid, name in processes(mark).items()}
    return {pid: role for pid, role in found.items() if role in OWN or role == "aquarium"}


def choose(chance, ours, but=()):
    """A process of a random role: there are two wardens, and a front is as good."""
    left = sorted({role for pid, role in ours.items() if pid not in but})
    role = chance.choice(left) if left else None
    return chance.choice(sorted(p for p, r in ours.items() if r == role and p not in but)) if left else None


def kill_all(product, front, victims, pause):
    for number, pid in enumerate(victims):
        if number and pause:
            time.sleep(pause)
        kill(pid, product.mark)
    front.stdin.close()  # without its internet a world goes on to its end
    front.wait(timeout=60)
    front.stdout.close()
    front.stderr.close()


def random_kills(product, chance, whole, spaces):
    """Whom it killed, and the owner of the world's groups."""
    front = start_busy(product)
    made_by = owner(front.pid)
    time.sleep(whole * 1.3 * chance.random())
    ours = roles(product.mark, front.pid)
    spaces.take(processes(product.mark))
    victims = [choose(chance, ours) or front.pid]
    pause = chance.choice([None, None, 0, 0, 0.005 * chance.random(), 0.1 * chance.random()])
    if pause is not None and (second := choose(chance, ours, victims)):
        victims.append(second)
    kill_all(product, front, victims, pause)
    return [ours.get(p, "front") for p in victims], made_by


class Host:
    """What stays outside when nothing stays."""

    def __init__(self, product):
        self.product, self.own = product, namespaces(["self"])
        self.before = self.look()

    def look(self):
        mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        return [set(mounts.splitlines()), our_files(), set(self.product.place.rglob("*")), set(os.listdir("/sys/class/net"))]

    def check(self, spaces, made_by, *what):
        assert not (left := wait_until_gone(self.product.mark)), (what, left)
        assert not (left := wait_until_removed({made_by})), (what, left)
        assert not (left := spaces.wait_until_empty()), (what, left)
        assert not any(left := [now - before for now, before in zip(self.look(), self.before)]), (what, left)


def test_nothing_survives_kills_of_the_product(product):
    """In its default world, furnished, with a connection to the internet of the world."""
    chance, host, seen = random.Random(30), Host(product), set()
    begun = time.monotonic()
    front = start_busy(product)
    assert front.stdout.readline() == b"up\n"
    whole = min(time.monotonic() - begun, 2)  # how long it takes here until all of them are there
    front.communicate(timeout=60)
    assert front.returncode == 0
    met = {}
    for number in range(ROUNDS):
        with Spaces(host.own) as spaces:
            victims, made_by = random_kills(product, chance, whole, spaces)
            met[tuple(victims)] = met.get(tuple(victims), 0) + 1
            host.check(spaces, made_by, number, victims)
            seen |= spaces.held.keys()
    print(met)
    assert seen, "no round ever saw a world"
    assert product.run("echo", "well")[1] == "well\n"


def test_any_two_of_ours_are_killed(product):
    """One after the other at once, in every order, when all of them are there."""
    host = Host(product)
    there = [role for role in OWN if role != "aquarium-warden" or product.user == "root"]
    for sequence in [*itertools.permutations(there, 2), *[("aquarium-warden",) * 2] * (product.user == "root")]:
        front = start_busy(product)
        made_by = owner(front.pid)
        assert front.stdout.readline() == b"up\n"
        with Spaces(host.own) as spaces:
            ours = roles(product.mark, front.pid)
            assert {*ours.values()} == {*there} and sorted(ours.values()).count("aquarium-warden") in (0, 2)
            spaces.take(processes(product.mark))
            victims = []
            for role in sequence:
                victims.append(next(p for p, r in ours.items() if r == role and p not in victims))
            kill_all(product, front, victims, 0)
            host.check(spaces, made_by, sequence)


def lose_owner(worlds):
    """All who could remove a group killed at once: the owner of what they left."""
    mark = worlds.driver.name
    front = subprocess.Popen(worlds.command("bash", "-c", f"exec -a {mark} cat"), stdin=subprocess.PIPE)
    made_by = owner(front.pid)
    end = time.monotonic() + 20
    expected = {"aquarium-keeper", "aquarium-warden", "init", "cat"}
    while not expected <= set((ours := processes(mark)).values()) and time.monotonic() < end:
        time.sleep(0.005)
    assert expected <= set(ours.values()), ours
    front.send_signal(signal.SIGSTOP)  # or it would remove them before it is killed
    for pid in [p for p, n in ours.items() if n == "aquarium-warden"]:
        os.kill(pid, signal.SIGKILL)
    front.kill()
    front.wait()
    assert not wait_until_gone(mark)
    return made_by


def test_what_a_lost_owner_left_is_swept(as_root):
    """Only then a group can stay, and the next start removes it, whoever starts: so it is tried more than once."""
    for _ in range(8):
        made_by = lose_owner(as_root)
        left = cgroups({made_by})
        as_root.run("true")
        assert not cgroups({made_by})
        if left:
            return
    assert False, "nothing was ever left, so nothing was shown"


@pytest.mark.parametrize("busy", [False, True], ids=["waiting", "busy"])
@pytest.mark.parametrize("victim", ["front", "aquarium-keeper", "aquarium-warden", "init"])
def test_whoever_is_killed_first(worlds, victim, busy):
    """Everything dies, at once, though the payload would go on for ever: its input stays open."""
    mark = worlds.driver.name
    code = f"echo up; {'while :; do :; done' if busy else 'cat'}; echo {mark}"
    front = subprocess.Popen(worlds.command("sh", "-c", code, limits=["wall-ms=60000"]),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    made_by = owner(front.pid)
    assert front.stdout.readline() == b"up\n"
    pids = {name: pid for pid, name in processes(mark).items()} | {"front": front.pid}
    assert (victim in pids) == (victim != "aquarium-warden" or worlds.user == "root")
    os.kill(pids.get(victim, front.pid), signal.SIGKILL)  # who can make no groups has no warden
    assert not wait_until_gone(mark, but=front.pid)
    front.wait(timeout=10)
    assert front.returncode == (-9 if victim == "front" or victim not in pids else
                                74 if victim == "init" else 70)
    assert not wait_until_removed({made_by})


@pytest.mark.parametrize("pause", [0, 0.001, 0.02])
@pytest.mark.parametrize("which", [0, 1])
def test_a_warden_and_the_front(as_root, which, pause):
    """The pair that could leave groups behind: the other warden is there, and was before the groups were."""
    mark = as_root.driver.name
    for turn in (1, -1):
        front = subprocess.Popen(as_root.command("cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        made_by = owner(front.pid)
        front.stdin.write(b"up\n")
        front.stdin.flush()
        assert front.stdout.readline() == b"up\n" and cgroups({made_by})
        wardens = sorted(pid for pid, name in processes(mark).items() if name == "aquarium-warden")
        assert len(wardens) == 2
        for pid in [wardens[which], front.pid][::turn]:
            os.kill(pid, signal.SIGKILL)
            time.sleep(pause)
        front.wait(timeout=30)
        assert not wait_until_gone(mark)
        assert not wait_until_removed({made_by})


def test_a_user_with_groups_of_his_own(as_root, tmp_path):
    """Who may make groups has wardens too, also where none of them is one that a child is born into."""
    top = pathlib.Path("/sys/fs/cgroup/pids")
    if not (top / "tasks").exists():
        pytest.skip("missing hardware: this host has no hierarchy of the first version")
    given = top / f"given-{os.getpid()}"
    given.mkdir()
    os.chown(given, PLAIN, PLAIN)
    plain = Worlds(tmp_path / "plain", "plain")
    mark = plain.driver.name
    try:
        for victims in (("front",), ("aquarium-warden", "front"), ("front", "aquarium-warden")):
            front = subprocess.Popen(plain.command("cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL,
                                     preexec_fn=lambda: (given / "tasks").write_text("0"))
            made_by = owner(front.pid)
            front.stdin.write(b"up\n")
            front.stdin.flush()
            assert front.stdout.readline() == b"up\n" and cgroups({made_by})
            pids = {name: pid for pid, name in processes(mark).items()} | {"front": front.pid}
            for role in victims:
                os.kill(pids[role], signal.SIGKILL)
            front.wait(timeout=30)
            assert not wait_until_gone(mark)
            assert not wait_until_removed({made_by}), victims
    finally:
        given.rmdir()


def test_a_lost_warden_ends_the_run_in_words(product):
    """And only that: whoever only loses its internet goes on to its end, the twin."""
    for victim, status in (("aquarium-warden", 70), (INTERNET, 0)):
        front = start_busy(product)
        assert front.stdout.readline() == b"up\n"
        pids = [p for p, role in roles(product.mark, front.pid).items() if role == victim]
        if victim == "aquarium-warden" and product.user == "plain":
            assert not pids
            front.kill()
        for pid in pids[:1]:
            os.kill(pid, signal.SIGKILL)
        if victim == INTERNET:
            front.stdin.close()
        said = front.stderr.read().decode()
        front.wait(timeout=30)
        assert front.returncode == (status if pids else -9)
        assert ("a warden of the world was killed, and so the world was ended" in said) == (front.returncode == 70)
        front.stdout.close()
        assert not wait_until_gone(product.mark)


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
