"""Clients that mean harm: the internet stays up, within its bounds, and goes on serving others."""
import random

import pytest
from private import START, authorities, internet, twins  # noqa: F401

STILL = """
import socket
def still():
    s = socket.create_connection(("93.184.216.34", 80)); s.settimeout(60)
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: a.org\\r\\nConnection: close\\r\\n\\r\\n")
    data = b""
    while piece := s.recv(65536): data += piece
    assert data.startswith(b"HTTP/1.1 200"), data[:100]
def send(data, port=80, wait=True):
    s = socket.create_connection(("93.184.216.34", port)); s.settimeout(60)
    answer = b""
    try:
        s.sendall(data); s.shutdown(socket.SHUT_WR)
        while wait and (piece := s.recv(65536)): answer += piece
    except (ConnectionResetError, BrokenPipeError): pass
    return answer
"""


def test_heads_that_never_end(internet):
    internet.python(STILL + """
slow = [socket.create_connection(("93.184.216.34", 80)) for _ in range(50)]
for i in range(20):
    for s in slow: s.sendall(b"GET /"[i % 5:][:1] or b"x")
still()
assert b" 431 " in send(b"GET / HTTP/1.1\\r\\nX: " + b"a" * 200000)
assert b" 431 " in send(b"GET / HTTP/1.1\\r\\n" + b"A: b\\r\\n" * 1000 + b"\\r\\n")
send(b"A" * 1000000); send(b"\\n" * 1000000); still()
""")


@pytest.mark.parametrize("head,status", [
    ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
    ("GET /a b HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/3.1\r\n\r\n", 505),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
])  # fmt: skip
def test_requests_that_two_servers_could_read_differently(internet, head, status):
    internet.python(STILL + f"data = send({head.encode()!r})\nassert data.startswith(b'HTTP/1.1 {status} '), data\nstill()")
    assert internet.of("peer-refused")


def test_many_connections(internet):
    """More than it holds are closed at once; those before are served."""
    internet.python(STILL + """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = [socket.create_connection(("93.184.216.34", 4444)) for _ in range(1500)]
kept[0].sendall(b"hello")
closed = 0
for s in kept[1100:]:
    s.settimeout(30)
    try: closed += s.recv(1) == b""
    except ConnectionResetError: closed += 1
assert closed == 400, closed
for s in kept: s.close()
import time
time.sleep(0.5)
still()
""")
    assert len(internet.of("peer-connection")) <= 1025


@pytest.mark.large
def test_a_flood_of_connections(internet):
    internet.python(STILL + """
for i in range(5000):
    s = socket.create_connection(("93.184.216.34", 4444)); s.close()
still()
""", timeout=300)


def test_malformed_tls(internet):
    rng = random.Random(5)
    pieces = [bytes.fromhex("16030100050100000100"), b"\x16\x03\x01\xff\xff" + bytes(70000),
              bytes.fromhex("160301002f0100002b0303") + bytes(40)]
    pieces += [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(507) for _ in range(30)]
    internet.python(STILL + f"for p in {pieces!r}: send(p, 443)\nstill()")
    assert internet.of("peer-tls")


def test_malformed_http2(internet):
    rng = random.Random(6)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    pieces = [preface + rng.randbytes(rng.randrange(1, 200)) for _ in range(30)]
    pieces += [preface + bytes.fromhex("000000040000000000") + b"\x00\x40\x00\x01\x04\x00\x00\x00\x01" + b"\x82" * 16384,
               preface + bytes.fromhex("000000040000000000") + bytes.fromhex("00000401000000000182848641") * 200,
               preface + bytes.fromhex("000006040000000000000100000000") * 2000,
               preface + bytes.fromhex("000008060000000000") * 100]  # fmt: skip
    internet.python(STILL + f"for p in {pieces!r}: send(p)\nstill()")


def test_malformed_dns(internet):
    rng = random.Random(7)
    pieces = [b"", b"\0" * 11, b"\0\0\1\0\0\1\0\0\0\0\0\0" + b"\xc0\x0c\0\1\0\1", b"\0\0\1\0\xff\xff\0\0\0\0\0\0",
              b"\0\0\1\0\0\1\0\0\0\0\0\0" + b"\x3f" * 400, b"\0\0\x80\0\0\1\0\0\0\0\0\0\0\0\1\0\1"]
    pieces += [rng.randbytes(rng.randrange(0, 600)) for _ in range(200)]
    internet.python(STILL + f"""
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for p in {pieces!r}:
    u.sendto(p, ("8.8.8.8", 53))
    send(len(p).to_bytes(2, "big") + p, 53)
still()
""")


def test_a_client_that_never_reads(internet):
    """Answers that nobody takes do not pile up."""
    internet.python(STILL + """
s = socket.create_connection(("93.184.216.34", 80))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.settimeout(2)
one = b"POST /v1/embeddings HTTP/1.1\\r\\nHost: a.org\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
sent = 0
try:
    while sent < 200 << 20: sent += s.send(one * 500)
except (TimeoutError, ConnectionError, BlockingIOError): pass
assert sent < 100 << 20
still()
import os
rss = [l for l in open(f"/proc/{os.environ['INTERNET_PID']}/status") if l.startswith("VmRSS")][0].split()[1]
assert int(rss) < 200000, rss
""", timeout=240)


def test_many_names_in_tls(internet):
    """A certificate for each of a thousand names: the cache is bounded."""
    internet.python(STILL + f"""
import ssl
context = ssl.create_default_context(cafile={str(internet.ca)!r})
for i in range(400):
    s = context.wrap_socket(socket.create_connection(("93.184.216.34", 443)), server_hostname=f"n{{i}}.example.org")
    s.close()
still()
""")


def test_records_are_bounded(internet):
    internet.python(STILL + """
for i in range(40): send(bytes(1 << 20), 4444)
still()
""")
    told = sum(len(r["args"].get("bytes", "")) // 4 for r in internet.of("peer-stream"))
    assert told <= 16 << 20


def test_odd_words_in_places(internet):
    """Nothing of a request leads out of a string, a tag or a header."""
    done = internet.curl("-i", "--path-as-is", "http://example.org/%22%3E%3Cscript%3E/%0d%0aX-Evil:1",
                         "-H", 'Host: exa"mple<.org')
    assert b"<script>" not in done.stdout and b"X-Evil" not in done.stdout.split(b"\r\n\r\n")[0]
