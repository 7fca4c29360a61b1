"""The program on a stock kernel with version 2 control groups, as root, as a user whose groups are his
own, and as one who may make none. What the guest saw is one JSON object; it is judged here."""
import os
import shutil

import pytest

import guest
from conftest import schema

PLACES = ("service", "delegated", "login")
# The number of a limit in docs/formats/backend.md.
LIMITS = {"cpu": 2, "memory": 3, "processes": 4}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    if os.uname().machine != "x86_64":
        pytest.skip("missing hardware: the kernel is for x86-64")
    assert shutil.which("qemu-system-x86_64"), "qemu-system-x86 is not installed; run tools/setup test"
    assert guest.kernel(), "there is no stock kernel in build-kernel; run tools/setup test"
    place = tmp_path_factory.mktemp("guest")
    said = guest.boot(place, guest.disk(place), seconds=300)
    assert "failure" not in said, said["failure"]
    return said


def held(place):
    return "rlimit" if place == "login" else "cgroup v2"


def test_the_kernel_is_a_stock_one(said):
    assert said["kernel"].endswith("-amd64") and {"cpu", "memory", "pids"} <= set(said["controllers"])
    assert len(said["runs"]) == 30 and len(said["kills"]) == 6


@pytest.mark.parametrize("place", PLACES)
def test_doctor(said, place):
    run = said["runs"][f"{place} doctor"]
    assert run["said"], run
    assert not list(schema("doctor.schema.json").iter_errors(run["said"]))
    point = {p["name"]: p for p in run["said"]["aquariums"]}
    for limit in ("memory", "processes", "cpu"):
        assert point[f"container.limit.{limit}"]["level"] == held(place)
        assert point[f"container.limit.{limit}"]["usable"] == (place != "login")
    assert point["container.landlock"]["level"] == f"ABI {said['landlock']}"
    assert point["container.identities"]["usable"] == (place == "service")


@pytest.mark.parametrize("place", PLACES)
def test_validate(said, place, aquarium, root):
    """The jail takes no Landlock for granted that this kernel does not have, and the verdict is the one
    of every other machine."""
    run, here = said["runs"][f"{place} validate"], aquarium.validate(root / "examples/hello-skill")
    assert run["said"], run
    assert run["said"]["verdict_digest"] == here["verdict_digest"]
    assert run["said"]["coverage"] == here["coverage"]


@pytest.mark.parametrize("place", PLACES)
def test_programs(said, place):
    sh, files = said["runs"][f"{place} sh"], said["runs"][f"{place} files"]
    assert sh["status"] == 5 and sh["stderr"] == "42\n", sh
    assert files["status"] == 0 and files["stderr"] == "te\n", files
    for run in (sh, files):
        assert not list(schema("run.schema.json").iter_errors(run["said"]))
        c = run["said"]["containment"]
        assert (c["memory"], c["processes"], c["cpu"]) == (held(place),) * 3
        assert c["landlock"] == said["landlock"] and c["proc"] and c["clocks"]
        assert c["own_ids"] == (place == "service")
        assert held(place) in run["said"]["guarantee"]
        assert run["said"]["observation"]["resources"]["peak_memory"] > 100_000
    assert said["runs"][f"{place} again"]["status"] == 0
    assert "/tmp/x" in sh["said"]["summary"]["files_written"]


@pytest.mark.parametrize("place", PLACES)
def test_the_old_root_is_gone(said, place):
    """Of what the host has mounted only the chosen pieces are there, and nothing lies over the root."""
    mounts = said["runs"][f"{place} mounts"]["stderr"].splitlines()
    points = [line.split()[4] for line in mounts]
    assert "/usr" in points and points.count("/") == 1
    assert not [p for p in points if p.startswith("/sys/") or p in ("/dev", "/guest")], points
    kinds = {line.split(" - ")[1].split()[0] for line in mounts}
    assert "tmpfs" in kinds and not kinds & {"sysfs", "cgroup2", "bpf", "tracefs"}, mounts


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("limit", LIMITS)
def test_limits(said, place, limit):
    run = said["runs"][f"{place} {limit}"]
    assert run["said"], run
    assert run["said"]["observation"]["exit"] == {"kind": "budget", "value": LIMITS[limit]}, run
    assert run["status"] == 3
    used = run["said"]["observation"]["resources"]
    if limit == "memory":
        assert 50_000_000 < used["peak_memory"] < 120_000_000
    if limit == "cpu":
        assert 1_500_000_000 <= used["cpu_ns"] < 3_000_000_000


@pytest.mark.parametrize("place", PLACES)
def test_rate(said, place):
    """A quarter of a processor: 0.8 s of work take 3.2 s, where the kernel can be asked for that."""
    run = said["runs"][f"{place} rate"]
    assert run["said"]["observation"]["exit"] == {"kind": "budget", "value": LIMITS["cpu"]}, run
    assert run["said"]["containment"]["rate"] == ("none" if place == "login" else "cgroup v2")
    assert place == "login" or run["seconds"] > 2.8


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("victim", ["front", "aquarium-keeper"])
def test_kills(said, place, victim):
    kill = said["kills"][f"{place} {victim}"]
    assert kill["found"] and "cat" in kill["seen"], kill
    assert kill["status"] == (-9 if victim == "front" else 70)
    if place != "login":  # or nothing could be left
        assert len(kill["groups"]) == 1
        assert kill["inside"] == [f"0::/{kill['groups'][0]}"]


def test_nothing_stays(said):
    for name, one in {**said["runs"], **said["kills"]}.items():
        assert one["left"] == {"groups": [], "processes": [], "mounts": False}, name
