"""Everything random in a world comes out of its seed: the same again, the same in A and B, another for another
seed, and of its own for each task. What is not random about it is as the kernel has it."""
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

START = "2026-11-02T10:50:18Z"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("entropy")
    open_to_others(folder)
    shutil.copy(BUILD / "tests/observe/entropy", folder / "entropy")
    return folder


def run(place, *command, seed="1", world="A"):
    of = [] if world == "none" else ["--seed", seed, "--start", START]
    done = subprocess.run([PROGRAM, "run", "--quarantine", *of, "--world", world, "--quiet", "--", *command],
                          cwd=place, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode()


@pytest.fixture(scope="module")
def said(place):
    return run(place, "./entropy")


def values(text):
    """What was random: all bytes, by the place where they were said."""
    return [line.split()[3] for line in text.splitlines() if len(line.split()) == 4]


def test_same_again_and_in_both_worlds(place, said):
    assert run(place, "./entropy") == said
    assert run(place, "./entropy", world="B") == said


def test_each_value_is_said_once(place, said):
    """Forks, threads, new programs, devices and calls share nothing."""
    other = run(place, "./entropy", seed="2")
    assert len(values(said)) >= 30
    assert len(set(values(said))) == len(values(said))
    assert not set(values(said)) & set(values(other))


def test_the_rest_is_as_the_kernel_has_it(place, said):
    native = subprocess.run([place / "entropy"], stdout=subprocess.PIPE, timeout=60, check=True).stdout.decode()
    assert [line for line in said.splitlines() if line.startswith("!")] == \
        [line for line in native.splitlines() if line.startswith("!")]
    assert [line.split()[:3] for line in said.splitlines()] == [line.split()[:3] for line in native.splitlines()]


CONTROLS = """
import fcntl
with open("/dev/urandom", "rb") as f:
    for request in (0x80045200, 0x40045201, 0x40085203, 0x5204, 0x5206, 0x5207, 0x52ff):
        try: print(int.from_bytes(fcntl.ioctl(f, request, bytes(64))[:4], "little") if request == 0x80045200 else fcntl.ioctl(f, request, bytes(64)))
        except OSError as e: print(-e.errno)
"""


def test_nobody_but_root_stirs_the_pool(place):
    """As an ordinary user finds it on any machine: the pool is full, and not his."""
    assert run(place, "/usr/bin/python3", "-c", CONTROLS).split() == ["256", *["-1"] * 5, "-22"]


def test_a_world_without_a_machine_is_left_to_chance(place):
    assert not set(values(run(place, "./entropy", world="none"))) & set(values(run(place, "./entropy", world="none")))


@pytest.mark.parametrize("command", [
    ["sh", "-c", "mktemp -u; mktemp -d; head -c 8 /dev/random | od -An -tx1; dd if=/dev/urandom bs=7 count=3 status=none | md5sum"],
    ["/usr/bin/python3", "-c", "import os, random, secrets, tempfile, uuid; "
     "print(random.random(), secrets.token_hex(8), uuid.uuid4(), tempfile.mkdtemp(), hash('a'), id(os))"],
    ["perl", "-e", "my %h = map { $_ => 1 } 1..20; print rand(), ' ', join(',', keys %h), qq(\\n)"],
    ["bash", "-c", "echo $RANDOM $RANDOM $SRANDOM; exec {f}< /dev/urandom; (head -c 4 <&$f; head -c 4 <&$f) | md5sum"],
])  # fmt: skip
def test_programs(place, command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not on this machine")
    first = run(place, *command)
    assert first == run(place, *command, world="B")
    assert first != run(place, *command, seed="2")
