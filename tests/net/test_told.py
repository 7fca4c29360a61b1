"""What sockets, netlink and controls could tell of the host, or do unseen: each was a way once."""
import json
import subprocess
import time

import pytest

from conftest import PROGRAM

ASK = r'''
import array, ctypes, errno, fcntl, json, os, socket, struct, time
said = {}


def tried(name, act):
    try:
        said[name] = act()
    except OSError as e:
        said[name] = errno.errorcode[e.errno]


s = socket.socket()
u = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
said["now"], said["up"] = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
tried("stream-clock", lambda: s.getsockopt(6, 24))
for name, option in (("cookie", 57), ("network-cookie", 71)):
    tried(name, lambda: struct.unpack("Q", s.getsockopt(1, option, 8))[0])
tried("receive-unseen", lambda: s.getsockopt(6, 35, 64).hex())
tried("control", lambda: s.getsockopt(6, 13, 16).rstrip(b"\0").decode())
tried("set-control", lambda: s.setsockopt(6, 13, b"cubic"))
tried("connect-later", lambda: s.setsockopt(6, 30, 1))
tried("send-first", lambda: socket.socket().sendto(b"x", 0x20000000, ("10.77.0.1", 80)))

# Times of messages, also where there is room for a part of them only.
said["stamps"] = []
for option in (29, 35, 37, 63, 64, 65):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    b.setsockopt(1, option, 0x18 if option in (37, 65) else 1)
    for room in range(16, 80, 4):
        a.send(b"x")
        for _, _, data in b.recvmsg(8, room)[1]:
            said["stamps"].append(int.from_bytes(data[:8].ljust(8, b"\0")[:8], "little"))
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
d.bind(("127.0.0.1", 4567))
pair = array.array("q", [0, 0])
tried("first", lambda: fcntl.ioctl(d, 0x8906, pair))
d.sendto(b"x", ("127.0.0.1", 4567))
d.recv(8)
for request in (0x8906, 0x8907, 0x80108906, 0x80108907):
    fcntl.ioctl(d, request, pair)
    said["stamps"].append(pair[0])

# Filters that know chance, the processor, and a hash of the host's; and one that may stay.
LOAD, RETURN = 0x20, 0x16
for name, where in (("chance", 56), ("processor", 36), ("hash", 32), ("length", None)):
    load = (0x80, 0, 0, 0) if where is None else (LOAD, 0, 0, 0xfffff000 + where)
    code = b"".join(struct.pack("HBBI", *row) for row in (load, (RETURN, 0, 0, 0)))
    keep = ctypes.create_string_buffer(code)
    fprog = struct.pack("HxxxxxxQ", 2, ctypes.addressof(keep))
    tried("filter-" + name, lambda: u[1].setsockopt(1, 26, fprog))

# Sockets that the host would have to load code for.
for name, args in (("sctp", (2, 1, 132)), ("dccp", (2, 6, 0)), ("netfilter", (16, 3, 12))):
    tried("socket-" + name, lambda: socket.socket(*args) and None)

# Descriptors of processes, namespaces and files.
tried("process", lambda: fcntl.ioctl(os.pidfd_open(os.getpid()), 0xc040ff0b, bytes(64)).hex())
tried("process-network", lambda: fcntl.ioctl(os.pidfd_open(os.getpid()), 0xff04))
with open("/proc/self/ns/mnt") as f:
    tried("namespace", lambda: fcntl.ioctl(f, 0x8008b705, bytes(8)).hex())
with open("/proc/self/ns/user") as f:
    said["owner"] = struct.unpack("I", fcntl.ioctl(f, 0xb704, b"\7\7\7\7"))[0]
for name, path in (("root", "/usr/bin/env"), ("memory", "/tmp"), ("home", os.path.expanduser("~"))):
    f = os.open(path, os.O_RDONLY)
    tried("identity-" + name, lambda: fcntl.ioctl(f, 0x80111500, bytes(17)).hex())
    tried("place-" + name, lambda: fcntl.ioctl(f, 0x80811501, bytes(129)).hex())
    tried("ext-" + name, lambda: fcntl.ioctl(f, 0x8008662c, struct.pack("II", 16, 0) + bytes(16)).hex())

# The library of the kernel, in a child that is to get it empty.
c = ctypes.CDLL(None, use_errno=True)
c.getauxval.restype = c.getauxval.argtypes = None
c.getauxval.restype, c.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
at = c.getauxval(33)
c.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
before = ctypes.string_at(at, 4096)
said["wiped"] = c.madvise(at, 8192, 18)
r, w = os.pipe()
if os.fork() == 0:
    os.write(w, b"1" if ctypes.string_at(at, 4096) == before else b"0")
    os._exit(0)
said["library"] = os.read(r, 1).decode()


# What netlink tells, by every call that reads.
def answers(kind, how, body=bytes(16), size=65536, protocol=0):
    n = socket.socket(16, 3, protocol)
    n.settimeout(1)
    n.send(struct.pack("IHHII", 16 + len(body), kind, 0x301, 1, 0) + body)
    data = b""
    while True:
        room = bytearray(size)
        if how == "recv":
            got = n.recv_into(room)
        elif how == "readv":
            got = os.readv(n.fileno(), [room])
        elif how == "pieces":
            room = [bytearray(64) for _ in range(512)]
            got = n.recvmsg_into(room)[0]
            room = b"".join(room)
        elif how == "many":
            io = struct.pack("QQ", ctypes.addressof(ctypes.c_char.from_buffer(room)), size)
            io = ctypes.create_string_buffer(io)
            h = ctypes.create_string_buffer(struct.pack("QIxxxxQQQQIxxxxIxxxx", 0, 0, ctypes.addressof(io), 1, 0, 0, 0, 0))
            c.recvmmsg(n.fileno(), h, 1, 0, None)
            got = struct.unpack_from("I", h, 56)[0]
        part = bytes(room)
        data += part  # also what is left of the buffer
        p = 0
        while p + 16 <= got:
            length, t = struct.unpack_from("IH", part, p)
            if t in (2, 3) or length < 16:
                return data
            p += (length + 3) & ~3
        if size < 4096:
            return data


said["link"] = {how: (b"veth" in answers(18, how), hash(answers(18, how).rstrip(b"\0")) != 0) for how in ("recv", "readv", "pieces", "many")}
said["short"] = [b"veth" in answers(18, "recv", size=n) for n in range(1200, 2000, 100)]
said["answers"] = {str(kind): answers(kind, "recv", body).rstrip(b"\0").hex() for kind, body in
                   ((18, bytes(16)), (22, bytes(8)), (26, bytes(12)), (30, bytes(12)), (66, bytes(4)), (90, bytes(4)),
                    (94, struct.pack("BBHII", 0, 0, 0, 0, 1)))}
few = [socket.socket() for _ in range(3)]  # as many as come in one answer
for x in few:
    x.bind(("127.0.0.1", 0))
    x.listen()
said["answers"]["sockets"] = [answers(20, "recv", body, protocol=4).rstrip(b"\0").hex() for body in (
    struct.pack("BBBxI", 2, 6, 255, 0xffffffff) + bytes(48), struct.pack("BBHIIQ", 1, 0, 0, 0xffffffff, 0, 63),
    struct.pack("BBHIIQ", 16, 255, 0, 0, 1, 0))]
print(json.dumps(said))
'''


def ask(*options):
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "told", "--start", "2026-05-04T08:00:00Z", "--quiet", "--cwd", "/tmp",
                           *options, "--", "/usr/bin/python3", "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def said():
    return ask()


def test_two_runs_are_told_the_same(said):
    time.sleep(1.1)  # of this machine's clock, which nobody may see
    again = ask()
    assert {n: v for n, v in said.items() if again[n] != v} == {}


def test_no_time_of_the_host(said):
    assert abs(said["stream-clock"] - said["up"] * 1000) < 1000
    near = range(int(said["now"]) - 1, int(said["now"]) + 3)
    cut = {int(said["now"]) & 0xffffffff, 0}  # four bytes of it, or none
    assert len(said["stamps"]) > 60 and all(s in near or s in cut for s in said["stamps"]), said["stamps"]
    for stamp in bytes.fromhex(said["answers"]["22"]).split(b"\xff" * 8)[1:]:
        assert stamp[:4] == stamp[4:8] and int.from_bytes(stamp[:4], "little") < 10000


def test_nothing_is_moved_unseen(said):
    assert (said["receive-unseen"], said["connect-later"], said["send-first"]) == ("ENOPROTOOPT", "ENOTSUP", "ENOTSUP")  # one number, two names


def test_no_chance_but_the_worlds(said):
    assert [said["filter-" + n] for n in ("chance", "processor", "hash", "length")] == ["EINVAL"] * 3 + [None]


def test_the_host_loads_nothing(said):
    assert (said["socket-sctp"], said["socket-dccp"], said["socket-netfilter"]) == ("EPROTONOSUPPORT", "ESOCKTNOSUPPORT",
                                                                                  "EPROTONOSUPPORT")


def test_descriptors_tell_what_the_machines_kernel_would(said):
    asked = [n for n in said if n.split("-")[0] in ("process", "namespace", "identity", "place", "ext")]
    assert len(asked) == 12 and {said[n] for n in asked} == {"ENOTTY"}
    assert said["owner"] == 0 and said["network-cookie"] == 1 and said["control"] == "cubic" and said["set-control"] is None


def test_the_library_stays_ours_in_children(said):
    assert said["wiped"] == 0 and said["library"] == "1"


def test_every_way_to_read_an_answer(said):
    assert set(map(tuple, said["link"].values())) == {(False, True)} and not any(said["short"])


def test_each_message_of_many_is_looked_at(tmp_path):
    """A datagram to the internet behind one to ourselves."""
    code = ("import ctypes, socket, struct; c = ctypes.CDLL(None); s = socket.socket(2, 2); keep = []\n"
            "def at(b): keep.append(ctypes.create_string_buffer(b)); return ctypes.addressof(keep[-1])\n"
            "def to(a, p, d): return struct.pack('QIxxxxQQQQIxxxxIxxxx', at(struct.pack('=H', 2) + struct.pack('!H', p) "
            "+ socket.inet_aton(a) + bytes(8)), 16, at(struct.pack('QQ', at(d), len(d))), 1, 0, 0, 0, 0)\n"
            "print(c.sendmmsg(s.fileno(), to('127.0.0.1', 9, b'near') + to('203.0.114.9', 53, b'far away'), 2, 0))\n"
            "s.settimeout(1)\n"
            "try: s.recv(9)\n"
            "except OSError: pass\n"
            "try: s.recv(9)\n"
            "except OSError: pass\n")
    subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "told", "--quiet", "--cwd", "/tmp", "--events", tmp_path / "e", "--",
                    "/usr/bin/python3", "-c", code], timeout=60, check=True)
    events = [json.loads(line) for line in (tmp_path / "e").read_text().splitlines()]
    assert [e["args"]["bytes"] for e in events if e.get("op") == "peer-datagram"] == ["far away"]
