"""Other readers as judges: when intake calls an archive clean, whoever installs from it must get the
very tree that was digested.

Archives are bent at random, with their checksums repaired so that readers do not stop there. Python's
tarfile and zipfile, GNU tar, libarchive's bsdtar, node-tar, busybox and unzip then unpack what intake found nothing
wrong with, and each result is compared with the package digest.
"""
import hashlib
import io
import json
import os
import pathlib
import posixpath
import random
import shutil
import struct
import subprocess
import tarfile
import zipfile

import pytest

import bends
from conftest import PROGRAM

PROBE = PROGRAM.parent / "tests/adversary/unpack_probe"
ROUNDS = int(os.environ.get("AQUARIUM_ROUNDS", "250"))  # more of them, with other seeds, by hand
SEED = os.environ.get("AQUARIUM_SEED", "made")


def look(path):
    done = subprocess.run([PROBE, path], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    grave = [f for f in seen["findings"] if f["rule"] not in INFO]
    return seen, not grave and not seen["unread"] and not seen["incomplete"]


# Told, and harmless to every reader here.
INFO = {"intake.setuid", "intake.path.reserved", "intake.path.untidy"}


def tree_digest(files):
    lines = [name + b"\0" + hashlib.sha256(data).hexdigest().encode() + b"\n"
             for name, data in files.items()]
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


def on_disk(folder):
    return {str(p.relative_to(folder)).encode("utf-8", "surrogateescape"): p.read_bytes()
            for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def without_wrapper(files, wrapper):
    """Intake strips a folder around everything, and says so."""
    if not wrapper:
        return files
    start = wrapper.rstrip("/").encode() + b"/"
    assert all(name.startswith(start) for name in files), (wrapper, list(files))
    return {name[len(start):]: data for name, data in files.items()}


class Refused(Exception):
    """The reader itself says that something is wrong."""


def by_tarfile(path, _):
    files = {}
    try:
        with tarfile.open(path) as t:
            for m in t:
                if m.isfile():
                    name = m.name.encode("utf-8", "surrogateescape")
                    files[posixpath.normpath(name)] = t.extractfile(m).read()
    except tarfile.TarError as e:
        raise Refused from e
    return files


def by_zipfile(path, _):
    try:
        with zipfile.ZipFile(path) as z:
            return {posixpath.normpath(i.filename.encode()): z.read(i)
                    for i in z.infolist() if not i.is_dir()}
    except (zipfile.BadZipFile, NotImplementedError) as e:
        raise Refused from e


def by_command(*command, warned=0):
    def read(path, folder):
        folder.mkdir()
        done = subprocess.run([c.format(path=path, folder=folder) for c in command],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
        if done.returncode not in (0, warned):
            raise Refused(done.stderr[-500:])
        return on_disk(folder)
    return read


class NodeTar:
    """One process for all archives; it starts slowly."""

    def __init__(self):
        self.process = None

    def __call__(self, path, folder):
        folder.mkdir()
        if not self.process:
            script = pathlib.Path(__file__).with_name("node_reader.js")
            self.process = subprocess.Popen(["node", script], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE,
                                            env={"PATH": os.environ["PATH"],
                                                 "NODE_PATH": "/usr/share/nodejs"})
        self.process.stdin.write(f"{path}\t{folder}\n".encode())
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said in (b"ok", b"refused"), said
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
        if said == b"refused":
            raise Refused
        return on_disk(folder)

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(timeout=60)
            self.process.stdout.close()
            self.process = None


node_tar = NodeTar()


@pytest.fixture(scope="module", autouse=True)
def end_of_node():
    yield
    node_tar.close()


def by_busybox(path, folder):
    """It knows no pax headers, so it sees the short form of a name that needs more."""
    with tarfile.open(path) as t:
        if any(len(m.name) >= 100 or not m.name.isascii() for m in t):
            raise Refused
    return by_command("busybox", "tar", "-xf", "{path}", "-C", "{folder}")(path, folder)


TAR = {"tarfile": by_tarfile, "node-tar": node_tar, "busybox": by_busybox,
       "gnu tar": by_command("tar", "-xf", "{path}", "-C", "{folder}", "--no-same-owner"),
       "bsdtar": by_command("bsdtar", "-xf", "{path}", "-C", "{folder}")}
ZIP = {"zipfile": by_zipfile,
       "unzip": by_command("unzip", "-qq", "-o", "{path}", "-d", "{folder}",
                           warned=1),  # 1: warned, and unpacked all the same
       "bsdtar": by_command("bsdtar", "-xf", "{path}", "-C", "{folder}")}


def compare(path, tmp_path, readers):
    """0 when intake told something, 1 when it found nothing and all readers agree."""
    seen, clean = look(path)
    if not clean:
        return 0
    for name, read in readers.items():
        folder = tmp_path / "out"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            files = read(path, folder)
        except Refused:
            continue  # it installs nothing
        files = without_wrapper(files, seen.get("wrapper"))
        assert tree_digest(files) == seen["digest"], (name, sorted(files), seen["files"])
    return 1


def tar_original(rng):
    out = io.BytesIO()
    fmt = rng.choice([tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for i in range(rng.randrange(1, 6)):
            name = rng.choice(["a", "b/c", "SKILL.md", "x" * 120 + "/y", "d/e/f/g", "ä/ö", "./k",
                               "long/" * 30 + "z"]) + (str(i) if rng.random() < 0.9 else "")
            if fmt == tarfile.USTAR_FORMAT and len(name) > 90:
                name = f"short{i}"
            info = tarfile.TarInfo(name)
            data = rng.randbytes(rng.choice([0, 1, 511, 512, 513, 2000]))
            info.size = len(data)
            info.mode = rng.choice([0o644, 0o755, 0o600])
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def repair(block):
    """A tar header with the checksum it should have."""
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return block


def bend_tar(rng, data):
    """Changes a header field or two, then repairs its checksum."""
    data = bytearray(data)
    headers = [i for i in range(0, len(data) - 511, 512) if data[i + 257:i + 262] == b"ustar"]
    for _ in range(rng.randrange(1, 3)):
        at = rng.choice(headers)
        block = data[at:at + 512]
        start, length = rng.choice([(0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100),
                                    (257, 8), (265, 32), (329, 16), (345, 155)])
        for _ in range(rng.randrange(1, 4)):
            block[start + rng.randrange(length)] = rng.choice(
                [0, 32, 46, 47, 48, 49, 53, 55, 65, 76, 120, 128, 255, rng.randrange(256)])
        data[at:at + 512] = repair(block)
    if rng.random() < 0.2:
        cut = rng.randrange(len(data))
        data = data[:cut] if rng.random() < 0.5 else data + data[cut:]
    return bytes(data)


def zip_original(rng):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as z:
        for i in range(rng.randrange(1, 6)):
            z.writestr(zipfile.ZipInfo(f"{rng.choice(['a', 'b/c', 'SKILL.md', 'ä/x'])}{i}"),
                       rng.randbytes(rng.choice([0, 1, 100, 3000])))
    return out.getvalue()


def bend_zip(rng, data):
    data = bytearray(data)
    places = [i for i in range(len(data) - 4)
              if data[i:i + 4] in (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\7\x08")]
    for _ in range(rng.randrange(1, 3)):
        at = rng.choice(places) + rng.randrange(4, 60)
        if at < len(data):
            data[at] = rng.choice([0, 1, 8, 47, 65, 255, rng.randrange(256)])
    if rng.random() < 0.2:
        extra = struct.pack("<HH", rng.choice([0x7075, 1, 0x5455]), 0)
        at = rng.randrange(len(data))
        data = data[:at] + extra + data[at:]
    return bytes(data)


def needs(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    assert not missing, f"{missing}: run tools/setup test"


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_untouched_archives_are_clean_and_agreed_on(tmp_path, kind):
    needs("bsdtar", "unzip", "busybox", "node")
    rng = random.Random(f"whole {kind}")
    path = tmp_path / f"in.{kind}"
    agreed = 0
    for _ in range(40):
        make, readers = (tar_original, TAR) if kind == "tar" else (zip_original, ZIP)
        path.write_bytes(make(rng))
        agreed += compare(path, tmp_path, readers)
    assert agreed >= 25, "most honest archives must be clean"


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_bent_archives_are_told_or_agreed_on(tmp_path, kind):
    needs("bsdtar", "unzip", "busybox", "node")
    rng = random.Random(f"bent {kind}")
    path = tmp_path / f"in.{kind}"
    told = agreed = 0
    for _ in range(ROUNDS):
        if kind == "tar":
            path.write_bytes(bend_tar(rng, tar_original(rng)))
            same = compare(path, tmp_path, TAR)
        else:
            path.write_bytes(bend_zip(rng, zip_original(rng)))
            same = compare(path, tmp_path, ZIP)
        told, agreed = told + (not same), agreed + same
    assert told > ROUNDS // 10 and agreed > 0, (told, agreed)


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_made_archives_are_told_or_agreed_on(tmp_path, kind):
    """Whole archives made field by field (bends.py): what random changes to bytes seldom reach."""
    needs("bsdtar", "unzip", "busybox", "node")
    make, readers = (bends.tar, TAR) if kind == "tar" else (bends.zip_archive, ZIP)
    path = tmp_path / f"in.{kind}"
    agreed = 0
    for i in range(ROUNDS):
        path.write_bytes(make(random.Random(f"{SEED} {kind} {i}")))
        agreed += compare(path, tmp_path, readers)
    assert ROUNDS // 10 < agreed < ROUNDS - ROUNDS // 10, agreed
