#!/usr/bin/python3 -I
"""The first process of the guest: makes a host of version 2 control groups as systemd would, runs the
program in it as root and as a plain user, and writes what it saw as one JSON object to the second
serial line. It judges nothing: test_guest.py does, outside."""
import ctypes
import fcntl
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time
import traceback
import tty

LIBC = ctypes.CDLL(None, use_errno=True)
GROUPS = pathlib.Path("/sys/fs/cgroup")
PLAIN = 1000
PATIENCE = 60  # seconds for one run
HOG = "b = []\nwhile True: b.append(bytearray(1 << 20))"
BOMB = "import os, time\nfor i in range(60):\n    if os.fork() == 0: time.sleep(50); os._exit(0)\ntime.sleep(50)"
SPIN = "while True: pass"
FILES = """
import os
home = os.environ["HOME"]
os.mkdir(home + "/a"); os.mkdir(home + "/b")
open(home + "/a/x", "w").write("text")
os.rename(home + "/a/x", home + "/b/y")     # from folder to folder
os.truncate(home + "/b/y", 2)
print(open(home + "/b/y").read())
for path in ("/usr/x", "/etc/x", "/proc/sys/kernel/hostname"):
    try: open(path, "w"); print("WROTE", path)
    except OSError: pass
"""


def mount(what, where, kind, flags=0, data=None):
    if LIBC.mount(what.encode(), str(where).encode(), kind.encode(), flags, data) != 0:
        raise OSError(ctypes.get_errno(), f"mount {where}")


def prepare():
    mount("proc", "/proc", "proc")
    mount("sys", "/sys", "sysfs")
    mount("dev", "/dev", "devtmpfs")
    mount("run", "/run", "tmpfs")
    for place in ("/tmp", "/dev/shm"):
        os.makedirs(place, exist_ok=True)
        mount("tmpfs", place, "tmpfs")
        os.chmod(place, 0o1777)
    for name, to in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{to}", f"/dev/{name}")
    with socket.socket() as s:  # loopback, up as everywhere: SIOCSIFFLAGS, IFF_UP
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))
    mount("cgroup2", GROUPS, "cgroup2")
    os.chown("/home/plain", PLAIN, PLAIN)
    LIBC.sethostname(b"guest", 5)
    os.environ.update(PATH="/usr/bin:/usr/sbin", LANG="C.UTF-8")


def group(path, controllers="", owner=None):
    """A group; with controllers handed on to the groups below, and its files given to `owner`, as a
    delegation of systemd does."""
    folder = GROUPS / path
    folder.mkdir(parents=True, exist_ok=True)
    if controllers:
        (folder / "cgroup.subtree_control").write_text(controllers)
    if owner:
        for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
            os.chown(folder / name, owner, owner)
    return folder


def groups():
    """What there is before anything of ours runs."""
    every = "+memory +pids +cpu"
    group("", every)
    group("system.slice", every)
    group("user.slice", every)
    group("user.slice/manager", every, PLAIN)
    return {"service": group("system.slice/test.service"),  # root
            "delegated": group("user.slice/manager/app.scope", owner=PLAIN),  # a user's own
            "login": group("user.slice/login.scope")}  # a user's, but root's to change


def processes():
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and entry not in ("1", str(os.getpid())):
            try:
                if os.readlink(f"/proc/{entry}/exe"):
                    found[int(entry)] = pathlib.Path(f"/proc/{entry}/comm").read_text().strip()
            except OSError:
                pass  # a thread of the kernel, or gone
    return found


def stacks():
    """Where everybody waits, for what hangs."""
    def read(pid, name):
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()

    found = []
    for pid, name in processes().items():
        try:
            state = [line for line in read(pid, "status").splitlines()
                     if line.startswith(("State:", "PPid:", "TracerPid:"))]
            found.append([pid, name, *state, read(pid, "syscall").strip(), read(pid, "stack")])
        except OSError:
            pass
    return found


def ours():
    """The groups of worlds, which may vanish while one looks."""
    return [os.path.relpath(os.path.join(top, name), GROUPS) for top, names, _ in os.walk(GROUPS)
            for name in names if name.startswith("aquarium-")]


def remains(mounts):
    """What is left of a world, after at most two seconds."""
    end = time.monotonic() + 2
    while True:
        left = {"groups": ours(), "processes": sorted(processes().values()),
                "mounts": pathlib.Path("/proc/self/mountinfo").read_text() != mounts}
        if not any(left.values()) or time.monotonic() > end:
            return left
        time.sleep(0.02)


class Guest:
    def __init__(self):
        self.places, self.hung = groups(), 0
        self.mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        self.said = {"kernel": os.uname().release, "runs": {}, "kills": {},
                     "landlock": LIBC.syscall(444, None, 0, 1),  # its version
                     "controllers": (GROUPS / "cgroup.controllers").read_text().split()}

    def start(self, place, *args, **more):
        user = 0 if place in ("service", "bare") else PLAIN
        home = "/root" if user == 0 else "/home/plain"

        def enter():
            (self.places[place] / "cgroup.procs").write_text("0")
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)

        return subprocess.Popen(["/usr/bin/aquarium", *args], cwd=home, preexec_fn=enter, text=True,
                                env={**os.environ, "HOME": home}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def run(self, name, place, *command, limits="", verb=("run", "--quarantine", "--json")):
        begun = time.monotonic()
        args = [*verb, *(["--limit", limits] if limits else []), *(["--", *command] if command else [])]
        p = self.start(place, *args, stdin=subprocess.DEVNULL)
        try:
            out, err = p.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            out, err = "", f"not over after {PATIENCE} s: {stacks()}"
            for pid in processes():  # all of them, or its pipes stay open
                os.kill(pid, signal.SIGKILL)
            p.wait()
            self.hung += 1
        try:
            said = json.loads(out)
        except ValueError:
            said = None
        self.said["runs"][name] = {"place": place, "status": p.returncode, "said": said, "stderr": err[-5000:],
                                   "seconds": round(time.monotonic() - begun, 2), "left": remains(self.mounts)}
        if self.hung == 2:
            raise RuntimeError(f"a second run hung: {name}, {err}")

    def kill(self, name, place, victim):
        """A world that waits for input, and one of its processes killed."""
        p = self.start(place, "run", "--quarantine", "--quiet", "--stdin", "--", "cat", stdin=subprocess.PIPE)
        end = time.monotonic() + 20
        while "cat" not in (seen := processes()).values() and time.monotonic() < end:
            time.sleep(0.02)
        made = ours()
        inside = [pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip() for pid, n in seen.items() if n == "cat"]
        found = p.pid if victim == "front" else next((pid for pid, n in seen.items() if n == victim), None)
        if found:
            os.kill(found, signal.SIGKILL)
        p.stdin.close()
        try:
            p.wait(timeout=20)
        except subprocess.TimeoutExpired:
            p.kill()
        self.said["kills"][name] = {"found": found is not None, "status": p.returncode, "seen": sorted(seen.values()),
                                    "groups": made, "inside": inside, "left": remains(self.mounts)}

    def everything(self):
        for place in ("service", "delegated", "login"):
            self.run(f"{place} doctor", place, verb=("doctor", "--json"))
            self.run(f"{place} validate", place, verb=("validate", "--json", "/guest/skill"))
            self.run(f"{place} sh", place, "sh", "-c", "echo $((40 + 2)) > /tmp/x; cat /tmp/x; exit 5")
            self.run(f"{place} files", place, "/usr/bin/python3", "-c", FILES)
            self.run(f"{place} mounts", place, "cat", "/proc/self/mountinfo",
                     verb=("run", "--quarantine", "--json", "--world", "none"))
            self.run(f"{place} memory", place, "/usr/bin/python3", "-c", HOG,
                     limits="memory=100000000,disk-bytes=1000000")
            self.run(f"{place} processes", place, "/usr/bin/python3", "-c", BOMB, limits="processes=10")
            self.run(f"{place} cpu", place, "/usr/bin/python3", "-c", SPIN, limits="cpu-ns=1500000000")
            self.run(f"{place} rate", place, "/usr/bin/python3", "-c", SPIN,
                     limits="cpu-ns=800000000,cpu-percent=25")
            for victim in ("aquarium-keeper", "front"):
                self.kill(f"{place} {victim}", place, victim)
            self.run(f"{place} again", place, "true")


def as_init(work):
    """Runs `work` in a child and takes every orphan in, as the first process of a host does."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(1)
    while True:
        os.wait()  # the machine ends before this one does


def tell(said):
    """The last act: what was seen, and the end of the machine."""
    with open("/dev/ttyS1", "wb", buffering=0) as line:
        tty.setraw(line.fileno())
        data = json.dumps(said).encode()
        while data:
            data = data[line.write(data[:4096]):]
        LIBC.tcdrain(line.fileno())
    os.sync()
    LIBC.reboot(0x1234567)  # with -no-reboot: the end


def main():
    prepare()
    begun, said = time.monotonic(), {}
    try:
        guest = Guest()
        said = guest.said
        guest.everything()
    except BaseException:
        said["failure"] = traceback.format_exc()
    tell({**said, "seconds": round(time.monotonic() - begun, 1)})


if __name__ == "__main__":
    as_init(main)
