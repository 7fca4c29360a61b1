"""Numbers and limits of archives: the last value that is taken, and the first that is not."""
import io
import tarfile

import pytest

from test_archives import GOOD, clean, fix_tar_checksum, see, tar_bytes, zip_bytes  # noqa: F401


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
