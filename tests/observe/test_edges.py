"""Who let whom go on: the record names the right ones, whichever way they waited for each other."""
import json
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others

# What each act of tests/twins/edges.c must tell of its way: who went on, after whom; (process, thread) in the order of births.
P1, P2, P3, P4 = ((n, 0) for n in range(1, 5))
MAIN, T1, T2, T3, T4 = ((0, n) for n in range(5))
EDGES = {
    "semaphore": ("semaphore", [(P1, P2)]),
    "semaphore-zero": ("semaphore", [(P2, MAIN), (P1, P2)]),
    "semaphore-all": ("semaphore", [(P1, P2)]),
    "semaphore-undo": ("semaphore", [(P1, MAIN), (P2, P1)]),
    "removed": ("removed", [(P1, P2)]),
    "message": ("message", [(MAIN, P2), (MAIN, P1), (MAIN, P3)]),
    "queue": ("message", [(MAIN, P2), (MAIN, P1)]),
    "eventfd": ("eventfd", [(MAIN, T2), (MAIN, T3)]),
    "signalfd": ("signal", [(MAIN, (1, 1))]),
    "sigwait": ("signal", [(MAIN, (1, 1))]),
    "lock-end": ("lock", [(P2, P1)]),
    "lock-shared": ("lock", [(P3, P1), (P3, P2)]),
    "lock-range": ("lock", [(P3, P1), (P4, P1), (P4, P2), (P4, P3)]),
    "lock-given-back": ("lock", [(P1, T1)]),
    "condition": ("futex", [(T1, T2)]),
    "condition-all": ("futex", [(T1, T4), (T2, T4), (T3, T4)]),
    "condition-pi": ("futex", [(T1, T2)]),
    "mutex-pi": ("futex", [(T2, T1)]),
    "requeue": ("futex", [(T1, T2), (T1, T3)]),
    "requeue-pi": ("futex", [(T1, T3), (T2, T3), (T2, T1)]),
}


@pytest.mark.parametrize("act", EDGES)
def test_who_let_whom_go_on(tmp_path, act):
    shutil.copy(PROGRAM.parent / "tests/twins/twins_edges", tmp_path)
    open_to_others(tmp_path)
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "edges", "--events", tmp_path / "events", "--",
                           "./twins_edges", act], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()[1:-1]]
    how, edges = EDGES[act]
    told = [((e["process"], e["thread"]), (e["args"]["process"], e["args"]["thread"])) for e in events
            if e["op"] == "after" and e["args"]["how"] == how]
    assert told == edges
