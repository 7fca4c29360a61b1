"""What files look like in a world: the disk of a machine, the same again in every run and in both worlds of a seed."""
import glob
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

START = "2026-05-01T09:00:00Z"
START_NS = 1777626000 * 10**9  # the world begins within this second


def run(folder, *command, world="A", options=(), code=0):
    """What a command says on its standard output."""
    open_to_others(folder)
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "files", "--world", world, "--start", START,
                           *options, "--", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)  # fmt: skip
    assert done.returncode == code, (done.returncode, done.stdout[-1000:], done.stderr[-2000:])
    return done.stdout.decode(errors="surrogateescape")


def python(folder, script, **more):
    """What a script prints, as JSON."""
    return json.loads(run(folder, "/usr/bin/python3", "-c", script, **more))


EVERYTHING = r"""
cd "$HOME" && mkdir new && cd new && for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > f$i; done
ln f1 g1; mv f2 g2; rm f3; echo again > f3; cat f4 > /dev/null; sleep 2; touch f5; mkdir d; ln -s f1 s
ls -laiR --time-style=full-iso "$HOME" /etc /tmp /dev /run /var
ls -fi . / /etc /usr/lib/python3 /dev /tmp
find "$HOME" /etc /usr/lib/python3/dist-packages -maxdepth 3 -printf '%p %i %D %n %s %b %U %G %T@ %C@ %A@ %m %y\n'
stat f1 f4 f5 / /proc /proc/self/status /dev/null; stat -f / /tmp /proc /dev/shm
readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/ns/net /proc/self/ns/pid; ls -lai /proc/self/fd/ /proc/self/
"""


def test_two_runs_show_the_same(tmp_path):
    first = run(tmp_path, "/bin/bash", "-c", EVERYTHING)
    time.sleep(1.1)  # the host's clock goes on
    second = run(tmp_path, "/bin/bash", "-c", EVERYTHING)
    assert len(first.splitlines()) > 500
    different = [pair for pair in zip(first.splitlines(), second.splitlines()) if pair[0] != pair[1]]
    assert first == second, different[:5]
    assert not re.search(r"\s(65534|nobody|nogroup)\s", first)


NUMBERS = """
import json, os
rows = []
def look(folder):
    for e in os.scandir(folder):
        s = e.stat(follow_symlinks=False)
        rows.append([e.inode(), s.st_ino, s.st_dev, s.st_mode, s.st_nlink, s.st_uid, s.st_blocks,
                     s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns])
        if e.is_dir(follow_symlinks=False):
            look(e.path)
look(os.environ["HOME"])
print(json.dumps([os.environ["HOME"], rows]))
"""


def test_two_worlds_differ_in_names_only(tmp_path):
    """Also the order of a folder: it does not come from its names, which are decoys."""
    (home, a), (other, b) = (python(tmp_path, NUMBERS, world=world) for world in "AB")
    assert home != other and len(a) > 80
    assert a == b
    assert [row[0] for row in a] == [row[1] for row in a]


ONE_DISK = """
import ctypes, json, os, stat
places = {}
for p in ("/", "/usr", "/usr/bin/env", "/etc", "/etc/passwd", "/etc/ssl", "/etc/services", "/home", os.environ["HOME"],
          os.environ["HOME"] + "/.bashrc", "/var", "/var/tmp", "/tmp", "/dev", "/dev/null", "/dev/shm", "/run",
          "/run/user/1000", "/proc", "/proc/self", "/sys", "/root"):
    s = os.stat(p)
    buffer = (ctypes.c_uint8 * 256)()
    assert ctypes.CDLL(None).syscall(332, -100, p.encode(), 0, 0x1fff, buffer) == 0
    x = bytes(buffer)
    v = os.statvfs(p)
    fs = (ctypes.c_int64 * 15)()
    assert ctypes.CDLL(None).syscall(137, p.encode(), fs) == 0
    number = lambda at, n: int.from_bytes(x[at:at + n], "little")
    places[p.replace(os.environ["HOME"], "~")] = {
        "dev": [os.major(s.st_dev), os.minor(s.st_dev)], "ino": s.st_ino, "dir": stat.S_ISDIR(s.st_mode), "uid": s.st_uid,
        "gid": s.st_gid, "size": s.st_size, "blocks": s.st_blocks, "blksize": s.st_blksize, "m": s.st_mtime_ns,
        "c": s.st_ctime_ns, "a": s.st_atime_ns, "mount": number(0x90, 8), "mask": number(0, 4), "birth": number(0x50, 8),
        "xino": number(0x20, 8), "xdev": [number(0x88, 4), number(0x8c, 4)], "xm": number(0x70, 8), "root": number(8, 8) >> 13 & 1,
        "magic": fs[0], "free": v.f_bfree, "size_of": v.f_blocks * v.f_frsize}
mounts = {}
for line in open("/proc/self/mountinfo"):
    f = line.split()
    mounts[f[4]] = [int(f[0]), f[2]]
print(json.dumps([places, mounts]))
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    return python(tmp_path_factory.mktemp("disk"), ONE_DISK)


def test_one_disk(disk):
    places, mounts = disk
    for path in ("/", "/usr", "/usr/bin/env", "/etc", "/etc/passwd", "/etc/ssl", "/etc/services", "/home", "~",
                 "~/.bashrc", "/var", "/root"):  # fmt: skip
        p = places[path]
        assert p["dev"] == p["xdev"] == [259, 2] and p["magic"] == 0xEF53, (path, p)
        assert p["size_of"] > 400 * 10**9 and 0 < p["free"] < p["size_of"] // 4096
        assert p["blksize"] == 4096 and p["blocks"] == -(-p["size"] // 4096) * 8
        assert not p["dir"] or p["size"] % 4096 == 0 and p["size"] > 0
        assert p["root"] == (path == "/") and p["mask"] & 0x1FFF == 0x1FFF
    assert places["/"]["ino"] == 2
    assert len({tuple(p["dev"]) + (p["ino"],) for p in places.values()}) == len(places)
    for path, p in places.items():
        assert p["ino"] == p["xino"] and p["m"] // 10**9 == p["xm"]
        if path in mounts and path != "/sys":
            assert [p["mount"], "{}:{}".format(*p["dev"])] == mounts[path] and p["root"] == 1, path
    assert [places[path]["magic"] for path in ("/tmp", "/var/tmp", "/dev/shm", "/proc")] == [0x01021994] * 3 + [0x9FA0]


def test_owners(disk):
    places, _ = disk
    users = {"~", "~/.bashrc", "/run/user/1000", "/proc/self"}
    for path, p in places.items():
        assert p["uid"] == p["gid"] == (1000 if path in users else 0), (path, p)


def test_times_of_what_was_there(disk):
    """Never later than the start; what the machine is made of is as old as the machine, or its start."""
    places, _ = disk
    for path, p in places.items():
        latest = START_NS + 10**9
        assert 0 < p["m"] <= latest and p["a"] <= latest and p["c"] <= latest, (path, p)
        assert p["m"] <= p["c"], path
    assert places["~/.bashrc"]["m"] == places["~/.bashrc"]["c"] and places["~/.bashrc"]["birth"] > 0
    assert all(START_NS - places[p]["m"] > 300 * 86400 * 10**9 for p in ("/", "/home"))
    assert all(0 < START_NS - places[p]["m"] < 4 * 86400 * 10**9 for p in ("/tmp", "/var/tmp", "/dev", "/run", "/proc"))


ACTS = """
import json, os, time
os.chdir(os.environ["HOME"])
said, now = [], time.time_ns
def say(what, *names):
    said.append([what, before, [[s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for s in map(os.lstat, names)], now()])
os.mkdir("d")
before = now(); open("d/f", "w").close(); say("made", "d/f", "d")
time.sleep(1); before = now(); f = open("d/f", "a"); f.write("x"); f.close(); say("written", "d/f", "d")
time.sleep(1); before = now(); os.chmod("d/f", 0o600); say("mode", "d/f", "d")
time.sleep(1); before = now(); open("d/f").read(); say("read", "d/f")
time.sleep(1); before = now(); open("d/f").read(); say("read again", "d/f")
time.sleep(1); before = now(); os.rename("d/f", "d/g"); say("renamed", "d/g", "d")
time.sleep(1); before = now(); os.link("d/g", "d/h"); say("linked", "d/g", "d/h", "d")
time.sleep(1); before = now(); os.utime("d/g", ns=(5 * 10**9 + 1, 2 * 10**18 + 7)); say("set", "d/g")
time.sleep(1); before = now(); os.utime("d/g"); say("touched", "d/g")
time.sleep(1); before = now(); os.truncate("d/g", 0); say("cut", "d/g")
time.sleep(1); before = now(); open("d/g", "w").close(); say("cut by open", "d/g")
time.sleep(1); before = now(); os.unlink("d/g"); say("unlinked", "d/h", "d")
time.sleep(1); before = now(); open("d/g", "w").close(); say("made anew", "d/g", "d/h")
time.sleep(1); before = now(); os.symlink("nowhere", "d/s"); say("link", "d/s", "d")
time.sleep(1); before = now(); open(".bashrc").read(); say("decoy read", ".bashrc")
time.sleep(1); before = now(); open(".bashrc", "a").write("x"); say("decoy written", ".bashrc")
print(json.dumps(said))
"""


def test_times_of_acts(tmp_path):
    said = {what: (before, files, after) for what, before, files, after in python(tmp_path, ACTS)}

    def now(what, file, *which):
        before, files, after = said[what]
        values = dict(zip("amc", files[file]))
        for one in "amc":
            assert (before < values[one] < after) == (one in which), (what, file, one, before, values, after)

    now("made", 0, *"amc")
    now("made", 1, *"mc")
    now("written", 0, *"mc")
    now("written", 1)
    now("mode", 0, "c")
    now("mode", 1)
    now("read", 0, "a")  # as with relatime
    now("read again", 0)
    now("renamed", 0, "c")
    now("renamed", 1, *"mc")
    now("linked", 0, "c")
    now("linked", 2, *"mc")
    now("set", 0, "c")
    assert said["set"][1][0][:2] == [5 * 10**9 + 1, 2 * 10**18 + 7]
    now("touched", 0, *"amc")
    now("cut", 0, *"mc")
    now("cut by open", 0, *"mc")
    now("unlinked", 0, "c")
    now("unlinked", 1, *"mc")
    now("made anew", 0, *"amc")
    now("link", 0, *"amc")
    now("decoy read", 0, "a")
    now("decoy written", 0, *"mc")
    number = {what: files[0][3] for what, (_, files, _) in said.items()}
    assert number["made"] == number["renamed"] == number["linked"] == said["linked"][1][1][3] == number["unlinked"]
    assert number["made anew"] != number["made"]
    assert said["made"][0] // 10**9 - START_NS // 10**9 < 2


IPC = """
import ctypes, json, os, socket, time
libc = ctypes.CDLL(None)
os.chdir(os.environ["HOME"])
def times(get, control, *which):
    b = (ctypes.c_int64 * 16)()
    assert libc.syscall(*control(get), b) >= 0
    return [b[i] for i in which]
m = libc.shmget(0, 4096, 0o1600)
s = libc.semget(0, 1, 0o1600)
q = libc.msgget(0, 0o1600)
before = int(time.time())
time.sleep(5)
said = [times(m, lambda x: (31, x, 2), 7, 8, 9), times(s, lambda x: (66, x, 0, 2), 6, 8), times(q, lambda x: (71, x, 2), 6, 7, 8)]
many = libc.semget(0, 100, 0o1600); values = (ctypes.c_uint16 * 100)(*range(100)); back = (ctypes.c_uint16 * 100)()
libc.semctl(many, 0, 17, values); libc.semctl(many, 0, 13, back)  # SETALL and GETALL, which is SHM_STAT elsewhere
assert list(back) == list(range(100)), list(back)
u = socket.socket(socket.AF_UNIX); u.bind("u")
print(json.dumps([before, int(time.time()), said, int(os.stat("u").st_mtime), int(os.stat(".").st_mtime), "u" in os.listdir()]))
"""


def test_times_of_what_is_no_file(tmp_path):
    before, after, (memory, semaphore, queue), made, folder, listed = python(tmp_path, IPC)
    assert memory[:2] == queue[:2] == [0, 0] and semaphore[0] == 0
    assert all(before <= at <= after for at in (memory[2], semaphore[1], queue[2]))
    assert made == folder == after and listed


def test_a_share_keeps_its_order(tmp_path):
    """Files of the user are younger than the world: they come before its start, in their order."""
    for i, name in enumerate(("old", "b", "a", "c")):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, ns=(0, START_NS - 10**15 if name == "old" else time.time_ns() - (10 - i) * 10**9))
    script = "import json, os; print(json.dumps({n: [os.stat(n).st_mtime_ns, os.stat(n).st_uid] for n in os.listdir()}))"
    first, second = (python(tmp_path, script) for _ in range(2))
    assert first == second and first["old"][0] == START_NS - 10**15
    assert START_NS - 60 * 10**9 < first["b"][0] < first["a"][0] < first["c"][0] < START_NS + 10**9
    assert {uid for _, uid in first.values()} == {1000}


FLOWS = r"""
set -e
mkdir ~/p; cd ~/p
printf 'all: b\nb: a\n\t@echo made >> log; cp a b\n' > Makefile
echo 1 > a; make -s; make -s; sleep 1; echo 2 > a; make -s; make -s; wc -l < log
touch -d '2020-01-01 00:00:00 UTC' old; find . -newer old -name a; find . -newer b -name a | wc -l
stat -c %Y old; cp -p old same; stat -c %Y same; [ a -nt old ] && echo newer
mkdir t; for i in $(seq 300); do echo $i > t/n$i; done; tar cf x.tar t; mkdir u; tar xf x.tar -C u; tar df x.tar -C u; diff -r t u/t && echo equal
ls u/t | wc -l; rm -r u; ls | wc -l
git init -q g; cd g; git config user.email a@example.com; git config user.name a; echo 1 > f; git add f; git commit -qm 1
git status --porcelain; sleep 1; echo 2 > f; git status --porcelain; git checkout -q f; git status --porcelain; cat f
cd ..; printf '#include <stdio.h>\nint main(void) { return puts("built") < 0; }\n' > h.c; cc -o h h.c; ./h
[ h -nt h.c ] && echo newer
"""


def test_programs_that_look_at_times(tmp_path):
    assert run(tmp_path, "/bin/bash", "-c", FLOWS).split() == (
        "2 ./a 0 1577836800 1577836800 newer equal 300 8 M f 1 built newer".split())  # fmt: skip


LISTS = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(os.environ["HOME"]); os.mkdir("m")
names = [f"n{i}" for i in range(3000)]
for n in names: open("m/" + n, "w").close()
whole = os.listdir("m")
fd = os.open("m", os.O_RDONLY)
def raw(size):
    b = ctypes.create_string_buffer(size)
    n = libc.syscall(217, fd, b, size)
    out, at = [], 0
    while at < n:
        length = int.from_bytes(b.raw[at + 16:at + 18], "little")
        out.append((b.raw[at + 19:at + length].split(b"\\0")[0].decode(), int.from_bytes(b.raw[at + 8:at + 16], "little"),
                    int.from_bytes(b.raw[at:at + 8], "little"), b.raw[at + 18]))
        at += length
    return n, ctypes.get_errno() if n < 0 else 0, out
parts = []
while True:
    n, e, out = raw(2000)
    if n <= 0: break
    parts += out
again = os.lseek(fd, parts[1500][1], 0), raw(2000)[2][0][0], parts[1501][0]
small = (os.lseek(fd, 0, 0), raw(8)[:2])[1]
bad = libc.syscall(217, fd, ctypes.c_void_p(8), 2000), ctypes.get_errno()
os.lseek(fd, 0, 0)
seen = []
while True:  # who removes what was listed so far misses nothing
    n, e, out = raw(1000)
    if n <= 0: break
    for name, *_ in out:
        seen.append(name)
        if name[0] == "n": os.unlink("m/" + name)
empty = os.listdir("m")
copy = os.dup(fd); os.rmdir("m"); gone = raw(2000)[:2]
print(json.dumps({"names": sorted(whole) == sorted(names), "shuffled": whole != names and whole != names[::-1],
                  "parts": [p[0] for p in parts] == [".", ".."] + whole, "again": again, "small": small, "bad": bad,
                  "seen": len(seen) == len(set(seen)) == 3002, "empty": empty, "gone": gone,
                  "types": sorted({p[3] for p in parts}), "end": parts[-1][1] > parts[-2][1],
                  "rising": [p[1] for p in parts] == sorted(p[1] for p in parts)}))
"""


def test_lists(tmp_path):
    said = python(tmp_path, LISTS)
    assert said["names"] and said["shuffled"] and said["parts"] and said["seen"] and said["end"] and said["rising"]
    assert said["again"][1] == said["again"][2]
    assert said["small"] == [-1, 22] and said["bad"] == [-1, 14] and said["gone"] == [-1, 2]
    assert said["empty"] == [] and said["types"] == [4, 8]


SAME = """
import ctypes, json, os, stat
wrong, seen = [], 0
for folder in ("/", "/etc", "/etc/ssl", "/etc/ssl/certs", "/home", "/var", "/dev", "/proc/self", "/proc/self/fdinfo", "/proc/sys/kernel", "/tmp", "/run/user"):
    for e in os.scandir(folder):
        s = os.lstat(e.path)
        seen += 1
        kept = "covered" if os.path.ismount(e.path) else s.st_ino
        if kept != e.inode() and not (kept == "covered" and e.inode() > 1):
            wrong.append([e.path, e.inode(), s.st_ino])
def fstat(fd):  # the call itself, which libc makes in another way
    b = ctypes.create_string_buffer(144)
    assert ctypes.CDLL(None).syscall(5, fd, b) == 0
    return [int.from_bytes(b.raw[at:at + 8], "little") for at in (0, 8, 88)]
f = os.open("/etc/passwd", os.O_RDONLY)
s = os.fstat(f)
print(json.dumps({"wrong": wrong, "seen": seen, "fstat": fstat(f) == [s.st_dev, s.st_ino, int(s.st_mtime)],
                  "pipe": fstat(os.pipe()[0])[:1]}))
"""


def test_every_way_to_ask_says_the_same(tmp_path):
    said = python(tmp_path, SAME)
    assert not said["wrong"] and said["seen"] > 200 and said["fstat"] and said["pipe"] == [13]


LINKS = """
import json, os, socket, stat
r, w = os.pipe()
s = socket.socket()
m = os.memfd_create("note")
import fcntl, select
e = select.epoll(); e.register(r)
f = open(os.environ["HOME"] + "/l", "w"); fcntl.flock(f, fcntl.LOCK_EX)
link = lambda fd: os.readlink(f"/proc/self/fd/{fd}")
import ctypes
b = ctypes.create_string_buffer(8)
cut = ctypes.CDLL(None).readlink(f"/proc/self/fd/{r}".encode(), b, 8)
print(json.dumps({"pipe": [link(r), link(w), os.fstat(r).st_ino, os.fstat(w).st_ino, os.stat(f"/proc/self/fd/{r}").st_ino],
                  "socket": [link(s.fileno()), os.fstat(s.fileno()).st_ino], "memory": link(m),
                  "cut": [cut, b.raw.decode()], "devices": [os.fstat(x).st_dev for x in (r, s.fileno(), m)],
                  "owners": [os.fstat(x).st_uid for x in (0, r, s.fileno(), m)],
                  "info": [open(f"/proc/self/fdinfo/{x}").read() for x in (r, e.fileno(), f.fileno())],
                  "file": [os.fstat(f.fileno()).st_ino, os.fstat(e.fileno()).st_ino],
                  "namespaces": {n: [os.readlink("/proc/self/ns/" + n), os.stat("/proc/self/ns/" + n).st_ino]
                                 for n in sorted(os.listdir("/proc/self/ns"))}}))
"""


def test_links_of_descriptors(tmp_path):
    said, again = (python(tmp_path, LINKS) for _ in range(2))
    assert said == again
    assert said["pipe"][0] == said["pipe"][1] == "pipe:[{}]".format(said["pipe"][2])
    assert len(set(said["pipe"][2:])) == 1 and said["pipe"][2] < 10**6
    assert said["socket"][0] == "socket:[{}]".format(said["socket"][1]) and said["socket"][1] != said["pipe"][2]
    assert said["memory"] == "/memfd:note (deleted)" and said["cut"] == [8, said["pipe"][0][:8]]
    assert len(set(said["devices"])) == 3 and set(said["owners"]) == {1000}
    pipe, epoll, file = (dict(re.findall(r"^(\w+):\t(.*)$", text, re.M)) for text in said["info"])
    assert pipe["ino"] == str(said["pipe"][2]) and file["ino"] == str(said["file"][0]) and file["mnt_id"] == "28"
    assert epoll["ino"] == str(said["file"][1]) and f"ino:{said['pipe'][2]:x} " in said["info"][1]
    assert f" 103:02:{file['ino']} " in file["lock"]
    assert said["namespaces"]["net"] == ["net:[4026531840]", 4026531840]
    assert said["namespaces"]["user"] == ["user:[4026531837]", 4026531837]
    assert all(link.endswith(f":[{ino}]") and 4026531834 <= ino <= 4026531841
               for link, ino in said["namespaces"].values())  # fmt: skip


BELOW = """
import array, errno, fcntl, json, os, struct
os.chdir(os.environ["HOME"])
def error(act, *args):
    try: act(*args); return 0
    except OSError as e: return errno.errorcode[e.errno]
f = open("f", "wb+"); f.write(b"x" * 9000); f.flush()
flags = array.array("i", [0]); fcntl.ioctl(f, 0x80086601, flags)
more = array.array("i", [flags[0] | 0x40]); fcntl.ioctl(f, 0x40086602, more); fcntl.ioctl(f, 0x80086601, more)
map_ = bytearray(struct.pack("=QQLLLL", 0, 2**64 - 1, 0, 0, 4, 0) + bytes(56 * 4)); fcntl.ioctl(f, 0xC020660B, map_)
extent = struct.unpack_from("=QQQ", map_, 32)
os.setxattr("f", "user.note", b"v")
print(json.dumps({
    "flags": [flags[0], more[0]], "extents": struct.unpack_from("=L", map_, 20)[0], "extent": extent,
    "xattr": [os.getxattr("f", "user.note").decode(), os.listxattr("f"), os.listxattr(".bashrc"),
              error(os.setxattr, "f", "security.note", b"v"), error(os.getxattr, "f", "user.none")],
    "refused": {p: error(open, p, "w") for p in ("/etc/passwd", "/etc/new", "/usr/new", "/usr/bin/env", "/new", "/root/new")},
    "others": [error(os.mkdir, "/etc/d"), error(os.unlink, "/etc/passwd"), error(os.rename, "/etc/passwd", "/etc/p"),
               error(os.chmod, "/etc/passwd", 0o777), error(os.chown, "/usr/bin/env", 1000, 1000), error(os.utime, "/etc/passwd"),
               error(os.symlink, "x", "/usr/x"), os.access("/etc/passwd", os.W_OK)]}))
"""


def test_below_the_files(tmp_path):
    said = python(tmp_path, BELOW)
    assert said["flags"] == [0x80000, 0x80040] and said["extents"] == 1
    assert said["extent"][0] == 0 and said["extent"][1] > 0 and said["extent"][2] == 12288
    assert said["xattr"] == ["v", ["user.note"], [], "EPERM", "ENODATA"]
    assert set(said["refused"].values()) == {"EACCES"}
    assert said["others"] == ["EACCES", "EACCES", "EACCES", "EPERM", "EPERM", "EPERM", "EACCES", False]


HANDLES = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(os.environ["HOME"])
open("f", "w").close(); os.symlink("f", "s"); os.symlink("none", "n")
def handle(path, size=128, flags=0, folder=-100):
    h = ctypes.create_string_buffer(8 + 128); h[0:4] = size.to_bytes(4, "little"); mount = ctypes.c_int(0)
    r = libc.syscall(303, folder, path.encode(), h, ctypes.byref(mount), flags)
    e = errno.errorcode[ctypes.get_errno()] if r < 0 else ""
    return [e, int.from_bytes(h.raw[0:4], "little"), int.from_bytes(h.raw[4:8], "little"), int.from_bytes(h.raw[8:12], "little"), mount.value]
fd = os.open("f", os.O_PATH)
print(json.dumps([[os.stat("f").st_ino, os.lstat("s").st_ino], handle("f"), handle("s"), handle("s", flags=0x400), handle("f", 8),
                  handle("f", 4), handle("", folder=fd, flags=0x1000), handle("gone"), handle("f/x"), handle("n", flags=0x400),
                  handle("/proc/self/status"), handle("/proc/self"), handle("f", 129), handle("f", flags=1), handle("/tmp")]))
"""


def test_handles(tmp_path):
    (f, s), *said = python(tmp_path, HANDLES)
    assert said[0] == ["", 8, 1, f, 28] and said[1] == ["", 8, 1, s, 28] and said[2] == said[3] == said[0]
    assert said[4][:2] == ["EOVERFLOW", 8] and said[4][4] == 28
    assert [row[0] for row in said[6:13]] == ["ENOENT", "ENOTDIR", "ENOENT", "ENOTSUP", "ENOTSUP", "EINVAL", "EINVAL"]
    assert said[5] == said[0] and said[13][0] == "" and said[13][1] == 12


def test_the_record_has_no_numbers_of_the_host(tmp_path):
    events = tmp_path / "events.jsonl"
    script = "stat -L /proc/self/fd/0 /proc/self/ns/net; stat /proc/self/fd/1; ls -la /proc/self/fd; cat < f; true"
    (tmp_path / "f").write_text("x")
    run(tmp_path, "/bin/bash", "-c", f"{script}; {script} | cat", options=("--events", events))
    objects = {json.loads(line).get("object") for line in events.read_text().splitlines()}
    assert {"pipe", "net"} <= objects
    assert not [o for o in objects if o and re.search(r":\[\d", o)]


def test_without_a_machine_the_truth(tmp_path):
    script = "import json, os; s = os.stat('/usr'); print(json.dumps([s.st_ino, s.st_dev, s.st_mtime_ns]))"
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--world", "none", "--", "/usr/bin/python3", "-c", script],
                          cwd=tmp_path, capture_output=True, timeout=60, check=True)  # fmt: skip
    s = os.stat("/usr")
    assert json.loads(done.stdout) == [s.st_ino, s.st_dev, s.st_mtime_ns]


def test_nothing_lies_behind_an_answer(tmp_path):
    """Our text of a link is shorter than the kernel's, whose end must not stay in the program's memory."""
    code = ("import ctypes, os; c = ctypes.CDLL(None); r, w = os.pipe()\n"
            "for n in range(0, 40):\n"
            "    b = ctypes.create_string_buffer(b'-' * 64, 64); k = c.readlink(b'/proc/self/fd/%d' % r, b, n)\n"
            "    print(k, b.raw[max(k, 0):].decode())\n"
            "b = ctypes.create_string_buffer(b'-' * 64, 64); k = c.readlinkat(-100, b'/proc/self/ns/net', b, 64)\n"
            "print(k, b.raw[k:].decode())\n")
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "1", "--quiet", "--", "/usr/bin/python3", "-c", code], cwd=tmp_path,
                          timeout=60, stdout=subprocess.PIPE, check=True)
    rows = [line.split(" ") for line in done.stdout.decode().splitlines()]
    assert len(rows) == 41 and all(set(rest) == {"-"} and len(rest) + max(int(k), 0) == 64 for k, rest in rows), rows


def test_nobody_comes_too_early(tmp_path):
    """Trust stores that are reached by links of programs, before the world's late files are written."""
    links = ["/etc/ssl/certs/ca-certificates.crt"]
    for place in ("/usr/lib/jvm/*/lib/security/cacerts", "/usr/lib/python3/dist-packages/*/cacert.pem", "/usr/lib/ssl/cert*"):
        links += glob.glob(place)
    open_to_others(tmp_path)
    shutil.copy(BUILD / "tests/observe/early", tmp_path / "early")
    for link in links:
        done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "1", "--quiet", "--", "./early", link], cwd=tmp_path, timeout=60,
                              stdout=subprocess.PIPE, check=True)
        assert done.stdout.decode() == f"{link} same\n"


LARGE_LISTS = """
import ctypes, json, os
libc = ctypes.CDLL(None)
buffer, room = ctypes.create_string_buffer(32 << 20), 32 << 20
def listed(folder, nr):
    fd, numbers, most = os.open(folder, os.O_RDONLY), {}, 0
    while (n := libc.syscall(nr, fd, buffer, room)) > 0:
        most, at, text = max(most, n), 0, buffer.raw[:n]
        while at < n:
            length = int.from_bytes(text[at + 16:at + 18], "little")
            name = text[at + (19 if nr == 217 else 18):at + length].split(b"\\0")[0].decode()
            numbers[name] = int.from_bytes(text[at:at + 8], "little"); at += length
    return numbers, most
os.mkdir("/tmp/many"); os.mkdir("many")
for folder in "/tmp/many", os.path.abspath("many"):
    open(f"{folder}/first", "w").close()
    for i in range(4500): os.link(f"{folder}/first", f"{folder}/{i:0240}")
    for nr in 217, 78:
        numbers, most = listed(folder, nr)
        print(len(numbers), most <= 1 << 20, {v for k, v in numbers.items() if k not in "..."} == {os.stat(f"{folder}/first").st_ino},
              numbers["."] == os.stat(folder).st_ino)
"""


def test_answers_are_looked_at_whole(tmp_path):
    """However much room a program offers, it gets no more at once than was looked at, and no number of the host."""
    assert run(tmp_path, "/usr/bin/python3", "-c", LARGE_LISTS) == "4503 True True True\n" * 4


OF_HOST = """
import json, os, sys
def how(f, *a):
    try: f(*a); return 0
    except OSError as e: return e.errno
folder, said = os.open("/proc", os.O_RDONLY), {}
for p in sys.argv[1:]:
    full = "/proc/" + p
    said[p] = [how(f, full) for f in (os.stat, os.chdir, os.readlink, os.statvfs, os.listxattr)] + [how(os.open, full, os.O_RDONLY)]
    said[p] += [2 if not os.access(way + p, 0) else 0 for way in ("/proc/", "/proc/../proc/./", "/proc/self/../", "/proc/self/root/proc/")]
    said[p] += [2 if not os.access(p, 0, dir_fd=folder) else 0, how(lambda: os.stat(p, dir_fd=folder))]
    os.chdir("/proc")
    said[p] += [2 if not os.access(p, 0) else 0, how(os.stat, p), how(os.open, p, os.O_RDONLY), how(os.chdir, p)]
print(json.dumps(said))
"""


def test_what_only_the_host_has_is_nowhere(tmp_path):
    """Whichever call asks, and whichever way it takes."""
    paths = ["config.gz", "bus/pci/devices", "irq/0", "never-there"]
    paths += [p[len("/proc/"):] for p in glob.glob("/proc/irq/[0-9]*")[:1] + glob.glob("/proc/fs/ext4/*")[:1]]
    said = json.loads(run(tmp_path, "/usr/bin/python3", "-c", OF_HOST, *paths))
    assert said == {p: [2] * 16 for p in paths}


UNNAMED = """
import ctypes, json, mmap, os
said = []
for d in (os.environ["HOME"], "/tmp", "/var/tmp"):
    f = os.open(d, os.O_TMPFILE | os.O_RDWR, 0o600)
    link = f"/proc/self/fd/{f}"
    said.append([d, os.fstat(f).st_ino, os.readlink(link)])
    assert ctypes.CDLL(None).linkat(-100, link.encode(), -100, (d + "/now").encode(), 0x400) == 0
    os.ftruncate(f, 4096)
    m = mmap.mmap(f, 4096)
    (row,) = [line.split(None, 5) for line in open("/proc/self/maps") if d + "/#" in line]
    said[-1] += [os.stat(d + "/now").st_ino, os.readlink(link), int(row[4]), row[5].strip()]
    g = os.open(d + "/#1", os.O_CREAT | os.O_RDWR); os.unlink(d + "/#1")
    said[-1].append(os.readlink(f"/proc/self/fd/{g}"))
print(json.dumps(said))
"""


def test_a_file_without_a_name_is_called_by_its_number(tmp_path):
    """The one that it shows; a name that looks so is a name."""
    for folder, number, name, *then, looks_so in python(tmp_path, UNNAMED):
        assert name == f"{folder}/#{number} (deleted)" and looks_so == f"{folder}/#1 (deleted)"
        assert then == [number, name, number, name]


LARGE = """
import json, os
home, said = os.environ["HOME"], {}
for folder, _, names in os.walk(home):
    for n in names:
        p = os.path.join(folder, n)
        if os.path.getsize(p) > 1 << 20 and len(said) < 3:
            os.chmod(p, 0o755)
            try: os.execv(p, ["x"])
            except OSError as e: said[p] = e.errno
            with open(p, "wb") as f: f.write(b"#!/bin/sh\\nexit 7\\n")
            said[p] = [said[p], os.spawnv(os.P_WAIT, p, ["x"])]
print(json.dumps(said))
"""


def test_a_large_file_can_be_run(tmp_path):
    """It is no program, unless somebody makes it one; and nobody else has it open."""
    said = python(tmp_path, LARGE)
    assert len(said) == 3 and set(map(tuple, said.values())) == {(8, 7)}


HELD = """
import json, os
def times(f): s = os.fstat(f); return [s.st_ino, s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns]
held = os.open("/tmp/held", os.O_CREAT | os.O_RDWR)
os.unlink("/tmp/held")
before = times(held)
for i in range(2500):
    os.close(os.open("/tmp/f", os.O_CREAT | os.O_RDWR)); os.unlink("/tmp/f")
print(json.dumps([before, times(held)]))
"""


def test_what_is_open_keeps_its_times(tmp_path):
    """What is gone is forgotten once there was much of it; this one only lost its name."""
    before, after = python(tmp_path, HELD)
    assert before == after
