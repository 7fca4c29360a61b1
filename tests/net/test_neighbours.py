"""The machine in its network: services that listen, a session, neighbours, and ways that take their time. Whoever asks, by whichever
way, is told the same."""
import re
import subprocess

import pytest

from conftest import PROGRAM
from test_net import World, acts

PEERS = """
import re, subprocess
def run(*c): return subprocess.run(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
def hexed(a):
    host, port = a.split(':')
    return '.'.join(str(b) for b in bytes.fromhex(host)[::-1]) + ':' + str(int(port, 16))
files = set()
for line in open('/proc/net/tcp').readlines()[1:]:
    w = line.split(); files.add((hexed(w[1]), hexed(w[2]), w[3], w[7], w[9]))
ss = set()
names = {'LISTEN': '0A', 'ESTAB': '01'}
for line in run('ss', '-4tane').splitlines()[1:]:
    w = line.split(); inode = re.search(r'ino:(\\d+)', line)[1]; uid = re.search(r'uid:(\\d+)', line)
    ss.add((w[3], w[4].replace(':*', ':0'), names[w[0]], uid[1] if uid else '0', inode))
print(files == ss, sorted(x[0] for x in files))
"""


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_sockets_are_the_same_in_files_and_over_netlink(world):
    own = "import socket\nl = socket.socket(); l.bind(('127.0.0.1', 8123)); l.listen()\nc = socket.create_connection(('127.0.0.1', 8123))\n"
    said = world.python(own + PEERS)
    assert said.startswith("True ") and said.count("0.0.0.0:22") == 1 and said.count("127.0.0.1:8123") == 2, said


def test_order_of_sockets_repeats(world):
    """The kernel's hashes have another seed in each network."""
    code = ("import socket, subprocess\nall = [socket.socket() for i in range(4)]\n"
            "for i, s in enumerate(all): s.bind(('127.0.0.%d' % (i + 1), 8000 + i * 7)); s.listen()\n"
            "all += [socket.create_connection(s.getsockname()) for s in all]\n"
            "u = [socket.socket(type=socket.SOCK_DGRAM) for i in range(6)]\n"
            "for i, s in enumerate(u): s.bind(('127.0.0.1', 9000 + i))\n"
            "for f in 'tcp', 'udp': print(open('/proc/net/' + f).read())\n"
            "print(subprocess.run(['ss', '-tuane'], stdout=subprocess.PIPE, text=True).stdout)")
    first = world.python(code)
    assert first.count("\n") > 35 and all(world.python(code) == first for _ in range(3))


def test_session_is_the_environments(world):
    said = world.python("import os; print(os.environ['SSH_CONNECTION']); print(open('/proc/net/tcp').read())")
    address, port, own, own_port = said.splitlines()[0].split()

    def row(a, p):
        return "".join(f"{int(x):02X}" for x in reversed(a.split("."))) + f":{int(p):04X}"

    assert f"{row(own, own_port)} {row(address, port)} 01 " in said


def test_neighbours_are_the_same_in_both_tables(world):
    code = ("import subprocess; print(open('/proc/net/arp').read()); "
            "print(subprocess.run(['ip', '-s', 'neigh'], stdout=subprocess.PIPE, text=True).stdout)")
    arp, neigh = world.python(code).split("\n\n", 1)
    rows = {w[0]: (w[2], w[3]) for w in (line.split() for line in arp.splitlines()[1:])}
    assert len(rows) == 2 and all(flags == "0x2" for flags, _ in rows.values())
    for address, (_, mac) in rows.items():
        assert re.search(rf"^{re.escape(address)} dev eth0 lladdr {mac} .*REACHABLE", neigh, re.M), neigh
    assert "PERMANENT" not in neigh and re.search(r"^fe80::1 dev eth0 .*router.*REACHABLE", neigh, re.M)
    assert world.python(code) == arp + "\n\n" + neigh


def test_services_of_the_machine_answer(world):
    """What listens takes connections, at each of the machine's own addresses, and is recorded."""
    code = ("import socket, time\nfor a in '127.0.0.1', '127.8.0.1', '192.168.178.34', '::1':\n"
            " t = time.monotonic(); s = socket.create_connection((a, 22)); print(s.recv(99).decode().strip(), time.monotonic() - t < 0.002)\n"
            "print(socket.socket().connect_ex(('127.0.0.1', 23)))\n"
            "try: socket.socket().bind(('127.0.0.1', 22))\nexcept OSError as e: print(e.errno)")
    seen, events, said = world.json("/usr/bin/python3", "-c", code)
    assert said.splitlines()[:6] == ["SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7 True"] * 4 + ["111", "13"], said
    assert [e["object"] for e in acts(events, "peer-connection")] == ["127.0.0.1:22", "127.8.0.1:22", "192.168.178.34:22", "[::1]:22"]


WAYS = """
import asyncio, select, socket, time
def took(f):
    t = time.monotonic(); f(); return time.monotonic() - t
def waits(a, p): socket.create_connection((a, p)).close()
def polls(a, p):
    s = socket.socket(); s.setblocking(False); s.connect_ex((a, p)); select.select([], [s], [], 9); s.getsockopt(1, 4)
def refused(a, p):
    assert socket.socket().connect_ex((a, p)) == 111
hosts = ['8.8.%d.8' % i for i in range(20)]
a = [took(lambda: waits(h, 80)) for h in hosts]
b = [took(lambda: polls(h, 443)) for h in hosts]
c = [took(lambda: refused(h, 4)) for h in hosts]
near = [took(lambda: waits('192.168.178.1', 80)), took(lambda: polls('192.168.178.1', 443))]
s = socket.create_connection((hosts[0], 80)); s.send(b'GET / HTTP/1.0\\r\\n\\r\\n'); first = took(lambda: s.recv(1))
rest = took(lambda: s.recv(1))
async def many(): await asyncio.gather(*(asyncio.open_connection(h, 80) for h in hosts))
all = took(lambda: asyncio.run(many()))
print([a, b, c, near, first, rest, all])
"""


def test_ways_take_their_time(world):
    a, b, c, near, first, rest, together = eval(world.python(WAYS))
    for x, y, z in zip(a, b, c):  # a host is as far away by each way, and no two ways are equal
        assert 0.004 <= x <= 0.05 and abs(x - y) < x / 5 and abs(x - z) < x / 5
    assert len({round(x, 3) for x in a}) > 8 and len(set(a + b + c)) == 60
    assert all(0.0002 < x < 0.003 for x in near)
    assert abs(first - a[0]) < a[0] / 2 and rest < 0.001
    assert max(a) * 0.8 < together < sum(a) / 2  # one waits for many at once
    assert world.python(WAYS) == world.python(WAYS)


def test_ways_are_the_same_in_both_worlds(world):
    code = ("import socket, time\nfor i in range(6):\n"
            " t = time.monotonic(); socket.create_connection(('93.184.%d.34' % i, 80)); print(time.monotonic() - t)")
    sides = [subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "net", "--start", "2026-05-04T08:00:00Z", "--world", side, "--quiet",
                             "--cwd", "/tmp", "--", "/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, text=True).stdout for side in "AB"]
    assert sides[0] == sides[1] and len(set(sides[0].split())) == 6


def test_a_timeout_shorter_than_the_way(world):
    code = ("import select, socket, time\ns = socket.socket(); s.setblocking(False); s.connect_ex(('8.8.8.8', 80))\n"
            "t = time.monotonic(); select.select([], [s], [], 0.001); print(time.monotonic() - t <= 0.0011)")
    assert world.python(code) == "True\n"


def test_congestion_control_is_the_usual(world):
    code = ("import socket; s = socket.socket(); print(s.getsockopt(6, 13, 16).rstrip(b'\\0').decode());"
            "print(open('/proc/sys/net/ipv4/tcp_congestion_control').read().strip())")
    assert world.python(code).split() == ["cubic", "cubic"]


DATAGRAMS = """
import socket, struct, time
def ping(a, family=socket.AF_INET, connected=False):
    s = socket.socket(family, socket.SOCK_DGRAM, socket.IPPROTO_ICMP if family == socket.AF_INET else 58); s.settimeout(5)
    what = struct.pack('!BBHHH', 8 if family == socket.AF_INET else 128, 0, 0, 0, 1) + b'p' * 56
    t = time.monotonic()
    try:
        s.connect((a, 0)) if connected else None
        s.send(what) if connected else s.sendto(what, (a, 0))
        r = s.recv(100); return r[0], r[8:] == what[8:], time.monotonic() - t
    except OSError as e: return type(e).__name__, e.errno, time.monotonic() - t
def udp(a, port, what=b'x', connected=False):
    s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(2); t = time.monotonic()
    try:
        s.connect((a, port)) if connected else None
        s.send(what) if connected else s.sendto(what, (a, port))
        return len(s.recv(2000)), time.monotonic() - t
    except OSError as e: return type(e).__name__, time.monotonic() - t
def tcp(a):
    t = time.monotonic(); socket.create_connection((a, 80)); return time.monotonic() - t
print([ping('8.8.8.8'), ping('8.8.8.8', connected=True), ping('192.168.178.1'), ping('127.0.0.1'), ping('2606:4700::1111', socket.AF_INET6), ping('10.9.9.9'),
       tcp('8.8.8.8'), udp('8.8.8.8', 4, connected=True), udp('8.8.8.8', 4), udp('1.2.3.4', 443, b'\\xc3\\0\\0\\0\\1\\x08destinat\\x03src' + bytes(1200)),
       udp('1.2.3.4', 40000, connected=True), udp('1.2.3.4', 514, b'<14>words')])
"""


def test_pings_and_datagrams(world):
    """Hosts and the gateway answer pings, after as long as a connection takes; odd ports refuse datagrams, QUIC is recorded."""
    seen, events, said = world.json("/usr/bin/python3", "-c", DATAGRAMS)
    far, again, near, own, six, nobody, way, odd, silent, quic, high, log = eval(said.splitlines()[0])
    assert far[:2] == again[:2] == near[:2] == own[:2] == (0, True) and six[:2] == (129, True)
    assert abs(far[2] - way) < way / 5 and 0.0002 < near[2] < 0.003 and own[2] < 0.001
    assert 0.004 < six[2] < 0.05
    assert nobody[0] in ("TimeoutError", "OSError") and nobody[2] > 0.0001
    assert odd[0] == high[0] == "ConnectionRefusedError" and abs(odd[1] - way) < way / 5
    assert silent[0] == log[0] == "TimeoutError" and silent[1] >= 2  # an error that nobody is told of, as always with datagrams
    assert quic[0] > 20 and 0.004 < quic[1] < 0.05
    assert acts(events, "peer-quic")[0]["args"]["version"] == 1
    assert [e["args"]["bytes"] for e in acts(events, "peer-datagram")] == ["<14>words"]
    assert world.python(DATAGRAMS) == world.python(DATAGRAMS)
