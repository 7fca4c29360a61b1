"""The peers of an aquarium: how each is called, what it observes, and whether it runs here.

A peer turns a command into an argument list. Those that speak OCI (crun, runc, runsc) get a bundle
with the host's programs, read-only: own pid, network, ipc, uts, mount and cgroup namespaces, limits
on memory and processes, a writable /tmp, no capabilities. What each observes is in `observes`."""
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTHING = "nothing"
OURS = "every call stops and is counted; files, network, processes, clock, entropy, signals are events"
SHARED = ("/usr", "/etc", "/opt", "/var")  # what a bundle shows of the host
NAMESPACES = ("pid", "network", "ipc", "uts", "mount", "cgroup")
PINNED = ["taskset", "-c", "0"]


class Peer:
    """`why` says why it cannot be measured here; None when it can."""

    def __init__(self, name, observes, prefix=(), program=None):
        self.name, self.observes, self.prefix = name, observes, list(prefix)
        self.program = program or (self.prefix[0] if self.prefix else None)
        self.why = None
        if self.program and not shutil.which(self.program):
            self.why = f"{self.program} is not installed (tools/setup bench, bench/setup)"

    def command(self, *command, stdin=False):
        return [*self.prefix, *command]

    def around(self):
        """Where it runs; entered before the clock starts."""
        return contextlib.nullcontext()


class Aquarium(Peer):
    def __init__(self, build, name="aquarium", before=(), options=()):
        super().__init__(name, OURS, [*before, str(build / "aquarium"), "run", "--quarantine", "--quiet", *options],
                         str(build / "aquarium"))

    def command(self, *command, stdin=False):
        return [*self.prefix, *(["--stdin"] if stdin else []), "--", *command]


class Oci(Peer):
    """A runtime that takes a bundle: one folder for each command."""

    numbers = itertools.count()

    def __init__(self, name, observes, prefix, place):
        super().__init__(name, observes, prefix)
        self.place, self.bundles = place, {}
        if not self.why and os.geteuid() != 0:
            self.why = "measured as root only: without root it needs a bundle of another kind"

    def rootfs(self):
        root = self.place.parent / "rootfs"
        if not root.exists():
            for folder in ("proc", "dev", "tmp", *(f[1:] for f in SHARED), str(self.place)[1:]):
                (root / folder).mkdir(parents=True)
            for link in pathlib.Path("/").glob("*"):
                if link.is_symlink():  # bin, lib, lib64, sbin
                    (root / link.name).symlink_to(os.readlink(link))
        return root

    def config(self, command):
        return {
            "ociVersion": "1.0.0", "hostname": "bench",
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": list(command),
                        "env": [f"PATH={os.environ['PATH']}"], "cwd": str(self.place),
                        "capabilities": {}, "noNewPrivileges": True},
            "root": {"path": str(self.rootfs()), "readonly": True},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                 "options": ["nosuid", "mode=755", "size=65536k"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
                 "options": ["nosuid", "mode=1777"]},
                *({"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "ro"]}
                  for folder in (*SHARED, str(self.place)))],
            "linux": {"namespaces": [{"type": kind} for kind in NAMESPACES],
                      "resources": {"memory": {"limit": 1 << 30}, "pids": {"limit": 256}}}}

    def command(self, *command, stdin=False, name=None):
        if command not in self.bundles:
            bundle = self.place.parent / f"bundle-{next(self.numbers)}"
            bundle.mkdir()
            (bundle / "config.json").write_text(json.dumps(self.config(command)))
            self.bundles[command] = bundle
        return [*self.prefix, "run", "--bundle", str(self.bundles[command]),
                name or f"bench-{os.getpid()}-{next(self.numbers)}"]


CLONE_NEWNS = 0x20000
LIBC = ctypes.CDLL(None, use_errno=True)


class Crun(Oci):
    """Debian's crun refuses a host that has v1 hierarchies and a v2 tree with any controller. There it
    runs in a mount namespace without that tree, made once, so that it can be measured with cgroups."""

    space = None

    def hide_v2(self):
        script = "umount -l /sys/fs/cgroup/unified && echo ready && read wait"
        maker = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        if maker.stdout.readline() == b"ready\n":
            self.space = os.open(f"/proc/{maker.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        maker.communicate()

    @contextlib.contextmanager
    def around(self):
        if self.space is None:
            yield
            return
        before, here = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC), os.getcwd()
        try:
            enter(self.space, here)
            yield
        finally:
            enter(before, here)
            os.close(before)


def enter(space, folder):
    if LIBC.setns(space, CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.chdir(folder)


def runsc_program():
    pinned = sorted((ROOT / "build-peers").glob("runsc-*"))
    return str(pinned[-1]) if pinned else "runsc"


def runsc(place, platform, before=(), log=False):
    name = f"runsc {platform}" + (", logging" if log else "")
    options = [f"--platform={platform}", "--network=none", f"--root={place.parent}/runsc"]
    if log:
        options += ["--debug", "--strace", "--debug-log=/dev/null"]
    observes = "every call, as text in a log" if log else "nothing: its own kernel answers the calls"
    return Oci(name, observes, [*before, runsc_program(), *options], place)


def probe(peer):
    """Runs `true` once; what it says when it cannot is the reason that the rows print."""
    if peer.why:
        return
    command = peer.command("/bin/true")
    try:
        with peer.around():
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        peer.why = f"'{' '.join(command)}' did not end in 30 s"
        return
    if isinstance(peer, Crun) and peer.space is None and "hybrid" in done.stderr:
        peer.hide_v2()
        if peer.space is not None:
            probe(peer)
            return
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        peer.why = f"'{' '.join(command)}' ended with {done.returncode}: {said}"


def version(program):
    """The first line of what it says of itself."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    line = said.strip().splitlines()[0] if said.strip() else ""
    return pathlib.Path(program).name if "MISSING" in line else line
