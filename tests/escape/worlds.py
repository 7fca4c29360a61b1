"""What the tests of worlds share: run_world, and the program itself in its default world, as root and as a plain
user, and what they say."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DRIVER = pathlib.Path(os.environ.get("AQUARIUM", ROOT / "build/aquarium")).parent / "tests/escape/run_world"
PLAIN = 12345  # a user who exists nowhere
LIMITS = re.findall(r'AQ_LIMIT\(\w+, "([^"]+)"', (ROOT / "src/model/limits.def").read_text())


class Worlds:
    """Runs commands in worlds, as root or as a plain user."""

    whole = False  # is there a machine around the command?

    def __init__(self, place, user):
        self.place, self.user = place, user
        place.mkdir(exist_ok=True)
        self.driver = place / f"driver-{os.getpid()}-{user}"
        shutil.copy(DRIVER, self.driver)
        open_to_others(place)
        place.chmod(0o777)

    def drop(self):
        """What makes a command the plain user's."""
        drop = ["setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups"]
        return drop if self.user == "plain" and os.geteuid() == 0 else []

    def command(self, *command, limits=(), options=()):
        args = [str(self.driver), "--json", str(self.place / "out.json"), *options]
        for limit in limits:
            args += ["--limit", limit]
        return self.drop() + args + ["--", *command]

    def run(self, *command, limits=(), options=(), input=b"", timeout=60):
        """(what it said as an object, standard output); the object is None when there was no run."""
        out = self.place / "out.json"
        out.unlink(missing_ok=True)
        done = subprocess.run(self.command(*command, limits=limits, options=options), input=input,
                              timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.stderr = done.stderr.decode(errors="replace")
        self.status = done.returncode
        return json.loads(out.read_text()) if out.exists() else None, done.stdout.decode(errors="replace")

    def python(self, code, *args, **more):
        said, out = self.run("/usr/bin/python3", "-c", code, *args, **more)
        assert said is not None, (self.status, self.stderr)
        return said, out


class Product(Worlds):
    """The same with the program as people use it: a whole machine, its home, its internet. What a command prints,
    standard error too, is its output."""

    whole = True

    def __init__(self, place, user):
        self.place, self.user = place, user
        self.mark = f"product-{os.getpid()}-{user}"
        self.program = place / self.mark / "aquarium"
        self.program.parent.mkdir()
        (place / "cwd").mkdir()
        for program in (PROGRAM, PROGRAM.with_name("aquarium-internet")):
            shutil.copy(program, self.program.parent)
        open_to_others(place)

    def command(self, *command, limits=(), options=("--quiet",)):
        args = [str(self.program), "run", "--quarantine", "--stdin", "--cwd", "/tmp", *options]
        if limits:
            args += ["--limit", ",".join(limits)]
        return self.drop() + args + ["--", *command]

    def run(self, *command, limits=(), options=(), input=b"", timeout=60):
        done = subprocess.run(self.command(*command, limits=limits, options=["--json", *options]), input=input,
                              timeout=timeout, cwd=self.place / "cwd", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.status, self.stderr = done.returncode, done.stderr.decode(errors="replace")
        if not done.stdout:
            return None, ""
        report = json.loads(done.stdout)
        said = report["observation"] | {"containment": report["containment"]}
        if said["exit"]["kind"] == "budget":
            said["limit"] = LIMITS[said["exit"]["value"]]
        return said, self.stderr


@pytest.fixture(params=["root", "plain"])
def product(request, tmp_path):
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    return Product(tmp_path, request.param)


@pytest.fixture(params=["root", "plain", "root, default world", "plain, default world"])
def everywhere(request, tmp_path):
    """Without a machine, and with all that the program makes up for a stranger."""
    user, *whole = request.param.split(", ")
    if user == "root" and os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    return (Product if whole else Worlds)(tmp_path, user)


@pytest.fixture(params=["root", "plain"])
def worlds(request, tmp_path):
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    return Worlds(tmp_path, request.param)


@pytest.fixture
def as_root(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    return Worlds(tmp_path, "root")
