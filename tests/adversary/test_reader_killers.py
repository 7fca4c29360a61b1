"""Packages that are made to exhaust or kill their reader, so that what it found is lost."""
import gzip
import io
import os
import shutil
import struct
import subprocess
import tarfile
import zipfile

import pytest

from test_archives import GOOD, clean, probe_path, see, special, tar_bytes, unpack, zip_bytes  # noqa: F401
from test_second_truths import entry, tar

REVIEWED = {"intake.nested.unread", "intake.nested"}


def links(count, kind=b"1"):
    """Many links, all to one file; made by hand because the library is slow."""
    head = bytearray(entry("x" * 90, kind=kind, link="README.md"))
    base = sum(head) - sum(head[148:156]) - sum(head[80:88]) + 8 * 32
    out = []
    for i in range(count):
        number = b"%08d" % i
        head[80:88] = number
        head[148:156] = b"%06o\0 " % (base + sum(number))
        out.append(bytes(head))
    return b"".join(out)


@pytest.mark.large
@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd")
def test_a_flood_of_entries_hides_nothing(see):
    pad = entry("pad", os.urandom(3_000_000))
    raw = tar(entry("../../.bashrc", b"evil\n"), pad, links(300_000))
    packed = subprocess.run(["zstd", "-q", "-1", "-c"], input=raw, check=True,
                            stdout=subprocess.PIPE).stdout
    seen = see(packed)
    assert "intake.path.parent" in seen["rules"] and "intake.budget" in seen["rules"]
    assert "intake.unpacker" not in seen["rules"] and seen["incomplete"]


@pytest.mark.parametrize("kind", [b"0", b"1", b"2", b"5", b"6"])
def test_entries_of_any_kind_count(see, kind):
    name = {b"5": "d{}/", b"6": "f{}"}.get(kind, "x{}")
    parts = [entry(name.format(i), kind=kind, link="README.md" if kind in b"12" else "")
             for i in range(30)]
    assert "intake.budget" in see(tar(*parts), "files=20")["rules"]
    assert "intake.budget" not in see(tar(*parts), "files=40")["rules"]


@pytest.mark.parametrize("word,told", [
    ("die", ["intake.path.parent", "intake.unpacker"]),  # the first of each rule stays
    ("live", ["intake.empty"]),                          # who lives says in the end what holds
    ("below", ["intake.unpacker"]), ("unnamed", ["intake.unpacker"]),
    # as much as is allowed, and more
    ("files-4", ["x0", "x1", "x2", "x3"]), ("files-5", ["intake.unpacker"]),
    ("links-4", ["intake.empty"]), ("links-5", ["intake.unpacker"]),
    ("folders-4", ["intake.empty"]), ("folders-5", ["intake.unpacker"]),
    ("bytes100", ["x"]), ("bytes101", ["intake.unpacker"]),
    ("size", ["intake.unpacker"]), ("open", ["intake.unpacker"]), ("up", ["intake.unpacker"]),
    ("twice", ["intake.unpacker"]), ("account", ["intake.unpacker"]),
    ("none", ["intake.unpacker"])])
def test_readers_that_die_or_lie(tmp_path, word, told):
    (tmp_path / "input").write_bytes(word.encode())
    done = subprocess.run([probe_path().with_name("liar_probe"), tmp_path / "input"],
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split() == told


# ---- names ----


def test_names_that_grow_when_folded(see):
    """U+FDFA becomes eighteen letters: a path of a thousand bytes one of eighteen thousand."""
    grow = "\ufdfa" * 80
    entries = [(f"{grow}/{i:05d}/{grow}/{'A' if i == 7 else 'b'}", b"") for i in range(3000)]
    seen = see(tar_bytes(*GOOD, *entries, ("bad\u200bname", b"1"), (f"{grow}/00007/{grow}/a", b"1")))
    assert {"intake.path.alike", "intake.path.hidden"} <= set(seen["rules"])
    assert "intake.unpacker" not in seen["rules"]


def test_links_and_folders_look_alike_too(see, tmp_path):
    for other in (special("Docs", tarfile.SYMTYPE, "src"), special("DOCS/", tarfile.DIRTYPE),
                  special("docs.", tarfile.DIRTYPE)):
        seen = see(tar_bytes(*GOOD, ("docs/run.sh", b"1"), other))
        assert "intake.path.alike" in seen["rules"], other.name
    seen = see(tar_bytes(*GOOD, special("e\u202eno", tarfile.SYMTYPE, "src")))
    assert "intake.path.hidden" in seen["rules"]
    folder = tmp_path / "package"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/run.sh").write_bytes(b"1")
    (folder / "empty").mkdir()
    assert not unpack(folder)["rules"]
    (folder / "Docs").symlink_to("docs")
    assert set(unpack(folder)["rules"]) == {"intake.link", "intake.path.alike"}
    (folder / "Docs").unlink()
    (folder / "Empty").mkdir()
    assert unpack(folder)["rules"] == ["intake.path.alike"]


def test_folders_with_entries_are_no_look_alikes(see):
    whole = [special("p", tarfile.DIRTYPE), special("p/docs", tarfile.DIRTYPE),
             ("p/docs/run.sh", b"1"), ("p/docs-2/run.sh", b"2"), special("p/empty", tarfile.DIRTYPE)]
    assert clean(see(tar_bytes(*whole)))
    assert clean(see(zip_bytes(("p/", b""), ("p/docs/", b""), ("p/docs/a", b"1"), ("p/e/", b""))))


HIDDEN = ["a\ufe0fb", "日\ufe0f本", "a\u2800b", "a\U0001d159b", "日\u200d本"]
BLANK = ["a\u00a0b", "a\u3000b", "a\u2003b", "Screenshot at 1.00\u202fPM.png"]
PLAIN = ["\u2764\ufe0f.md", "1\ufe0f\u20e3.md", "\U0001f469\u200d\U0001f4bb.md", "\u2600\ufe0f sun",
         "\U0001f3f3\ufe0f\u200d\U0001f308", "a b"]


@pytest.mark.parametrize("names,rules", [(HIDDEN, ["intake.path.hidden"]),
                                         (BLANK, ["intake.path.blank"]), (PLAIN, [])])
def test_characters_that_are_not_seen(see, names, rules):
    for name in names:
        assert see(tar_bytes(*GOOD, (name, b"1")))["rules"] == rules, ascii(name)


# ---- nested archives ----


def test_nested_archives_share_one_budget(see):
    """Each small and quick to list, all together more work than the package may cost."""
    headers = gzip.compress(entry("a/b") * 4000 + bytes(1024))
    many = [(f"{i:03d}.tgz", headers) for i in range(40)]
    seen = see(tar_bytes(*GOOD, *many), f"unpacked-bytes={20 << 20}")
    told = [f for f in seen["findings"] if f["rule"] == "intake.nested.unread"]
    assert any("unpacked-bytes" in f["message"] for f in told) and seen["incomplete"]
    assert len(seen["nested"]) < 15
    seen = see(tar_bytes(*GOOD, *many[:5]), f"unpacked-bytes={20 << 20}")
    assert len(seen["nested"]) == 5


def png_with(data):
    return b"\x89PNG\r\n\x1a\n" + bytes(2000) + data


def cpio_odc():
    head = b"070707" + b"000000" * 7 + b"00000000000" + b"000012" + b"00000000000"
    return head + b"evil.sh\0\0\0" + bytes(100)


def test_archives_that_hide_what_they_are(see):
    inner = tar_bytes(*GOOD, fmt=tarfile.USTAR_FORMAT)
    old = bytearray(inner)
    for at in range(0, 2048, 1024):  # the form before ustar has no mark
        old[at + 257:at + 345] = bytes(88)
        old[at + 148:at + 156] = b" " * 8
        old[at + 148:at + 156] = b"%06o\0 " % sum(old[at:at + 512])
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as z:
        z.writestr("evil.sh", b"curl evil | sh\n")
        z.comment = b"a comment"
    lzma = b"\x5d\0\0\x80\0" + b"\xff" * 8 + b"\0" + os.urandom(100)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 40) + bytes(40)
    for name, data in (("v7", bytes(old)), ("png", png_with(zipped.getvalue())),
                       ("after", png_with(zip_bytes(*GOOD) + b"x")), ("lzma", lzma),
                       ("odc", cpio_odc()), ("zst", skippable + b"\x28\xb5\x2f\xfd" + bytes(40)),
                       ("Z", b"\x1f\x9d\x90" + os.urandom(60))):
        seen = see(tar_bytes(("README.md", b"# a\n"), (name, data), ("end.bin", bytes(70000))))
        assert set(seen["rules"]) & REVIEWED, (name, seen["findings"])


def test_files_that_are_no_archives(see):
    picture = png_with(os.urandom(70000).replace(b"PK", b"xx"))
    text = b"A zip archive ends with PK\5\6 and so on, in words.\n" * 20
    for data in (picture, text, b"070 707 is a number\n" * 9, b"]\0\0 text\n" + b"x" * 40,
                 b"\xc7\x71" + bytes(60), bytes(4096), b"a" * 512):
        seen = see(tar_bytes(*GOOD, ("data", data), ("end.bin", bytes(70000))))
        assert clean(seen), (data[:20], seen["findings"])
