"""The same world says the same bytes, TLS included; the two worlds of a seed say as many."""
import ssl

import pytest
from private import START, Internet, authorities, document, internet, twins  # noqa: F401

# Sends files one after another, each on a connection of its own, and prints the answers in hex.
REPLAY = """
import socket, sys
for path in sys.argv[2:]:
    s = socket.create_connection(("93.184.216.34", int(sys.argv[1])))
    s.sendall(open(path, "rb").read()); s.shutdown(socket.SHUT_WR)
    data = b""
    while piece := s.recv(65536): data += piece
    print(data.hex())
"""


def hello(path, name, **options):
    """A client's hello as a file, so that the same client can come again."""
    context = ssl.create_default_context()
    for key, value in options.items():
        setattr(context, key, value)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    path.write_bytes(outgoing.read())
    return path


def replay(net, port, *paths):
    return net.run("/usr/bin/python3", "-c", REPLAY, str(port), *paths).stdout.decode().split()


def requests(tmp_path):
    texts = {
        "page": b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "api": b"GET /v1/users HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        "chat": b'POST /v1/chat/completions HTTP/1.1\r\nHost: a.org\r\nContent-Length: 17\r\n\r\n{"model":"gpt-4"}',
        "vector": b'POST /v1/embeddings HTTP/1.1\r\nHost: a.org\r\nContent-Length: 2\r\n\r\n{}',
        "stream": b'POST /v1/messages HTTP/1.1\r\nHost: a.org\r\nContent-Length: 15\r\n\r\n{"stream":true}',
        "git": b"GET /x.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: a.org\r\n\r\n",
        "pack": b"POST /x.git/git-upload-pack HTTP/1.1\r\nHost: a.org\r\nContent-Length: 4\r\n\r\ndone",
        "token": b"POST /oauth/token HTTP/1.1\r\nHost: a.org\r\nContent-Length: 0\r\n\r\n",
        "cloud": b"GET /latest/meta-data/iam/security-credentials/r HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
    }  # fmt: skip
    paths = []
    for name, text in texts.items():
        path = tmp_path / name
        path.write_bytes(text)
        paths.append(path)
    return paths


def test_answers_of_one_world_are_the_same_again(internet, tmp_path):
    paths = requests(tmp_path)
    assert replay(internet, 80, *paths) == replay(internet, 80, *paths)


def test_answers_of_two_worlds_differ_and_have_one_length(twins, tmp_path):
    paths = requests(tmp_path)
    a, b = (replay(net, 80, *paths) for net in twins)
    assert [len(x) for x in a] == [len(x) for x in b]
    for path, x, y in zip(paths, a, b):
        assert x != y, path


def test_lengths_do_not_depend_on_decoys_in_the_request(twins, tmp_path):
    """A request that carries something of the world gets an answer of the same length in both."""
    told = []
    for net, secret in zip(twins, (b"ASIAAAAA", b"ASIABBBB")):
        path = tmp_path / "steal"
        path.write_bytes(b"POST /v1/messages?k=" + secret + b" HTTP/1.1\r\nHost: x.org\r\nContent-Length: 8\r\n\r\n" + secret)
        told += [len(x) for x in replay(net, 80, path)]
    assert told[0] == told[1]


@pytest.mark.parametrize("options", [{}, {"maximum_version": ssl.TLSVersion.TLSv1_2}], ids=["1.3", "1.2"])
def test_handshakes(twins, tmp_path, options):
    """Server random, key shares, certificates, signatures: the same again, and of one length in A and B."""
    paths = [hello(tmp_path / str(i), f"host{i:02}.example.org", **options) for i in range(12)]
    first, again, other = replay(twins[0], 443, *paths), replay(twins[0], 443, *paths), replay(twins[1], 443, *paths)
    assert all(len(x) > 1000 for x in first)
    assert first == again
    assert [len(x) for x in first] == [len(x) for x in other]
    assert all(x != y for x, y in zip(first, other))
    assert len(set(first)) == len(first)


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def test_lengths_over_http2(twins, tmp_path):
    """Packed headers have one length in both worlds, too."""
    paths = []
    for i in range(8):
        head = (literal(b":method", b"GET") + literal(b":scheme", b"http") + literal(b":path", b"/v1/%d" % i if i % 2 else b"/")
                + literal(b":authority", b"host%d.org" % i))  # fmt: skip
        path = tmp_path / f"h2-{i}"
        path.write_bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
                         + len(head).to_bytes(3, "big") + b"\1\5\0\0\0\1" + head)
        paths.append(path)
    a, b = (replay(net, 80, *paths) for net in twins)
    assert [len(x) for x in a] == [len(x) for x in b]
    assert all(x != y and len(x) > 200 for x, y in zip(a, b))


def test_records_of_two_worlds_are_the_same(twins, tmp_path):
    """What a world alone says is not in the record: it is no act of the program's."""
    paths = requests(tmp_path)
    told = []
    for net in twins:
        replay(net, 80, *paths)
        told.append([{k: v for k, v in r.items() if k != "client"} for r in net.records])
    assert told[0] == told[1]


def test_records_of_one_world_are_the_same_again(internet, tmp_path):
    paths = requests(tmp_path)
    told = []
    for _ in range(2):
        replay(internet, 80, *paths)
        told.append([{k: v for k, v in r.items() if k != "client"} for r in internet.records])
    assert told[0] == told[1]


def test_addresses_are_the_same_in_both_worlds(twins):
    seen = [net.python("import socket\nfor n in ('api.example.org', 'example.org', 'x.wild.example.net'):"
                       " print(socket.getaddrinfo(n, 443))").stdout for net in twins]
    assert seen[0] == seen[1] and seen[0].count(b"AF_INET") >= 3


def test_waiting_for_the_way(tmp_path, authorities):
    """With a latency the answer comes when virtual time says so, not before."""
    world = document(*authorities["A"])
    world["facts"]["net.latency_us"] = "500000"
    net = Internet(tmp_path, world)
    done = net.curl("-o", "/dev/null", "-w", "%{http_code}", "--resolve", "example.org:80:1.2.3.4",
                    "http://example.org/", advance=10**6)
    assert done.stdout == b"200"
