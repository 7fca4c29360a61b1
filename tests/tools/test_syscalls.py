"""The tables of system calls are what the generator makes of the system's headers."""
import re
import subprocess

from conftest import ROOT


def generate(arch):
    done = subprocess.run([ROOT / "tools/gen-syscalls", arch], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode()


def calls(text):
    return {name: int(nr) for nr, name in re.findall(r"^AQ_SYSCALL\((\d+), (\w+)\)$", text, re.M)}


def test_the_committed_table_is_the_generated_one():
    code, text = generate("x86_64")
    assert code == 0
    assert text == (ROOT / "src/kernel/syscalls_x86_64.def").read_text()
    assert len(calls(text)) > 380


def test_it_is_ready_for_aarch64():
    code, text = generate("aarch64")
    other = calls(text)
    assert code == 0 and other["openat"] == 56 and other["execve"] == 221 and "open" not in other
    # From 424 on all architectures share their numbers.
    own = calls((ROOT / "src/kernel/syscalls_x86_64.def").read_text())
    assert {n: v for n, v in other.items() if v >= 424} == {n: v for n, v in own.items() if v >= 424}


def test_no_other():
    assert generate("pdp11")[0] != 0
