"""Package indexes: what installers ask for is there, can be installed and imported, and is nobody's but the world's."""
import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest
from private import Internet, authorities, document, internet, twins  # noqa: F401

HOST = "index.example.org"
PYTHON = "/usr/bin/python3"
NODE = "npm/10.2.4 node/v18.20.4 linux x64"
CARGO = "cargo/1.70.0"


@pytest.fixture
def index(tmp_path, authorities):  # noqa: F811
    return Internet(tmp_path, document(*authorities["A"], names=[HOST]))


def get(net, path, *more, host=HOST):
    """Status and body."""
    done = net.curl("-w", "\n%{http_code}", *more, "--connect-to", f"{host}:443:93.184.216.34:443", f"https://{host}{path}")
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def statuses(net, asked, agent):
    urls = [x for path in asked for x in ("-o", "/dev/null", f"http://{HOST}{path}")]
    done = net.curl("-w", "%{http_code}\n", "-A", agent, "--connect-to", f"{HOST}:80:93.184.216.34:80", *urls)
    return dict(zip(asked, map(int, done.stdout.split())))


def ask(net, *paths, **more):
    """Bodies of several, which must be there."""
    return [body for status, body in (get(net, p, **more) for p in paths) if status == 200]


# ---- by hand ----

def test_python_in_three_forms(index):
    status, body = get(index, "/simple/requests/", "-H", "Accept: application/vnd.pypi.simple.v1+json, text/html;q=0.1")
    told = json.loads(body)
    assert status == 200 and told["name"] == "requests" and "2.31.0" in told["versions"] and len(told["files"]) == len(told["versions"])
    (file,) = (f for f in told["files"] if f["filename"] == "requests-2.31.0-py3-none-any.whl")
    _, html = get(index, "/simple/requests/")
    assert f'{file["url"]}#sha256={file["hashes"]["sha256"]}'.encode() in html and html.count(b"<a ") == len(told["files"])
    _, wheel = get(index, file["url"].removeprefix(f"https://{HOST}"))
    assert hashlib.sha256(wheel).hexdigest() == file["hashes"]["sha256"] and len(wheel) == file["size"]
    about = json.loads(get(index, "/pypi/requests/json")[1])
    assert about["info"]["name"] == "requests" and about["releases"]["2.31.0"][0]["digests"] == file["hashes"]
    one = json.loads(get(index, "/pypi/requests/2.31.0/json")[1])
    assert one["info"]["version"] == "2.31.0" and one["urls"][0]["url"] == file["url"]
    status, _ = get(index, "/simple/Requests_X")
    assert status == 301


def test_a_wheel_is_one(index):
    (wheel,) = ask(index, "/packages/00/00/0/python_dateutil-2.9.0-py3-none-any.whl")
    z = zipfile.ZipFile(io.BytesIO(wheel))
    assert z.testzip() is None and "dateutil/__init__.py" in z.namelist()
    for row in z.read("python_dateutil-2.9.0.dist-info/RECORD").decode().splitlines():
        path, digest, size = row.split(",")
        if digest:
            sum_ = base64.urlsafe_b64encode(hashlib.sha256(z.read(path)).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={sum_}" and int(size) == len(z.read(path))


@pytest.mark.parametrize("name", ["express", "@modelcontextprotocol/sdk"])
def test_node(index, name):
    path = "/" + name.replace("/", "%2f")
    short = json.loads(get(index, path, "-A", NODE, "-H", "Accept: application/vnd.npm.install-v1+json; q=1.0, */*")[1])
    whole = json.loads(get(index, path, "-A", NODE)[1])
    latest = short["dist-tags"]["latest"]
    assert short["name"] == whole["name"] == name and latest in short["versions"] and short["versions"].keys() == whole["versions"].keys()
    assert "description" in whole["versions"][latest] and "description" not in short["versions"][latest] and latest in whole["time"]
    dist = short["versions"][latest]["dist"]
    assert dist == whole["versions"][latest]["dist"]
    _, tarball = get(index, dist["tarball"].removeprefix(f"https://{HOST}"))
    assert hashlib.sha1(tarball).hexdigest() == dist["shasum"]
    assert dist["integrity"] == "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    files = tarfile.open(fileobj=io.BytesIO(tarball))
    assert json.load(files.extractfile("package/package.json"))["version"] == latest


def test_rust(index):
    (body,) = ask(index, "/config.json")
    assert json.loads(body)["dl"] == f"https://{HOST}/crates"
    status, rows = get(index, "/se/rd/serde", "-A", CARGO)
    rows = {row["vers"]: row for row in map(json.loads, rows.splitlines())}
    assert status == 200 and rows["1.0.5"]["name"] == "serde"
    (crate,) = ask(index, "/crates/serde/1.0.5/download")
    assert hashlib.sha256(crate).hexdigest() == rows["1.0.5"]["cksum"]
    assert "serde-1.0.5/src/lib.rs" in tarfile.open(fileobj=io.BytesIO(crate)).getnames()
    assert json.loads(get(index, "/api/v1/crates/serde")[1])["crate"]["id"] == "serde"
    assert get(index, "/rd/se/serde", "-A", CARGO)[0] == 404  # not where it lies


def test_go(index):
    module = "/github.com/!burnt!sushi/toml"
    listed, info, mod, archive = ask(index, *(f"{module}/@v/{x}" for x in ("list", "v1.2.1.info", "v1.2.1.mod", "v1.2.1.zip")))
    assert b"v1.2.1\n" in listed and json.loads(info)["Version"] == "v1.2.1" and mod.startswith(b"module github.com/BurntSushi/toml\n")
    assert "github.com/BurntSushi/toml@v1.2.1/go.mod" in zipfile.ZipFile(io.BytesIO(archive)).namelist()
    (latest,) = ask(index, f"{module}/@latest")
    assert json.loads(latest)["Version"].encode() + b"\n" in listed
    none = ("/github.com/pkg/@v/list", "/github.com/a/tool/part/@v/list", "/github.com/a/tool/@v/v2.0.0.info",
                 "/github.com/a/tool/v2/@v/v1.0.0.info", "/github.com/A/tool/@v/list", "/tool/@v/list")
    assert statuses(index, [*none, "/github.com/a/tool/v2/@v/v2.0.0.info"], "Go") == {
        **dict.fromkeys(none, 404), "/github.com/a/tool/v2/@v/v2.0.0.info": 200}


DRAWN = ["qzxvkjwplmtr", "x7k2q9p1m4", "3f9a1c77b2e84d05", "aaaaaaaaaa", "wqpfjkzbvx-hgqxz", "a" * 51, "123456", "jxqkvzwtgpfh"]
NAMED = ["numpy", "left-pad", "scikit-learn", "beautifulsoup4", "better-sqlite3", "tqdm", "kafkajs", "h11"]


def test_names_that_nobody_gave(index):
    """They are not there, in no index; names that people give are."""
    def places(name):
        return {"curl": [f"/simple/{name}/", f"/pypi/{name}/json", f"/github.com/tools/{name}/@v/list"], NODE: [f"/{name}"],
                CARGO: [f"/{name[:2]}/{name[2:4]}/{name}"]}

    for agent in ("curl", NODE, CARGO):
        asked = statuses(index, [p for name in DRAWN for p in places(name)[agent]], agent)
        assert set(asked.values()) == {404}, asked
        asked = statuses(index, [p for name in NAMED for p in places(name)[agent] if len(name) > 3 or agent != CARGO], agent)
        assert set(asked.values()) == {200}, asked


NO_NAMES = ["/simple/-a/", "/simple/a%00b/", "/simple/%2e%2e/", "/simple/a%22b/", "/simple//", "/pypi/json", "/pypi//json",
                                  "/packages/a-.whl", "/packages/a--py3-none-any.whl", "/packages/-1.0-py3-none-any.whl",
                                  "/packages/a-1.0%2f..-py3-none-any.whl", "/tool/-/tool-.tgz", "/tool/-/other-1.0.0.tgz", "/@/-/a.tgz",
                                  "/crates/a/../download", "/crates/tool/" + "1" * 33 + "/download", "/@latest"]


def test_what_is_no_name(index):
    asked = statuses(index, ["/", *NO_NAMES], "curl")
    assert {a["args"]["answer"] for a in index.of("peer-http") if a["result"] == 200} <= {"page", "page-other"}, asked
    assert not any("served" in a["args"] for a in index.of("peer-http"))


# ---- which world ----

ALL = ["/simple/tool/", "/pypi/tool/json", "/packages/tool-1.2.0-py3-none-any.whl", "/tool/-/tool-1.2.0.tgz", "/crates/tool/1.2.0/download",
       "/example.org/tool/@v/v1.2.0.zip"]


def test_both_worlds_have_the_same_and_other_seeds_have_others(twins, tmp_path, authorities):
    """It is code that the program runs: in A and B it must not differ, nor what clients keep of the reply."""
    (tmp_path / "C").mkdir()
    other = Internet(tmp_path / "C", document(*authorities["A"], pair="44" * 32))
    for path in ALL:
        a, b, again, c = (get(net, path, "-i", "--http1.1") for net in (*twins, twins[0], other))
        kept = [[line for line in x[1].split(b"\r\n") if not line.startswith(b"Server: ")] for x in (a, b, again, c)]
        assert a[0] == 200 and kept[0] == kept[1] == kept[2] != kept[3], path
    early, late = (twins[0].curl("http://example.org/packages/tool-1.2.0-py3-none-any.whl", start=s * 10**9).stdout for s in (1767225600, 1798761600))
    assert early == late  # whatever the clock says


def test_a_name_that_carries_a_decoy_is_nobodys(twins):
    for net, value in zip(twins, ("pine-prod-22", "pine-prod-33")):
        assert get(net, f"/simple/{value}/")[0] == 404 and get(net, f"/{value}-tools", "-A", NODE)[0] == 404


def test_the_record_says_that_it_is_ours(index):
    """Nobody may take it for the package's own: the record has the rule, and the digest of what was handed out."""
    _, wheel = get(index, "/packages/a/tool-1.2.0-py3-none-any.whl")
    (asked,) = index.of("peer-http")
    assert asked["args"]["answer"] == "index-file" and asked["args"]["served"] == hashlib.sha256(wheel).hexdigest()
    get(index, "/packages/a/tool-1.2.0-py3-none-any.whl", "-X", "GET", "-d", "a body")
    (asked,) = index.of("peer-http")
    assert asked["args"]["body"] == "a body" and asked["result"] == 200


# ---- real clients ----

def has(net, *command):
    """It may lie where only its owner can run it."""
    if not shutil.which(command[0]) or net.run(*command, check=None).returncode != 0:
        pytest.skip(f"hardware: no {command[0]} that everybody may run")


def test_pip(index, tmp_path):
    has(index, PYTHON, "-m", "pip", "--version")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--cert", index.ca]
    at = ["--index-url", f"https://{HOST}/simple", "--target", tmp_path / "there", "--no-cache-dir", "-q"]
    index.run(*pip, "install", *at, "requests==2.31.0", "PyYAML>=6,<7", "fastmcp~=0.4.1", "numpy")
    code = ("import requests, yaml, numpy, sys; from fastmcp.server.auth import Thing, SomeError; print(requests.__version__)\n"
            "app = Thing('x')\n@app.tool()\ndef f(): return 3\nprint(f(), issubclass(SomeError, Exception), 'fastmcp.server' in sys.modules)\n"
            "class Mine(yaml.Loader): pass\nassert not list(requests.get('x').json()) and Mine()")
    done = subprocess.run([PYTHON, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path / "there")}, capture_output=True, text=True)
    assert done.stdout.split() == ["2.31.0", "3", "True", "True"], done.stderr
    done = index.run(*pip, "download", *at[:2], "-q", "--no-cache-dir", "-d", tmp_path / "here", "qzxvkjwplmtr", check=1)
    assert b"No matching distribution found" in done.stderr


def test_npm(index, tmp_path):
    has(index, "npm", "--version")
    (tmp_path / "app").mkdir()
    npm = ["env", f"NODE_EXTRA_CA_CERTS={index.ca}", "npm", "--prefix", tmp_path / "app", "--registry", f"https://{HOST}/", "--no-fund",
           "--no-update-notifier", "--fetch-retries", "0"]
    index.run(*npm, "install", "express@^4.18.2", "@types/node@20", "left-pad", "lodash@4.17.2")
    lock = json.loads((tmp_path / "app/package-lock.json").read_text())["packages"]
    assert lock["node_modules/lodash"]["version"] == "4.17.2" and lock["node_modules/express"]["version"].startswith("4.")
    code = "const e = require('express'), app = e(); app.get('/', () => 1); class A extends e.B {} new A(); require('lodash/fp'); console.log(typeof e, `${e.x}`)"
    done = subprocess.run(["node", "-e", code], cwd=tmp_path / "app", capture_output=True, text=True)
    assert done.stdout == "function \n", done.stderr
    done = index.run(*npm, "install", "qzxvkjwplmtr", check=1)
    assert b"E404" in done.stderr


def test_cargo(index, tmp_path):
    home = os.environ.get("HOME")
    cargo = ["env", "-C", tmp_path, f"PATH={os.path.dirname(shutil.which('cargo') or '')}:{os.environ['PATH']}", f"RUSTUP_HOME={os.environ.get('RUSTUP_HOME', f'{home}/.rustup')}",
             f"CARGO_HTTP_CAINFO={index.ca}", f"CARGO_HOME={tmp_path}/cargo", "cargo"]
    if not shutil.which("cargo") or index.run(*cargo, "--version", check=None).returncode != 0:
        pytest.skip("hardware: no cargo that everybody may run")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text("fn main() { println!(\"{}\", serde::VERSION); }\n")
    (tmp_path / "Cargo.toml").write_text("[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n"
                                         "serde = { version = \"1.0.5\", features = [\"derive\"] }\nregex = \"=1.9.2\"\n")
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo/config.toml").write_text(f"[source.crates-io]\nreplace-with = \"x\"\n[source.x]\nregistry = \"sparse+https://{HOST}/\"\n")
    index.run(*cargo, "fetch", timeout=300)
    locked = (tmp_path / "Cargo.lock").read_text()
    assert 'name = "regex"\nversion = "1.9.2"' in locked
    done = index.run(*cargo, "check", "--offline", "-q", timeout=300, check=None)
    assert done.returncode == 0, done.stderr.decode()


def test_go_downloads(index, tmp_path):
    has(index, "go", "version")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/go.mod").write_text("module app\n\ngo 1.18\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n\tgolang.org/x/sys v0.15.0\n"
                                         "\tgithub.com/Masterminds/semver/v3 v3.2.1\n)\n")
    go = ["env", "-C", tmp_path / "app", f"SSL_CERT_FILE={index.ca}", f"GOPROXY=https://{HOST}", "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
          f"GOPATH={tmp_path}/go", f"GOCACHE={tmp_path}/cache", "go"]
    index.run(*go, "mod", "download", timeout=300)
    assert (tmp_path / "go/pkg/mod/github.com/!masterminds/semver/v3@v3.2.1/semver.go").exists()
    done = index.run(*go, "list", "-m", "github.com/nobody/qzxvkjwplmtr@latest", check=1, timeout=300)
    assert b"not found" in done.stderr.lower()
