"""The ledger read by Go's own sumdb packages: checkpoint, tiles, entries, proofs."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import PROGRAM

HERE = pathlib.Path(__file__).resolve().parent
GO = "/usr/bin/go"


@pytest.fixture(scope="session")
def writer(root):
    path = root / "build/tests/outside/outside_ledger"
    assert path.is_file(), f"{path} is not built; run tools/build"
    return path


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """The Go program, built with Debian's compiler from the pinned, hashed module."""
    assert os.path.exists(GO), "golang-go is not installed; run tools/setup test"
    program = tmp_path_factory.mktemp("go") / "reader"
    # Nothing is left in the user's home: modules and cache lie in the build folder. Go makes its
    # modules read-only; -modcacherw lets the folder be removed like any other.
    env = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false -modcacherw",
               GOTOOLCHAIN="local", CGO_ENABLED="0",
               GOPATH=str(PROGRAM.parent / "go"), GOCACHE=str(PROGRAM.parent / "go/cache"))
    subprocess.run([GO, "build", "-o", program, "."], cwd=HERE / "ledger", env=env, check=True)
    return program


def write(writer, folder, size):
    folder.mkdir()
    made = subprocess.run([writer, folder, str(size)], check=True, capture_output=True, text=True)
    return made.stdout.strip()


def read(reader, vkey, folder):
    return subprocess.run(
        [reader, vkey, folder / "ledger", folder / "proof.json", folder / "consistency.json"],
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("size", [1, 255, 256, 257, 70000])
def test_sizes(writer, reader, tmp_path, size):
    vkey = write(writer, tmp_path / "l", size)
    done = read(reader, vkey, tmp_path / "l")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{size} entries")


@pytest.fixture(scope="session")
def sample(writer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "l"
    return folder, write(writer, folder, 300)


def change_json(key, value):
    def change(path):
        document = json.loads(path.read_text())
        document[key] = value(document[key])
        path.write_text(json.dumps(document))

    return change


def change_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


# The reader must be able to say no, or its yes means nothing.
@pytest.mark.parametrize(
    "name, change",
    [
        ("ledger/checkpoint", change_byte),
        ("ledger/tile/0/000", change_byte),
        ("ledger/tile/0/001.p/44", change_byte),
        ("ledger/tile/entries/000", change_byte),
        ("proof.json", change_json("index", lambda i: i + 1)),
        ("consistency.json", change_json("from", lambda n: n + 1)),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_changes_are_seen(reader, sample, tmp_path, name, change):
    folder = tmp_path / "l"
    shutil.copytree(sample[0], folder)
    assert read(reader, sample[1], folder).returncode == 0
    change(folder / name)
    assert read(reader, sample[1], folder).returncode == 1
