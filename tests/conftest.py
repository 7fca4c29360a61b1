"""What the Python-driven tests share: the program, a state folder of their own, the test data."""
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("AQUARIUM", ROOT / "build/aquarium"))


# What the environment says to a sanitised program (tools/test runs these tests over one as well).
SANITIZER = {name: os.environ[name] for name in
             ("ASAN_OPTIONS", "UBSAN_OPTIONS", "ASAN_SYMBOLIZER_PATH") if name in os.environ}


@functools.lru_cache(maxsize=None)
def schema(name):
    """The validator of one of docs/formats; they refer to one another by file name."""
    store = {}
    for path in (ROOT / "docs/formats").glob("*.schema.json"):
        content = json.loads(path.read_text())
        assert content["$id"].endswith("/" + path.name)
        store[content["$id"]] = content
        if path.name == name:
            jsonschema.Draft202012Validator.check_schema(content)
            wanted = content
    resolver = jsonschema.RefResolver(wanted["$id"], wanted, store=store)
    return jsonschema.Draft202012Validator(wanted, resolver=resolver)


def documents(text):
    """The JSON documents that stand in it one after another."""
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = json.JSONDecoder().raw_decode(text, at)
        yield value


def pytest_configure(config):
    # A shell that runs us in the background has us ignore these, and so would every program of a test.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    config.addinivalue_line(
        "markers", "large: more work than a sanitised program does in a few seconds")


class Aquarium:
    """Runs the program with a state folder of its own."""

    def __init__(self, state):
        self.state = state

    @staticmethod
    def check_report(report):
        """Every report that any test makes keeps to its schema."""
        errors = [f"{e.json_path}: {e.message}"
                  for e in schema("report.schema.json").iter_errors(report)]
        assert not errors, "\n".join(errors)

    def run(self, *args, cwd=None, env=None, check=None, timeout=300, input=None):
        e = {"PATH": os.environ["PATH"], "HOME": str(self.state), "LANG": "C.UTF-8",
             "AQUARIUM_HOME": str(self.state / "state"), **SANITIZER, **(env or {})}
        done = subprocess.run([PROGRAM, *map(str, args)], cwd=cwd, env=e, timeout=timeout,
                              input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert not re.search(rb"\w+Sanitizer: |runtime error: ", done.stderr), done.stderr.decode()
        if check is not None:
            assert done.returncode == check, (args, done.returncode, done.stdout[-2000:],
                                              done.stderr[-2000:])
        if args[:1] == ("validate",) and "--json" in args and done.returncode <= 3:
            for report in documents(done.stdout.decode()):
                self.check_report(report)
        return done

    def validate(self, package, *args, check=None):
        """The report as an object."""
        done = self.run("validate", "--json", *args, package, check=check)
        assert done.returncode in (0, 1, 2, 3), (done.returncode, done.stderr[-2000:])
        return json.loads(done.stdout)


@pytest.fixture
def aquarium(tmp_path):
    return Aquarium(tmp_path)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def data():
    """The outside test data, unpacked (tools/test does that); skips the test where there is none."""
    path = os.environ.get("AQUARIUM_DATA")
    if not path or not pathlib.Path(path).is_dir():
        pytest.skip("AQUARIUM_DATA: the outside test data is not at hand")
    return pathlib.Path(path)


def open_to_others(path):
    """Lets every user come as far as this folder of a test; the place for temporary files itself stays as
    it is."""
    place = pathlib.Path(tempfile.gettempdir())
    for folder in (path, *path.parents):
        if place in folder.parents and folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o755)
