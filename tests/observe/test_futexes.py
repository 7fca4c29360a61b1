"""Futexes of every kind answer as the kernel's own: what these lines say was printed by futexes.c outside of any world."""
import shutil
import subprocess

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

OPERATIONS = " ".join(" ".join([f"0:{value}"] * 18) for value in (3, 8, 7, 4, 6))
SAID = f"""woke 1
woke 1
woke 1
woke 1
in order: 0 1 2 3
woke 1
woke 0
no bits -22
moved 2
other value -11
there 1
here 1
by bits and places: 2 0 1 3
{OPERATIONS}
0 1 0 0 1 1
-110 -110 -110 -22 -11 -22
private 0
shared 1
child 7
robust: 130 0 0
then 0
heirs: 130 0 0
then 0
try -11 timed -110 not mine -1
mine 1 died 1
unlock 0
handed on: 0
0 twice -35 0""".splitlines()


def test_answers_are_those_of_the_kernel(tmp_path):
    """Also when the owner of a word dies: nobody waits for ever."""
    open_to_others(tmp_path)
    shutil.copy(BUILD / "tests/observe/futexes", tmp_path / "futexes")
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "1", "--quiet", "--", "./futexes"], cwd=tmp_path,
                          timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rstrip() for line in done.stdout.splitlines()] == SAID
