"""What holds a stranger, seen from outside while it runs: inside a default world every file of /proc says what a
machine would say, so the kernel is asked about the process itself. The same for worlds without a machine."""
import os
import pathlib
import stat
import subprocess

import pytest

from worlds import everywhere  # fixtures

SPACES = {"/tmp", "/var/tmp", "/dev/shm"}
DEVICES = {(1, 3): "null", (1, 5): "zero", (1, 7): "full", (1, 8): "random", (1, 9): "urandom", (5, 0): "tty"}
LOOK = """
import os, sys
kept = []
for path in ("/", "/etc", "/dev", "/sys", "/proc", os.path.expanduser("~")): os.listdir(path)
if sys.argv[1] == "whole":
    import socket
    kept.append(socket.create_connection(("93.184.216.34", 80)))
print("up", flush=True)
sys.stdin.read()
"""


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split()]


def comm(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


@pytest.fixture
def running(everywhere):
    """A payload that has looked around, so that its world is furnished; without a machine, and with one."""
    if os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine, and nobody else may look into a payload")
    kind = "whole" if everywhere.whole else "bare"
    front = subprocess.Popen(everywhere.command("/usr/bin/python3", "-c", LOOK, kind), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    try:
        assert front.stdout.readline() == b"up\n"
        keeper, = (p for p in children(front.pid) if comm(p) == "aquarium-keeper")
        init, = children(keeper)
        payload, = children(init)
        everywhere.keeper, everywhere.init, everywhere.payload = keeper, init, payload
        everywhere.proc = pathlib.Path(f"/proc/{payload}")
        yield everywhere
        front.communicate(timeout=30)
        assert front.returncode == 0
    finally:
        front.kill()
        front.wait()


def test_it_is_nobody(running):
    field = dict(line.split(":\t", 1) for line in (running.proc / "status").read_text().splitlines() if ":\t" in line)
    for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(field[caps], 16) == 0, caps
    assert field["NoNewPrivs"] == "1" and field["Seccomp"] == "2" and field["TracerPid"] == str(running.keeper)
    users = set(field["Uid"].split())
    assert len(users) == 1 and (int(users.pop()) >= 0x70000000 or running.user == "plain")
    rows = [line.split() for line in (running.proc / "uid_map").read_text().splitlines()]
    assert [r[0] for r in rows] == (["0", "1000"] if running.user == "root" else ["1000"]) and all(r[2] == "1" for r in rows)
    limits = (running.proc / "limits").read_text()
    core, = (line.split()[4:6] for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core in (["1", "1"], ["0", "0"])


def test_it_shares_no_namespace(running):
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"):
        assert os.readlink(running.proc / "ns" / kind) != os.readlink(f"/proc/self/ns/{kind}"), kind


def test_it_has_no_descriptor_of_ours(running):
    held = {int(fd.name): os.readlink(fd) for fd in (running.proc / "fd").iterdir()}
    assert [held.pop(n).split(":")[0] for n in range(3)] == ["pipe"] * 3
    assert [name.split(":")[0] for name in held.values()] == (["socket"] if running.whole else [])  # its own


def test_every_mount_is_restricted(running):
    lines = [line.split() for line in (running.proc / "mountinfo").read_text().splitlines()]
    mounts = {x[4]: set(x[5].split(",")) for x in lines}
    home = {m for m in mounts if m.startswith("/home/") and m.count("/") == 2}
    own = SPACES | home | {"/run/user/1000"}
    assert len(home) == 1 and mounts.keys() >= own | {"/", "/usr", "/proc", "/dev/pts"}
    assert [m for m, flags in mounts.items() if "nosuid" not in flags] == []
    devices = {m for m, flags in mounts.items() if "nodev" not in flags}
    assert {m.removeprefix("/dev/") for m in devices} == {*DEVICES.values(), "pts"}
    assert {m for m, flags in mounts.items() if "ro" not in flags} == own | {"/proc", "/dev/pts", "/dev/mqueue"}
    assert mounts.keys() - own - {m for m, flags in mounts.items() if "noexec" in flags} <= {
        m for m, flags in mounts.items() if "ro" in flags}  # what it can write and run is its own
    assert [x for x in lines if any(word.startswith(("shared:", "master:")) for word in x[6:x.index("-")])] == []


def test_it_has_six_devices(running):
    """Whatever else is shown in /dev is no device; neither is one anywhere it can write."""
    real = set()
    for folder in ("dev", "tmp", "var/tmp", "dev/shm", "home", "sys"):
        for at, folders, files in os.walk(running.proc / "root" / folder):
            for name in files:
                st = os.lstat(os.path.join(at, name))
                if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
                    real.add((stat.S_ISBLK(st.st_mode), os.major(st.st_rdev), os.minor(st.st_rdev), at.endswith("/pts")))
    assert (False, 1, 3, False) in real  # the twin: one that there must be
    assert {(major, minor) for block, major, minor, pts in real if not pts and not block} <= DEVICES.keys() | {(0, 0)}
    assert not [x for x in real if x[0] and x[1:3] != (0, 0)]
    assert {major for _, major, _, pts in real if pts} <= {136, 5}


def test_nothing_of_the_host_is_in_its_root(running, tmp_path):
    """Neither its files nor its processes; the twin: the host's programs are."""
    root = running.proc / "root"
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    assert not (root / str(secret)[1:]).exists()
    assert (root / "usr/bin/env").exists()
    inside = {int(p.name) for p in (root / "proc").iterdir() if p.name.isdigit()}
    assert 1 in inside and len(inside) == 2
    assert os.stat(root / "usr/bin/env").st_ino == os.stat("/usr/bin/env").st_ino
