"""What a hostile payload tries against its world. Each attempt runs inside and prints what it got;
the twin of an attempt (the same act where it is allowed) shows that the attempt itself works."""
import errno
import fcntl
import os
import pathlib
import socket
import subprocess
import threading
import time

from worlds import as_root, everywhere, worlds  # fixtures

CALLS = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(nr, *args)
    return 0 if r >= 0 else ctypes.get_errno()
def name(e): return errno.errorcode.get(e, str(e))
"""


def test_nobody_inside(worlds):
    said, out = worlds.run("cat", "/proc/self/status")
    field = dict(line.split(":\t", 1) for line in out.splitlines() if ":\t" in line)
    assert field["Uid"].split() == ["1000"] * 4 and field["Gid"].split() == ["1000"] * 4
    assert field["Groups"].strip() == ""
    for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(field[caps], 16) == 0, caps
    assert field["NoNewPrivs"] == "1" and field["SigIgn"] == "0" * 16
    assert said["containment"]["own_ids"] == (worlds.user == "root")
    assert said["containment"]["proc"] and said["containment"]["clocks"]


def test_outside_nobody_has_that_user(as_root):
    said, out = as_root.run("cat", "/proc/self/uid_map")
    rows = [list(map(int, line.split())) for line in out.splitlines()]
    assert [r[0] for r in rows] == [0, 1000] and all(r[2] == 1 for r in rows)
    users = {int(line.split(":")[2]) for line in open("/etc/passwd")}
    assert all(r[1] >= 0x70000000 and r[1] not in users for r in rows)


def test_only_three_descriptors(everywhere):
    _, out = everywhere.python("import os\nprint(sorted(os.listdir('/proc/self/fd')))\n"
                           "print([os.readlink(f'/proc/self/fd/{i}').split(':')[0] for i in range(3)])")
    fds, kinds = out.splitlines()
    assert fds == "['0', '1', '2', '3']" and kinds == "['pipe', 'pipe', 'pipe']"  # 3 lists


def test_environment_is_ours(worlds):
    os.environ["AQ_SECRET_OF_HOST"] = "leak"
    _, out = worlds.run("env")
    names = {line.split("=")[0] for line in out.splitlines()}
    assert names == {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TMPDIR", "PWD"}
    _, out = worlds.run("cat", "/proc/1/cmdline")
    assert out.strip("\0") == "/sbin/init"


def test_nothing_lies_above_the_root(worlds):
    _, out = worlds.python("""
import os
root = os.stat("/")
for folder in [x for x in sorted(os.listdir("/")) if not os.path.islink("/" + x)]:
    if not os.access("/" + folder, os.X_OK): continue  # the user's world has folders of root, too
    above = os.stat(f"/{folder}/..")
    print(folder, (above.st_dev, above.st_ino) == (root.st_dev, root.st_ino))
for line in open("/proc/self/mountinfo"):
    print("mount", line.split()[4])
""")
    lines = [line.split() for line in out.splitlines()]
    assert len([x for x in lines if x[1] == "True"]) >= 10
    assert [x for x in lines if x[1] == "False"] == []
    mounts = [x[1] for x in lines if x[0] == "mount"]
    assert mounts.count("/") == 1 and len(mounts) == len(set(mounts))


def test_every_mount_is_restricted(worlds, tmp_path):
    """Two locks on the same door: what Landlock refuses the mounts would refuse as well."""
    _, out = worlds.run("cat", "/proc/self/mountinfo", options=["--share", f"{tmp_path}:/home/user/shown"])
    mounts = {line.split()[4]: set(line.split()[5].split(",")) for line in out.splitlines()}
    own = {"/home/user", "/tmp", "/var/tmp", "/dev/shm", "/run/user/1000"}
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    assert mounts.keys() >= own | devices | {"/", "/usr", "/proc", "/dev/pts", "/home/user/shown"}
    assert [m for m, flags in mounts.items() if "nosuid" not in flags] == []
    assert {m for m, flags in mounts.items() if "nodev" not in flags} == devices | {"/dev/pts"}
    assert {m for m, flags in mounts.items() if "ro" not in flags} == own | {"/proc", "/dev/pts", "/dev/mqueue"}
    assert {m for m, flags in mounts.items() if "noexec" in flags} == devices | {"/", "/proc", "/sys", "/dev/pts", "/dev/mqueue"}


def test_landlock_stands_behind_the_mounts(everywhere):
    """Acts that no mount forbids, so that only Landlock can have refused them."""
    said, out = everywhere.python(CALLS + """
import fcntl
for path in ("/dev/zero", "/dev/null"):
    try: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x1234); print("ASKED")
    except OSError as e: print(name(e.errno))
print(call(240, b"queue", os.O_CREAT | os.O_RDWR, 0o600, 0) == 0)  # the twins: a queue, and a terminal of its own
m, s = os.openpty()
print(fcntl.ioctl(s, 0x5413, b"\\0" * 8) != b"")
""")
    abi = said["containment"]["landlock"]
    assert abi > 0, "this host has no Landlock"
    assert said["landlock"] == abi  # in the record, and so in the evidence
    lines = out.splitlines()
    assert lines[2:] == ["True", "True"] and (abi < 5 or lines[:2] == ["EACCES"] * 2), out


def test_no_mounts_no_namespaces(everywhere):
    code = CALLS + """
tmpfs = ctypes.c_char_p(b"tmpfs")
tries = {
  "mount": (165, tmpfs, b"/tmp", tmpfs, 0, 0), "bind": (165, b"/usr", b"/tmp", 0, 4096, 0),
  "remount": (165, b"/", b"/", 0, 32 | 4096, 0),
  "umount": (166, b"/proc", 2), "pivot_root": (155, b"/tmp", b"/tmp"), "chroot": (161, b"/tmp"),
  "unshare user": (272, 0x10000000), "unshare mount": (272, 0x20000), "unshare net": (272, 0x40000000),
  "setns": (308, os.open("/proc/self/ns/net", 0), 0), "fsopen": (430, tmpfs, 0),
  "open_tree": (428, -100, b"/usr", 1), "mount_setattr": (442, -100, b"/usr", 0, b"\\0" * 32, 32),
  "sethostname": (170, b"x", 1), "swapon": (167, b"/tmp/x", 0), "reboot": (169, 0xfee1dead, 672274793, 0, 0),
  "init_module": (175, 0, 0, b""), "kexec_load": (246, 0, 0, 0, 0), "bpf": (321, 0, b"\\0" * 128, 128),
  "iopl": (172, 3), "settimeofday": (164, b"\\0" * 16, 0), "syslog": (103, 3, b"\\0" * 64, 64),
  "setuid 0": (105, 0), "setgroups": (116, 1, b"\\0" * 4), "quotactl": (179, 0, 0, 0, 0),
}
for what, args in tries.items():
    print(what, "->", name(call(*args)))
"""
    _, out = everywhere.python(code)
    got = dict(line.split(" -> ") for line in out.splitlines())
    assert len(got) == 25
    assert [w for w, e in got.items() if e == "0"] == []
    assert got["mount"] in ("EPERM", "EACCES") and got["setuid 0"] in ("EPERM", "EINVAL")
    # No user namespace of its own either, which would give it capabilities again.
    assert got["unshare user"] in ("ENOSPC", "EPERM")


def test_proc_and_sys_cannot_be_written(everywhere):
    code = """
import os, sys
for p in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
          "/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
          "/proc/1/mem", "/proc/1/oom_score_adj", "/proc/1/environ", "/proc/1/root/x", "/proc/1/fd/0",
          "/proc/kcore", "/proc/kmsg", "/proc/self/uid_map", "/proc/self/timens_offsets", "/sys/x"):
    try:
        fd = os.open(p, os.O_WRONLY | (os.O_CREAT if p == "/sys/x" else 0))
        os.write(fd, b"0 0 1")
        print("WROTE", p)
    except OSError as e:
        pass
for p in ("/proc/1/maps", "/proc/1/environ", "/proc/1/root", "/proc/1/cwd/etc", "/proc/kcore", "/proc/1/fd"):
    try:
        (os.listdir if p[-1] in "td" else open)(p)
        print("READ", p)
    except OSError: pass
print(os.listdir("/sys") if sys.argv[1] == "bare" else [])
open("/proc/self/comm", "w").write("twin")
print(open("/proc/self/comm").read().strip())
"""
    _, out = everywhere.python(code, "whole" if everywhere.whole else "bare")  # a machine has a tree there
    assert out.splitlines() == ["[]", "twin"], out


def test_devices(worlds):
    code = CALLS + """
import stat
print(sorted(os.listdir("/dev")))
for mode in (stat.S_IFCHR, stat.S_IFBLK):
    try:
        os.mknod("/tmp/node", mode | 0o600, os.makedev(1, 3)); print("MADE")
    except OSError as e: print(name(e.errno))
with open("/dev/null", "w") as f: f.write("x")
for p in ("/dev/null", "/dev/zero"):
    try:
        os.chmod(p, 0o600); print("CHANGED")
    except OSError as e: print(name(e.errno))
m, s = os.openpty()  # the twin: terminals of its own
os.write(m, b"hello\\n"); print(os.read(s, 5))
"""
    _, out = worlds.python(code)
    lines = out.splitlines()
    assert lines[0] == str(sorted(["fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr",
                                   "stdin", "stdout", "tty", "urandom", "zero"]))
    assert lines[1] in ("EPERM", "EACCES") and lines[2] in ("EPERM", "EACCES")
    assert lines[3] == lines[4] == "EROFS" and lines[5] == "b'hello'"


def test_host_files(worlds, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o644)
    code = f"""
import os, socket
for p in ({str(secret)!r}, "/etc/shadow", "/etc/machine-id", "/root/.ssh", "/run/systemd", "/boot",
          "/.dockerenv", "/proc/1/root{secret}", "/lost+found", "/srv"):
    if os.path.isdir(p) and (not os.access(p, os.R_OK) or not os.listdir(p)): continue
    if os.path.exists(p): print("SEES", p)
for p in ("/usr/x", "/etc/x", "/x", "/bin/x", "/dev/x", "/var/x", "/home/x", "/proc/x", "/root/x"):
    try: open(p, "w"); print("WROTE", p)
    except OSError: pass
for p in ("/tmp", "/var/tmp", "/dev/shm", "/home/user", "/run/user/1000"): open(p + "/mine", "w").write("1")
print(open("/etc/hostname").read().strip(), socket.gethostname(), open("/etc/resolv.conf").read().strip())
print(open("/etc/passwd").read().count("\\n"), os.statvfs("/usr").f_flag & (1 | 2))
"""
    said, out = worlds.python(code)
    assert out.splitlines() == ["debian debian nameserver 10.0.2.3", "3 3"], out
    assert {c["path"] for c in said["changes"]} == {
        "/tmp/mine", "/var/tmp/mine", "/dev/shm/mine", "/home/user/mine", "/run/user/1000/mine"}


def test_setuid_programs_give_nothing(everywhere):
    setuid = [p for p in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/bin/su") if
              os.path.exists(p) and os.stat(p).st_mode & 0o4000]
    assert setuid, "this host has no setuid program to try"
    _, out = everywhere.run("sh", "-c", "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id && /tmp/id -u; "
                                    "exec 2>/dev/null; su -c 'id -u' </dev/null; mount -t tmpfs x /tmp && echo MOUNTED")
    assert out.split() == ["1000"]


def test_ptrace_and_signals_stay_inside(everywhere):
    victim = subprocess.Popen(["sleep", "100"])
    code = CALLS + f"""
import signal, time
print("init", name(call(101, 16, 1, 0, 0)), name(call(101, 0x4206, 1, 0, 0)))
print("host", name(call(101, 16, {victim.pid}, 0, 0)), name(call(62, {victim.pid}, 9)))
call(62, 1, 9); call(62, 1, 15)
for p in [*range(2, 600), os.getppid(), -os.getpgrp(), -1]:
    if p not in (os.getpid(), -os.getpid()) and p: call(62, p, 9)
child = os.fork()
if child == 0: time.sleep(100)
print("child", name(call(101, 16, child, 0, 0)))  # whoever is watched cannot watch
os.kill(child, 9)
print(len([p for p in os.listdir("/proc") if p.isdigit()]) <= 3)
"""
    try:
        _, out = everywhere.python(code)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    init, host, child, few = out.splitlines()
    assert init == "init EPERM EPERM" and child == "child EPERM"
    assert few == str(not everywhere.whole)  # a machine shows more of them than there are
    assert host in ("host EPERM ESRCH", "host EPERM 0")  # 0: a number that is its own inside


def listen(family, kind, address):
    s = socket.socket(family, kind)
    s.bind(address)
    if kind == socket.SOCK_STREAM:
        s.listen(8)
    s.settimeout(0.3)
    return s


def heard(s):
    try:
        s.accept() if s.type == socket.SOCK_STREAM else s.recv(100)
        return True
    except TimeoutError:
        return False


def test_host_network_is_out_of_reach(worlds):
    """Listeners of the host, asked from inside: none of them hears anything."""
    abstract = f"\0aq-escape-{os.getpid()}"
    tcp = listen(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))
    udp = listen(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 0))
    unix = listen(socket.AF_UNIX, socket.SOCK_STREAM, abstract)
    attempt = f"""
import socket, subprocess, sys
def tcp(host):
    s = socket.socket(); s.settimeout(2)
    try: s.connect((host, {tcp.getsockname()[1]})); print("CONNECTED", host)
    except OSError as e: print(type(e).__name__)
hosts = sys.argv[1:]
for h in hosts:
    tcp(h)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (h, {udp.getsockname()[1]}))
u = socket.socket(socket.AF_UNIX)
try: u.connect({abstract!r}); print("CONNECTED abstract")
except OSError as e: print(type(e).__name__)
try: socket.getaddrinfo("example.org", 80); print("RESOLVED")
except OSError as e: print(type(e).__name__)
try: socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print("RAW")
except OSError as e: print(type(e).__name__)
print([i[1] for i in socket.if_nameindex()])
"""
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
    hosts = ["127.0.0.1", "198.51.100.7"] + [a for a in own if ":" not in a][:1]
    _, out = worlds.python(attempt, *hosts)
    lines = out.splitlines()
    assert lines[:len(hosts)] == ["ConnectionRefusedError"] * len(hosts), out
    assert lines[len(hosts):] == ["ConnectionRefusedError", "gaierror", "PermissionError", "['lo']"]
    assert not heard(tcp) and not heard(udp) and not heard(unix)
    # The twin: the same listener hears a neighbour.
    knock = threading.Thread(target=lambda: socket.create_connection(("127.0.0.1", tcp.getsockname()[1])))
    knock.start()
    assert heard(tcp)
    knock.join()


def test_two_worlds_do_not_meet(worlds, tmp_path):
    """A server in one world, a client and a key hunter in another."""
    server = subprocess.Popen(worlds.command("/usr/bin/python3", "-c", """
import socket, time
s = socket.socket(); s.bind(("0.0.0.0", 7777)); s.listen()
u = socket.socket(socket.AF_UNIX); u.bind("\\0neighbour"); u.listen()
open("/tmp/shared", "w"); open("/dev/shm/shared", "w")
print("up", flush=True); time.sleep(60)"""), stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"up\n"
        _, out = worlds.python("""
import os, socket
for f, a in ((socket.AF_INET, ("127.0.0.1", 7777)), (socket.AF_INET, ("10.0.2.15", 7777)), (socket.AF_UNIX, "\\0neighbour")):
    try: socket.socket(f).connect(a); print("MET", a)
    except OSError: pass
print(os.path.exists("/tmp/shared"), os.path.exists("/dev/shm/shared"))""")
        assert out.strip() == "False False"
    finally:
        server.kill()
        server.wait()


def test_locks_and_watches_stay_inside(everywhere):
    """The base is made of the host's own inodes: a lock there would hold up the host, a watch would
    tell what it does. The twins: both work in the world's own places."""
    holder = subprocess.Popen(everywhere.command("/usr/bin/python3", "-c", """
import ctypes, fcntl, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for path in ("/usr/bin/env", "/dev/null"):
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
i = libc.inotify_init1(0)
print(libc.inotify_add_watch(i, b"/usr/bin", 0xfff), libc.inotify_add_watch(i, b"/tmp", 0xfff) > 0)
open("/tmp/own", "w")
own = [os.open("/tmp/own", os.O_RDONLY) for _ in range(2)]
fcntl.flock(own[0], fcntl.LOCK_EX)
try: fcntl.flock(own[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: print("excluded")
print(len(os.read(i, 4096)) > 0, flush=True)
sys.stdin.readline()"""), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert [holder.stdout.readline() for _ in range(3)] == [b"-1 True\n", b"excluded\n", b"True\n"]
        for path in ("/usr/bin/env", "/dev/null"):
            with open(path) as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        holder.communicate(b"\n")


def test_no_core_for_a_collector(worlds):
    """Zero keeps a core from files only; at one the kernel starts no collector, and it stays one."""
    said, out = worlds.python("""
import os, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print([line.split()[4:6] for line in open("/proc/self/limits") if "core" in line], flush=True)
os.abort()""")
    assert said["exit"] == {"kind": "signal", "value": 6} and out == "[['1', '1']]\n"


def test_keyrings(everywhere):
    """A key of the caller's session is not there inside, and not by its number either."""
    add = CALLS + """
key = libc.syscall(248, b"user", b"aq-escape-key", b"secret", 6, -3)
print(key)
"""
    caller = subprocess.run(
        ["/usr/bin/python3", "-c", add + f"""
import subprocess
look = {CALLS!r} + '''
buf = ctypes.create_string_buffer(64)
print("read", name(call(250, 11, int(sys.argv[1]), buf, 64)), buf.raw[:6])
print("search", name(call(249, b"user", b"aq-escape-key", 0, -3)))
'''
args = {everywhere.command("/usr/bin/python3", "-c")!r}
print(subprocess.run(args + [look, str(key)], capture_output=True, text=True).stdout)
"""], capture_output=True, text=True)
    lines = caller.stdout.split("\n")
    if int(lines[0]) < 0:
        return  # a kernel without keyrings has nothing to leak
    assert lines[1].startswith("read ") and not lines[1].startswith("read 0"), caller.stdout
    assert "secret" not in caller.stdout
    assert lines[2].startswith("search ") and lines[2] != "search 0"


BOMBS = {
    "processes=24": "import os, time\ntry:\n while 1: os.fork()\nexcept OSError: time.sleep(60)",
    "memory=100000000": "b = []\nwhile 1: b.append(bytearray(1 << 20))",
    "disk-bytes=20000000": "f = open('/tmp/x', 'wb')\nwhile 1: f.write(b'x' * 65536)",
    "inodes=300": "import os\nfor i in range(10**9): os.mkdir(f'/dev/shm/{i}')",
    "output-bytes=1000000": "import os\nwhile 1: os.write(2, b'x' * 5000)",
    "cpu-ns=200000000": "while 1: pass",
    "io-bytes=50000000": "f = open('/dev/zero', 'rb', 0)\nwhile 1: f.read(65536)",
    "wall-ms=400": "while 1: pass",  # sleeping takes no time
}


def test_bombs(everywhere):
    for limit, code in BOMBS.items():
        said, _ = everywhere.python(code, limits=[limit])
        assert said["exit"]["kind"] == "budget" and said["limit"] == limit.split("=")[0], (limit, said["exit"])
        if limit.startswith("disk"):
            assert 19_000_000 < sum(c["size"] for c in said["changes"]) <= 20_000_000
        if limit.startswith("output"):
            assert {o["stream"]: o["bytes"] for o in said["outputs"]} == {"stdout": 0, "stderr": 1_000_000}
    # Memory that is in no process: files in memory that nobody maps.
    said, _ = everywhere.python("import os\nf = []\nwhile 1:\n f.append(os.memfd_create('m'))\n"
                            " for i in range(16): os.write(f[-1], bytes(1 << 20))",
                            limits=["memory=100000000", "disk-bytes=100000000"])
    assert said["exit"]["kind"] == "budget" and said["limit"] == "memory", said["exit"]
    # The limit is what it says, however large the space for files is; and files do not count.
    said, _ = everywhere.python("b = [bytearray(1 << 20) for i in range(150)]\nfor i in range(10**7): pass",
                            limits=["memory=100000000"])
    assert said["exit"]["kind"] == "budget" and said["limit"] == "memory", said["exit"]
    said, _ = everywhere.python("f = open('/tmp/x', 'wb', 0)\nfor i in range(150): f.write(bytes(1 << 20))\n"
                            "for i in range(10**7): pass", limits=["memory=100000000"])
    assert said["exit"] == {"kind": "status", "value": 0}
    # The twins: the same acts within the limits.
    said, out = everywhere.python("import os\nos.write(os.memfd_create('m'), bytes(20 << 20))\nb = bytearray(30 << 20)\nopen('/tmp/x', 'wb').write(b[:1 << 20])\n"
                              "for i in range(20): os.mkdir(f'/tmp/d{i}')\n"
                              "for i in range(8):\n if os.fork() == 0: os._exit(0)\n"
                              "for i in range(8): os.wait()\nprint('y' * 1000)", limits=BOMBS.keys() - {"wall-ms=400"})
    assert said["exit"] == {"kind": "status", "value": 0} and out == "y" * 1000 + "\n"


FULL = {  # each makes room again at once and ends well, so that only the refused call tells
    "disk-bytes=8000000": ["f = open('/tmp/x', 'wb', 0)\ntry:\n while 1: f.write(b'x' * 65536)\nexcept OSError: os.remove('/tmp/x')",
                           "f = open('/tmp/x', 'wb')\ntry: os.posix_fallocate(f.fileno(), 0, 10**8)\nexcept OSError: os.remove('/tmp/x')",
                           # There is room for one of them: reserving takes all or nothing.
                           "open('/tmp/y', 'wb').write(bytes(5 << 20))\nf = open('/tmp/x', 'wb')\n"
                           "try: os.posix_fallocate(f.fileno(), 0, 5 << 20)\nexcept OSError: os.remove('/tmp/x')",
                           "f = open('/tmp/x', 'wb', 0)\nf.seek(10**8)\ntry: f.write(b'x')\nexcept OSError: os.remove('/tmp/x')"],
    "inodes=100": ["n = 0\ntry:\n while 1: os.mkdir(f'/tmp/{n}'); n += 1\nexcept OSError:\n for i in range(n): os.rmdir(f'/tmp/{i}')"],
}


def test_a_limit_is_told_by_the_call_that_met_it(everywhere):
    for limit, codes in FULL.items():
        for code in codes:
            said, _ = everywhere.python("import os\n" + code, limits=[limit])
            assert said["exit"]["kind"] == "budget" and said["limit"] == limit.split("=")[0], (code, said["exit"])
    # The twin: a full device is no limit of ours.
    said, out = everywhere.python("import os\ntry: os.write(os.open('/dev/full', 1), b'x')\nexcept OSError as e: print(e.errno)",
                              limits=list(FULL))
    assert said["exit"] == {"kind": "status", "value": 0} and out == "28\n"


def test_slow(worlds):
    """A tenth of a processor, where the host has a mechanism for it; else that is said."""
    code = "for i in range(6 * 10**6): pass"
    begun = time.monotonic()
    said, _ = worlds.python(code, limits=["cpu-percent=10"])
    took = time.monotonic() - begun
    assert said["exit"] == {"kind": "status", "value": 0}
    if said["containment"]["rate"] == "none":
        assert worlds.user == "plain" or not os.path.exists("/sys/fs/cgroup/cpu"), said["containment"]
    else:
        assert said["containment"]["rate"].startswith("cgroup")
        assert took * 10**9 > 4 * said["resources"]["cpu_ns"] > 0, (took, said["resources"])
    said, _ = worlds.run("true")
    assert said["containment"]["rate"] == "one processor"


def test_background_processes_end_with_their_world(worlds):
    """The run goes on until the last process left; a limit ends those who never do."""
    mark = f"7{os.getpid()}"
    said, out = worlds.run("sh", "-c", f"(setsid sh -c 'while :; do sleep {mark}; done' &) ; echo started",
                           limits=["virtual-ns=1000000000000000"])
    assert out == "started\n" and said["limit"] == "virtual-ns"
    assert subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).stdout == b""


def test_status_output_and_input_pass(worlds):
    said, out = worlds.run("sh", "-c", "cat; echo err >&2; exit 42", input=b"in" * 100000)
    assert out == "in" * 100000 and worlds.stderr == "err\n" and worlds.status == 42
    assert said["exit"] == {"kind": "status", "value": 42}
    said, _ = worlds.run("sh", "-c", "kill -9 $$")
    assert said["exit"] == {"kind": "signal", "value": 9}
    said, _ = worlds.run("no-such-program")
    assert said["exit"] == {"kind": "status", "value": 127} and "no-such-program" in worlds.stderr
    said, _ = worlds.run("/etc/passwd")
    assert said["exit"] == {"kind": "status", "value": 126}


def test_unreadable_leftovers_are_read(worlds):
    said, _ = worlds.run("sh", "-c", "umask 777; echo x > ~/hidden; mkdir ~/closed; ln -s /etc/shadow ~/link; "
                                     "mkfifo /tmp/fifo; mkdir -m 700 /tmp/d; echo y > /tmp/d/e; chmod 000 /tmp/d")
    paths = {c["path"]: c["size"] for c in said["changes"]}
    assert paths == {"/home/user/hidden": 2, "/home/user/closed/": 0, "/home/user/link": 11,
                     "/tmp/fifo": 0, "/tmp/d/": 0, "/tmp/d/e": 2}


def test_root_file_system_and_shares(worlds, tmp_path):
    share, rootfs = tmp_path / "share", tmp_path / "rootfs"
    share.mkdir(), rootfs.mkdir()
    (share / "file").write_text("shared\n")
    for link in ("bin", "lib", "lib64"):
        (rootfs / link).symlink_to(os.readlink(f"/{link}"))
    (rootfs / "usr").symlink_to("/host/usr")
    (rootfs / "etc").mkdir()
    (rootfs / "etc/marker").write_text("of the root file system\n")
    _, out = worlds.run("sh", "-c", "cat ~/shown/file; echo x > ~/shown/file || echo refused",
                        options=["--share", f"{share}:/home/user/shown"])
    assert out == "shared\nrefused\n" and (share / "file").read_text() == "shared\n"
    _, out = worlds.run("/host/usr/bin/cat", "/etc/marker", "/etc/passwd",
                        options=["--rootfs", str(rootfs), "--share", "/usr:/host/usr"])
    assert out == "of the root file system\n"


NAMED = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static struct sockaddr_un to = {.sun_family = AF_UNIX};
static void say(const char *what, long r) { printf("%s %d\n", what, r < 0 ? errno : 0); fflush(stdout); }
int main(int argc, char **argv)
{
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to};
    struct mmsghdr many[2] = {{{0}, 0}, {m, 0}};
    for (int i = 1; i < argc; i++) {
        strcpy(to.sun_path, argv[i]);
        say("connect", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&to, sizeof to));
        strcat(to.sun_path, ".d");
        int d = socket(AF_UNIX, SOCK_DGRAM, 0);
        say("sendto", sendto(d, "x", 1, 0, (void *)&to, sizeof to));
        say("sendmsg", sendmsg(d, &m, 0));
        say("sendmmsg", sendmmsg(d, many + 1, 1, 0));
        say("connect", connect(d, (void *)&to, sizeof to));
    }
    strcpy(to.sun_path, "/nothing");
    say("nothing", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&to, sizeof to));
    strcpy(to.sun_path, "/tmp/own"); /* the twin: one of its own */
    int l = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(l, (void *)&to, sizeof to), listen(l, 1);
    say("own", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&to, sizeof to));
    return 0;
}
"""


def test_sockets_in_a_root_file_system(worlds, tmp_path):
    """Whoever listens out there hears nothing, whatever the name is that leads there."""
    root = tmp_path / "root"
    for folder in ("bin", "lib64", "run0", "etc"):
        (root / folder).mkdir(parents=True)
    (tmp_path / "named.c").write_text(NAMED)
    subprocess.run(["cc", "-static", "-w", "-D_GNU_SOURCE", "-o", root / "bin/named", tmp_path / "named.c"], check=True)
    (root / "link").symlink_to("/proc/self/root/run0/s")
    (root / "link.d").symlink_to("run0/../run0/s.d")
    ears = [listen(socket.AF_UNIX, socket.SOCK_STREAM, str(root / "run0/s")),
            listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(root / "run0/s.d"))]
    for name in ("s", "s.d"):
        (root / "run0" / name).chmod(0o777)
    said, out = worlds.run("/bin/named", "/run0/s", "/link", options=["--rootfs", str(root)])
    lines = [line.split() for line in out.splitlines()]
    refused = str(errno.ECONNREFUSED)
    assert [x[0] for x in lines] == ["connect", "sendto", "sendmsg", "sendmmsg", "connect"] * 2 + ["nothing", "own"], worlds.stderr
    assert {x[1] for x in lines[:10]} == {refused} and lines[10:] == [["nothing", str(errno.ENOENT)], ["own", "0"]]
    assert not any(heard(e) for e in ears)


def test_world_in_a_world(worlds):
    """Nested: inside, no further world can be made, and that is said in words."""
    said, out = worlds.run("/tool/" + worlds.driver.name, "--probe",
                           options=["--share", f"{worlds.place}:/tool"])
    assert out.startswith("not usable\nNone: no world can be made") and "namespace" in out


def test_nested_in_another_container(as_root):
    """In a container of another make, whose root is root of one id only."""
    inner = [str(as_root.driver), "--", "sh", "-c", "id -u; touch /tmp/x && echo wrote"]
    outer = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--net"]
    done = subprocess.run(outer + inner, capture_output=True, text=True, timeout=60)
    assert done.stdout == "1000\nwrote\n", done.stderr


def test_probe_tells_the_truth(worlds):
    done = subprocess.run(worlds.command("-")[:-2] + ["--probe"], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "usable" and lines[1].startswith("Own user, mount, pid, network")
    said, _ = worlds.run("true")
    held = said["containment"]
    assert (f"limited by {held['memory']}, {held['processes']} and {held['cpu']}" in lines[1])
    assert ("that nothing else has" in lines[1]) == held["own_ids"]
    assert ("rights but those to TCP" in lines[1]) == (held["landlock"] >= 4)
