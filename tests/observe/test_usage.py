"""Processor time and uptime are virtual, whoever is asked, and the same in each run."""
import json

from test_truth import BUILD, watch


def test_all_agree(tmp_path):
    runs = [watch(tmp_path, BUILD / "tests/observe/usage", how=["--apart"]) for _ in range(3)]
    said = [json.loads(out) for out, _, _ in runs]
    assert said[0] == said[1] == said[2]
    s = said[0]
    assert s["uptime"] == 1000 and 100000 <= s["ticks"] <= 100010 and s["load"] > 0
    # 20,000 calls of 300 ns each, and not a nanosecond for the sleep.
    assert 6_000_000 <= s["child"] < 6_200_000 and abs(s["second"] - s["child"]) < 2000
    assert abs(s["children"] - s["child"] - s["second"]) < 2000
    assert 3_000_000 <= s["self"] < 3_200_000 and s["switches"] == 0
    assert s["self"] <= s["clock"] <= s["own"] <= s["thread"] < s["self"] + 10_000
    assert s["cutime"] in (0, 1) and s["bad"] == -1
    # Of a thread: its own, and no more; of the process: all of them.
    assert 1_500_000 <= s["worker"] < 1_600_000 and s["before"] <= s["leader"] < s["before"] + 50_000
    assert abs(s["both"] - s["leader"] - s["worker"]) < 10_000
    calls = {e["args"]["call"] for e in runs[0][1] if e["op"] == "now"}
    assert {"times", "sysinfo", "clock_gettime"} <= calls
