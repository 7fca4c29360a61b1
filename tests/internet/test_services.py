"""What is no web: services that greet, and a sink for the rest."""
from private import START, authorities, internet, twins  # noqa: F401

TALK = """
import socket
def line(s):
    data = b""
    while not data.endswith(b"\\n"):
        piece = s.recv(1)
        if not piece: break
        data += piece
    return data
"""


def test_mail_is_taken(internet):
    internet.python("""
import smtplib
with smtplib.SMTP("93.184.216.34", 587, local_hostname="pine") as s:
    s.login("user", "pass")
    s.sendmail("a@example.org", ["b@example.org"], "Subject: x\\r\\n\\r\\nthe stolen words\\r\\n")
""")
    said = "".join(r["args"]["bytes"] for r in internet.of("peer-stream"))
    assert "the stolen words" in said and "RCPT TO:<B@EXAMPLE.ORG>" in said.upper()


def test_files_and_boxes(internet):
    internet.python("""
import ftplib, poplib
f = ftplib.FTP("93.184.216.34", "user", "secret"); f.pwd(); f.quit()
import imaplib
i = imaplib.IMAP4("93.184.216.34"); i.login("u", "boxed"); assert i.select()[1] == [b"0"]; i.logout()
p = poplib.POP3("93.184.216.34"); p.user("u"); p.pass_("hidden"); assert p.stat() == (0, 0); p.quit()
""")
    said = "".join(r["args"]["bytes"] for r in internet.of("peer-stream"))
    assert "PASS secret" in said and "PASS hidden" in said and "boxed" in said


def test_mail_over_tls(internet):
    internet.python(f"""
import smtplib, ssl
context = ssl.create_default_context(cafile={str(internet.ca)!r})
with smtplib.SMTP_SSL("example.org", 465, context=context, local_hostname="pine") as s:
    assert s.noop()[0] == 250
""")


def test_databases(internet):
    internet.python(TALK + """
r = socket.create_connection(("93.184.216.34", 6379))
r.sendall(b"*1\\r\\n$4\\r\\nPING\\r\\n"); assert line(r) == b"+PONG\\r\\n"
r.sendall(b"*3\\r\\n$3\\r\\nSET\\r\\n$1\\r\\na\\r\\n$1\\r\\nb\\r\\n"); assert line(r) == b"+OK\\r\\n"
r.sendall(b"*2\\r\\n$3\\r\\nGET\\r\\n$2\\r\\n\\r\\n\\r\\n" * 2 + b"*1\\r\\n$4\\r\\nPI"); assert line(r) + line(r) == b"$-1\\r\\n" * 2
r.sendall(b"NG\\r\\n"); assert line(r) == b"+PONG\\r\\n"
p = socket.create_connection(("93.184.216.34", 5432))
p.sendall(bytes.fromhex("0000000804d2162f")); assert p.recv(1) == b"N"
p.sendall(bytes.fromhex("0000001500030000") + b"user\\0app\\0\\0\\0\\0"); assert p.recv(9) == bytes.fromhex("520000000800000003")
p.sendall(b"p\\0\\0\\0\\x0bhunter2\\0"); assert p.recv(1) == b"E"
m = socket.create_connection(("93.184.216.34", 3306)); assert m.recv(100)[4] == 10
""")
    assert "hunter2" in "".join(r["args"]["bytes"] for r in internet.of("peer-stream"))


def test_greeting_before_a_word(internet):
    done = internet.python(TALK + 's = socket.create_connection(("93.184.216.34", 22)); print(line(s).decode())')
    assert done.stdout.startswith(b"SSH-2.0-")


def test_sink(internet):
    internet.python("""
import socket
s = socket.create_connection(("93.184.216.34", 4444))
s.sendall(b"id; uname -a\\n" + bytes(10000)); s.shutdown(socket.SHUT_WR)
assert s.recv(10) == b""
""")
    (closed,) = internet.of("peer-closed")
    assert closed["args"]["read"] == 10013 and closed["args"]["by"] == "client"
    assert internet.of("peer-stream")[0]["args"]["bytes"].startswith("id; uname -a")


def test_silence_ends_in_virtual_time(internet):
    """A client that waits for ever is closed a minute later, by the world's clock."""
    internet.python("""
import socket
s = socket.create_connection(("93.184.216.34", 9999)); s.sendall(b"?")
assert s.recv(10) == b""
""", advance=10**9)
    assert internet.of("peer-closed")[0]["args"]["by"] == "silence"
