"""HTTP and HTTPS as real clients speak it: curl, Python, Node, openssl, git."""
import base64
import hashlib
import json
import shutil
import subprocess

import pytest
from private import START, authorities, internet, twins  # noqa: F401


def test_plain_page(internet):
    done = internet.curl("-i", "http://example.org/")
    assert done.stdout.startswith(b"HTTP/1.1 200 OK\r\n") and b"<title>example.org</title>" in done.stdout
    (asked,) = internet.of("peer-http")
    assert asked["object"] == "example.org" and asked["result"] == 200
    assert asked["args"]["method"] == "GET" and "User-Agent: curl" in asked["args"]["headers"]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("tls", ["--tls-max=1.2", "--tlsv1.3"])
def test_https(internet, version, tls):
    done = internet.curl(version, *tls.split("="), "-w", "%{http_version} %{ssl_verify_result}\n",
                         "https://api.example.org/v1/things/7")
    body, said = done.stdout.decode().strip().split("\n")
    assert json.loads(body)["status"] == "active"
    assert said == ("1.1 0" if version == "--http1.1" else "2 0")
    hello = internet.of("peer-tls")[0]
    assert hello["object"] == "api.example.org" and "http/1.1" in hello["args"]["alpn"]
    assert internet.of("peer-http")[0]["args"]["over"] == ("http/1.1" if "1.1" in version else "h2")


def test_certificate_is_checked_for_real(internet, authorities, tmp_path):
    """Another authority does not vouch for it."""
    other = tmp_path / "other.pem"
    other.write_text(authorities["B"][0])
    done = internet.run("curl", "-sS", "--cacert", other, "https://api.example.org/", check=60)
    assert b"certificate" in done.stderr
    assert internet.of("peer-tls")[-1]["args"]["failed"]


def test_certificate_of_an_address(internet):
    internet.curl("https://93.184.216.34/")
    internet.curl("--resolve", "no.such.name:443:8.8.4.4", "https://no.such.name/")


def test_tls_on_any_port(internet):
    internet.curl("https://example.org:8080/")
    internet.curl("http://example.org:443/")


def test_body_is_recorded_whole(internet, tmp_path):
    body = bytes(i * 7 % 251 for i in range(200_000))
    (tmp_path / "body").write_bytes(body)
    internet.curl("--data-binary", f"@{tmp_path}/body", "https://api.example.org/upload")
    (asked,) = internet.of("peer-http")
    assert asked["args"]["size"] == len(body)
    assert asked["args"]["digest"] == hashlib.sha256(body).hexdigest()
    more = internet.of("peer-body")
    assert more[0]["args"]["at"] == 4096
    assert [r["args"]["at"] for r in more] == list(range(4096, len(body), 4096))


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_big_body_meets_the_bound(internet, tmp_path, version):
    with open(tmp_path / "big", "wb") as out:
        out.truncate(24 << 20)
    internet.curl(version, "-T", tmp_path / "big", "https://api.example.org/big", timeout=300)
    (asked,) = internet.of("peer-http")
    assert asked["args"]["size"] == 24 << 20
    assert len(internet.of("peer-body")) == 256


def test_a_long_head_is_recorded_whole(internet):
    cookie, query = "c" * 9000, "q" * 7000
    internet.curl("-H", f"Cookie: {cookie}", f"http://example.org/x?{query}")
    said = "".join(r["args"]["bytes"] for r in internet.of("peer-head"))
    assert cookie in said and query in said


def test_many_large_answers_at_once(internet):
    """More over one connection of HTTP/2 than it holds back for a client at once."""
    urls = [a for i in range(90) for a in ("-o", "/dev/null", f"https://api.example.org/v1/embeddings?{i}")]
    done = internet.curl("--http2", "-Z", "--parallel-max", "90", "--limit-rate", "20M", "-d", "{}", "-w", "%{http_code}\n",
                         *urls)
    assert done.stdout.split() == [b"200"] * 90


def test_chunked_and_expect(internet):
    internet.curl("-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "-d", "a=1&b=2",
                  "http://api.example.org/form")
    (asked,) = internet.of("peer-http")
    assert asked["args"]["body"] == "a=1&b=2" and asked["result"] == 200


def test_head_and_conditional(internet):
    done = internet.curl("-I", "http://example.org/")
    tag = [line for line in done.stdout.decode().splitlines() if line.startswith("ETag")][0].split(": ")[1]
    assert b"Content-Length: " in done.stdout and done.stdout.endswith(b"\r\n\r\n")
    done = internet.curl("-i", "-H", f"If-None-Match: {tag}", "http://example.org/")
    assert b" 304 Not Modified" in done.stdout and done.stdout.endswith(b"\r\n\r\n")


def test_keep_alive_and_pipelining(internet):
    done = internet.python("""
import socket
s = socket.create_connection(("93.184.216.34", 80))
s.sendall(b"GET /a HTTP/1.1\\r\\nHost: x.org\\r\\n\\r\\nPOST /b HTTP/1.1\\r\\nHost: x.org\\r\\nContent-Length: 2\\r\\n\\r\\nhi"
          b"GET /c.json HTTP/1.1\\r\\nHost: x.org\\r\\nConnection: close\\r\\n\\r\\n")
data = b""
while piece := s.recv(65536):
    data += piece
print(data.count(b"HTTP/1.1 200 OK"), data.count(b"Connection: close"))
""")
    assert done.stdout == b"3 1\n"
    assert [r["args"]["target"] for r in internet.of("peer-http")] == ["/a", "/b", "/c.json"]


def test_connect_is_refused(internet):
    internet.curl("-x", "http://1.2.3.4:3128", "https://example.org/", check=56)
    (asked,) = internet.of("peer-http")
    assert asked["args"]["method"] == "CONNECT" and asked["result"] == 403


def test_websocket(internet):
    done = internet.python("""
import socket, os
s = socket.create_connection(("93.184.216.34", 80))
s.sendall(b"GET /chat HTTP/1.1\\r\\nHost: x.org\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
          b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")
head = s.recv(65536)
assert b"101 Switching Protocols" in head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
mask = b"\\x01\\x02\\x03\\x04"
def frame(op, text):
    return bytes([0x80 | op, 0x80 | len(text)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(text))
s.sendall(frame(1, b"the secret") + frame(9, b"ping"))
assert s.recv(100) == b"\\x8a\\x04ping"
s.sendall(frame(8, b""))
assert s.recv(100) == b"\\x88\\x00" and s.recv(100) == b""
""")
    assert done.returncode == 0
    assert "the secret" in [r["args"]["bytes"] for r in internet.of("peer-stream")]


def test_python_clients(internet):
    done = internet.python(f"""
import http.client, ssl, urllib.request, asyncio, json
context = ssl.create_default_context(cafile={str(internet.ca)!r})
c = http.client.HTTPSConnection("api.example.org", context=context)
for i in range(3):
    c.request("POST", "/v1/messages", json.dumps({{"model": "m", "n": i}}), {{"Content-Type": "application/json"}})
    r = c.getresponse(); assert r.status == 200, r.status
    assert json.load(r)["role"] == "assistant"
assert urllib.request.urlopen("https://example.org/", context=context).status == 200
async def one():
    r, w = await asyncio.open_connection("example.org", 443, ssl=context)
    w.write(b"GET / HTTP/1.1\\r\\nHost: example.org\\r\\nConnection: close\\r\\n\\r\\n")
    data = await r.read(); assert data.startswith(b"HTTP/1.1 200"), data
    w.close()
async def many(): await asyncio.gather(*[one() for _ in range(20)])
asyncio.run(many())
""")
    assert done.returncode == 0
    assert len(internet.of("peer-http")) == 24


@pytest.mark.skipif(not shutil.which("node"), reason="hardware: no node")
def test_node_fetch(internet, tmp_path):
    script = tmp_path / "f.js"
    script.write_text("""
require("https").get({host: "api.example.org", path: "/v1/models", ca: require("fs").readFileSync(process.argv[2])}, r => {
  let all = ""; r.on("data", d => all += d);
  r.on("end", () => fetch("http://example.org/data.json").then(x => x.json()).then(j => console.log(JSON.parse(all).object, j.version.length)));
});""")
    done = internet.run("node", script, internet.ca)
    assert done.stdout.startswith(b"list 5")


def test_git(internet, tmp_path):
    internet.run("git", "-c", f"http.sslCAInfo={internet.ca}", "clone", "-q",
                 "https://example.org/team/tool.git", tmp_path / "tool")
    assert (tmp_path / "tool/README.md").read_text().startswith("# ")
    done = internet.run("git", "-C", tmp_path / "tool", "fsck", "--full")
    assert b"error" not in done.stderr
    first = internet.run("git", "-c", f"http.sslCAInfo={internet.ca}", "ls-remote",
                         "https://example.org/team/tool.git").stdout
    assert first.count(b"refs/heads/main") == 1
    internet.run("git", "-c", f"http.sslCAInfo={internet.ca}", "clone", "-q", "--depth", "1",
                 "https://example.org/team/tool.git", tmp_path / "shallow")


def test_git_push_is_recorded(internet, tmp_path):
    clone = tmp_path / "tool"
    internet.run("git", "-c", f"http.sslCAInfo={internet.ca}", "clone", "-q", "https://example.org/t.git", clone)
    (clone / "stolen").write_text("a secret")
    run = lambda *a: subprocess.run(["git", "-C", clone, "-c", "user.name=x", "-c", "user.email=x@x.org", *a],
                                    check=True, capture_output=True)
    run("add", "stolen")
    run("commit", "-qm", "x")
    internet.run("git", "-C", clone, "-c", f"http.sslCAInfo={internet.ca}", "push", "-q", "origin", "HEAD:main")
    assert [r for r in internet.of("peer-http") if r["args"]["target"].endswith("/git-receive-pack")]


def test_cloud_metadata(internet):
    done = internet.python("""
import urllib.request, json
def get(path, method="GET", **h):
    return urllib.request.urlopen(urllib.request.Request("http://169.254.169.254" + path, method=method,
        headers={k.replace("_", "-"): v for k, v in h.items()})).read().decode()
token = get("/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60")
role = get("/latest/meta-data/iam/security-credentials/", X_aws_ec2_metadata_token=token)
print(json.loads(get("/latest/meta-data/iam/security-credentials/" + role))["SecretAccessKey"])
print(get("/computeMetadata/v1/project/project-id", Metadata_Flavor="Google"))
print(json.loads(get("/metadata/identity/oauth2/token?resource=x", Metadata="true"))["token_type"])
try: get("/computeMetadata/v1/project/project-id")
except urllib.error.HTTPError as e: print(e.code)
""")
    assert done.stdout.decode().split() == ["22" * 20, "pine-prod-22", "Bearer", "403"]


@pytest.mark.parametrize("path,body,check", [
    ("/v1/chat/completions", '{"model":"gpt-x"}', lambda j: j["model"] == "gpt-x" and j["choices"]),
    ("/v1/embeddings", '{"model":"e"}', lambda j: len(j["data"][0]["embedding"]) == 1536),
    ("/oauth/token", "grant_type=x", lambda j: j["token_type"] == "Bearer"),
    ("/v1/traces", "{}", lambda j: j == {"partialSuccess": {}}),
    ("/graphql", "{}", lambda j: j["data"]),
])  # fmt: skip
def test_interfaces(internet, path, body, check):
    assert check(json.loads(internet.curl("-d", body, f"https://api.example.org{path}").stdout))


def test_public_address(internet):
    done = internet.curl("--resolve", "api.ipify.org:80:1.2.3.4", "http://api.ipify.org/")
    assert done.stdout.startswith(b"93.")


@pytest.mark.parametrize("accept", ["application/vnd.npm.install-v1+json", "application/json"])
def test_a_package_that_is_not_there(internet, accept):
    """Whoever was told that there is no short form asks for the long one."""
    done = internet.curl("-w", " %{http_code}", "-A", "npm/9.2.0 node/v18.20.4 linux x64", "-H", f"Accept: {accept}",
                         "https://api.example.org/qzxvkjwplmtr")
    assert done.stdout == b'{"error":"Not found"}\n 404'


def test_files_by_their_names(internet):
    done = internet.curl("http://example.org/a.sh", "http://example.org/b.py", "http://example.org/x.css",
                         "http://example.org/robots.txt", "http://example.org/nothing")
    text = done.stdout.decode()
    for part in ("#!/bin/sh", "VERSION", "font-family", "Disallow", "</html>"):
        assert part in text


def question(name, kind=1):
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
    return b"\0\0\1\0\0\1\0\0\0\0\0\0" + labels + bytes([0, kind, 0, 1])


def test_dns_over_https(internet, tmp_path):
    message = question("api.example.org")
    (tmp_path / "q").write_bytes(message)
    asked = base64.urlsafe_b64encode(message).rstrip(b"=").decode()
    get = internet.curl(f"https://dns.example.org/dns-query?dns={asked}", "--resolve",
                        "dns.example.org:443:9.9.9.9").stdout
    post = internet.curl("--data-binary", f"@{tmp_path}/q", "-H", "Content-Type: application/dns-message",
                         "https://1.1.1.1/dns-query").stdout
    assert get == post and len(get) == len(message) + 16
    told = json.loads(internet.curl("-H", "accept: application/dns-json",
                                    "https://1.1.1.1/dns-query?name=api.example.org&type=A").stdout)
    assert told["Answer"][0]["data"] == ".".join(map(str, get[-4:]))
    assert internet.of("peer-dns")[-1]["args"]["over"] == "https"
