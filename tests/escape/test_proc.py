"""What the host does shows nowhere in /proc: a world reads all of it twice, and meanwhile the host is busy. And files
that tell of the host's own disks, buses and kernel are not there at all."""
import json
import pathlib
import socket
import subprocess

import pytest

from conftest import PROGRAM

ALL = """
import os, sys, zlib
def look(folder):
    for name in sorted(os.listdir(folder)):
        path = folder + "/" + name
        if os.path.islink(path) or name in ("task", "map_files", "attr", "fd", "fdinfo", "pagemap"):
            continue
        if os.path.isdir(path):
            if not name.isdigit() and os.access(path, os.R_OK): look(path)
            continue
        try:
            with open(path, "rb") as f: text = f.read(1 << 20)
        except OSError as e: text = str(e.errno).encode()
        print(path, len(text), zlib.crc32(text))
look("/proc")
for part in ("net", "net/stat", "net/dev_snmp6"): look("/proc/%d/%s" % (os.getpid(), part))
print(open("/proc/self/arch_status").read() if os.path.exists("/proc/self/arch_status") else "")
"""


def inside(code, place, *options):
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "proc", "--start", "2026-05-01T09:00:00Z", "--quiet",
                           *options, "--", "python3", "-c", code], cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def be_busy(place):
    """Packets, sockets that stay, pages, files, programs."""
    server = socket.create_server(("127.0.0.1", 0))
    kept = []
    for _ in range(40):
        kept.append(socket.create_connection(server.getsockname()))
        kept.append(server.accept()[0])
        kept[-1].sendall(b"x" * 100000)
    for i in range(300):
        (place / f"file{i}").write_bytes(b"y" * 20000)
        subprocess.run(["true"], check=True)
    return kept


def test_all_of_it_is_the_same_twice(tmp_path):
    place = tmp_path / "empty"
    place.mkdir()
    first = inside(ALL, place)
    kept = be_busy(tmp_path)
    second = inside(ALL, place)
    assert len(first) > 500
    assert [(a, b) for a, b in zip(first, second) if a != b] == [] and len(first) == len(second)
    for s in kept:
        s.close()


OF_HOST = """
import json, os
said = {"names": sorted(x for x in os.listdir("/proc") if x == "config.gz")}
for folder in ("/proc/fs/ext4", "/proc/bus/pci", "/proc/irq"):
    said["names"] += sorted(x for x in os.listdir(folder) if x != "default_smp_affinity")
for path in json.loads(os.environ["PATHS"].replace(";", ",")):
    for way in (path, "/proc/self/root" + path, os.path.relpath(path, os.getcwd())):
        try: said["names"].append(os.stat(way).st_size if way == path else "")
        except OSError: pass
        try:
            with open(way, "rb") as f: said.setdefault("read", []).append(f.read(100).decode(errors="replace"))
        except OSError: pass
print(json.dumps(said))
"""


def test_files_of_the_host_are_not_there(tmp_path):
    paths = [p for pattern in ("fs/ext4/*/mb_groups", "fs/ext4/*/options", "bus/pci/devices", "irq/[0-9]*/spurious", "config.gz")
             for p in sorted(map(str, pathlib.Path("/proc").glob(pattern)))[:2]]
    if not paths:
        pytest.skip("missing hardware: this host tells of no disk, bus or interrupt")
    said = json.loads(inside(OF_HOST, tmp_path, "--env", "PATHS=" + json.dumps(paths).replace(",", ";"))[0])
    assert [x for x in said["names"] if x != ""] == [] and set(said.get("read", [])) <= {""}
    # The twin: what every machine has is there and says something.
    assert inside("print(len(open('/proc/interrupts').read()) > 500, open('/proc/sys/kernel/ostype').read().strip())",
                  tmp_path) == ["True Linux"]
