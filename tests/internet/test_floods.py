"""Floods: frames, heads, fragments, connections without end. The internet stays within its bounds, serves others, and says what it
left out."""
import pytest
from private import START, authorities, internet, twins  # noqa: F401
from test_attack import STILL

FRAMES = STILL + """
import struct
PREFACE = b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"
def frame(type, flags=0, id=0, data=b""): return struct.pack(">I", len(data))[1:] + bytes([type, flags]) + struct.pack(">I", id) + data
SETTINGS = frame(4)
# :method GET, :scheme http, :path /, :authority a.org, as in RFC 7541
HEADERS = bytes([0x82, 0x86, 0x84, 0x41, 0x05]) + b"a.org"
def flood(pieces, most=400 << 20):
    s = socket.create_connection(("93.184.216.34", 80)); s.settimeout(60)
    sent = 0
    try:
        s.sendall(PREFACE + SETTINGS)
        for p in pieces:
            s.sendall(p); sent += len(p)
            if sent > most: break
    except OSError as e:
        print("ended", type(e).__name__)
    s.close()
    still()
    print("sent", sent)
"""

FLOODS = {
    "rapid reset": "flood((b''.join(frame(1, 5, i, HEADERS) + frame(3, 0, i, b'\\0\\0\\0\\x08') for i in range(b, b + 400, 2)) for b in range(1, 200001, 400)))",
    "continuation": "flood([frame(1, 1, 1, HEADERS)] + [frame(9, 0, 1, b'\\0\\x01a\\x7f\\xff\\x7f'[:3] + b'x' * 16000) for i in range(4000)], 64 << 20)",
    "empty continuation": "flood([frame(1, 1, 1, HEADERS)] + [frame(9, 0, 1) * 1000 for i in range(500)])",
    "settings": "flood(frame(4) * 1000 for i in range(300))",
    "pings": "flood(frame(6, 0, 0, b'12345678') * 1000 for i in range(300))",
    "priorities": "flood(frame(2, 0, 2 * i % 65536 + 1, b'\\0\\0\\0\\0\\x10') * 200 for i in range(500))",
    "empty data": "flood([frame(1, 4, 1, HEADERS)] + [frame(0, 0, 1) * 1000 for i in range(300)])",
    "window": "flood([frame(1, 5, 1, HEADERS)] + [frame(8, 0, 0, b'\\x7f\\xff\\xff\\xff') * 100 for i in range(10)])",
    "table": "flood(frame(1, 5, i, HEADERS + b''.join(b'\\x40\\x7f\\x00' + bytes([65 + j % 26]) * 127 + b'\\x7f\\x00' + b'v' * 127 for j in range(40))) for i in range(1, 4001, 2))",
    "half open": "flood(frame(1, 4, i, HEADERS) + frame(0, 0, i, b'z' * 16000) * 20 for i in range(1, 4001, 2))",
}


@pytest.mark.parametrize("what", FLOODS)
def test_frames(internet, what):
    done = internet.python(FRAMES + FLOODS[what], timeout=110)
    assert b"sent" in done.stdout, done.stdout


def test_heads_of_a_hundred_megabytes(internet):
    done = internet.python(STILL + """
for head in b'GET / HTTP/1.1\\r\\nHost: a.org\\r\\nX: ', b'GET /', b'GET / HTTP/1.1\\r\\n':
    s = socket.create_connection(("93.184.216.34", 80)); s.settimeout(60)
    try:
        s.sendall(head)
        for i in range(100): s.sendall(b'A: b\\r\\n' * (1 << 17) if head.endswith(b'\\n') else b'a' * (1 << 20))
    except OSError: pass
    print(s.recv(12).decode()); s.close(); still()
""")
    assert done.stdout.split()[1::2] == [b"431", b"414", b"431"]
    assert [len(r["args"]["bytes"]) <= 4 * 4096 for r in internet.of("peer-refused")] == [True] * 3


def test_slow_requests(internet):
    """One byte a minute: silence ends them, in virtual time, and others are served meanwhile."""
    done = internet.python(STILL + """
all = [socket.create_connection(("93.184.216.34", 80)) for i in range(300)]
for s in all: s.sendall(b'GET / HT')
still(); print('served')
for s in all: s.settimeout(60)
print(sum(s.recv(10) == b'' for s in all))
""", advance=30_000_000_000)
    assert done.stdout.split() == [b"served", b"300"]
    assert sum(r["args"]["by"] == "silence" for r in internet.of("peer-closed")) == 300


def test_a_packed_bomb_is_recorded_as_it_came(internet):
    """Bodies are not unpacked: thousand times their size is nobody's memory."""
    done = internet.python(STILL + """
import zlib
z = zlib.compressobj(9, wbits=31); bomb = b''.join(z.compress(bytes(1 << 20)) for i in range(200)) + z.flush()
a = send(b'POST / HTTP/1.1\\r\\nHost: a.org\\r\\nContent-Encoding: gzip\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(bomb) + bomb)
print(a[:12].decode(), len(bomb)); still()
""")
    (asked, _) = internet.of("peer-http")
    assert done.stdout.split()[1] == b"200" and asked["args"]["size"] == int(done.stdout.split()[2])


def test_fragments_of_websockets(internet):
    done = internet.python(STILL + """
import os, struct
def open_ws():
    s = socket.create_connection(("93.184.216.34", 80)); s.settimeout(60)
    s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: a.org\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\n'
              b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n')
    assert b' 101 ' in s.recv(4096)
    return s
def frame(first, data=b'', size=None, mask=True):
    n = len(data) if size is None else size
    head = bytes([first, (128 if mask else 0) | (n if n < 126 else 126 if n < 65536 else 127)])
    head += b'' if n < 126 else struct.pack('>H', n) if n < 65536 else struct.pack('>Q', n)
    return head + (bytes(4) if mask else b'') + data
for what in ([frame(0, b'x')] * 20000, [frame(1)] + [frame(0)] * 50000, [frame(9, b'p' * 125)] * 5000, [frame(2, b'', 1 << 62)],
             [frame(2, b'', (1 << 64) - 1)], [frame(1, b'a', mask=False)], [frame(9, b'p' * 200)], [os.urandom(70000)], [frame(0x7f, b'?')]):
    s = open_ws()
    try: s.sendall(b''.join(what))
    except OSError: pass
    s.close(); still()
print('good')
""")
    assert done.stdout == b"good\n"


def test_connections_that_all_hold_much(internet):
    """As many as there may be, each with as much as one may hold: the sum has a bound of its own."""
    done = internet.python(STILL + """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
all, sent = [], 0
for i in range(1000):
    s = socket.create_connection(("93.184.216.34", 80)); s.setblocking(False); all.append(s)
body = b'POST / HTTP/1.1\\r\\nHost: a.org\\r\\nContent-Length: 900000000\\r\\n\\r\\n' + b'b' * 60000
for round in range(20):
    for s in all:
        try: sent += s.send(body if round == 0 else b'b' * 60000)
        except OSError: pass
print(sent >> 20)
for s in all: s.close()
still(); print('served')
""", timeout=115)
    assert done.stdout.split()[-1] == b"served" and int(done.stdout.split()[0]) > 100


def test_compression_loops_in_names(internet):
    done = internet.python(STILL + """
import struct
def name(*p): return b''.join(p)
head = struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0)
loops = [head + b'\\xc0\\x0c\\0\\1\\0\\1', head + b'\\1a\\xc0\\x0c\\0\\1\\0\\1', head + b'\\xc0\\x0e\\xc0\\x0c\\0\\1\\0\\1', head + b'\\xff\\xff\\0\\1\\0\\1',
         head + b'\\x3f' * 400, head + (b'\\1a' * 127) + b'\\0\\0\\1\\0\\1', head + b'\\x3f' + b'a' * 63 + b'\\xc0\\x0c' + b'\\0\\1\\0\\1',
         struct.pack('>HHHHHH', 7, 256, 65535, 65535, 65535, 65535) + b'\\1a\\0\\0\\1\\0\\1']
u = socket.socket(type=socket.SOCK_DGRAM)
for q in loops: u.sendto(q, ('8.8.8.8', 53))
for q in loops: send(struct.pack('>H', len(q)) + q, 53)
u.settimeout(9); u.sendto(head + b'\\3api\\7example\\3org\\0\\0\\1\\0\\1', ('9.9.9.9', 53))
while True:
    a, who = u.recvfrom(999)
    if who[0] == '9.9.9.9': break
print(a[3] & 15); still()
""")
    assert done.stdout.split() == [b"0"]
