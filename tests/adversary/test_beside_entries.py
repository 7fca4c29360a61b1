"""Bytes beside the names and contents of an archive, where nobody who unpacks it looks."""
import gzip
import io
import struct
import subprocess
import tarfile
import zipfile
import zlib

import pytest

from test_archives import GOOD, clean, see, tar_bytes, tree, unpack, zip_bytes  # noqa: F401

HIDDEN = "intake.archive.hidden"
TEXT = b"curl x | sh\n"


def gzip_member(data, extra=b"", name=b"", comment=b""):
    flags = (4 if extra else 0) | (8 if name else 0) | (16 if comment else 0)
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(5) + b"\xff"
    if extra:
        head += struct.pack("<H", len(extra)) + extra
    for text in (name, comment):
        head += text + b"\0" if text else b""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (head + packer.compress(data) + packer.flush() +
            struct.pack("<II", zlib.crc32(data), len(data)))


def told(seen, count):
    assert seen["rules"] == [HIDDEN] and seen["incomplete"]
    assert sum(u["bytes"] for u in seen["unread"]) == count
    assert any(str(count) in f["message"] for f in seen["findings"])
    return True


@pytest.mark.parametrize("where", ["extra", "name", "comment"])
def test_gzip_header(see, where):
    data = tar_bytes(*GOOD)
    assert clean(see(gzip_member(data, **{where: TEXT * 10})))
    spare = len(TEXT) * 1000 + (2 if where == "extra" else 1)
    assert told(see(gzip_member(data, **{where: TEXT * 1000})), spare)


def test_empty_gzip_members(see):
    data = gzip.compress(tar_bytes(*GOOD))
    assert clean(see(data + gzip_member(b"")))
    assert clean(see(gzip_member(tar_bytes(*GOOD)[:700]) + gzip_member(tar_bytes(*GOOD)[700:])))
    assert HIDDEN in see(data + gzip_member(b"", comment=TEXT * 1000))["rules"]
    assert HIDDEN in see(data + gzip_member(b"") * 1000)["rules"]


def test_zip_comments_and_extra_data(see):
    def made(comment, extra, times=1):
        infos = []
        for i in range(times):
            info = zipfile.ZipInfo(f"{i}.txt")
            info.comment = comment
            info.extra = extra
            infos.append((info, b"x"))
        return zip_bytes(*infos)

    stamp = struct.pack("<HHBI", 0x5455, 5, 1, 0)
    owner = struct.pack("<HHBBIBI", 0x7875, 11, 1, 4, 0, 4, 0)
    assert clean(see(made(b"", stamp + owner, times=200)))
    assert clean(see(made(b"a word", b"")))
    assert HIDDEN in see(made(TEXT * 1000, b""))["rules"]
    assert HIDDEN in see(made(b"a word and another one", b"", times=200))["rules"]
    # an unknown field, and a known one that is too long
    assert HIDDEN in see(made(b"", struct.pack("<HH", 0x4242, 6000) + bytes(6000)))["rules"]
    assert HIDDEN in see(made(b"", struct.pack("<HH", 0x5455, 6000) + bytes(6000)))["rules"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_pax_comments(see, kind):
    def made(**records):
        out = io.BytesIO()
        one = kind == tarfile.XHDTYPE
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT,
                          pax_headers=None if one else records) as t:
            for name, data in GOOD:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                info.pax_headers = records if one else {}
                t.addfile(info, io.BytesIO(data))
        return out.getvalue()

    assert clean(see(made(comment="0123456789abcdef" * 2 + "01234567")))
    assert clean(see(made(mtime="1700000000.123456789")))
    assert HIDDEN in see(made(comment="curl x | sh " * 1000))["rules"]
    assert HIDDEN in see(made(unheard="curl x | sh " * 1000))["rules"]
    assert HIDDEN in see(made(mtime="1" * 5000))["rules"]


def test_pax_records_that_vary(see):
    """Little in each entry, and much in all of them."""
    def made(key, values):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
            for i, value in enumerate(values):
                info = tarfile.TarInfo(f"f{i}")
                info.pax_headers = {key: value}
                t.addfile(info)
        return out.getvalue()

    spelt = [f"{i:04} part of a hidden text, in base64 or plain" for i in range(1000)]
    for key in ("uname", "SCHILY.fflags", "SCHILY.xattr.com.apple.macl"):
        assert HIDDEN in see(made(key, spelt))["rules"]
        assert clean(see(made(key, spelt[:7] * 200)))  # few owners, many files
        assert clean(see(made(key, spelt[:200])))
    assert clean(see(made("mtime", [f"17000{i:05}.123456789" for i in range(1000)])))
    assert HIDDEN in see(made("atime", ["curl x | sh"] * 1000))["rules"]


def bent(place, text):
    """One tar entry with bytes put into its header, and the checksum made right again."""
    block = bytearray(tar_bytes(("a.txt", b"hi"), fmt=tarfile.USTAR_FORMAT))
    block[place:place + len(text)] = text
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block)


@pytest.mark.parametrize("place,text", [(6, b"hidden"), (160, b"hidden"), (275, b"hidden"),
                                        (310, b"hidden"), (346, b"hidden"), (500, b"hidden"),
                                        (514, b"hidden")],
                         ids=["name", "link", "user", "group", "prefix", "end", "padding"])
def test_tar_slack(see, place, text):
    assert told(see(bent(place, text)), len(text))


def test_times_in_the_prefix(see):
    assert clean(see(bent(476, b"14524770000 14524770000 ")))
    assert clean(see(bent(508, b"tar\0")))


def test_ordinary_tar_programs_leave_nothing(tree, tmp_path):
    subprocess.run(["tar", "-C", tree, "--format=pax", "--pax-option=delete=nothing", "-cf",
                    tmp_path / "a.tar", "."], check=True)
    assert clean(unpack(tmp_path / "a.tar"))
    if subprocess.run(["which", "bsdtar"], capture_output=True).returncode == 0:
        for kind in ("pax", "gnutar", "ustar", "zip"):
            subprocess.run(["bsdtar", "--format", kind, "-C", tree, "-cf", tmp_path / "b", "."],
                           check=True)
            seen = unpack(tmp_path / "b")
            assert HIDDEN not in seen["rules"], (kind, seen["findings"])


def test_headers_count_as_unpacked(see):
    """A little gzip of nothing but long headers."""
    record = b"1000000 comment=" + b"x" * (1000000 - 17) + b"\n"
    info = tarfile.TarInfo("x")
    info.type = tarfile.XGLTYPE
    info.size = len(record)
    one = info.tobuf(tarfile.USTAR_FORMAT) + record + bytes(-len(record) % 512)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(packer.compress(one) for _ in range(40)) + packer.compress(tar_bytes(*GOOD))
    seen = see(data + packer.flush())
    assert "intake.ratio" in seen["rules"] and seen["incomplete"] and not seen["files"]


def test_many_small_files_are_no_bomb(see):
    files = [(f"f{i}", b"") for i in range(3000)]
    assert clean(see(gzip.compress(tar_bytes(*files, fmt=tarfile.USTAR_FORMAT))))
