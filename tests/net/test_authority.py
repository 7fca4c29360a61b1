"""The key of a world's authority, and the seed from which it follows: only the front and the internet have them."""
import base64
import hashlib
import json
import os
import pathlib
import subprocess
import time

import pytest

from conftest import PROGRAM, SANITIZER

SEED = "authority-test-7f3a9c51e2"
PACK = "pack 1\ndecoy private.token secret text %{base62:40}\nenv PRIVATE_TOKEN %{private.token}\n"
TALK = ("import socket, sys; s = socket.create_connection(('8.8.8.8', 443)); print('there', flush=True); sys.stdin.read()")


def parents():
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    return found


def children(pid, of):
    """All processes below."""
    for child in [x for x, parent in of.items() if parent == pid]:
        yield child
        yield from children(child, of)


def memory(pid):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" in line.split()[1] and "[v" not in line and end - begin < 1 << 28:
                try:
                    mem.seek(begin)
                    yield mem.read(end - begin)
                except OSError:
                    pass


def holds(pid, needles):
    found = set()
    for block in memory(pid):
        found |= {name for name, needle in needles.items() if needle in block}
    return found


def secrets(extra):
    shown = json.loads(subprocess.run([PROGRAM, "decoys", "show", "--seed", SEED, "--json", *extra], stdout=subprocess.PIPE, check=True).stdout)
    pem = next(d["value"] for d in shown["decoys"] if d["name"] == "authority.key")
    lines = [x for x in pem.splitlines() if not x.startswith("-")]
    der = base64.b64decode("".join(lines))
    at = der.index(b"\x04\x20") + 2  # an OCTET STRING of 32 bytes: the number itself
    return {"text": lines[0].encode(), "number": der[at:at + 32], "seed": SEED.encode(),
            "hashed": hashlib.sha256(b"aquarium/v1/seed\0" + SEED.encode()).digest()}


@pytest.mark.skipif(os.geteuid() != 0, reason="missing hardware: only root may read the memory of a keeper")
@pytest.mark.parametrize("how", ["plain", "cwd"] if SANITIZER else ["plain", "cwd", "pack"])  # which keep what was freed
def test_the_keeper_has_neither_key_nor_seed(tmp_path, how):
    (tmp_path / "own.pack").write_text(PACK)
    extra = ["--pack", str(tmp_path / "own.pack")] if how == "pack" else []
    needles = secrets(extra)
    run = subprocess.Popen([PROGRAM, "run", "--quarantine", "--quiet", "--stdin", "--seed", SEED, *extra, *(["--cwd", "/tmp"] if how == "cwd" else []),
                            "--", "/usr/bin/python3", "-c", TALK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout.readline() == "there\n"
        time.sleep(0.2)
        found, names = {}, {}
        for pid in children(run.pid, parents()):
            names[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            found[pid] = holds(pid, needles)
        assert "seed" not in holds_command(run.pid)
    finally:
        run.stdin.close()
        run.wait(30)
    held = {names[pid]: what for pid, what in found.items()}
    assert set(held) >= {"aquarium-keeper", "aquarium-intern", "init", "python3"} and held.pop("aquarium-intern") == {"number", "text"}
    assert not any(held.values()), held


def holds_command(pid):
    return {"seed"} if SEED.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() else set()
