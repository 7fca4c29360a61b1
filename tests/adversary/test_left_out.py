"""What is left out of a package counts in its digest, and what changes while it is read is told."""
import gzip
import hashlib
import json
import os
import random
import subprocess
import tarfile
import threading
import time
import zipfile

import pytest

from test_archives import GOOD, probe_path, see, special, tar_bytes, unpack, zip_bytes

__all__ = ["see"]  # a fixture


# ---- the digest of what was not read whole ----


def lines_digest(*lines):
    return hashlib.sha256(b"".join(lines)).hexdigest()


def hex_of(data):
    return hashlib.sha256(data).hexdigest().encode()


def test_what_was_left_out_counts_in_the_digest(see, tmp_path):
    rest = see(tar_bytes(*GOOD))
    innocent = b"".join(name.encode() + b"\0" + hex_of(data) + b"\n" for name, data in sorted(GOOD))
    assert rest["digest"] == lines_digest(innocent)
    broken = [tar_bytes(*GOOD) + b"hidden", tar_bytes(*GOOD, ("../x", b"1")), tar_bytes(*GOOD)[:1300],
              tar_bytes(*GOOD, special("h", tarfile.LNKTYPE, GOOD[0][0])), b"hello\n", b"Hello\n"]
    digests = {rest["digest"]}
    for data in broken:
        seen = see(data)
        assert seen["unread"] or seen["incomplete"]
        files = b"".join(f["path"].encode() + b"\0" + f["sha256"].encode() + b"\n"
                         for f in seen["files"])
        assert seen["digest"] == lines_digest(files, b"\0artifact\0\0" + hex_of(data) + b"\n")
        digests.add(seen["digest"])
    assert len(digests) == 1 + len(broken)


def test_links_count_in_the_digest_of_every_form(see, tmp_path):
    def made(target):
        folder = tmp_path / f"tree{len(list(tmp_path.iterdir()))}"
        (folder / "sub").mkdir(parents=True)
        (folder / "a").write_bytes(b"1")
        (folder / "sub/l").symlink_to(target)
        tar = tmp_path / "t.tar"
        tar.unlink(missing_ok=True)
        subprocess.run(["tar", "-C", tmp_path, "-cf", tar, folder.name], check=True)
        link = zipfile.ZipInfo("around/sub/l")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        packed = zip_bytes(("around/a", b"1"), (link, target.encode()))
        return {unpack(folder)["digest"], unpack(tar)["digest"], see(packed)["digest"]}

    inside, outside = made("../a"), made("/etc/passwd")
    assert len(inside) == len(outside) == 1 and inside != outside
    assert inside == {lines_digest(b"a\0" + hex_of(b"1") + b"\n",
                                   b"\0link\0sub/l\0" + hex_of(b"../a") + b"\n")}


# ---- what changes while it is read ----


SWAPS = {"grow": "intake.changed", "shrink": "intake.changed", "fifo": "intake.changed",
         "folder": "intake.changed", "link": "intake.unreadable", "gone": "intake.unreadable"}


@pytest.mark.parametrize("swap", SWAPS)
def test_file_swapped_between_look_and_read(tmp_path, swap):
    """The swap happens inside the probe's own call, so it always falls into the gap."""
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a").write_bytes(b"1")
    (folder / "target").write_bytes(b"x" * 5000)
    innocent = lines_digest(b"a\0" + hex_of(b"1") + b"\n")
    preload = probe_path().parent / "libswap.so"
    done = subprocess.run([probe_path(), folder], capture_output=True, timeout=60,
                          env={"LD_PRELOAD": str(preload), "SWAP": swap})
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert {f["rule"] for f in seen["findings"]} == {SWAPS[swap]}
    assert seen["incomplete"] and [u["place"] for u in seen["unread"]] == ["target"]
    assert seen["digest"] != innocent


def test_folder_written_to_while_it_is_read(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    for i in range(200):
        (folder / f"f{i}").write_bytes(b"x" * i)
    stop = threading.Event()

    def disturb():
        rng, at = random.Random(1), folder / "f100"
        while not stop.is_set():
            at.unlink(missing_ok=True)
            kind = rng.randrange(4)
            if kind == 0:
                at.write_bytes(b"y" * rng.randrange(9000))
            elif kind == 1:
                at.symlink_to("/etc/passwd")
            elif kind == 2:
                os.mkfifo(at)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(30):
            seen = unpack(folder)
            assert set(seen["rules"]) <= {"intake.changed", "intake.unreadable", "intake.special",
                                          "intake.link.escape"}, seen["rules"]
            assert seen["incomplete"] == bool(seen["unread"])
            assert len(seen["paths"]) >= 199
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("how", ["cut", "grown", "written", "replaced"])
def test_archive_that_changes_while_it_is_read(tmp_path, how):
    data = gzip.compress(tar_bytes(("big", random.Random(1).randbytes(8 << 20)), *GOOD), 1)
    path, whole = tmp_path / "a.tgz", None
    for wait in (None, 0.01, 0.03, 0.06, 0.1):
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        p = subprocess.Popen([probe_path(), path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if wait:
            time.sleep(wait)
            if how == "cut":
                os.truncate(path, len(data) // 2)
            elif how == "grown":
                with path.open("ab") as f:
                    f.write(b"more")
            elif how == "written":
                with path.open("r+b") as f:
                    f.seek(len(data) // 2)
                    f.write(b"other bytes")
            else:
                (tmp_path / "b").write_bytes(b"hello")
                os.replace(tmp_path / "b", path)
        out, errors = p.communicate(timeout=60)
        assert p.returncode == 0, errors
        seen = json.loads(out)
        whole = whole or seen["digest"]
        told = {f["rule"] for f in seen["findings"]}
        assert told or seen["digest"] == whole or (how == "replaced" and not seen["files"])
        if told:
            assert seen["digest"] != whole and seen["incomplete"], told
