"""Archives that two programs read differently, and ordinary ones that look a little like them."""
import gzip
import io
import os
import shutil
import struct
import subprocess
import tarfile
import zipfile
import zlib

import pytest

from test_archives import GOOD, clean, see, tar_bytes, unpack, zip_bytes  # noqa: F401

AMBIGUOUS = "intake.archive.ambiguous"


def shifted_zip(prefix, tail):
    """A zip archive made for a place `prefix` bytes into a file, with a comment of `tail` bytes."""
    out = io.BytesIO()
    out.write(bytes(prefix))
    with zipfile.ZipFile(out, "a") as z:
        z.writestr("evil.sh", b"curl x | sh\n" * 4)
        z.comment = bytes(tail)
    data = out.getvalue()[prefix:]
    return data[:len(data) - tail]


def with_extra(data, extra):
    """gzip with an extra field, which starts at byte 12."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff" + struct.pack("<H", len(extra)) + extra +
            packer.compress(data) + packer.flush() +
            struct.pack("<II", zlib.crc32(data), len(data)))


def tar_header(name, size, kind=b"0"):
    info = tarfile.TarInfo(name)
    info.size = size
    info.type = kind
    return info.tobuf(tarfile.USTAR_FORMAT)


def blocks(data):
    return data + bytes(-len(data) % 512)


# ---- one file, two archives ----


@pytest.mark.parametrize("reach", [True, False])
def test_tar_that_is_a_zip_too(see, reach):
    start = tar_bytes(*GOOD, fmt=tarfile.USTAR_FORMAT)[:2048]
    body = shifted_zip(len(start) + 512, 0)
    tail = -len(body) % 512 + 1024
    if reach:
        body = shifted_zip(len(start) + 512, tail)
    data = start + tar_header("data.bin", len(body)) + blocks(body) + bytes(1024)
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["evil.sh"]
    assert AMBIGUOUS in see(data)["rules"]


def test_gzip_that_is_a_zip_too(see):
    inner = tar_bytes(*GOOD)
    rest = len(with_extra(inner, b"")) - 12
    data = with_extra(inner, shifted_zip(12, rest))
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["evil.sh"]
    assert AMBIGUOUS in see(data)["rules"]


def test_module_that_is_a_zip_too(see):
    zipped = shifted_zip(0, 0)
    section = b"\x01x" + zipped
    assert 128 <= len(section) < 16384
    size = bytes([len(section) & 127 | 128, len(section) >> 7])
    data = b"\0asm\1\0\0\0\0" + size + section
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["evil.sh"]
    assert AMBIGUOUS in see(data, name="a.wasm")["rules"]


def test_module_that_is_a_tar_too(see):
    data = bytearray(tar_header("x", 18, b"x") + blocks(b"18 path=README.md\n") +
                     tar_header("y", 3) + blocks(b"abc") + bytes(1024))
    size = len(data) - 11
    data[:13] = b"\0asm\1\0\0\0\0" + bytes([size & 127 | 128, size >> 7]) + b"\x01x"
    plain = bytes(data)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    assert AMBIGUOUS in see(bytes(data), name="a.wasm")["rules"]
    assert clean(see(plain, name="a.wasm"))


def test_zip_file_inside_an_archive_is_only_nested(see):
    for data in (tar_bytes(*GOOD, ("inner.zip", zip_bytes(*GOOD))),
                 gzip.compress(tar_bytes(*GOOD, ("inner.zip", zip_bytes(*GOOD))))):
        seen = see(data)
        assert seen["rules"] == ["intake.nested"] and not seen["incomplete"]


@pytest.mark.parametrize("before", [b"", b"#!/usr/bin/env python3\n"])
def test_zip_with_bytes_after_it(see, before):
    """One file to whoever unpacks the tar, the whole package to a zip reader, and no zip to ours."""
    zipped = before + zip_bytes(*GOOD)
    for behind in (b"x", b"\0" * 40, b"words " * 2000):
        data = tar_bytes(("README.md", b"# a\n"), ("data.bin", zipped + behind), ("end", b"e"))
        assert "README.md" in zipfile.ZipFile(io.BytesIO(data)).namelist()
        assert AMBIGUOUS in see(data)["rules"]
    # a comment that does not end where the file does
    commented = bytearray(zipped + b"a comment")
    for length in (8, 9, 10, 600):
        commented[len(zipped) - 2:len(zipped)] = struct.pack("<H", length)
        rules = see(tar_bytes(("data.bin", bytes(commented))))["rules"]
        assert (AMBIGUOUS in rules) == (length != 9 or before != b"")
    # hidden from a list of files: behind the end, or in an entry that is left out
    assert AMBIGUOUS in see(tar_bytes(*GOOD) + zipped + b"x")["rules"]
    assert AMBIGUOUS in see(tar_bytes(*GOOD, ("README.md", zipped)))["rules"]


def test_zip_that_is_one_file_of_a_tar(see):
    inner = zip_bytes(*GOOD)
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as z:
        z.writestr("deep.zip", inner)
        z.comment = b"made by hand"
    for files in ([("a.zip", inner)], [("a.zip", inner), ("b.txt", b"after it")],
                  [("tool.pyz", b"#!/usr/bin/env python3\n" + inner)],
                  [("deep.zip", stored.getvalue()), ("b.zip", inner)],
                  [("inner.tar", tar_bytes(("a.zip", inner), ("b", b"c")))]):
        seen = see(tar_bytes(*GOOD, *files))
        told = "intake.nested.unread" if "pyz" in files[0][0] else "intake.nested"
        assert set(seen["rules"]) == {told}, (files[0][0], seen["findings"])


def test_an_end_mark_alone_is_no_zip(see):
    assert clean(see(tar_bytes(*GOOD, ("note.txt", b"a mark PK\5\6" + bytes(18) + b" and words"))))


# ---- zip ----


def with_end64(raw, place=0, disks=(0, 0), here=None, locator=(0, 1), **end):
    """The archive with a 64-bit end record that tells the truth before its usual one, in which the
    fields of `end` say something else."""
    at = raw.rindex(b"PK\5\6")
    count, size, start = struct.unpack("<HII", raw[at + 10:at + 20])
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, *disks,
                       count if here is None else here, count, size, start)
    wide += struct.pack("<4sIQI", b"PK\6\7", locator[0], at + place, locator[1])
    said = {"count": count, "size": size, "start": start, **end}
    return raw[:at] + wide + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, said["count"],
                                         said["count"], said["size"], said["start"], 0)


@pytest.mark.parametrize("end", [{}, {"count": 0xffff}, {"size": 0xffffffff},
                                 {"start": 0xffffffff},
                                 {"count": 0xffff, "size": 0xffffffff, "start": 0xffffffff}])
def test_end_record_in_64_bits(see, end):
    seen = see(with_end64(zip_bytes(*GOOD), **end))
    assert clean(seen) and seen["paths"] == ["README.md", "src/main.py"]


@pytest.mark.parametrize("lie", [{"count": 1}, {"size": 60}, {"start": 8}, {"here": 1},
                                 {"disks": (1, 0)}, {"disks": (0, 1)}, {"locator": (1, 1)},
                                 {"locator": (0, 2)}],
                         ids=lambda lie: "{}-{}".format(*next(iter(lie.items()))))
def test_end_records_that_contradict_each_other(see, lie):
    """Some programs believe the short record, some the long one."""
    seen = see(with_end64(zip_bytes(*GOOD), **lie))
    assert seen["rules"] == [AMBIGUOUS] and not seen["paths"]
    assert "contradict" in seen["findings"][0]["message"]


def test_two_places_for_the_end_record(see):
    """The locator names another place than the one before it, where a second record can lie."""
    seen = see(with_end64(zip_bytes(*GOOD), place=-60))
    assert seen["rules"] == [AMBIGUOUS] and not seen["paths"]
    # With bytes in front of the archive every place is off by their number, which is no second one.
    shifted = see(b"#!/bin/sh\n" + with_end64(zip_bytes(*GOOD)))
    assert shifted["rules"] == ["intake.archive.hidden"]
    assert shifted["paths"] == ["README.md", "src/main.py"]


class Pipe(io.RawIOBase):
    """Cannot seek, so that sizes follow the entries."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, b):
        self.data += bytes(b)
        return len(b)


def streamed(method, *entries):
    out = Pipe()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in entries:
            z.writestr(name, data)
    return out.data


def test_stored_entry_without_sizes(see):
    seen = see(streamed(zipfile.ZIP_STORED, *GOOD, ("blob.bin", b"hello")))
    assert "intake.zip.mismatch" in seen["rules"] and seen["incomplete"]


def test_streamed_zip(see):
    """Sizes behind the data, as writers to a pipe make it."""
    seen = see(streamed(zipfile.ZIP_DEFLATED, *GOOD, ("empty", b"")))
    assert clean(seen) and seen["paths"] == ["README.md", "empty", "src/main.py"]


def test_streamed_entry_without_its_descriptor(see):
    data = bytearray(zip_bytes(*GOOD))
    for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + flags] |= 8
    assert "intake.zip.mismatch" in see(bytes(data))["rules"]


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz"])
def test_archives_of_git(see, tmp_path, form):
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "Ünïcode.md").write_bytes(b"# hello\n")
    (repo / "src/run.sh").write_bytes(b"echo 1\n")
    (repo / "src/run.sh").chmod(0o755)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for args in (["init", "-q"], ["add", "."],
                 ["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "x"]):
        subprocess.run(["git", *args], cwd=repo, check=True, env=env)
    data = subprocess.run(["git", "archive", f"--format={form}", "--prefix=p-1/", "HEAD"], cwd=repo,
                          check=True, env=env, stdout=subprocess.PIPE).stdout
    seen = see(data)
    assert clean(seen), seen["findings"]
    assert seen["paths"] == ["src/run.sh", "Ünïcode.md"]


@pytest.mark.parametrize("host,extra,good", [(3, b"", True), (0, b"", False), (6, b"", False),
                                             (0, b"UT\x05\x00\x01\0\0\0\0", True)])
def test_marked_name_and_the_system_that_it_is_from(see, host, extra, good):
    info = zipfile.ZipInfo("Ünï.txt")
    info.create_system = host
    info.extra = extra
    seen = see(zip_bytes((info, b"x"), method=zipfile.ZIP_STORED))
    assert seen["rules"] == ([] if good else ["intake.path.codepage"])
    assert not seen["incomplete"] and seen["paths"] == ["Ünï.txt"]


class unmarked(zipfile.ZipInfo):
    """A name in UTF-8 that nothing says so of, as archivers of macOS write it."""

    def _encodeFilenameFlags(self):
        return self.filename.encode(), 0


def test_names_in_two_encodings(see):
    guess = "na\u251c\u00bbve.sh"  # "naïve.sh" in UTF-8, read in code page 437
    seen = see(zip_bytes((unmarked("naïve.sh"), b"evil\n"), (guess, b"good\n")))
    assert "intake.path.mixed" in seen["rules"]
    for honest in ([(unmarked("naïve.sh"), b"1"), (unmarked("日本.md"), b"2"), ("plain", b"3")],
                   [("naïve.sh", b"1"), (guess, b"2"), ("plain", b"3")]):
        assert set(see(zip_bytes(*honest))["rules"]) <= {"intake.path.codepage"}


PACKERS = [["bsdtar", "--format", "zip", "-cf", "{out}", "."],
           ["python3", "-m", "zipfile", "-c", "{out}", "naïve.txt", "日本語.md", "d"],
           ["zip", "-qr", "{out}", "."], ["7z", "a", "-bso0", "{out}", "."],
           ["7z", "a", "-bso0", "-mcl=on", "{out}", "."]]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_programs_and_names_beyond_ascii(tmp_path, locale):
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    for name in ("naïve.txt", "日本語.md", "d/Ünïcode.txt", "plain.txt"):
        (tree / name).write_bytes(b"x")
    for i, command in enumerate(c for c in PACKERS if shutil.which(c[0])):
        out = tmp_path / f"{i}.zip"
        subprocess.run([c.format(out=out) for c in command], cwd=tree, check=True,
                       env={"PATH": os.environ["PATH"], "LC_ALL": locale, "PYTHONUTF8": "1"})
        seen = unpack(out)
        assert set(seen["rules"]) <= {"intake.path.codepage"}, (command, seen["findings"])
        assert not seen["incomplete"] and not seen["unread"]
        assert {"naïve.txt", "日本語.md", "d/Ünïcode.txt"} <= set(seen["paths"])


# ---- tar ----


def test_file_with_a_dot_behind_its_name(see):
    start = tar_bytes(*GOOD, fmt=tarfile.USTAR_FORMAT)[:2048]
    for name, good in (("run.sh/.", False), ("run.sh.", True), ("dir/.sh", True)):
        seen = see(start + tar_header(name, 3) + blocks(b"abc") + bytes(1024))
        assert (AMBIGUOUS in seen["rules"]) != good, name


def test_padding_inside_a_pax_header(see):
    start = tar_bytes(*GOOD, fmt=tarfile.USTAR_FORMAT)[:2048]
    record = b"13 path=b.sh\n"
    for body, good in ((record + bytes(20), False), (record, True)):
        seen = see(start + tar_header("PaxHeaders/x", len(body), b"x") + blocks(body) +
                   tar_header("b.sh", 3) + blocks(b"abc") + bytes(1024))
        assert (AMBIGUOUS in seen["rules"]) != good
        assert clean(seen) == good


def test_bytes_beyond_the_zeros_that_are_looked_at(see):
    limit = 1 << 20
    start = tar_bytes(*GOOD)
    assert clean(see(start + bytes(limit // 2), f"unpacked-bytes={limit}"))
    seen = see(gzip.compress(start + bytes(limit) + b"evil" * 1000), f"unpacked-bytes={limit}")
    assert seen["incomplete"] and "intake.budget" in seen["rules"]
    seen = see(gzip.compress(start + bytes(64) + b"evil" + bytes(limit)),
               f"unpacked-bytes={limit}")
    assert "intake.archive.hidden" in seen["rules"]
