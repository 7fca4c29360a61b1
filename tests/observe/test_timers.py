"""Timers of every kind answer as the kernel's own: what these lines say was printed by timers.c outside of any world."""
import shutil
import subprocess

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

SAID = """alarm 0 10 3
interval 1
slept 1 rang 14
kept 1
work 26
work 27
rang 1 timer 1 missed 9 9
to the thread 1
none 1
made 0 rang 1 after 1
made 0 rang 1 after 1
read 8 count 10
every 100000000 set anew -1 1 left 1
past 8
"""


def test_answers_are_those_of_the_kernel(tmp_path):
    open_to_others(tmp_path)
    shutil.copy(BUILD / "tests/observe/timers", tmp_path / "timers")
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "1", "--quiet", "--", "./timers"], cwd=tmp_path,
                          timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, SAID, "")
