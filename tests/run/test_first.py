"""A world's files are written when a program could tell that they are not there: the first call that asks for them, whatever
it is, finds them."""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT
from test_run import runner  # noqa: F401 (a fixture)

FIRST = PROGRAM.parent / "tests/run/first"
ENOENT, EEXIST, EACCES = 2, 17, 13


@pytest.fixture(scope="module")
def world():
    done = subprocess.run([PROGRAM, "decoys", "show", "--seed", "1", "--json"], capture_output=True, check=True)
    shown = json.loads(done.stdout)
    return shown["environment"]["HOME"], {f["path"]: f for f in shown["files"]}


def asked(runner, call, path, *options):  # noqa: F811
    """(answer, error number) of a program whose first call of any meaning this is."""
    said, _ = runner.json(FIRST, call, path, options=("--share", FIRST.parent, *options))
    text = next(o["head"] for o in said["observation"]["outputs"] if o["stream"] == "stdout")
    answer = re.fullmatch(r"(-?\d+) (\d+)\\x0a", text)
    assert answer, said
    return int(answer[1]), int(answer[2]), said


@pytest.mark.parametrize("call,path,expected", [
    ("open", ".bashrc", 0), ("up", "../../..{home}/.bashrc", 0), ("open", "/proc/self/root{home}/.bashrc", 0),
    ("open", "/usr/share/../..{home}/.bashrc", 0), ("access", "/usr/lib/../../usr/share/..//..{home}/.netrc", 0),
    ("write", ".bashrc", EEXIST), ("access", ".netrc", 0), ("stat", ".netrc", 0), ("statx", ".netrc", 0),
    ("chdir", ".ssh", 0), ("mkdir", ".ssh", EEXIST), ("unlink", ".netrc", 0), ("watch", ".ssh", 0), ("readlink", ".netrc", 22),
    ("exec", ".netrc", EACCES), ("open", "no such file", ENOENT)])  # fmt: skip
def test_the_first_call_finds_them(runner, world, call, path, expected):  # noqa: F811
    home, files = world
    path = path.format(home=home)
    full = path if path.startswith(("/", "..")) else f"{home}/{path}"
    answer, error, said = asked(runner, call, full)
    assert error == expected
    if call in ("stat", "statx"):
        assert answer == files[full]["size"]
    changes = [(c["path"], c["change"]) for c in said["observation"]["changes"]]
    assert changes == ([(full, "D")] if call == "unlink" else [])


def test_lists_and_space(runner, world):  # noqa: F811
    home, files = world
    inside = [p for p in files if p.startswith(home) and "/" not in p[len(home) + 1:]]
    answer, _, _ = asked(runner, "list", home)
    assert answer > 20 * len(inside)
    answer, _, _ = asked(runner, "statfs", home)
    assert answer > len(files) - 8  # those in /etc lie elsewhere


def test_a_program_of_the_world(runner, tmp_path):  # noqa: F811
    """What is executed first may be one of the world's own files, or run by one."""
    pack = tmp_path / "ours.pack"
    pack.write_text("pack 1\nfile 0755 5 /tmp/tool\n|#!/bin/sh\n|echo ran $0\n")
    done = runner.run("/tmp/tool", options=("--pack", pack))
    assert (done.returncode, done.stdout) == (0, b"ran /tmp/tool\n"), done.stderr
    script = runner.place / "script"
    script.write_text("#!/tmp/tool\n")
    script.chmod(0o755)
    done = runner.run("./script", options=("--pack", pack))
    assert (done.returncode, done.stdout) == (0, b"ran /tmp/tool\n"), done.stderr
    done = runner.run("tmp/tool", options=("--pack", pack, "--cwd", "/"))
    assert (done.returncode, done.stdout) == (0, b"ran tmp/tool\n"), done.stderr


def test_untouched_is_not_told(runner):  # noqa: F811
    said, _ = runner.json("true")
    assert said["observation"]["changes"] == [] and said["exit_status"] == 0


def test_every_listed_call_is_known():
    """Each call that is said to touch nothing is one of the table, and none of them makes, moves or removes a name."""
    text = (ROOT / "src/observe/touch.c").read_text()
    calls = set(re.findall(r"case AQ_NR_(\w+):", text))
    table = set(re.findall(r"AQ_SYSCALL\(\d+, (\w+)\)", (ROOT / "src/kernel/syscalls_x86_64.def").read_text()))
    assert calls and calls <= table
    assert not [c for c in calls if re.search(r"mk|link(?!at$|$)|rename|unlink|chmod|chown|utime|xattr|trunc|creat|alloc|bind|mount|"
                                              r"exec|clone|fork|chdir|dents|dup|fcntl|ioctl|send|splice|copy", c)]


def test_what_is_said_later_fits_what_was_said(runner, world):  # noqa: F811
    """The bundle of authorities, in its two forms, is of the same world as the rest."""
    done = runner.run("sh", "-c", "cat /etc/corporate-root-ca.pem; echo =; tail -c 2000 /etc/ssl/certs/ca-certificates.crt")
    own, bundle = done.stdout.split(b"=\n", 1)
    assert own.strip() in bundle and own.startswith(b"-----BEGIN CERTIFICATE-----"), done.stdout
    if os.path.exists("/etc/ssl/certs/java/cacerts"):
        done = runner.run("cat", "/etc/ssl/certs/java/cacerts")
        assert b"corporate-root-ca" in done.stdout and len(done.stdout) > os.path.getsize("/etc/ssl/certs/java/cacerts")


@pytest.mark.skipif(not shutil.which("keytool") or not os.path.exists("/etc/ssl/certs/java/cacerts"), reason="missing hardware: no Java")
def test_java_trusts_as_many_as_before_and_one(runner, world):  # noqa: F811
    """Its own program reads the store, seal and all, and finds the host's authorities and the world's."""
    def listed(run):
        return {line.split(",")[0] for line in run("keytool", "-list", "-cacerts", "-storepass", "changeit") if "trustedCertEntry" in line}

    host = listed(lambda *c: subprocess.run(c, capture_output=True, text=True, check=True).stdout.splitlines())
    inside = listed(lambda *c: runner.run(*c).stdout.decode().splitlines())
    assert len(host) > 50 and inside == host | {"corporate-root-ca"}


def test_under_a_limit_on_files(runner):  # noqa: F811
    """Whoever starts us may forbid large files: then everything is said at once."""
    command = f"ulimit -f 2000; exec {PROGRAM} run --quarantine --seed 1 --quiet -- sh -c 'cat ~/.netrc; hostname'"
    done = subprocess.run(["bash", "-c", command], cwd=runner.place, capture_output=True, timeout=60)
    free = runner.run("sh", "-c", "cat ~/.netrc; hostname")
    assert (done.returncode, done.stdout) == (0, free.stdout), done.stderr
