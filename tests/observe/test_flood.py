"""A flood is bounded and said; what happens in its middle is not lost."""
from collections import Counter

from test_truth import BUILD, watch


def test_flood(tmp_path):
    _, events, end = watch(tmp_path, BUILD / "tests/observe/flood", tmp_path)
    ops = Counter(e["op"] for e in events)
    assert end["dropped"] == 0 and len(events) < 11000
    assert ops["access"] == 10000 and sum(e["object"] == "/etc/passwd" for e in events) == 32 + 1
    said = {(e["args"]["op"], e["object"]): e["args"] for e in events if e["op"] == "repeat"}
    assert said[("stat", "/etc/passwd")] == {"op": "stat", "count": 3000, "left-out": 2968}
    # ld.so asks once, too: the loop's 12,000 are among those that were left out or kept.
    rest = said[("access", None)]
    assert rest["count"] == rest["left-out"] + 10000 == 12001 and rest["unnamed"] == rest["left-out"]
    assert any(e["op"] == "open" and e["object"] == "/etc/hostname" for e in events)
    counts = next(e for e in events if e["op"] == "counts")["args"]["calls"].split()
    assert {"stat=3000", "getppid=5000", "access=12001"} <= set(counts)
