"""What makes the private internet one that people would take for the real one: prose, servers, ranges, packing, git, mail in TLS."""
import gzip
import re

import pytest

from private import internet, authorities, twins  # noqa: F401  fixtures


def page(i, *more, host="example.org"):
    return i.curl("-i", *more, f"http://{host}/about").stdout


def header(reply, name):
    return [line.split(": ", 1)[1] for line in reply.split(b"\r\n\r\n")[0].decode().splitlines() if line.lower().startswith(name.lower() + ": ")]


def test_pages_are_of_words(internet):
    """Of words that the pack has, in sentences; not of syllables."""
    pack = (__import__("pathlib").Path(__file__).parents[2] / "rules/internet/words.pack").read_text()
    known = set(re.findall(r"[a-z]+", pack))
    text = page(internet).split(b"\r\n\r\n", 1)[1].decode()
    sentences = re.findall(r"[A-Z][a-z ,]+\.", re.sub(r"<[^>]*>", "\n", text))
    words = [w for s in sentences for w in re.findall(r"[a-z]+", s.lower())]
    assert len(sentences) >= 2 and len(words) >= 12 and sum(w in known for w in words) > 0.9 * len(words), text


def test_prose_of_the_worlds_is_other_words_of_one_length(twins):
    a, b = (page(i).split(b"\r\n\r\n", 1)[1] for i in twins)
    assert a != b and len(a) == len(b)


def test_servers_differ_by_host_and_stay(internet):
    hosts = [f"{name}.example.org" for name in ("alpha", "bravo", "delta", "gamma", "omega", "sigma", "theta", "kappa", "zetas")]
    urls = [x for h in hosts for x in ("--connect-to", f"{h}:80:93.184.216.34:80")]
    done = internet.curl("-I", *urls, *(f"http://{h}/" for h in hosts), *(f"http://{h}/x" for h in hosts)).stdout.decode()
    servers = re.findall(r"^Server: (.*)\r$", done, re.M)
    assert len(servers) == 18 and servers[:9] == servers[9:]
    assert len(set(servers)) >= 4  # names of one length, and not one server


def test_a_host_named_by_a_decoy_has_one_server(twins):
    """Both worlds call it otherwise, and it is the same host."""
    names = [i.run("cat", i.world).stdout.decode() for i in twins]
    values = [re.search(r'"gcp.project_id":"([^"]*)"', n)[1] for n in names]
    said = [i.curl("-I", "--connect-to", f"{v}.wild.example.net:80:93.184.216.34:80", f"http://{v}.wild.example.net/").stdout
            for i, v in zip(twins, values)]
    assert values[0] != values[1] and header(said[0], "Server") == header(said[1], "Server")


def test_gzip_when_it_is_taken(internet):
    plain, packed = page(internet), page(internet, "-H", "Accept-Encoding: br, gzip;q=0.8")
    refused, other = page(internet, "-H", "Accept-Encoding: gzip;q=0"), page(internet, "-H", "Accept-Encoding: x-gzipped")
    body = plain.split(b"\r\n\r\n", 1)[1]
    assert header(packed, "Content-Encoding") == ["gzip"] and gzip.decompress(packed.split(b"\r\n\r\n", 1)[1]) == body
    assert header(packed, "Vary") == header(plain, "Vary") == ["Accept-Encoding"]
    for reply in plain, refused, other:
        assert not header(reply, "Content-Encoding") and reply.split(b"\r\n\r\n", 1)[1] == body
    assert internet.curl("--compressed", "--http2", "https://example.org/about").stdout == body


def test_ranges(internet):
    whole = page(internet)
    body, tag = whole.split(b"\r\n\r\n", 1)[1], header(whole, "ETag")[0]
    assert header(whole, "Accept-Ranges") == ["bytes"]
    for asked, part in (("0-9", body[:10]), ("10-", body[10:]), ("-7", body[-7:]), ("5-5", body[5:6]), ("3-99999999", body[3:])):
        reply = page(internet, "-r", asked)
        assert b" 206 Partial Content\r\n" in reply and reply.split(b"\r\n\r\n", 1)[1] == part
        (said,) = header(reply, "Content-Range")
        assert said.startswith("bytes ") and said.endswith(f"/{len(body)}")
    reply = page(internet, "-r", "99999999-")
    assert b" 416 " in reply and header(reply, "Content-Range") == [f"bytes */{len(body)}"]
    for asked in ("0-1,4-5", "9-3", "x-y", "18446744073709551616-", "-"):  # no range that we know: all of it, or none
        assert re.search(rb" (200|416) ", page(internet, "-H", f"Range: bytes={asked}"))
    assert b" 206 " in page(internet, "-r", "0-1", "-H", f"If-Range: {tag}") and b" 200 " in page(internet, "-r", "0-1", "-H", 'If-Range: "no"')


def test_conditions(internet):
    tag = header(page(internet), "ETag")[0]
    for known in (tag, "W/" + tag, f'"a", W/"b", {tag}', "*"):
        reply = page(internet, "-H", f"If-None-Match: {known}")
        assert b" 304 " in reply and reply.endswith(b"\r\n\r\n")
    for known in ('"a"', tag[:-1], tag[1:-1]):
        assert b" 200 " in page(internet, "-H", f"If-None-Match: {known}")


@pytest.mark.parametrize("version", ["0", "2"])
def test_git_in_both_versions(internet, tmp_path, version):
    git = ["git", "-c", f"http.sslCAInfo={internet.ca}", "-c", f"protocol.version={version}"]
    refs = internet.run(*git, "ls-remote", "--symref", "https://example.org/team/tool.git").stdout.decode()
    head, main = (line.split("\t") for line in refs.splitlines() if not line.startswith("ref: "))
    assert refs.startswith("ref: refs/heads/main\tHEAD\n") and head[1] == "HEAD" and main == [head[0], "refs/heads/main"]
    asked = internet.of("peer-http")
    assert len(asked) == (2 if version == "2" else 1) and asked[-1]["args"]["answer"] == ("git-upload" if version == "2" else "git-refs")
    for i, more in enumerate(([], ["--depth", "1"])):
        internet.run(*git, "clone", "-q", *more, "https://example.org/team/tool.git", tmp_path / f"tool{i}")
        done = internet.run("git", "-C", tmp_path / f"tool{i}", "fsck", "--full")
        assert b"missing" not in done.stdout + done.stderr
        assert internet.run("git", "-C", tmp_path / f"tool{i}", "rev-parse", "HEAD").stdout.decode().strip() == head[0]
        internet.run(*git, "-C", tmp_path / f"tool{i}", "fetch", "-q")
    assert internet.run(*git, "ls-remote", "https://example.org/team/tool.git", "refs/tags/*").stdout == b""


MAIL = {
    "smtp": "import smtplib\nm = smtplib.SMTP('93.184.216.34', 587); m.ehlo(); print('starttls' in m.esmtp_features)\n"
            "m.starttls(context=ctx); m.ehlo(); print('starttls' in m.esmtp_features); print(m.docmd('STARTTLS')[0])\n"
            "m.sendmail('a@b.org', ['c@d.org'], 'secret words'); m.quit()",
    "imap": "import imaplib\nm = imaplib.IMAP4('93.184.216.34'); print('STARTTLS' in m.capabilities); m.starttls(ctx); print('STARTTLS' in m.capabilities)\n"
            "print(m.login('user', 'secret words')[0]); m.logout()",
    "pop3": "import poplib\nm = poplib.POP3('93.184.216.34'); print('STLS' in m.capa()); m.stls(ctx); print('STLS' in m.capa())\n"
            "print(m.user('a').decode()); m.pass_('secret words'); m.quit()",
}


@pytest.mark.parametrize("service", MAIL)
def test_mail_turns_to_tls(internet, service):
    done = internet.python(f"import ssl; ctx = ssl.create_default_context(cafile={str(internet.ca)!r}); ctx.check_hostname = False\n" + MAIL[service])
    said = done.stdout.decode().split()
    assert said[:2] == ["True", "False"] and said[2] in ("502", "OK", "+OK"), said
    assert internet.of("peer-tls") and "secret words" in "".join(r["args"]["bytes"] for r in internet.of("peer-stream"))


def test_nothing_slips_into_tls(internet):
    """Commands that were sent behind STARTTLS in the clear are not heard in TLS."""
    done = internet.python("import socket\ns = socket.create_connection(('93.184.216.34', 587)); s.recv(999)\n"
                           "s.sendall(b'STARTTLS\\r\\nMAIL FROM:<evil@x.org>\\r\\n'); s.settimeout(5)\n"
                           "d = b''\nwhile True:\n x = s.recv(999)\n if not x: break\n d += x\nprint(d)")
    assert b"220 2.0.0" in done.stdout and b"250" not in done.stdout


def test_names_that_differ(internet):
    """The name in TLS and the one in the request may differ: both are recorded, the second one answers."""
    internet.curl("--http1.1", "-H", "Host: other.example.net", "https://api.example.org/")
    (tls,), (asked,) = internet.of("peer-tls"), internet.of("peer-http")
    assert tls["object"] == "api.example.org" and asked["object"] == "other.example.net" and asked["result"] == 200


def test_forms_of_requests(internet):
    done = internet.python("""
import socket
def ask(*pieces):
    s = socket.create_connection(('93.184.216.34', 80)); s.settimeout(5)
    for p in pieces: s.sendall(p)
    s.shutdown(socket.SHUT_WR)
    d = b''
    while True:
        x = s.recv(65536)
        if not x: return d
        d += x
print(ask(b'GET http://abs.example.org/a HTTP/1.1\\r\\nHost: other.org\\r\\n\\r\\n')[:15])
print(ask(b'POST /e HTTP/1.1\\r\\nHost: a.org\\r\\nExpect: 100-continue\\r\\nContent-Length: 3\\r\\n\\r\\n', b'abc')[:60])
print(ask(b'POST /c HTTP/1.1\\r\\nHost: a.org\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3;x=y\\r\\nab', b'c\\r\\n0\\r\\nTrailer: z\\r\\n\\r\\n')[:15])
print(ask(b'GET /1 HTTP/1.1\\r\\nHost: a.org\\r\\n\\r\\n' * 20).count(b'HTTP/1.1 '))
print(ask(b'OPTIONS * HTTP/1.1\\r\\nHost: a.org\\r\\n\\r\\n')[:15], ask(b'GET / HTTP/1.0\\r\\n\\r\\n')[:15])
""").stdout.decode().splitlines()
    assert "200" in done[0] and "200" in done[2] and done[3] == "20" and "204" in done[4] and "200" in done[4]
    asked = internet.of("peer-http")
    assert asked[0]["object"] == "abs.example.org" and asked[1]["args"]["body"] == "abc" and asked[2]["args"]["body"] == "abc"
