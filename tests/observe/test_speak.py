"""What is said over a stream is told once, however it is cut; what only looks like it is not."""
import os

import pytest

from test_truth import BUILD, watch


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return watch(tmp_path_factory.mktemp("speak"), BUILD / "tests/observe/speak")


def told(events, op):
    return [(e["object"], e["args"].get("target"), "cut" in e["args"]) for e in events if e["op"] == op]


def test_requests(run):
    _, events, _ = run
    names = "bytes mixed first second form after".split()
    expected = [(f"{n}.example", f"/{n}", False) for n in names]
    expected += [("tunnel.example", "tunnel.example:443", False)]
    expected += [(f"{n}.example", f"/{n}", False) for n in "file pipe family".split()]
    requests = told(events, "http-request")
    assert requests[:-2] == expected
    # One whose head never ended, and one whose head is longer than is kept.
    assert requests[-2] == ("cut.example", "/cut", True) and requests[-1][1:] == ("/large", True)
    assert not [e for e in events if e["op"] == "unseen"]


def test_greetings(run):
    _, events, _ = run
    assert told(events, "tls-hello") == [(f"{n}.tls.example", None, False) for n in "bytes records inner".split()]


@pytest.mark.skipif(os.geteuid() != 0, reason="the port of name servers is root's")
def test_questions(run):
    out, events, _ = run
    assert out == "100 asked\n"
    names = [e["object"] for e in events if e["op"] == "dns-query"]
    assert names == [f"q{i}.example" for i in [*range(100), 1000]]
