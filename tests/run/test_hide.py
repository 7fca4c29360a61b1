"""A program that tries to hide an act from the record, or to have something untrue recorded."""
import json

import pytest

from test_run import Runner, runner  # noqa: F401


def hide(runner, name):  # noqa: F811
    """What the program printed, its status, and the events."""
    runner.copy("hide")
    events = runner.place.parent / "events.jsonl"
    done = runner.run("./hide", name, timeout=60,
                      options=["--events", events, "--limit", "wall-ms=20000"])
    said = dict(line.split() for line in done.stdout.decode().splitlines() if " " in line)
    return said, done, [json.loads(x) for x in events.read_text().splitlines()][1:-1]


def objects(events, op):
    return {e["object"] for e in events if e["op"] == op}


def test_arguments_in_memory_that_nobody_may_read(runner):  # noqa: F811
    said, done, events = hide(runner, "unreadable")
    assert said == {"mkdir": "0", "connect": "-113", "userns": "-1", "nothing": "-14"}
    assert objects(events, "mkdir") >= {"/tmp/unreadable"}
    assert objects(events, "connect") == {"198.51.100.7:443"}
    assert "/etc/protocols" in objects(events, "open")  # by a child that asked not to be traced
    assert any(e["rule"] == "namespace.refused" for e in events)
    assert done.returncode == 0


def test_a_listener_by_a_longer_number(runner):  # noqa: F811
    said, _, events = hide(runner, "listener")
    assert said == {"listener": "-16"}
    assert any(e["rule"] == "listener.refused" for e in events)


@pytest.mark.parametrize("name", ["filtered", "trapped", "killed"])
def test_a_filter_against_what_we_do_in_its_name(runner, name):  # noqa: F811
    _, done, events = hide(runner, name)
    assert done.returncode == 128 + 9
    assert "/usr/bin/mkdir" in objects(events, "exec") and objects(events, "mkdir") == set()
    assert objects(events, "unseen") == {"/usr/bin/mkdir"}


def test_signals_that_tell_of_calls(runner):  # noqa: F811
    said, _, events = hide(runner, "forged")
    assert said == {"forged": "0", "forged32": "0"}  # and the program lives on
    assert objects(events, "refused") == set()
    said, _, events = hide(runner, "covered")
    assert objects(events, "refused") == {"swapoff"}


def test_an_interrupted_call_that_is_made_again_otherwise(runner):  # noqa: F811
    said, _, events = hide(runner, "restarted")
    assert said == {"written": "1"}
    opened = [e for e in events if e["op"] == "open" and e["object"] == "/tmp/again"]
    assert [e["args"]["flags"] & 0o101 for e in opened] == [0o101]


def test_a_thread_made_as_by_vfork(runner):  # noqa: F811
    said, done, _ = hide(runner, "vthread")
    assert said == {"vthread": "1"} and done.stdout.endswith(b"after\n") and done.returncode == 0


def test_addresses_that_mislead(runner):  # noqa: F811
    _, _, events = hide(runner, "addresses")
    asked = [(e["object"], e["args"]["server"]) for e in events if e["op"] == "dns-query"]
    assert asked == [("secret.test", "198.51.100.7:53"), ("secret.test", "203.0.113.5:53")]
    assert objects(events, "bind") == {"unix:@open@hidden"}


def test_one_act_behind_a_flood(runner):  # noqa: F811
    runner.copy("hide")
    said, events = runner.json("./hide", "flood")
    assert "/etc/hostname" in said["summary"]["files_read"] and "/etc/hostname" in objects(events, "open")
    # Of the vain ones some are shown by no event, and that is said.
    assert 900 < said["summary"]["unnamed"] < 1100
    assert said["truncated"] is True and said["complete"] is False
    assert b"a flood: " in runner.run("./hide", "flood").stderr
    said, _ = runner.json("true")
    assert said["summary"]["unnamed"] == 0 and said["truncated"] is False


def test_waits_without_end(runner):  # noqa: F811
    runner.copy("hide")
    said, _ = runner.json("./hide", "forever")
    assert said["exit_status"] == 3  # by the limit on virtual time, not by a failure of ours
    assert [s["ns"] for s in said["summary"]["sleeps"]] == [3600 * 10**9]


def test_a_place_too_deep_to_be_named(runner):  # noqa: F811
    runner.copy("hide")
    said, _ = runner.json("./hide", "deep")
    assert any(x.startswith("(unnamed)") for x in said["summary"]["files_written"])
