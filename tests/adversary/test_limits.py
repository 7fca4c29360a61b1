"""Numbers and limits of archives: the last value that is taken, and the first that is not."""
import gzip
import io
import struct
import tarfile
import zipfile

import pytest

from test_archives import (GOOD, clean, fix_tar_checksum, see, special, tar_bytes,  # noqa: F401
                           unpack, zip_bytes)


def with_size(field):
    raw = bytearray(tar_bytes(("x", b"12345"), fmt=tarfile.USTAR_FORMAT))
    raw[124:136] = field
    fix_tar_checksum(raw, 0)
    return bytes(raw)


def test_sizes_in_base_256(see):
    seen = see(with_size(b"\x80" + (5).to_bytes(11, "big")))
    assert seen["paths"] == ["x"] and clean(seen)
    # Bits that a reader with 64 of them loses would leave a 5.
    for high in (1 << 64, 1 << 87, 1 << 63):
        seen = see(with_size(b"\x80" + ((high + 5) % (1 << 88)).to_bytes(11, "big")))
        assert seen["paths"] == [] and not clean(seen), hex(high)
    assert see(with_size(b"\xff" + bytes([255]) * 10 + b"\x05"))["paths"] == []


def test_checksum_in_base_256(see):
    raw = bytearray(tar_bytes(*GOOD))
    assert clean(see(bytes(raw)))
    total = sum(raw[:148]) + 8 * 32 + sum(raw[156:512])
    raw[148:156] = b"\x80" + total.to_bytes(7, "big")
    assert see(bytes(raw))["paths"] == []


@pytest.mark.parametrize("value, good", [("ISO-IR 10646 2000 UTF-8", True), ("ISO-IR 8859-1", False),
                                         ("KOI8-R", False)])
def test_character_set_of_names(see, value, good):
    info = tarfile.TarInfo("x")
    info.pax_headers = {"hdrcharset": value}
    seen = see(tar_bytes(*GOOD, (info, b"1")))
    assert clean(seen) == good
    assert good or seen["rules"] == ["intake.archive.ambiguous"]


def test_sparse_for_all(see):
    for headers, good in (({"GNU.sparse.major": "1"}, False), ({"mtime": "1"}, True)):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", pax_headers=headers) as t:
            info = tarfile.TarInfo("x")
            info.size = 1
            t.addfile(info, io.BytesIO(b"1"))
        seen = see(out.getvalue())
        assert clean(seen) == good
        assert good or seen["rules"] == ["intake.archive.ambiguous"]


@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes])
def test_depth_and_length_of_paths(see, pack):
    for folders, good in ((32, True), (33, False)):
        seen = see(pack(*GOOD, ("d/" * folders + "x", b"1")))
        assert clean(seen) == good, (folders, seen["rules"])
    for length, good in ((1024, True), (1025, False)):
        path = ("p" * 199 + "/") * 5 + "x" * (length - 1000)
        assert len(path) == length
        seen = see(pack(*GOOD, (path, b"1")))
        assert clean(seen) == good, (length, seen["rules"])


def test_version_behind_a_name_in_a_zip(see):
    """Some readers cut ";1" off, as it is written on discs."""
    assert clean(see(zip_bytes(*GOOD, ("x;y", b"1"))))
    assert not clean(see(zip_bytes(*GOOD, ("x;1", b"1"))))


# ---- budgets: what is exactly as much as allowed is read ----


def zeros_of_ratio(packed, ratio):
    """A zip of `packed` bytes in all, padded by its comment, that becomes `ratio` times as many."""
    size = packed * ratio
    for more in (0, 1):
        raw = zip_bytes(("zeros", bytes(size + more)))
        spare = packed - len(raw)
        assert 0 <= spare < 256
        yield raw[:-2] + struct.pack("<H", spare) + b"x" * spare


def test_ratio(see):
    packed = len(zip_bytes(("zeros", bytes(17 << 20)))) + 100
    ratio = (17 << 20) // packed
    exact, above = zeros_of_ratio(packed, ratio)
    assert clean(see(exact, f"ratio={ratio}"))
    seen = see(above, f"ratio={ratio}")
    assert seen["rules"] == ["intake.ratio"] and not seen["paths"]


def test_bytes_that_are_free_of_the_ratio(see):
    for more, rules in ((0, []), (1, ["intake.ratio"])):
        data = gzip.compress(tar_bytes(("zeros", bytes((16 << 20) + more))))
        assert see(data)["rules"] == rules


def test_links_count_as_files(see, tmp_path):
    links = [special(f"l{i}", tarfile.SYMTYPE, "README.md") for i in range(5)]
    (tmp_path / "d").mkdir()
    (tmp_path / "d/README.md").write_text("x")
    for link in links:
        (tmp_path / "d" / link.name).symlink_to(link.linkname)
    for limit, rules in ((6, ["intake.link.inside"]), (5, ["intake.budget", "intake.link.inside"])):
        assert see(tar_bytes(("README.md", b"x"), *links), f"files={limit}")["rules"] == rules
    # In a folder they are apart from the files.
    for limit, rules in ((5, ["intake.link.inside"]), (4, ["intake.budget", "intake.link.inside"])):
        assert unpack(tmp_path / "d", f"files={limit}")["rules"] == rules


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_nothing_but_links_devices_or_folders(see, kind):
    link = "y" if kind == tarfile.SYMTYPE else ""
    entries = [special(f"x{i}", kind, link) for i in range(5)]
    for limit, budget in ((5, False), (4, True)):
        seen = see(tar_bytes(*entries), f"files={limit}")
        assert ("intake.budget" in seen["rules"]) == budget, (limit, seen["findings"])


@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes])
def test_files_and_bytes(see, pack):
    data = pack(*((f"f{i}", b"x" * 10000) for i in range(5)))
    for name, limit in (("files", 5), ("unpacked-bytes", 50000), ("file-bytes", 10000)):
        assert clean(see(data, f"{name}={limit}"))
        assert see(data, f"{name}={limit - 1}")["rules"] == ["intake.budget"]


@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes])
def test_folders_that_only_files_name(see, pack):
    data = pack(*((f"d{i}/x", b"") for i in range(5)), ("d0/y", b""))
    assert clean(see(data, "files=6"))
    data = pack(("a/b/c/d/e/x", b""), ("y", b""))
    assert clean(see(data, "files=5"))
    assert see(data, "files=4")["rules"] == ["intake.budget"]


# ---- bytes that are usual, up to a number of them ----


def test_usual_pax_records(see):
    """What macOS notes of a file, the same for each: free up to a kilobyte of one entry."""
    def made(records):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
            for i in range(10):
                info = tarfile.TarInfo(f"f{i}")
                info.pax_headers = {f"SCHILY.xattr.com.apple.{n:017}": "v" * 88
                                    for n in range(records)}
                t.addfile(info)
        return out.getvalue()

    assert clean(see(made(8)))  # 8 times 40 + 88 bytes
    assert see(made(12))["rules"] == ["intake.archive.hidden"]


def test_usual_extra_data_of_a_zip(see):
    def made(*sizes):
        entries = []
        for i in range(40):
            info = zipfile.ZipInfo(f"f{i}")
            info.extra = b"".join(struct.pack("<HH", kind, n) + bytes(n)
                                  for kind, n in zip((0x5455, 0x7875), sizes))
            entries.append((info, b"x"))
        return zip_bytes(*entries)

    assert clean(see(made(60, 60)))  # with their heads 128 bytes
    assert see(made(60, 61))["rules"] == ["intake.archive.hidden"]
