"""What a home holds: projects with a history, and large files whose content comes when somebody opens them."""
import hashlib
import json
import re
import subprocess

import pytest

from conftest import PROGRAM


def inside(aquarium, tmp_path, script, side="A", seed="7"):
    done = aquarium.run("run", "--quarantine", "--seed", seed, "--world", side, "--start", "2026-11-02T10:50:18Z", "--", "bash", "-c",
                        script, cwd=tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.decode(errors="replace")


EACH = "cd ~/code; for p in *; do cd ~/code/$p; {}; done"


def test_histories_are_whole(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, EACH.format("git fsck --full --strict 2>&1; git verify-pack .git/objects/pack/*.idx; "
                                                  "git log --oneline | wc -l; git status --porcelain"))
    counts = [int(line) for line in text.splitlines() if line.isdigit()]
    rest = [line for line in text.splitlines() if not line.isdigit()]
    assert len(counts) == 3 and sum(counts) > 20
    # what is being worked on; nothing untracked, nothing that is said to be broken
    assert 1 <= len(rest) <= 3 and all(line.startswith(" M ") for line in rest), rest


def test_histories_are_of_the_persona(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "git config user.name; date +%s; " + EACH.format("git log --format='%at|%an|%ct'"))
    name, now, *rows = text.splitlines()
    rows = [row.split("|") for row in rows]
    assert sum(author == name for _, author, _ in rows) > len(rows) / 2 and len({author for _, author, _ in rows}) == 2
    assert all(when == committed and int(now) - 500 * 86400 < int(when) < int(now) for when, _, committed in rows)


def test_histories_of_twins(aquarium, tmp_path):
    script = EACH.format("find .git -type f -printf '%s %T@\\n' | sort; git log -p | wc; git status | wc; git rev-parse HEAD >&2")
    runs = [aquarium.run("run", "--quarantine", "--seed", "7", "--world", side, "--start", "2026-11-02T10:50:18Z", "--", "bash", "-c",
                         script, cwd=tmp_path, check=0) for side in "AB"]
    assert runs[0].stdout == runs[1].stdout
    heads = [[line for line in run.stderr.decode().splitlines() if re.fullmatch("[0-9a-f]{40}", line)] for run in runs]
    assert len(heads[0]) == 3 and not set(heads[0]) & set(heads[1])


def test_a_commit_can_be_added(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "cd ~/code/*-api && git commit -qam more && git log --oneline | wc -l && git fsck 2>&1 && "
                                      "git gc -q && git fsck && git status --porcelain && git stash list")
    assert text.split() == ["15"], text


KINDS = {"jpg": "JPEG image data, JFIF", "pdf": "PDF document, version 1.5", "zip": "Zip archive data", "mp4": "ISO Media, MP4",
         "mp3": "Audio file with ID3"}


@pytest.mark.parametrize("side", "AB")
def test_the_key_that_git_names_is_there(aquarium, tmp_path, side):
    text = inside(aquarium, tmp_path, "gpg -K --with-colons | grep ^fpr; git config --global user.signingkey; gpgconf --kill all", side)
    listed, named = text.split()[:2]
    assert listed.split(":")[9] == named and len(named) == 40


def test_large_files_are_what_they_are_called(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "cd; find . -size +300k -type f | sort | xargs -d '\\n' file; "
                                      "for z in Downloads/*.zip; do python3 -m zipfile -t $z; done")
    rows = [line.split(":", 1) for line in text.splitlines() if line.startswith("./")]
    assert len(rows) > 20 and {path.rsplit(".", 1)[1] for path, _ in rows} == set(KINDS)
    for path, kind in rows:
        assert kind.strip().startswith(KINDS[path.rsplit(".", 1)[1]]), (path, kind)
    assert text.count("Done testing") == 2


def test_a_home_takes_room(aquarium, tmp_path):
    # as many blocks as bytes, opened or not, and reading takes none
    text = inside(aquarium, tmp_path, "cd; du -sB1 --apparent-size .; du -sB1 .; find . -size +300k -printf '%b %s\\n'; df -B1 . | "
                                      "tail -1; cat Pictures/*/* > /dev/null; df -B1 . | tail -1; du -sB1 .")
    (apparent, _), (taken, _), *rows, before, after, (again, _) = [line.split() for line in text.splitlines()]
    assert 50_000_000 < int(apparent) < 400_000_000
    assert abs(int(apparent) - int(taken)) < 4_000_000 and taken == again
    assert all((int(size) + 4095) // 4096 * 8 == int(blocks) for blocks, size in rows)
    assert abs(int(before[2]) - int(after[2])) < 200_000


def test_large_files_of_twins(aquarium, tmp_path):
    script = "cd; find . -size +300k -type f | sort | xargs -d '\\n' {}"
    a, b = (inside(aquarium, tmp_path, script.format("stat -c '%s %Y %X %Z %b %a'"), side) for side in "AB")
    assert a == b
    a, b, again = (inside(aquarium, tmp_path, script.format("sha256sum"), side) for side in "ABA")
    sums = [{line.split()[0] for line in text.splitlines()} for text in (a, b, again)]
    assert len(sums[0]) > 20 and not sums[0] & sums[1] and sums[0] == sums[2]


CHANGES = {
    "moved": ("mv Pictures/phone p; cat p/*", "cat Pictures/phone/*"),
    "linked": ("cd Pictures/phone; for f in *; do ln $f ~/l-$f; done; cat ~/l-*", "cat Pictures/phone/*"),
    "cut": ("truncate -s 5000 Music/01*; cat Music/01*", "head -c 5000 Music/01*"),
    "cut and grown": ("truncate -s 5000 Music/01*; truncate -s 6000 Music/01*; cat Music/01*",
                      "head -c 5000 Music/01*; head -c 1000 /dev/zero"),
    "written": ("printf abc > Music/01*; cat Music/01*; seq 9999 >> Music/01*; cat Music/01*", "printf abcabc; seq 9999"),
    "written in": ("printf abc | dd of=\"$(ls Music/01*)\" conv=notrunc status=none; head -c 5000 Music/01*",
                   "printf abc; head -c 5000 Music/01* | tail -c +4"),
    "aged": ("touch Music/*; cat Music/*", "cat Music/*"),
    "replaced": ("cd Music; rm 01*; seq 99999 > '01 - Harbour.mp3'; cat 01*", "seq 99999"),
    "mapped": ("python3 -c \"import glob,mmap,sys;f=open(glob.glob('Music/01*')[0],'rb');"
               "sys.stdout.buffer.write(mmap.mmap(f.fileno(),0,prot=1)[:])\"", "cat Music/01*"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_large_files_are_never_empty(aquarium, tmp_path, how):
    changed, plain = (inside(aquarium, tmp_path, f"cd; {{ {script}; }} | sha256sum") for script in CHANGES[how])
    assert changed == plain


def test_times_of_a_large_file(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "cd Music; stat -c '%Y %Z %W' 01*; head -c 1 01* > /dev/null; stat -c '%Y %Z %W' 01*")
    assert len(set(text.splitlines())) == 1


def test_no_space_for_a_large_file(aquarium, tmp_path):
    """Where little may be written a large file stays empty, and the world goes on; the room that is kept for others is no way past the limit."""
    done = aquarium.run("run", "--quarantine", "--seed", "7", "--limit", "disk-bytes=8000000", "--", "bash", "-c",
                        "cd; cat Videos/* | wc -c; file -b Videos/* Downloads/b*; ls Videos | wc -l", cwd=tmp_path)
    assert done.stdout.splitlines() == [b"21733094", b"data", b"PDF document, version 1.5, 1 pages", b"1"], (done.stdout, done.stderr)
    done = aquarium.run("run", "--quarantine", "--seed", "7", "--limit", "disk-bytes=8000000", "--", "bash", "-c",
                        "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 2000000 /dev/zero > /tmp/$i; done; echo all", cwd=tmp_path)
    assert b"all" not in done.stdout and b"disk-bytes" in done.stderr


FILLS = {  # after each, no byte more; and none less than a page and a call
    "small": "for i in range(9999): open(f'/tmp/{i}', 'wb').write(bytes(100_000))",
    "one": "f = open('/tmp/x', 'wb', 0)\nwhile True: f.write(bytes(100_000))",
    "last": "open('/tmp/a', 'wb').write(bytes(5_000_000)); open('/tmp/b', 'wb').write(bytes(5_000_000)); open('/tmp/c', 'wb').write(bytes(5_000_000))",
    "vectors": "open('/tmp/a', 'wb').write(bytes(5_000_000)); import os; f = os.open('/tmp/b', 65)\nwhile True: os.writev(f, [bytes(1_500_000)] * 2)",
    "bytes": "for i in range(99999): open(f'/tmp/{i}', 'wb').write(b'x')",
}


@pytest.mark.parametrize("first", ["", "import os; print(len(open(os.path.expanduser('~/Downloads/') + next(f for f in os.listdir(os.path.expanduser('~/Downloads')) "
                                       "if f.startswith('b')), 'rb').read()))\n"], ids=["nothing", "a large file"])
@pytest.mark.parametrize("how", FILLS)
def test_the_limit_of_the_disk_is_what_it_says(aquarium, tmp_path, how, first):
    """Room that is kept for large files which nobody opened yet is not the program's."""
    done = aquarium.run("run", "--quarantine", "--seed", "7", "--limit", "disk-bytes=8000000", "--json", "--", "python3", "-c",
                        first + FILLS[how], cwd=tmp_path)
    said = json.loads(done.stdout)
    used = sum(-(-c["size"] // 4096) * 4096 for c in said["observation"]["changes"])
    assert said["observation"]["exit"] == {"kind": "budget", "value": 6}, said["observation"]["exit"]
    assert 8_000_000 - 200_000 < used <= 8_000_000 + 100_000, used


def test_unopened_files_are_no_change(aquarium, tmp_path):
    for script in ("ls -R ~", "cat ~/Music/*"):
        done = aquarium.run("run", "--quarantine", "--seed", "7", "--json", "--", "bash", "-c", script + " > /dev/null", cwd=tmp_path,
                            check=0)
        report = json.loads(done.stdout)
        assert not [c for c in report.get("changes", []) if "/home/" in c["path"]], report.get("changes")


def test_shown_as_it_is(aquarium, tmp_path):
    """`decoys show --file` prints what a program would read."""
    shown = subprocess.run([PROGRAM, "decoys", "show", "--seed", "7", "--world", "A", "--file", "~/Downloads/photos-export.zip"],
                           capture_output=True, check=True).stdout
    text = inside(aquarium, tmp_path, "sha256sum < ~/Downloads/photos-export.zip")
    assert text.split()[0] == hashlib.sha256(shown).hexdigest()
