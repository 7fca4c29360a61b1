"""The world of a run: same seed, same world; what a program sees of it; what it did not change is not told."""
import hashlib
import json
import os
import re
import subprocess

import pytest

from conftest import PROGRAM
from test_run import runner  # noqa: F401 (a fixture)

READ_ALL = """
import hashlib, os, socket
h = hashlib.sha256()
for place in (os.environ["HOME"], "/etc"):
    for folder, folders, files in os.walk(place):
        folders.sort()
        if folder == "/etc": folders.clear()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if place != "/etc" or name in ("hostname", "hosts", "passwd", "group", "machine-id", "fstab"):
                st = os.stat(path)
                h.update(f"{path} {st.st_mode:o} {st.st_size} {st.st_uid}\\n".encode() + open(path, "rb").read())
h.update(repr(sorted(os.environ.items())).encode() + socket.gethostname().encode())
print(h.hexdigest())
"""


def shown(seed, world="A", *options):
    done = subprocess.run([PROGRAM, "decoys", "show", "--seed", seed, "--world", world, *options],
                          capture_output=True, check=True)
    return done.stdout


def test_same_seed_same_digest(runner):  # noqa: F811
    runs = [runner.json("/usr/bin/python3", "-c", READ_ALL, options=("--seed", seed, "--world", world))
            for seed, world in (("42", "A"), ("42", "A"), ("42", "B"), ("43", "A"))]
    digests = [said["observation_digest"] for said, _ in runs]
    assert digests[0] == digests[1] and len(set(digests)) == 3
    assert [(said["world"]["seed"], said["world"]["side"]) for said, _ in runs] == [
        ("42", "A"), ("42", "A"), ("42", "B"), ("43", "A")]
    assert len({said["world"]["start"] for said, _ in runs[:3]}) == 1


def test_what_the_caller_sets_is_set_once(runner):  # noqa: F811
    """A variable of the caller's takes the place of the decoy of that name; the others stay."""
    lines = runner.run("env", options=("--env", "AWS_ACCESS_KEY_ID=mine,OWN=1")).stdout.decode().splitlines()
    assert [x for x in lines if x.startswith("AWS_ACCESS_KEY_ID=")] == ["AWS_ACCESS_KEY_ID=mine"] and "OWN=1" in lines
    assert len({x.split("=")[0] for x in lines}) == len(lines) and any(x.startswith("GITHUB_TOKEN=ghp_") for x in lines)


BUSY = """
import asyncio, os, subprocess, threading, time
def look():
    for i in range(50): os.stat("/tmp")
threads = [threading.Thread(target=look) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print(subprocess.run(["ls", "/"], capture_output=True).stdout, len(bytearray(3_000_000)))
time.sleep(1)
"""


def test_same_digest_side_by_side(runner):  # noqa: F811
    """Whatever else the machine does, and wherever the kernel would put the heap."""
    command = [PROGRAM, "run", "--quarantine", "--seed", "1", "--json", "--", "/usr/bin/python3", "-c", BUSY]
    digests = set()
    for _ in range(2):
        runs = [subprocess.Popen(command, cwd=runner.place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                for _ in range(8)]
        digests |= {json.loads(run.communicate(timeout=120)[0])["observation_digest"] for run in runs}
    assert len(digests) == 1


def test_random_world_can_be_repeated(runner):  # noqa: F811
    command = ("sh", "-c", "cat /etc/machine-id; hostname; pwd; cat ~/.aws/credentials")

    def random(*options):
        return subprocess.run([PROGRAM, "run", "--quarantine", *options, "--", *command], cwd="/",
                              capture_output=True, timeout=60)

    first, other = random(), random()
    again = re.search(rb"world +made up, .*: (--seed [0-9a-f]{16} --world A --start [-0-9T:]+Z)", first.stderr)
    assert first.returncode == 0 and again, first.stderr
    assert first.stdout != other.stdout
    assert random(*again[1].decode().split()).stdout == first.stdout


def test_the_run_sees_what_is_shown(runner):  # noqa: F811
    world = json.loads(shown("5", "A", "--json"))
    said = runner.run("sh", "-c", "cat ~/.ssh/id_ed25519 /etc/passwd; id -un; hostname; stat -c '%a %U' ~/.ssh; "
                      "date -r ~/.bash_history +%s; date +%s", options=("--seed", "5")).stdout.decode()
    decoys = {d["name"]: d["value"] for d in world["decoys"]}
    assert said.startswith(shown("5", "A", "--file", ".ssh/id_ed25519").decode())
    lines = said.splitlines()
    assert lines[-5:-2] == [decoys["person.user"], decoys["machine.hostname"], f"700 {decoys['person.user']}"]
    assert 3600 <= int(lines[-1]) - int(lines[-2]) <= 7300
    assert f"{decoys['person.user']}:x:1000:1000:{decoys['person.name']},,,:" in said


def test_only_changes_are_told(runner):  # noqa: F811
    said, _ = runner.json("cat", "/etc/hostname")
    assert said["observation"]["changes"] == []
    said, _ = runner.json("sh", "-c", "cd; echo x >> .bashrc; rm .vimrc; rm -r .bitcoin; echo new > new; chmod 600 .profile;"
                          "cp .netrc n; mv n .netrc; mkdir .aws/more; rm .pypirc; mkdir .pypirc; cat .npmrc; touch .npmrc")
    home = json.loads(shown("1", "A", "--json"))["environment"]["HOME"]
    changes = {f["path"].removeprefix(home + "/"): f["change"] for f in said["observation"]["changes"]}
    assert changes == {".bashrc": "M", ".vimrc": "D", ".bitcoin/": "D", ".bitcoin/bitcoin.conf": "D",
                       ".bitcoin/wallets/": "D", ".bitcoin/wallets/dump.txt": "D", "new": "A", ".profile": "M",
                       ".aws/more/": "A", ".pypirc/": "M"}


def test_own_variables_win(runner):  # noqa: F811
    done = runner.run("sh", "-c", "echo $AWS_ACCESS_KEY_ID $USER $MINE", options=("--env", "AWS_ACCESS_KEY_ID=none,MINE=1"))
    assert re.fullmatch(rb"none [a-z]+ 1\n", done.stdout)


def test_packs(runner, tmp_path):  # noqa: F811
    pack = tmp_path / "ours.pack"
    pack.write_text("pack 1\ndecoy ours.word secret text W%{digits:9}\nfile 0600 5 /home/%{person.user}/word\n|%{ours.word}\n"
                    "file 0600 5 /tmp/word\n|%{ours.word}\n")
    done = runner.run("sh", "-c", "cat ~/word /tmp/word", options=("--pack", pack))
    assert re.fullmatch(rb"(W\d{9}\n)\1", done.stdout), done.stderr
    for wrong, says in (("file 0600 5 /usr/x\n|y\n", b"/usr/x"), (f"file 0600 5 {runner.place}/x\n|y\n", b"share"),
                        ("file 0600 5\n", b"line 2"), ("nonsense\n", b"line 2"),
                        ("folder 0000 5 /home/%{person.user}/shut\nfile 0600 5 /home/%{person.user}/shut/x\n|y\n", b"closed to its owner"),
                        ("fact host.name " + "h" * 65 + "\n", b"the host's name")):
        pack.write_text("pack 1\n" + wrong)
        done = runner.run("touch", "/tmp/ran", options=("--pack", pack))
        assert done.returncode == 64 and says in done.stderr, (wrong, done.stderr)


def test_a_file_in_etc_that_no_machine_has(runner, tmp_path):  # noqa: F811
    """Then /etc is made anew, and is otherwise what it was."""
    pack = tmp_path / "ours.pack"
    pack.write_text("pack 1\nfile 0644 5 /etc/ours.conf\n|one\nfile 0644 5 /etc/ours2.conf\n|two\n")
    look = ("sh", "-c", "cat /etc/ours.conf /etc/ours2.conf; cat /etc/hostname; ls /etc | wc -l; touch /etc/x")
    plain, more = runner.run(*look).stdout.split(), runner.run(*look, options=("--pack", pack)).stdout.split()
    assert more[:2] == [b"one", b"two"] and more[2] == plain[0] and int(more[3]) == int(plain[1]) + 2 > 100


@pytest.mark.parametrize("options", [("--seed", "no good"), ("--seed", "x" * 65), ("--world", "C"), ("--pack", "/nowhere")])
def test_usage(runner, options):  # noqa: F811
    assert runner.run("true", options=options).returncode == 64


def test_cwd_in_the_home(runner):  # noqa: F811
    home = json.loads(shown("1", "A", "--json"))["environment"]["HOME"]
    done = runner.run("ls", "-a", options=("--cwd", f"{home}/.ssh"))
    assert b"id_ed25519" in done.stdout, done.stderr


def test_a_world_without_decoys(runner):  # noqa: F811
    said, _ = runner.json("sh", "-c", "ls -A ~; env", options=("--world", "none"))
    assert said["world"] is None
    done = runner.run("sh", "-c", "ls -A ~; env | cut -d= -f1 | sort", options=("--world", "none"))
    assert done.stdout.split() == [b"HOME", b"LANG", b"LOGNAME", b"PATH", b"PWD", b"SHELL", b"TMPDIR", b"USER"]
    assert b"world     empty" in done.stderr
    assert runner.run("true", options=("--world", "none", "--seed", "1")).returncode == 64
    assert runner.run("true", options=("--world", "none", "--pack", "/dev/null")).returncode == 64
