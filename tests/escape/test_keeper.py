"""What a keeper could do that the payload has taken over: a test stands in for the attacker, stops
the keeper of a running world and makes it ask the kernel for things. The twins show that the same
acts reach the world itself."""
import ctypes
import os
import pathlib
import select
import signal
import struct
import subprocess
import time

import pytest

from worlds import as_root, worlds  # fixtures

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
ATTACH, DETACH, GETREGS, SETREGS, SYSCALL, CONT, OPTIONS = 16, 17, 12, 13, 24, 7, 0x4200
TRACEME, EVENT_MESSAGE, TRACE_FORKS = 0, 0x4201, 2
RAX, RDX, RSI, RDI, ORIG, RIP, RSP = 10, 12, 13, 14, 15, 16, 19
ARGS = (RDI, RSI, RDX, 7, 9, 8)
KILL, SOCKET, OPENAT, VM_READ, PIDFD_OPEN, PIDFD_GETFD, PTRACE = 62, 41, 257, 310, 434, 438, 101


class Puppet:
    """A process whose next system calls are ours."""

    def __init__(self, pid):
        self.pid = pid
        for _ in range(200):
            assert libc.ptrace(ATTACH, pid, None, None) == 0, ctypes.get_errno()
            os.waitpid(pid, 0x40000000)
            libc.ptrace(OPTIONS, pid, None, 1)  # TRACESYSGOOD
            self.mem = open(f"/proc/{pid}/mem", "r+b", 0)
            self.saved = self.regs()
            if self.saved[ORIG] != 2**64 - 1 and self.peek(self.saved[RIP] - 2, 2) == b"\x0f\x05":
                return  # it waits in the kernel
            libc.ptrace(DETACH, pid, None, None)
            time.sleep(0.01)
        raise AssertionError("it never waits")

    def regs(self):
        data = ctypes.create_string_buffer(27 * 8)
        assert libc.ptrace(GETREGS, self.pid, None, data) == 0
        return list(struct.unpack("27Q", data.raw))

    def peek(self, at, n):
        self.mem.seek(at)
        return self.mem.read(n)

    def start(self, number, *args):
        regs, room = list(self.saved), self.saved[RSP] - 8192
        regs[ORIG], regs[RAX] = 2**64 - 1, number
        regs[RIP] -= 2
        for slot, value in zip(ARGS, args):
            if isinstance(value, bytes):
                self.mem.seek(room)
                self.mem.write(value)
                value, room = room, room + len(value)
            regs[slot] = value % 2**64
        data = ctypes.create_string_buffer(struct.pack("27Q", *regs))
        assert libc.ptrace(SETREGS, self.pid, None, data) == 0

    def call(self, number, *args):
        """What the kernel answers."""
        self.start(number, *args)
        for _ in range(2):  # entry and exit; signals are put off
            while True:
                libc.ptrace(SYSCALL, self.pid, None, None)
                _, status = os.waitpid(self.pid, 0x40000000)
                assert os.WIFSTOPPED(status), status
                if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
                    break
        value = self.regs()[RAX]
        return value - 2**64 if value >= 2**63 else value


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def comm(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


@pytest.fixture
def world(worlds):
    """A world whose payload waits, its keeper, init and payload as the host numbers them."""
    if os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    front = subprocess.Popen(worlds.command("cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    front.stdin.write(b"up\n")
    front.stdin.flush()
    assert front.stdout.readline() == b"up\n"
    front.keeper, = [p for p in children(front.pid) if comm(p) == "aquarium-keeper"]
    front.init, = children(front.keeper)
    front.payload, = children(front.init)
    front.user = worlds.user
    yield front
    front.kill()
    front.wait()


def status(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_our_own_processes_have_given_up(world):
    own = [world.keeper, world.init] + [p for p in children(world.pid) if comm(p) == "aquarium-warden"]
    assert len(own) == (4 if world.user == "root" else 2)
    for pid in own:
        field = status(pid)
        warden = 1 << 5 | 1 << 1 if comm(pid) == "aquarium-warden" else 0  # kill, and write in root's folders
        assert int(field["CapEff"], 16) == int(field["CapPrm"], 16) == warden
        assert int(field["CapInh"], 16) == int(field["CapAmb"], 16) == 0  # bounds mean something at exec, which is not on their lists
        assert field["NoNewPrivs"] == "1" and field["Seccomp"] == "2"
    assert os.readlink(f"/proc/{world.keeper}/root") == "/proc"
    assert os.readlink(f"/proc/{world.keeper}/cwd") == "/proc"
    net = [os.readlink(f"/proc/{p}/ns/net") for p in (world.keeper, world.payload, "self")]
    assert net[0] == net[1] != net[2]
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"):
        inside, outside = (os.stat(f"/proc/{p}/ns/{kind}").st_ino for p in (world.payload, "self"))
        assert inside != outside, kind
    users = [os.readlink(f"/proc/{p}/ns/user") for p in (world.keeper, world.payload, "self")]
    assert users[0] != users[1] and (users[0] != users[2]) == (world.user == "plain")


def children_held(front, count):
    """Of a front that traces itself for us: its first children, each before its first step."""
    _, stopped = os.waitpid(front.pid, 0)
    assert os.WIFSTOPPED(stopped)
    libc.ptrace(OPTIONS, front.pid, None, TRACE_FORKS)
    held = []
    while len(held) < count:
        libc.ptrace(CONT, front.pid, None, None)
        _, stopped = os.waitpid(front.pid, 0)
        assert os.WIFSTOPPED(stopped), stopped
        if stopped >> 16:
            child = ctypes.c_ulong()
            libc.ptrace(EVENT_MESSAGE, front.pid, None, ctypes.byref(child))
            os.waitpid(child.value, 0x40000000)
            held.append(child.value)
    return held


@pytest.mark.parametrize("late", [0, 1])
def test_nobody_begins_before_the_wardens_are_locked(as_root, late):
    front = subprocess.Popen(as_root.command("sh", "-c", "echo up; cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             preexec_fn=lambda: libc.ptrace(TRACEME, 0, None, None))
    try:
        keeper, *wardens = children_held(front, 3)
        warden = wardens.pop(late)
        for pid in (keeper, *wardens, front.pid):
            libc.ptrace(DETACH, pid, None, None)
        assert not select.select([front.stdout], [], [], 1)[0]
        libc.ptrace(DETACH, warden, None, None)
        assert front.stdout.readline() == b"up\n"
        assert comm(warden) == "aquarium-warden" and status(warden)["Seccomp"] == "2"
    finally:
        front.kill()
        front.wait()


def test_a_payload_that_cannot_be_locked_never_begins(worlds):
    said, out = worlds.run("echo", "begun", options=["--full"])
    assert said is None and worlds.status == 70 and out == ""
    assert worlds.stderr == ("run_world: backend container: wait: cannot install the system call filter: "
                             "Cannot allocate memory\n")
    assert worlds.run("echo", "begun")[1] == "begun\n"  # the twin


def test_a_taken_keeper_reaches_the_world_and_nothing_else(world):
    victim = subprocess.Popen(["sleep", "100"], user=12345 if world.user == "plain" else 0)
    keeper = Puppet(world.keeper)
    try:
        for path in (b"/etc/passwd", b"/proc/self/status", b"/../etc/passwd", f"/{victim.pid}/root/etc".encode(),
                     f"/{world.pid}/cwd/..".encode(), f"/{victim.pid}/mem".encode(), f"/{world.pid}/fd/0".encode()):
            assert keeper.call(OPENAT, -100, path + b"\0", 0, 0) in (-2, -13, -1), path
        assert keeper.call(OPENAT, -100, f"/{world.payload}/status\0".encode(), 0, 0) >= 0  # the twin
        apart = world.user == "root"  # without root it has the caller's identity
        for pid in (victim.pid, world.pid, os.getpid()):
            assert keeper.call(KILL, pid, 0) == (-1 if apart or pid == os.getpid() else 0), pid
            assert keeper.call(PTRACE, 0x4206, pid, 0, 0) == -1, pid
        assert keeper.call(KILL, world.payload, 0) == 0
        handle = keeper.call(PIDFD_OPEN, victim.pid, 0)
        assert handle >= 0 and keeper.call(PIDFD_GETFD, handle, 1, 0) == -1
        handle = keeper.call(PIDFD_OPEN, world.payload, 0)
        assert handle >= 0 and keeper.call(PIDFD_GETFD, handle, 1, 0) >= 0
        keeper.start(SOCKET, 2, 1, 0)
        libc.ptrace(DETACH, keeper.pid, None, None)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    # And a run whose keeper died so is no run.
    _, err = world.communicate(timeout=20)
    assert world.returncode == 70 and b"a system call that it may not make" in err
