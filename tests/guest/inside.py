#!/usr/bin/python3 -I
"""The first process of the guest: makes a host of version 2 control groups as systemd would, runs the
program in it as root and as a plain user, and writes what it saw as one JSON object to the second
serial line. It judges nothing: test_guest.py does, outside."""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import time
import traceback
import tty

LIBC = ctypes.CDLL(None, use_errno=True)
GROUPS = pathlib.Path("/sys/fs/cgroup")
PLAIN = 1000
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
    mount("tmp", "/tmp", "tmpfs")
    os.chmod("/tmp", 0o1777)
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
        if entry.isdigit() and entry != "1":
            try:
                if os.readlink(f"/proc/{entry}/exe"):
                    found[int(entry)] = pathlib.Path(f"/proc/{entry}/comm").read_text().strip()
            except OSError:
                pass  # a thread of the kernel, or gone
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
        self.places = groups()
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
            out, err = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            err += "\nkilled after 60 s"
        try:
            said = json.loads(out)
        except ValueError:
            said = None
        self.said["runs"][name] = {"place": place, "status": p.returncode, "said": said, "stderr": err[-5000:],
                                   "seconds": round(time.monotonic() - begun, 2), "left": remains(self.mounts)}

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
            self.run(f"{place} mounts", place, "cat", "/proc/self/mountinfo")
            self.run(f"{place} memory", place, "/usr/bin/python3", "-c", HOG,
                     limits="memory=100000000,disk-bytes=1000000")
            self.run(f"{place} processes", place, "/usr/bin/python3", "-c", BOMB, limits="processes=10")
            self.run(f"{place} cpu", place, "/usr/bin/python3", "-c", SPIN, limits="cpu-ns=1500000000")
            for victim in ("aquarium-keeper", "front"):
                self.kill(f"{place} {victim}", place, victim)
            self.run(f"{place} again", place, "true")


def main():
    prepare()
    begun = time.monotonic()
    try:
        guest = Guest()
        said = guest.said
        guest.everything()
    except BaseException:
        said = {**(said if "said" in locals() else {}), "failure": traceback.format_exc()}
    said["seconds"] = round(time.monotonic() - begun, 1)
    with open("/dev/ttyS1", "wb", buffering=0) as line:
        tty.setraw(line.fileno())
        data = json.dumps(said).encode()
        while data:
            data = data[line.write(data[:4096]):]
        LIBC.tcdrain(line.fileno())
    os.sync()
    LIBC.reboot(0x1234567)  # with -no-reboot: the end


main()
