"""Inputs that change while they are read: what was hashed is what was judged, and a change is told."""
import hashlib
import os
import subprocess
import sys

import pytest

from test_archives import GOOD, clean, tar_bytes, unpack

FLIP = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
print(flush=True)
while True:
    for text in (b"good", b"EVIL"):
        os.pwrite(fd, text, int(sys.argv[2]))
        os.utime(fd, ns=(10**18, 10**18))
        time.sleep(0.003)
"""


@pytest.fixture
def flip():
    running = []

    def start(path, place):
        running.append(subprocess.Popen([sys.executable, "-c", FLIP, path, str(place)],
                                        stdout=subprocess.PIPE))
        running[-1].stdout.readline()

    yield start
    for p in running:
        p.kill()
        p.wait()
        p.stdout.close()


def test_digest_is_of_the_bytes_that_were_unpacked(tmp_path, flip):
    pad = hashlib.sha256(b"pad").digest() * (1 << 20)
    texts = [b"echo good\n", b"echo EVIL\n"]
    forms = [tar_bytes(*GOOD, ("pad.bin", pad), ("z.sh", text)) for text in texts]
    place = forms[0].rindex(texts[0]) + 5
    known = {hashlib.sha256(form).hexdigest(): hashlib.sha256(text).hexdigest()
             for form, text in zip(forms, texts)}
    path = tmp_path / "flip.tar"
    path.write_bytes(forms[0])
    assert clean(unpack(path))
    flip(path, place)
    told = 0
    for _ in range(12):
        seen = unpack(path)
        told += "intake.changed" in seen["rules"]
        last = {f["path"]: f["sha256"] for f in seen["files"]}["z.sh"]
        assert known[seen["packed"]] == last
    assert told > 0


def test_a_file_whose_times_are_put_back(tmp_path, flip):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "a.bin").write_bytes(bytes(32 << 20))
    os.utime(folder / "a.bin", ns=(10**18, 10**18))
    assert clean(unpack(folder))
    flip(folder / "a.bin", 1000)
    seen = [unpack(folder) for _ in range(6)]
    assert any("intake.changed" in s["rules"] and s["incomplete"] for s in seen)


def test_an_artifact_beyond_the_budget_is_not_copied(tmp_path):
    path = tmp_path / "large.tar"
    path.write_bytes(tar_bytes(*GOOD))
    assert clean(unpack(path, "unpacked-bytes=100000"))
    os.truncate(path, (64 << 20) + 100001)
    seen = unpack(path, "unpacked-bytes=100000")
    assert seen["rules"] == ["intake.budget"] and seen["incomplete"] and not seen["files"]
    assert seen["packed"] == hashlib.sha256(path.read_bytes()).hexdigest()
