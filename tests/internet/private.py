"""A world with its own authority, and a network in which aquarium-internet answers at every address."""
import json
import os
import pathlib
import subprocess
import time

import pytest

from conftest import PROGRAM, SANITIZER

BUILD = PROGRAM.parent
# Noon of today: clients outside of a world look at the real clock.
START = (int(time.time()) // 86400 * 86400 + 43200) * 10**9


def authority(folder, name):
    """A P-256 authority made by the openssl program: certificate and key in PEM."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key],
                   check=True, capture_output=True)
    subprocess.run(["openssl", "req", "-x509", "-new", "-key", key, "-sha256", "-days", "3650",
                    "-subj", f"/C=US/O={name} Trust Services/CN={name} Root R1", "-out", cert,
                    "-addext", "keyUsage=critical,keyCertSign,cRLSign"],
                   check=True, capture_output=True)
    return cert.read_text(), key.read_text()


def document(certificate, key, own="22", **more):
    return {
        "schema": "aquarium/internet/v1", "pair": "11" * 32, "own": own * 32,
        "facts": {"host.name": "pine-ws1201", "host.domain": "pine.io", "net.address": "10.0.2.15/24",
                  "net.gateway": "10.0.2.2"},
        "decoys": {"aws.role_access_key_id": "ASIA" + own * 8, "aws.role_secret_access_key": own * 20,
                   "aws.account_id": "1234567890" + own, "gcp.project_id": "pine-prod-" + own},
        "names": ["api.example.org", "example.org", "*.wild.example.net"],
        "ca_certificate": certificate, "ca_key": key, **more,
    }  # fmt: skip


class Internet:
    """Runs commands in a network of its own whose internet is ours."""

    def __init__(self, folder, world):
        self.folder = folder
        self.world = folder / "world.json"
        self.world.write_text(json.dumps(world, sort_keys=True, separators=(",", ":")))
        self.ca = folder / "ca.pem"
        self.ca.write_text(world["ca_certificate"])
        self.records = []
        self.hello = {}

    def run(self, *command, start=START, advance=0, check=0, timeout=120, input=None):
        out = self.folder / "records.jsonl"
        env = {**os.environ, "HOME": str(self.folder), **SANITIZER}
        done = subprocess.run(
            [BUILD / "tests/internet/internet_keeper", BUILD / "aquarium-internet", self.world, out,
             str(start), str(advance), *map(str, command)],
            env=env, capture_output=True, timeout=timeout, input=input)  # fmt: skip
        if done.returncode == 77:
            pytest.skip("hardware: this host lets nobody make a network namespace")
        assert b"Sanitizer" not in done.stderr, done.stderr.decode()
        if check is not None:
            assert done.returncode == check, (command, done.returncode, done.stdout[-3000:],
                                              done.stderr[-3000:])
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        self.hello, self.records = lines[0], lines[1:]
        return done

    def python(self, text, **more):
        script = self.folder / "script.py"
        script.write_text(text)
        return self.run("/usr/bin/python3", script, **more)

    def curl(self, *arguments, **more):
        """curl with our authority, for api.example.org at one of our addresses."""
        return self.run("curl", "-sS", "--cacert", self.ca, "--max-time", "60", *arguments, **more)

    def of(self, op):
        return [r for r in self.records if r["op"] == op]


@pytest.fixture(scope="session")
def authorities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authorities")
    return {side: authority(folder, name) for side, name in (("A", "Larch"), ("B", "Aspen"))}


@pytest.fixture
def internet(tmp_path, authorities):
    return Internet(tmp_path, document(*authorities["A"]))


@pytest.fixture
def twins(tmp_path, authorities):
    """The two worlds of a seed: the same but for what is their own."""
    for side in "AB":
        (tmp_path / side).mkdir()
    return (Internet(tmp_path / "A", document(*authorities["A"], own="22")),
            Internet(tmp_path / "B", document(*authorities["B"], own="33")))
