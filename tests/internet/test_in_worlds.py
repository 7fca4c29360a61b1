"""Programs inside of an aquarium meet it: they trust its certificates, and are twins."""
import importlib.util
import json
import shutil
import subprocess

import pytest
from private import BUILD

pytestmark = pytest.mark.large

PROGRAMS = {
    "curl": "curl -sS -o /dev/null https://example.org/",
    "curl-1.1": "curl -sS --http1.1 -o /dev/null -d a=1 https://api.example.org/v1/things",
    "python": "python3 -c \"import urllib.request as u; print(u.urlopen('https://example.org/').status)\"",
    "threads": "python3 -c \"\nfrom concurrent.futures import ThreadPoolExecutor as P\nimport urllib.request as u\n"
               "with P(4) as p: print(list(p.map(lambda i: u.urlopen(f'https://api.example.org/v1/{i}').status, range(8))))\"",
    "node": "node -e \"fetch('https://api.example.org/v1/models').then(r => r.json()).then(j => console.log(j.object))\"",
    "git": "cd /tmp && git clone -q https://example.org/team/tool.git && git -C tool log --format=%s",
    "refused": "curl -sS http://nowhere.example/; curl -sS http://93.184.216.34:81/; true",
}  # fmt: skip


def run(tmp_path, command, side):
    done = subprocess.run(
        [BUILD / "aquarium", "run", "--quarantine", "--seed", "sea", "--start", "2026-05-04T09:00:00Z", "--world", side,
         "--resolve", "example.org,api.example.org", "--json", "--", "sh", "-c", command],
        cwd=tmp_path, capture_output=True, timeout=300)  # fmt: skip
    return done, json.loads(done.stdout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_twins_over_the_internet(tmp_path, name):
    program = PROGRAMS[name].split()[0]
    if program != "cd" and not shutil.which(program):
        pytest.skip(f"hardware: no {program}")
    results = [run(tmp_path, PROGRAMS[name], side) for side in "AAB"]
    for done, told in results:
        assert told["exit_status"] == 0, done.stderr[-2000:]
        assert told["complete"], done.stderr[-2000:]
        assert told["repeatable"], told["not_repeatable"]
    digests = [told["canonical_digest"] for _, told in results]
    assert digests[0] == digests[1]
    if name != "git":  # its repository is of other words in the other world
        assert digests[0] == digests[2]


INSTALLERS = {
    "pip": "cd /tmp && /usr/bin/python3 -m pip --disable-pip-version-check install -q --index-url https://example.org/simple --target t 'requests==2.31.0' && "
           "PYTHONPATH=t /usr/bin/python3 -c 'import requests; print(requests.__version__, bool(requests.get))'",
    "npm": "mkdir /tmp/a && cd /tmp/a && npm --registry https://api.example.org/ --no-fund --no-audit install left-pad@1 >/dev/null && "
           "node -e \"console.log(require('left-pad/package.json').version, typeof require('left-pad').x)\"",
}  # fmt: skip


@pytest.mark.parametrize("name", INSTALLERS)
def test_installers_go_on(tmp_path, name):
    """A package's later stages run: what it needs is there, and the record says whose it was."""
    if not (shutil.which("npm") if name == "npm" else importlib.util.find_spec("pip")):
        pytest.skip(f"hardware: no {name}")
    events = tmp_path / "events"
    done = subprocess.run(
        [BUILD / "aquarium", "run", "--quarantine", "--seed", "sea", "--start", "2026-05-04T09:00:00Z", "--resolve", "example.org,api.example.org",
         "--events", events, "--quiet", "--", "sh", "-c", INSTALLERS[name]],
        cwd=tmp_path, capture_output=True, timeout=300)  # fmt: skip
    assert done.stdout.split() == ([b"2.31.0", b"False"] if name == "pip" else [done.stdout.split()[0], b"function"]), done.stderr[-2000:]
    served = [e for e in map(json.loads, events.read_text().splitlines()) if e.get("op") == "peer-http" and "served" in e["args"]]
    assert len(served) == 1 and served[0]["args"]["answer"] == ("index-file" if name == "pip" else "package-file")


def test_the_cloud_knows_the_address(tmp_path):
    """The metadata service and the machine agree on where it is."""
    done, _ = run(tmp_path, "curl -sS http://169.254.169.254/latest/meta-data/local-ipv4; echo; "
                  "curl -sS http://169.254.169.254/latest/meta-data/hostname; echo; hostname -I", "A")
    said, name, *own = done.stderr.decode().split("\n")[:3]
    assert said == own[0].split()[0] and name.startswith("ip-" + said.replace(".", "-") + ".")


def test_secrets_of_the_cloud_are_decoys(tmp_path):
    done, told = run(tmp_path, "curl -sS http://169.254.169.254/latest/meta-data/iam/security-credentials/x", "A")
    shown = subprocess.run([BUILD / "aquarium", "decoys", "show", "--seed", "sea", "--json"], capture_output=True, check=True)
    values = {d["name"]: d["value"] for d in json.loads(shown.stdout)["decoys"]}
    assert values["aws.role_secret_access_key"].encode() in done.stderr
