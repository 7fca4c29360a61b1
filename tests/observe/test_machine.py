"""One set of facts feeds every face of a world's machine: files of /proc, answers of calls, the tools that read them."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "run"))
from conftest import PROGRAM  # noqa: E402
from test_run import runner  # noqa: E402,F401 (a fixture)


def facts(seed="1", side="A"):
    done = subprocess.run([PROGRAM, "decoys", "show", "--seed", seed, "--world", side, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)["facts"]


def all_processors():
    last = int(facts()["cpu.count"]) - 1
    return f"0-{last}" if last else "0"


def said(runner, *command, **more):  # noqa: F811
    done = runner.run(*command, **more)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def python(runner, text, *options):  # noqa: F811
    return said(runner, "/usr/bin/python3", "-c", text, options=options)


# ---- the mechanism ----

WAYS = """
import ctypes, os, sys
whole = open("/proc/meminfo").read().encode()
fd = os.open("/proc/meminfo", os.O_RDONLY)
assert b"".join(iter(lambda: os.read(fd, 1), b"")) == whole, "one byte after the other"
assert os.read(fd, 10) == b"" and os.lseek(fd, 0, 1) == len(whole), "its end"
os.lseek(fd, 7, 0)
assert os.read(fd, 9) == whole[7:16] and os.lseek(fd, 0, 1) == 16, "its position"
assert os.pread(fd, 5, 100) == whole[100:105] and os.lseek(fd, 0, 1) == 16, "a place of its own"
two = [bytearray(3), bytearray(5)]
assert os.readv(fd, two) == 8 and b"".join(two) == whole[16:24], "pieces"
assert os.preadv(fd, two, 40) == 8 and b"".join(two) == whole[40:48], "pieces at a place"
other = os.dup(fd)
assert os.read(other, 4) == whole[24:28] and os.read(fd, 4) == whole[28:32], "one position for both"
again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
assert os.read(again, 4) == whole[:4], "opened again"
if os.fork() == 0:
    assert os.read(fd, 4) == whole[32:36]
    os._exit(0)
assert os.wait()[1] == 0 and os.read(fd, 4) == whole[36:40], "shared with a child"
folder = os.open("/proc", os.O_PATH)
inside = os.open("meminfo", os.O_RDONLY, dir_fd=folder)
assert os.read(inside, 4) == whole[:4], "by its folder"
out = os.open("/tmp/x", os.O_RDWR | os.O_CREAT)
for call in (lambda: os.sendfile(out, fd, 0, 100), lambda: os.splice(fd, os.pipe()[1], 100), lambda: os.copy_file_range(fd, out, 100)):
    try:
        n = call()
        assert n == 0, "bytes went past us"
    except OSError as e:
        assert e.errno in (22, 18), e
libc = ctypes.CDLL(None, use_errno=True)
assert libc.read(again, ctypes.c_void_p(8), 10) == -1 and ctypes.get_errno() == 14, "no memory there"
assert os.read(again, 4) == whole[4:8], "and nothing moved"
assert os.read(again, 0) == b""
print("fine", whole[:24].decode())
"""


def test_every_way_to_read(runner):  # noqa: F811
    assert python(runner, WAYS).startswith(f"fine MemTotal:       {facts()['memory.total_kb']}")


def test_files_of_the_process(runner):  # noqa: F811
    out = said(runner, "cat", "/proc/self/status", "/proc/thread-self/status", "/proc/self/uid_map", "/proc/self/cgroup")
    for line in ("TracerPid:\t0", "Seccomp:\t0", "NoNewPrivs:\t0", "State:\tR (running)", "CapBnd:\t000001ffffffffff",
                 "Cpus_allowed_list:\t" + all_processors(), "Uid:\t1000\t1000\t1000\t1000"):
        assert out.count(line + "\n") == 2, line
    assert "0 4294967295\n0::/user.slice/user-1000.slice/" in out and not re.search(r"^Kthread", out, re.M)


def test_only_where_there_is_a_machine(runner):  # noqa: F811
    out = said(runner, "sh", "-c", "cat /proc/self/status /proc/version; uname -r", options=("--world", "none"))
    assert "NoNewPrivs:\t1\n" in out and pathlib.Path("/proc/version").read_text() in out


# ---- all say the same ----


def test_processors(runner):  # noqa: F811
    count = facts()["cpu.count"]
    last = int(count) - 1
    out = said(runner, "sh", "-c", "nproc; grep -c ^processor /proc/cpuinfo; grep -c '^cpu[0-9]' /proc/stat; getconf _NPROCESSORS_ONLN; "
               "python3 -c 'import os; print(os.cpu_count()); print(len(os.sched_getaffinity(0)))'; "
               f"taskset -c 0,{last} nproc; taskset -c {last} sh -c 'grep Cpus_allowed_list /proc/self/status; nproc'")
    assert out.split() == [count] * 6 + [str(min(2, last + 1)), "Cpus_allowed_list:", str(last), "1"]
    assert facts()["cpu.model"] in said(runner, "grep", "-m1", "model name", "/proc/cpuinfo")


def test_memory(runner):  # noqa: F811
    f = facts()
    row = said(runner, "free", "-k").splitlines()[1].split()
    assert (row[1], row[3], row[6]) == (f["memory.total_kb"], f["memory.free_kb"], f["memory.available_kb"])
    code = "import os; print(os.sysconf('SC_PHYS_PAGES') * 4, os.sysconf('SC_AVPHYS_PAGES') * 4)"
    assert python(runner, code).split() == [f["memory.total_kb"], f["memory.free_kb"]]
    assert f["swap.total_kb"] in said(runner, "cat", "/proc/swaps")


def test_time(runner):  # noqa: F811
    out = python(runner, """
import time
up = float(open("/proc/uptime").read().split()[0])
boot = int([l for l in open("/proc/stat") if l.startswith("btime")][0].split()[1])
start = int(open("/proc/self/stat").read().rsplit(")")[-1].split()[19]) / 100
print(up - time.clock_gettime(time.CLOCK_BOOTTIME), time.time() - boot - up, up - start)
time.sleep(100)
print(float(open("/proc/uptime").read().split()[0]) - up)
""")
    numbers = [float(n) for n in out.split()]
    assert abs(numbers[0]) < 0.1 and abs(numbers[1]) < 1.1 and 0 <= numbers[2] < 1 and 100 <= numbers[3] < 101
    assert "up 2 days" in said(runner, "uptime") and "load average: 0.08, 0.03, 0.01" in said(runner, "uptime")


def test_kernel_and_name(runner):  # noqa: F811
    f = facts()
    want = f"Linux {f['host.name']} {f['kernel.release']} {f['kernel.version']} x86_64 GNU/Linux\n"
    assert said(runner, "uname", "-a") == want
    out = said(runner, "sh", "-c", "cd /proc/sys/kernel; cat osrelease version hostname random/boot_id; hostname; cat /proc/version")
    assert out.split("\n")[:5] == [f["kernel.release"], f["kernel.version"], f["host.name"], f["machine.boot_id"], f["host.name"]]
    assert out.split("\n")[5].startswith(f"Linux version {f['kernel.release']} (") and out.endswith(f["kernel.version"] + "\n")


def test_mounts(runner):  # noqa: F811
    f = facts()
    assert said(runner, "findmnt", "-no", "SOURCE,FSTYPE", "/").split() == [f"/dev/{f['disk.name']}p2", f["disk.root_file_system"]]
    assert not re.search("overlay|bind|vda|share-|/usr ", said(runner, "mount") + said(runner, "cat", "/proc/self/mountinfo"))


def test_node(runner):  # noqa: F811
    f, code = facts(), "const o = require('os'); console.log(o.cpus().length, o.totalmem() / 1024, o.release(), o.hostname(), o.uptime() | 0)"
    out = said(runner, "node", "-e", code).split()
    assert out[:4] == [f["cpu.count"], f["memory.total_kb"], f["kernel.release"], f["host.name"]] and abs(int(out[4]) - 177017) < 10


def test_hardware(runner):  # noqa: F811
    f = facts()
    rows = dict(line.split(":", 1) for line in said(runner, "lscpu").splitlines())
    assert rows["CPU(s)"].strip() == f["cpu.count"] and rows["Model name"].strip() == f["cpu.model"]
    assert rows["Core(s) per socket"].strip() == f["cpu.cores"] and rows["Thread(s) per core"].strip() == f["cpu.threads"]
    assert rows.get("Hypervisor vendor") is None or f["machine.hypervisor"]
    last = int(f["cpu.count"]) - 1
    out = said(runner, "sh", "-c", "cd /sys; cat class/dmi/id/sys_vendor class/net/*/address block/*/size devices/system/cpu/online; "
               f"cat devices/system/cpu/cpu{last}/topology/physical_package_id; readlink class/net/eth0/device/driver; ls -ld /sys/module")
    lines = out.splitlines()
    assert lines[:6] == [f["machine.vendor"], f["net.mac"], "00:00:00:00:00:00", f["disk.sectors"], all_processors(), "0"]
    assert lines[6].endswith("/" + f["net.driver"]) and " root root " in lines[7]
    disk = said(runner, "lsblk", "-nlbo", "NAME,SIZE,TYPE").split()
    assert disk[:3] == [f["disk.name"], str(int(f["disk.sectors"]) * 512), "disk"] and len(disk) == 12


def test_hardware_is_not_the_users(runner):  # noqa: F811
    done = runner.run("sh", "-c", "cat /sys/class/dmi/id/product_uuid; ls /sys/kernel/debug; echo 9 > /sys/class/net/eth0/mtu; mkdir /sys/x; "
                      "rm /sys/block/nvme0n1; chmod 777 /sys/class; mv /sys/class /sys/y")
    assert done.returncode != 0 and len(done.stderr.split(b"\n")) >= 7
    assert done.stderr.count(b"ermission denied") + done.stderr.count(b"not permitted") >= 7, done.stderr


def test_hardware_is_there_by_every_way(runner):  # noqa: F811
    """The tree is made at the first look into it, whatever way that takes."""
    f = facts()
    for first in ("cat /sys/class/net/eth0/address", "ln -s /sys/class/net /tmp/l; cat /tmp/l/eth0/address",
                  "cd /sys/class/net/eth0; cat address", "cd /; cat sys/class/net/eth0/address",
                  "cat /proc/self/root/sys/class/net/eth0/address", "test -e /sys/class/net/eth0/address && cat /sys/class/net/*0/address"):
        assert said(runner, "sh", "-c", first) == f["net.mac"] + "\n", first
    assert said(runner, "ls", "/sys", options=("--world", "none")) == ""


# ---- what it may do ----


def test_states_of_its_own(runner):  # noqa: F811
    out = python(runner, """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def prctl(*a): return libc.prctl(*[ctypes.c_ulong(x) for x in a + (0,) * (5 - len(a))])
print(prctl(39), prctl(21), prctl(23, 40), prctl(23, 41), prctl(27))
print(libc.prctl(22, 2, 0), ctypes.get_errno())  # a filter, without no_new_privs
print(prctl(38, 1), prctl(39), "NoNewPrivs:\\t1" in open("/proc/self/status").read())
pid = os.fork()
if pid == 0: os._exit(prctl(39))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_CPU))
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 500000))
print(resource.getrlimit(resource.RLIMIT_NOFILE), [l.split()[3:5] for l in open("/proc/self/limits") if "open files" in l])
try: resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 600000))
except ValueError: print("not more")
resource.setrlimit(resource.RLIMIT_NOFILE, (10, 500000))
try:
    while True: os.dup(0)
except OSError as e: print(e.errno)
""")
    assert out.splitlines() == ["0 0 1 -1 0", "-1 13", "0 1 True", "1", "(1024, 1048576) (-1, -1) (-1, -1)",
                                "(2000, 500000) [['2000', '500000']]", "not more", "24"]


def test_groups_and_tracing(runner):  # noqa: F811
    assert said(runner, "id", "-G") == "1000 24 27 29 44 46 100 996\n"
    assert "Groups:\t24 27 29 44 46 100 996 1000 \n" in said(runner, "cat", "/proc/self/status")
    assert python(runner, "import ctypes; p = ctypes.CDLL(None).ptrace; print(p(0, 0, 0, 0), p(0, 0, 0, 0))") == "0 -1\n"


# ---- the same again ----

ALL = r"""
cd /proc; cat cpuinfo meminfo stat uptime loadavg interrupts softirqs vmstat diskstats partitions self/status self/stat self/statm self/io
cat self/sched self/schedstat self/maps self/smaps self/limits self/mountinfo sys/kernel/random/uuid zoneinfo buddyinfo
nproc; free; ps axo pid,ppid,stat,vsz,rss,etimes,args; top -b -n1
"""


def test_same_again(runner):  # noqa: F811
    first, second = (said(runner, "sh", "-c", ALL) for _ in range(2))
    assert first == second
    other = said(runner, "sh", "-c", ALL, options=("--seed", "1", "--world", "B"))
    assert len(other) == len(first)


@pytest.mark.parametrize("path", ["/proc/kcore", "/proc/1/environ", "/proc/1/maps", "/proc/kmsg"])
def test_root_only(runner, path):  # noqa: F811
    if path == "/proc/kcore" and not pathlib.Path(path).exists():
        return
    done = runner.run("cat", path)
    assert done.returncode == 1 and b"Permission denied" in done.stderr


# ---- processes that are not there ----


def test_process_table(runner):  # noqa: F811
    rows = [line.split(None, 3) for line in said(runner, "ps", "-eo", "pid,ppid,user:20,args").splitlines()[1:]]
    by_pid = {int(r[0]): r for r in rows}
    assert len(rows) > 80 and by_pid[1][3] == "/sbin/init" and by_pid[2][3] == "[kthreadd]"
    assert {r[2] for r in rows} >= {"root", "messagebus", "systemd-timesync"}
    own = max(by_pid)
    assert own == 2431 and by_pid[own][1] == "2419" and by_pid[2419][3] == "-bash"
    assert [int(r[0]) for r in rows] == sorted(by_pid)


def test_who_started_us(runner):  # noqa: F811
    out = python(runner, """
import os
def parent(pid): return int(open(f"/proc/{pid}/stat").read().rsplit(")")[-1].split()[1])
pid, names = os.getpid(), []
assert os.getppid() == parent("self") == int([l for l in open("/proc/self/status") if l.startswith("PPid")][0].split()[1])
while pid:
    names.append(open(f"/proc/{pid}/comm").read().strip())
    pid = parent(pid)
print(*names)
print(os.readlink(f"/proc/{os.getppid()}/exe"), os.path.exists("/proc/3000"), os.path.exists("/proc/7"), os.path.exists("/proc/671/stat"))
for pid in (os.getppid(), 671, 1, 3000):
    try: print(os.kill(pid, 0))
    except OSError as e: print(e.errno)
child = os.fork()
if child == 0: os._exit(os.getppid() == 2431)
print(os.waitstatus_to_exitcode(os.wait()[1]))
""")
    assert out.splitlines() == ["python3 bash sshd sshd sshd systemd", "/usr/bin/bash False False True", "None", "1", "1", "3", "1"]


def test_folder_of_a_process(runner):  # noqa: F811
    out = python(runner, """
import os
d = os.open("/proc/671", os.O_RDONLY)
print(open(os.open("comm", os.O_RDONLY, dir_fd=d)).read().strip(), os.stat("status", dir_fd=d).st_uid, os.stat("/proc/2419").st_uid)
print(os.listdir("/proc/671/task"), open("/proc/671/task/671/comm").read().strip(), "status" in os.listdir(d))
p = os.open("/proc", os.O_RDONLY)
print(open(os.open("572/comm", os.O_RDONLY, dir_fd=p)).read().strip(), os.stat("572", dir_fd=p).st_uid)
for path in ("/proc/671/environ", "/proc/671/fd", "/proc/671/maps"):
    try: (os.listdir if path.endswith("fd") else open)(path).read()
    except PermissionError: print("closed")
names = os.listdir("/proc")
print(len(names) == len(set(names)), "671" in names, "self" in names)
""")
    assert out.splitlines() == ["sshd 0 1000", "['671'] sshd True", "dbus-daemon 100", "closed", "closed", "closed", "True True True"]


def test_files_of_another_kernel(runner):  # noqa: F811
    """What the host's kernel may lack is there, and what calls do agrees with it."""
    out = python(runner, """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
k = "/proc/sys/kernel/"
print(*(open(k + f).read().strip() for f in ("unprivileged_userns_clone", "io_uring_disabled", "yama/ptrace_scope")))
print("modules" in os.listdir("/proc"), any(l.startswith("ext4 ") for l in open("/proc/modules")), os.stat("/proc/modules").st_uid)
print(libc.unshare(0x10000000), ctypes.get_errno(), libc.syscall(425, 1, 0), ctypes.get_errno(), libc.syscall(444, 0, 0, 1))
print(hex(libc.syscall(250, 0, -3, 0)) in open("/proc/keys").read().replace("1b6", "0x1b6"), libc.syscall(449, 0, 0, 0, 0, 0), ctypes.get_errno())
""")
    assert out.splitlines() == ["0 2 0", "True True 0", "-1 1 -1 1 3", "True -1 22"]


def test_how_the_clock_is_kept(runner):  # noqa: F811
    """Reading it is answered, by both calls; setting it is refused."""
    out = python(runner, """
import ctypes, struct, time
libc = ctypes.CDLL(None, use_errno=True)
for call in ([159], [305, 0]):
    room = ctypes.create_string_buffer(208)
    print(libc.syscall(*call, room), struct.unpack_from("q", room, 88)[0],
          abs(struct.unpack_from("q", room, 72)[0] - time.time()) < 2)
    room = ctypes.create_string_buffer(struct.pack("I", 2), 208)
    print(libc.syscall(*call, room), ctypes.get_errno())
print(libc.syscall(159, 8), ctypes.get_errno())
""")
    assert out.splitlines() == ["0 10000 True", "-1 1"] * 2 + ["-1 14"]


def test_java(runner):  # noqa: F811
    (runner.place / "R.java").write_text("public class R { public static void main(String[] a) { Runtime r = Runtime.getRuntime(); "
                                         "System.out.println(r.availableProcessors() + \" \" + r.maxMemory() / 1048576); } }")
    cpus, heap = said(runner, "java", "R.java").split()
    assert cpus == facts()["cpu.count"] and abs(int(heap) * 4 * 1024 - int(facts()["memory.total_kb"])) < 400_000


def test_no_container(runner):  # noqa: F811
    assert runner.run("systemd-detect-virt", "-c").stdout == b"none\n"


YOUNG = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for call in range(457, 470):
    print(libc.syscall(call, 0, 0, 0, 0, 0, 0) < 0 and ctypes.get_errno(), end=" ")
"""


def test_calls_that_its_kernel_does_not_have(runner):  # noqa: F811
    """Its kernel is a 6.6: statmount and all that came later are not there, whatever the host has."""
    assert python(runner, YOUNG).split() == ["38"] * 13
