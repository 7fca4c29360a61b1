"""Archives made to deceive: each attack is named, and its harmless twin is not flagged.

The archives are made byte by byte with Python, so that nothing of ours takes part in making them;
tests/adversary/unpack_probe shows what intake saw.
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import stat
import struct
import subprocess
import tarfile
import zipfile
import zlib

import pytest

from conftest import open_to_others

ROOT = pathlib.Path(__file__).resolve().parents[2]


def probe_path():
    build = pathlib.Path(os.environ.get("AQUARIUM", ROOT / "build/aquarium")).parent
    path = build / "tests/adversary/unpack_probe"
    assert path.is_file(), f"{path} is not built; run tools/build"
    return path


def unpack(path, *budgets):
    done = subprocess.run([probe_path(), path, *budgets], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    seen["rules"] = sorted({f["rule"] for f in seen["findings"]})
    seen["paths"] = [f["path"] for f in seen["files"]]
    return seen


def tar_bytes(*entries, fmt=tarfile.PAX_FORMAT):
    """entries: (name, bytes) or a TarInfo or (TarInfo, bytes)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for e in entries:
            if isinstance(e, tarfile.TarInfo):
                t.addfile(e)
                continue
            name, data = e
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_bytes(*entries, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in entries:
            if not isinstance(name, zipfile.ZipInfo):
                name = zipfile.ZipInfo(name)
                name.compress_type = method
            z.writestr(name, data)
    return out.getvalue()


def special(name, kind, link=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


@pytest.fixture
def see(tmp_path):
    count = iter(range(1000))

    def run(data, *budgets, name="input"):
        path = tmp_path / f"{next(count)}"
        path.mkdir()
        path = path / name
        path.write_bytes(data)
        return unpack(path, *budgets)

    return run


GOOD = [("README.md", b"# hello\n"), ("src/main.py", b"print(1)\n")]


def clean(seen):
    return not seen["rules"] and not seen["unread"] and not seen["incomplete"]


# ---- one tree, one digest ----


def tree_digest(folder):
    lines = []
    for path in folder.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(folder)).encode()
            lines.append(name + b"\0" + hashlib.sha256(path.read_bytes()).hexdigest().encode())
    return hashlib.sha256(b"".join(l + b"\n" for l in sorted(lines))).hexdigest()


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "demo-1.0"
    for name, data in GOOD + [(".git/config", b"[core]\n"), ("a", b""), ("a-b/x", b"1"),
                              ("deep/er/and/deeper/f", b"2"), ("Ünïcode.txt", b"3"),
                              ("big.bin", random.Random(1).randbytes(700_000))]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "src/main.py").chmod(0o755)
    return folder


def test_every_form_of_a_tree_has_one_digest(tree, tmp_path):
    want = tree_digest(tree)
    forms = {"folder": tree}
    for kind in ("gnu", "pax", "ustar", "v7", "oldgnu"):
        forms[f"inside-{kind}.tar"] = ["tar", f"--format={kind}", "-C", tree, "-cf", None, "."]
        forms[f"around-{kind}.tar"] = ["tar", f"--format={kind}", "-C", tmp_path, "-cf", None,
                                       tree.name]
    forms["gz.tar.gz"] = ["tar", "-C", tmp_path, "-czf", None, tree.name]
    forms["zst.tar.zst"] = ["tar", "--zstd", "-C", tmp_path, "-cf", None, tree.name]
    forms["reversed.tar"] = ["tar", "-C", tree, "-cf", None, "src", "deep", "big.bin", "a-b", "a",
                             "Ünïcode.txt", "README.md", ".git"]
    forms["old.tar"] = ["tar", "-C", tree, "--mtime=@1", "--owner=nobody", "--mode=a+rX", "-cf",
                        None, "."]
    for name, made in forms.items():
        path = tmp_path / name
        if name == "folder":
            path = tree
        else:
            subprocess.run([path if a is None else a for a in made], check=True)
        seen = unpack(path)
        assert seen["digest"] == want, name
        assert clean(seen), (name, seen["findings"])
        assert seen["wrapper"] == ("demo-1.0" if name.startswith(("around", "gz", "zst")) else None)
        assert [f["path"] for f in seen["files"] if f["executable"]] == ["src/main.py"]


@pytest.mark.parametrize("around", ["", "demo-1.0/"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("level", [1, 9])
def test_zip_of_a_tree(tree, tmp_path, around, method, level):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", method, compresslevel=level) as z:
        for f in sorted(tree.rglob("*"), reverse=level == 9):
            z.write(f, around + str(f.relative_to(tree)))
    seen = unpack(path)
    assert seen["digest"] == tree_digest(tree)
    assert clean(seen), seen["findings"]


def test_the_folder_around_everything(see):
    assert see(tar_bytes(("p/a", b"1"), ("p/b/c", b"2")))["paths"] == ["a", "b/c"]
    assert see(tar_bytes(("p/a", b"1"), ("q/b", b"2")))["paths"] == ["p/a", "q/b"]
    assert see(tar_bytes(("p/a", b"1"), ("top", b"2")))["paths"] == ["p/a", "top"]
    # the archive says where its root is
    assert see(tar_bytes(special("./", tarfile.DIRTYPE), ("./p/a", b"1")))["paths"] == ["p/a"]
    # a name that means something at the root
    assert see(tar_bytes((".claude-plugin/plugin.json", b"{}")))["paths"] == [
        ".claude-plugin/plugin.json"]


# ---- tar ----


TAR_ATTACKS = {
    "link out": ([special("x", tarfile.SYMTYPE, "/etc/passwd")], "intake.link.escape"),
    "link up": ([special("a/x", tarfile.SYMTYPE, "../../x")], "intake.link.escape"),
    "link inside": ([special("a/x", tarfile.SYMTYPE, "../README.md")], "intake.link.inside"),
    "link to nothing": ([special("a/x", tarfile.SYMTYPE, "../NONE.md")], "intake.link"),
    "link to a folder": ([special("x", tarfile.SYMTYPE, "src")], "intake.link"),
    "link that is a manifest": ([special("a/SKILL.md", tarfile.SYMTYPE, "../README.md")], "intake.link"),
    "hard link": ([special("x", tarfile.LNKTYPE, "README.md")], "intake.link.hard"),
    "fifo": ([special("x", tarfile.FIFOTYPE)], "intake.special"),
    "device": ([special("x", tarfile.CHRTYPE)], "intake.special"),
    "absolute": ([("/etc/cron.d/x", b"1")], "intake.path.absolute"),
    "parent": ([("a/../../x", b"1")], "intake.path.parent"),
    "untidy": ([("a//b", b"1"), ("c/./d", b"2")], "intake.path.untidy"),
    "duplicate": ([("README.md", b"other\n")], "intake.path.duplicate"),
    "duplicate after tidying": ([("./README.md", b"other\n")], "intake.path.duplicate"),
    "below a file": ([("README.md/x", b"1")], "intake.path.conflict"),
    "below a link": ([special("l", tarfile.SYMTYPE, "src"), ("l/x", b"1")],
                     "intake.link intake.path.conflict"),
    "folder where a file is": ([special("README.md", tarfile.DIRTYPE)], "intake.path.conflict"),
    "case": ([("readme.MD", b"1")], "intake.path.alike"),
    "case of folders": ([("SRC/other.py", b"1")], "intake.path.alike"),
    "composition": ([("caf\u00e9", b"1"), ("cafe\u0301", b"2")], "intake.path.alike"),
    "bidi": ([("a\u202egnp.exe", b"1")], "intake.path.hidden"),
    "zero width": ([("ma\u200bin.py", b"1")], "intake.path.hidden"),
    "escape sequence": ([("a\x1b[2Jb", b"1")], "intake.path.hidden"),
    "backslash": ([("a\\b", b"1")], "intake.path.backslash"),
    "backslashes that lead out": ([("..\\..\\x", b"1")],
                                  "intake.path.backslash intake.path.parent"),
    "drive": ([("C:evil", b"1")], "intake.path.backslash"),
    "device name": ([("aux.txt", b"1")], "intake.path.reserved"),
    "trailing dot": ([("x.", b"1")], "intake.path.reserved"),
    "stream": ([("xx:y", b"1")], "intake.path.reserved"),
    "dot that shadows": ([("README.md.", b"1")], "intake.path.alike intake.path.reserved"),
    "blank that shadows": ([("readme.md. ", b"1")], "intake.path.alike intake.path.reserved"),
    "stream that shadows": ([("README.md::$DATA", b"1")], "intake.path.alike intake.path.reserved"),
    "folder that shadows": ([("src./other.py", b"1")], "intake.path.alike intake.path.reserved"),
    "backslash that shadows": ([("src\\main.py", b"1")],
                               "intake.path.alike intake.path.backslash"),
    "too deep": ([("d/" * 40 + "x", b"1")], "intake.budget"),
    "too long": ([("n" * 1100, b"1")], "intake.budget"),
}
TWINS = [("aux-file.txt", b"1"), ("a..b", b"1"), (".. .a", b"1"), ("com10", b"1"), ("naïve", b"1"),
         ("d/" * 30 + "x", b"1"), ("n" * 200 + "/" + "m" * 200, b"1"), ("console.log", b"1"),
         ("日本語/ファイル", b"1"), ("a b", b"1"), (".hidden", b"1"), ("Makefile", b"1")]


@pytest.mark.parametrize("name", TAR_ATTACKS)
def test_tar_attack(see, name):
    entries, rule = TAR_ATTACKS[name]
    seen = see(tar_bytes(*GOOD, *entries))
    assert seen["rules"] == rule.split(), seen["findings"]
    first = {f["path"]: f.get("text") for f in seen["files"]}
    assert first["README.md"] == "# hello\\x0a"  # the first one stays


def test_benign_twins(see):
    for make in (tar_bytes, zip_bytes):
        seen = see(make(*GOOD, *TWINS))
        assert clean(seen), seen["findings"]
        assert len(seen["paths"]) == len(GOOD) + len(TWINS)


def test_name_that_is_not_utf8(see):
    raw = tar_bytes(*GOOD, ("caf?", b"1"), fmt=tarfile.USTAR_FORMAT)
    head = bytearray(raw)
    at = head.index(b"caf?")
    head[at + 3] = 0xE9
    fix_tar_checksum(head, at)
    assert see(bytes(head))["rules"] == ["intake.path.encoding"]


def fix_tar_checksum(raw, at):
    raw[at + 148:at + 156] = b" " * 8
    raw[at + 148:at + 156] = b"%06o\0 " % sum(raw[at:at + 512])


def test_setuid_is_told(see):
    info = tarfile.TarInfo("x")
    info.mode = 0o4755
    assert see(tar_bytes(*GOOD, (info, b"1")))["rules"] == ["intake.setuid"]


def test_two_sizes_for_one_entry(see):
    info = tarfile.TarInfo("x")
    info.pax_headers = {"size": "3"}
    seen = see(tar_bytes(*GOOD, (info, b"12345")))
    assert seen["rules"] == ["intake.archive.ambiguous"]
    info.pax_headers = {"size": "5"}
    assert clean(see(tar_bytes(*GOOD, (info, b"12345"))))


def test_global_name(see):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", pax_headers={"path": "evil"}) as t:
        t.addfile(tarfile.TarInfo("x"))
    assert see(out.getvalue())["rules"] == ["intake.archive.ambiguous"]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", pax_headers={"comment": "a" * 40}) as t:
        t.addfile(tarfile.TarInfo("x"))
    assert clean(see(out.getvalue()))


def test_link_with_contents(see):
    raw = bytearray(tar_bytes(("x", b"y" * 600)))
    raw[156:157] = b"2"
    fix_tar_checksum(raw, 0)
    assert see(bytes(raw))["rules"] == ["intake.archive.ambiguous"]


def test_bad_checksum_ends_reading(see):
    raw = bytearray(tar_bytes(*GOOD))
    raw[1024 + 5] ^= 1
    seen = see(bytes(raw))
    assert seen["rules"] == ["intake.archive.damaged"]
    assert seen["paths"] == ["README.md"]
    assert sum(u["bytes"] for u in seen["unread"]) == len(raw) - 1024 - 512


@pytest.mark.parametrize("cut", [100, 512, 700, 1024, 1500, 2000])
def test_truncated_tar(see, cut):
    raw = tar_bytes(*GOOD, ("src/more", b"z" * 600))
    seen = see(raw[:cut])
    assert seen["incomplete"]
    assert set(seen["rules"]) <= {"intake.archive.truncated", "intake.format"}, seen["findings"]
    assert clean(see(raw))


def test_bytes_behind_the_end(see):
    raw = tar_bytes(*GOOD)
    for packed in (raw + b"hidden" + bytes(506), gzip.compress(raw + b"hidden"),
                   gzip.compress(raw) + b"hidden"):
        seen = see(packed)
        assert seen["rules"] == ["intake.archive.hidden"], seen["findings"]
        assert seen["unread"] and seen["incomplete"]
        assert seen["paths"] == ["README.md", "src/main.py"]
    half = len(raw) // 2
    assert clean(see(gzip.compress(raw[:half]) + gzip.compress(raw[half:])))
    assert clean(see(raw + bytes(20480)))


def test_second_archive_behind_the_first(see):
    seen = see(tar_bytes(*GOOD) + tar_bytes(("evil", b"1")))
    assert seen["rules"] == ["intake.archive.hidden"]


def zstd(data, *options):
    return subprocess.run(["zstd", "-qc", *options], input=data, capture_output=True,
                          check=True).stdout


def test_zstd_frames(see):
    raw = tar_bytes(*GOOD)
    assert clean(see(zstd(raw)))
    assert clean(see(zstd(raw[:1000]) + zstd(raw[1000:])))
    skip = b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"evil"
    for packed in (zstd(raw) + skip, skip + zstd(raw), zstd(raw) + b"evil"):
        seen = see(packed)
        assert seen["rules"] == ["intake.archive.hidden"], seen["findings"]
        assert sum(u["bytes"] for u in seen["unread"]) == len(packed) - len(zstd(raw))


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_damaged_and_truncated_compression(see, pack):
    raw = tar_bytes(*GOOD, ("noise", random.Random(2).randbytes(20000)))
    packed = pack(raw)
    seen = see(packed[: len(packed) // 2])
    assert seen["rules"] == ["intake.archive.truncated"], seen["findings"]
    assert set(seen["paths"]) <= {"README.md", "src/main.py"}
    broken = bytearray(packed)
    broken[-6] ^= 0xFF
    assert see(bytes(broken))["incomplete"]
    assert clean(see(packed))


def test_sparse_files_are_named_as_unread(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a").write_bytes(b"1")
    with open(folder / "sparse", "wb") as f:
        f.truncate(1 << 20)
        f.seek(1 << 19)
        f.write(b"x")
    for fmt in ("gnu", "pax"):
        path = tmp_path / f"{fmt}.tar"
        subprocess.run(["tar", "-S", f"--format={fmt}", "-C", folder, "-cf", path, "."], check=True)
        seen = unpack(path)
        assert seen["incomplete"]
        assert "intake.archive.unsupported" in seen["rules"], seen["findings"]


# ---- zip ----


def find_all(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def test_zip_attacks_by_name(see):
    for name, rule in [("/x", "intake.path.absolute"), ("../x", "intake.path.parent"),
                       ("README.md", "intake.path.duplicate"),
                       ("README.md/x", "intake.path.conflict"), ("a\\b", "intake.archive.ambiguous")]:
        seen = see(zip_bytes(*GOOD, (name, b"other")))
        assert seen["rules"] == [rule], (name, seen["findings"])


def test_zip_second_end_mark_in_the_comment(see):
    """Readers that take the last mark find another end than those that ask where it must be."""
    data = zip_bytes(*GOOD)
    end = data.rindex(b"PK\5\6")
    for comment, rules in ((b"PK\5\6" + b"\1" * 20, ["intake.archive.ambiguous"]), (b"plain words, 24 of them.", [])):
        both = data[:end + 20] + len(comment).to_bytes(2, "little") + comment
        assert see(both)["rules"] == rules, comment


def test_zip_links_and_devices(see):
    for mode, data, rule in [(stat.S_IFLNK | 0o777, b"/etc/passwd", "intake.link.escape"),
                             (stat.S_IFLNK | 0o777, b"README.md", "intake.link.inside"),
                             (stat.S_IFIFO | 0o644, b"", "intake.special")]:
        info = zipfile.ZipInfo("x")
        info.create_system = 3
        info.external_attr = mode << 16
        assert see(zip_bytes(*GOOD, (info, data)))["rules"] == [rule]


def test_zip_local_name_differs(see):
    raw = bytearray(zip_bytes(*GOOD))
    at = next(find_all(raw, b"README.md"))
    raw[at:at + 9] = b"EVILxx.md"
    seen = see(bytes(raw))
    assert seen["rules"] == ["intake.zip.mismatch"]
    assert seen["paths"] == ["src/main.py"]


def test_zip_local_size_differs(see):
    raw = bytearray(zip_bytes(*GOOD, method=zipfile.ZIP_STORED))
    raw[22:26] = struct.pack("<I", 3)  # the first local header's size
    assert see(bytes(raw))["rules"] == ["intake.zip.mismatch"]


def test_zip_wrong_checksum(see):
    raw = bytearray(zip_bytes(*GOOD, method=zipfile.ZIP_STORED))
    at = next(find_all(raw, b"print(1)"))
    raw[at] ^= 1
    seen = see(bytes(raw))
    assert seen["rules"] == ["intake.archive.damaged"]
    assert seen["paths"] == ["README.md"]
    assert seen["unread"]


def test_zip_entry_missing_from_the_directory(see):
    """The directory lists only the second entry; the first one's bytes are still there."""
    raw = zip_bytes(("evil.sh", b"rm -rf"), *GOOD, method=zipfile.ZIP_STORED)
    first, *_ = find_all(raw, b"PK\1\2")
    second = list(find_all(raw, b"PK\1\2"))[1]
    end = raw.rindex(b"PK\5\6")
    directory = raw[second:end]
    cut = raw[:first] + directory
    cut += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(directory), first, 0)
    seen = see(cut)
    assert seen["rules"] == ["intake.archive.hidden"], seen["findings"]
    assert seen["paths"] == ["README.md", "src/main.py"]


def test_zip_bytes_around(see):
    raw = zip_bytes(*GOOD)
    for data in (b"#!/bin/sh\nexit 0\n" + raw, raw + b"trailing bytes, more than nothing"):
        seen = see(data)
        assert seen["rules"] == ["intake.archive.hidden"], seen["findings"]
        assert seen["paths"] == ["README.md", "src/main.py"]
        assert sum(u["bytes"] for u in seen["unread"]) == len(data) - len(raw)


def test_zip_comment(see):
    def commented(text):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            z.writestr("a", b"1")
            z.comment = text
        return out.getvalue()

    assert clean(see(commented(b"0123456789abcdef" * 2)))
    assert see(commented(b"\x7fELF\x02\x01"))["rules"] == ["intake.archive.hidden"]
    assert see(commented(b"x" * 1000))["rules"] == ["intake.archive.hidden"]


def test_zip_two_end_records(see):
    raw = zip_bytes(*GOOD)
    other = zip_bytes(("evil", b"1"))
    end = raw.rindex(b"PK\5\6")
    two = raw[:end + 20] + struct.pack("<H", len(other)) + other
    assert see(two)["rules"] == ["intake.archive.ambiguous"]


def test_zip_overlap(see):
    raw = zip_bytes(("a", b"A" * 1000), ("b", b"B" * 1000), method=zipfile.ZIP_STORED)
    raw = bytearray(raw)
    second = list(find_all(raw, b"PK\1\2"))[1]
    raw[second + 42:second + 46] = struct.pack("<I", 0)  # both at the first entry
    assert "intake.zip.overlap" in see(bytes(raw))["rules"]


def test_zip_encrypted(see):
    raw = bytearray(zip_bytes(*GOOD, method=zipfile.ZIP_STORED))
    for at in (next(find_all(raw, b"PK\3\4")) + 6, next(find_all(raw, b"PK\1\2")) + 8):
        raw[at] |= 1
    seen = see(bytes(raw))
    assert seen["rules"] == ["intake.archive.encrypted"]
    assert seen["unread"][0]["reason"] == "encrypted"


def test_zip_unknown_method(see):
    seen = see(zip_bytes(*GOOD, method=zipfile.ZIP_BZIP2))
    assert seen["rules"] == ["intake.archive.unsupported"]
    assert len(seen["unread"]) == 2


@pytest.mark.parametrize("cut", [10, 60, 150, 200])
def test_zip_truncated(see, cut):
    seen = see(zip_bytes(*GOOD)[:-cut])
    assert seen["incomplete"] and not seen["paths"]


def test_zip64(see, tmp_path):
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as z:
        for name, data in GOOD:
            with z.open(name, "w", force_zip64=True) as f:
                f.write(data)
    assert clean(unpack(path)), unpack(path)["findings"]
    many = zip_bytes(*((f"f{i:05}", b"") for i in range(66000)), method=zipfile.ZIP_STORED)
    seen = see(many)
    assert clean(seen) and seen["count"] == 66000


# ---- budgets ----


def test_bombs(see):
    zeros = bytes(60 << 20)
    for data in (gzip.compress(tar_bytes(("zeros", zeros))), zip_bytes(("zeros", zeros))):
        seen = see(data)
        assert seen["rules"] == ["intake.ratio"], seen["findings"]
        assert not seen["paths"] and seen["unread"]
    assert clean(see(gzip.compress(tar_bytes(("zeros", bytes(8 << 20))))))


def test_budgets_end_reading(see):
    data = tar_bytes(*((f"d/f{i}", b"x" * 100) for i in range(10)), ("e", b""))
    for budget, count in (("files=4", 4), ("unpacked-bytes=450", 4), ("file-bytes=99", 1)):
        seen = see(data, budget)
        assert seen["rules"] == ["intake.budget"], seen["findings"]
        assert seen["count"] == count and seen["incomplete"] and seen["unread"]


def test_size_that_is_a_lie(see):
    raw = bytearray(tar_bytes(("x", b"y")))
    raw[124:136] = b"77777777777\0"
    fix_tar_checksum(raw, 0)
    assert see(bytes(raw))["rules"] == ["intake.budget"]


def test_folder_of_many_files(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(2001):
        (folder / f"f{i:05}").write_bytes(b"%d" % i)
    seen = unpack(folder, "files=2000")
    assert seen["count"] == 2000 and seen["rules"] == ["intake.budget"]
    assert seen["findings"][0]["file"] == "f02000"
    assert clean(unpack(folder, "files=2001"))


# ---- folders ----


def test_folder_with_everything(tmp_path):
    folder = tmp_path / "d"
    (folder / "sub").mkdir(parents=True)
    (folder / "good").write_bytes(b"1")
    (folder / "sub/in").symlink_to("../good")
    (folder / "sub/out").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo")
    sock = __import__("socket").socket(__import__("socket").AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)
    try:
        sock.bind("sock")
    finally:
        os.chdir(here)
    seen = unpack(folder)
    assert seen["paths"] == ["good"]
    assert seen["rules"] == ["intake.link.escape", "intake.link.inside", "intake.special"]
    assert not seen["incomplete"]
    assert len([f for f in seen["findings"] if f["rule"] == "intake.special"]) == 2


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root reads all")
def test_unreadable_file(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "good").write_bytes(b"1")
    (folder / "secret").write_bytes(b"2")
    (folder / "secret").chmod(0)
    open_to_others(folder)
    command = [probe_path(), folder]
    if os.geteuid() == 0:
        # the probe itself may lie where nobody can reach it
        copy = tmp_path / "probe"
        shutil.copy(probe_path(), copy)
        copy.chmod(0o755)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, folder]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert [f["rule"] for f in seen["findings"]] == ["intake.unreadable"]
    assert seen["incomplete"] and seen["unread"][0]["place"] == "secret"


# ---- other inputs ----


def test_formats_that_are_not_accepted(see):
    import bz2
    import lzma

    raw = tar_bytes(*GOOD)
    for data, word in ((bz2.compress(raw), "bzip2"), (lzma.compress(raw), "xz"),
                       (b"7z\xbc\xaf\x27\x1c" + bytes(100), "7z"), (b"hello\n", "no package"),
                       (gzip.compress(b"not a tar\n"), "gz")):
        seen = see(data)
        assert "intake.format" in seen["rules"]
        message = seen["findings"][0]["message"]
        assert word in message and ".tar.zst" in message
        assert sum(u["bytes"] for u in seen["unread"]) == len(data)
    seen = see(b"")
    assert seen["rules"] == ["intake.empty"] and seen["incomplete"] and not seen["unread"]
    assert "no bytes" in seen["findings"][0]["message"]


def test_wasm(see):
    module = b"\0asm\1\0\0\0"
    seen = see(module, name="tool.wasm")
    assert clean(seen) and seen["paths"] == ["tool.wasm"] and seen["form"] == "wasm"
    assert clean(see(b"\0asm\x0d\0\1\0", name="component.wasm"))
    assert see(b"\0asm\x63\0\0\0", name="x.wasm")["rules"] == ["intake.wasm.version"]


def test_empty(see, tmp_path):
    (tmp_path / "none").mkdir()
    assert unpack(tmp_path / "none")["rules"] == ["intake.empty"]
    assert see(zip_bytes())["rules"] == ["intake.empty"]
    for size in (512, 1024, 10240):
        for pack in (bytes, gzip.compress, zstd):
            seen = see(pack(bytes(size)))
            assert seen["rules"] == ["intake.empty"] and not seen["unread"], (size, pack)


def test_one_file_of_a_package(see):
    for name, words in (("SKILL.md", "one file of a skill: name its folder"),
                        ("skill.md", "one file of a skill"), ("plugin.json", "one file of a plugin"),
                        ("README.md", "one file of a package"), ("passwd", "send a folder, .tar")):
        seen = see(b"---\nname: x\n---\n", name=name)
        assert seen["rules"] == ["intake.format"] and words in seen["findings"][0]["message"]


def test_missing_input_is_our_error(tmp_path):
    done = subprocess.run([probe_path(), tmp_path / "none"], capture_output=True)
    assert done.returncode == 70 and b"cannot open" in done.stderr


# ---- nested ----


def test_nested_archives(see):
    import lzma

    inner = tar_bytes(*GOOD)
    seen = see(tar_bytes(
        ("a.zip", zip_bytes(*GOOD)), ("b.bin", zip_bytes(*GOOD)), ("c.tar", inner),
        ("d.tgz", gzip.compress(inner)), ("e.zst", zstd(inner)), ("f.gz", gzip.compress(b"text" * 9)),
        ("g.xz", lzma.compress(inner)), ("h.zip", b"not really a zip archive at all"),
        ("photo.png", b"\x89PNG\r\n\x1a\n" + bytes(64) + zip_bytes(*GOOD)), ("plain", b"hello" * 9)))
    nested = {n["path"]: (n["format"], n["entries"]) for n in seen["nested"]}
    assert nested == {"a.zip": ("zip", 2), "b.bin": ("zip", 2), "c.tar": ("tar", 2),
                      "d.tgz": ("tar.gz", 2), "e.zst": ("tar.zst", 2), "f.gz": ("gz", 1),
                      "g.xz": ("xz", 0), "photo.png": ("zip", 2)}
    assert seen["rules"] == ["intake.nested", "intake.nested.unread"]
    assert [u["place"] for u in seen["unread"]] == ["g.xz", "photo.png"]


def test_nested_budget(see):
    data = tar_bytes(*((f"{i}.zip", zip_bytes(("a", b"%d" % i))) for i in range(4)))
    seen = see(data, "nested-archives=2")
    assert len(seen["nested"]) == 2 and len(seen["unread"]) == 2


# ---- every byte is accounted for, and nothing crashes ----


@pytest.mark.parametrize("seed", range(4))
def test_mutations_are_survived(see, seed):
    rng = random.Random(seed)
    raw = tar_bytes(*GOOD, ("x" * 150, b"long name"), special("l", tarfile.SYMTYPE, "a"))
    originals = [raw, gzip.compress(raw), zstd(raw), zip_bytes(*GOOD, ("z", b"z" * 900))]
    for original in originals:
        for _ in range(6):
            data = bytearray(original)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            seen = see(bytes(data))
            assert "intake.unpacker" not in seen["rules"], seen["findings"]


def test_mtime_owner_and_order_do_not_count(see):
    def made(reverse, mtime, uid):
        entries = []
        for name, data in sorted(GOOD + TWINS, reverse=reverse):
            info = tarfile.TarInfo(name)
            info.mtime, info.uid, info.gid = mtime, uid, uid
            entries.append((info, data))
        return tar_bytes(*entries)

    digests = {see(made(*a))["digest"] for a in ((False, 0, 0), (True, 10**9, 1000))}
    digests.add(see(zlib_level(made(False, 5, 5), 1))["digest"])
    digests.add(see(zlib_level(made(True, 6, 6), 9))["digest"])
    assert len(digests) == 1


def zlib_level(data, level):
    c = zlib.compressobj(level, zlib.DEFLATED, 31)
    return c.compress(data) + c.flush()


def test_budgets_hold_for_folders_too(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    for n in range(4):
        (folder / str(n)).write_bytes(b"x" * 100)
    assert clean(unpack(folder, "unpacked-bytes=400"))
    for budget in ("unpacked-bytes=399", "file-bytes=99", "files=3"):
        seen = unpack(folder, budget)
        assert "intake.budget" in seen["rules"] and seen["incomplete"], budget


def test_nul_in_a_name(see):
    """A reader in C stops at the NUL, another does not."""
    raw = bytearray(zip_bytes(*GOOD, ("evil.pyX.txt", b"1")))
    for at in list(find_all(raw, b"evil.pyX.txt")):
        raw[at + 7] = 0
    seen = see(bytes(raw))
    assert not clean(seen)
    assert "evil.py" not in seen["paths"]
