"""Programs inside of an aquarium meet it: they trust its certificates, and are twins."""
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
    """A run in which the host's clock did not have to decide; on a busy machine that takes a few."""
    for _ in range(20):
        done = subprocess.run(
            [BUILD / "aquarium", "run", "--quarantine", "--seed", "sea", "--start", "2026-05-04T09:00:00Z", "--world", side,
             "--resolve", "example.org,api.example.org", "--json", "--", "sh", "-c", command],
            cwd=tmp_path, capture_output=True, timeout=300)  # fmt: skip
        told = json.loads(done.stdout)
        if told["repeatable"]:
            break
    return done, told


@pytest.mark.parametrize("name", PROGRAMS)
def test_twins_over_the_internet(tmp_path, name):
    program = PROGRAMS[name].split()[0]
    if program != "cd" and not shutil.which(program):
        pytest.skip(f"hardware: no {program}")
    results = [run(tmp_path, PROGRAMS[name], side) for side in "AAB"]
    for done, told in results:
        assert told["exit_status"] == 0, done.stderr[-2000:]
        assert told["complete"], done.stderr[-2000:]
    digests = [told["canonical_digest"] for _, told in results]
    assert digests[0] == digests[1]
    if name != "git":  # its repository is of other words in the other world
        assert digests[0] == digests[2]


def test_secrets_of_the_cloud_are_decoys(tmp_path):
    done, told = run(tmp_path, "curl -sS http://169.254.169.254/latest/meta-data/iam/security-credentials/x", "A")
    shown = subprocess.run([BUILD / "aquarium", "decoys", "show", "--seed", "sea", "--json"], capture_output=True, check=True)
    values = {d["name"]: d["value"] for d in json.loads(shown.stdout)["decoys"]}
    assert values["aws.prod_secret_access_key"].encode() in done.stderr
