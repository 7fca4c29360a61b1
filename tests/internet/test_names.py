"""DNS as real clients ask it, over UDP, TCP and TLS; and the time."""
import re
import shutil

import pytest
from private import START, authorities, internet, twins  # noqa: F401

needs_dig = pytest.mark.skipif(not shutil.which("dig"), reason="hardware: no dig")


def dig(internet, *arguments):
    return internet.run("dig", "+tries=1", "+time=5", "@10.0.2.3", *arguments).stdout.decode()


@needs_dig
def test_declared_names(internet):
    first = dig(internet, "+short", "api.example.org").strip()
    assert re.fullmatch(r"[0-9.]+", first)
    assert dig(internet, "+short", "API.example.ORG").strip() == first
    assert dig(internet, "+short", "+tcp", "api.example.org").strip() == first
    other = dig(internet, "+short", "a.wild.example.net").strip()
    assert other and other != first
    assert ":" in dig(internet, "+short", "AAAA", "example.org")
    (asked,) = internet.of("peer-dns")
    assert asked["object"] == "example.org" and asked["args"]["type"] == "AAAA"
    assert dig(internet, "+short", "-x", first).strip() == "api.example.org."


@needs_dig
def test_what_is_not_declared_does_not_exist(internet):
    text = dig(internet, "evil.example.com")
    assert "status: NXDOMAIN" in text and "SOA" in text and "a.nic.com." in text
    assert internet.of("peer-dns")[0]["args"]["code"] == 3
    assert "status: NXDOMAIN" in dig(internet, "wild.example.net")
    assert "status: NXDOMAIN" in dig(internet, "-x", "8.8.8.8")


@needs_dig
def test_own_names_and_other_types(internet):
    assert dig(internet, "+short", "pine-ws1201.pine.io").strip() == "10.0.2.15"
    assert dig(internet, "+short", "localhost").strip() == "127.0.0.1"
    text = dig(internet, "HTTPS", "example.org")
    assert "status: NOERROR" in text and "ANSWER: 0" in text and "SOA" in text
    assert "Transfer failed" in dig(internet, "AXFR", "example.org")
    assert "BADVERS" in dig(internet, "+edns=1", "+noednsneg", "example.org")
    assert "status: REFUSED" in dig(internet, "CH", "TXT", "version.bind")
    assert "mail.example.org" in dig(internet, "+short", "MX", "example.org")


def test_over_tls(internet):
    done = internet.python(f"""
import socket, ssl
context = ssl.create_default_context(cafile={str(internet.ca)!r})
s = context.wrap_socket(socket.create_connection(("9.9.9.9", 853)), server_hostname="dns.example.net")
q = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3api\\7example\\3org\\0\\0\\1\\0\\1"
s.sendall(len(q).to_bytes(2, "big") + q)
data = s.recv(1000)
assert data[2:4] == b"\\x12\\x34" and data[9] == 1, data
""")
    assert done.returncode == 0
    assert internet.of("peer-dns")[0]["args"]["over"] == "tls"


def test_the_systems_resolver(internet):
    done = internet.python("import socket; print(socket.gethostbyname('api.example.org'))\n"
                           "try: socket.gethostbyname('nowhere.example')\nexcept socket.gaierror as e: print(e.errno)")
    assert done.stdout.split()[1] == b"-2"


def test_ntp_tells_virtual_time(internet):
    done = internet.python("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"\\x23" + bytes(39) + b"ABCDEFGH", ("162.159.200.1", 123))
data, at = s.recvfrom(100)
assert at == ("162.159.200.1", 123) and data[24:32] == b"ABCDEFGH" and data[1] == 2
print(int.from_bytes(data[40:44], "big") - 2208988800)
""")
    assert int(done.stdout) == START // 10**9
    assert internet.of("peer-time")[0]["args"]["version"] == 4


def test_quic_and_other_datagrams(internet):
    done = internet.python("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"\\xc3\\0\\0\\0\\1\\x08destinat\\x03src" + bytes(1200), ("1.2.3.4", 443))
data = s.recv(2000)
assert data[:5] == b"\\xc0\\0\\0\\0\\0" and data[5:9] == b"\\3src", data
s.sendto(b"<14>stolen" + bytes(9000), ("5.6.7.8", 514))
""")
    assert done.returncode == 0
    assert internet.of("peer-quic")[0]["args"]["version"] == 1
    other = internet.of("peer-datagram")
    assert other[0]["args"]["bytes"].startswith("<14>stolen") and other[0]["server"] == "5.6.7.8:514"
    assert [r["args"]["at"] for r in other] == [0, 4096, 8192] and other[0]["args"]["size"] == 9010


def test_other_ports_refuse(internet):
    internet.python("""
import socket
try: socket.create_connection(("93.184.216.34", 81))
except ConnectionRefusedError: pass
else: raise SystemExit(1)
""")
