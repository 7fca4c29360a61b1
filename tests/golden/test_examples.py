"""The gallery: each package gets the verdict and the finding that its table states."""
import filecmp
import io
import pathlib
import random
import re
import subprocess
import tarfile

import pytest

from conftest import ROOT, Aquarium

ROWS = re.findall(r"^\| `([^`]+)` \| (\S+) \| [^|]+ \| (\S+) \| (?:`([^`]+)`|—) \|$",
                  (ROOT / "examples/README.md").read_text(), re.M)


@pytest.fixture(scope="module")
def aq(tmp_path_factory):
    return Aquarium(tmp_path_factory.mktemp("gallery"))


def test_the_table_names_ten_packages():
    assert len(ROWS) == 10
    kinds = {row[1] for row in ROWS}
    assert kinds == {"skill", "arc", "plugin", "mcp", "wasm", "bundle"}


@pytest.mark.parametrize("name,kind,verdict,rule", ROWS, ids=[row[0] for row in ROWS])
def test_example(aq, name, kind, verdict, rule):
    report = aq.validate(ROOT / "examples" / name)
    serious = {f["rule"] for f in report["findings"] if f["severity"] != "info"}
    assert report["verdict"] == verdict
    assert report["package"]["kind"] == kind
    if rule:
        assert rule in serious
    else:
        assert serious == set()


def test_buried_line_is_on_the_first_screen(aq):
    package = ROOT / "examples/attack-buried.tar.zst"
    text = aq.run("validate", package, check=3).stdout.decode()
    first_screen = "\n".join(text.split("\n")[:24])
    assert "icon-3181.js" in first_screen
    looks = aq.validate(package)["survey"]["looks"]
    assert (looks[0]["file"], looks[0]["line"]) == ("icons/31/icon-3181.js", 5)


def test_made_examples_are_current(tmp_path):
    subprocess.run([ROOT / "tools/make-examples", tmp_path], check=True)
    unpacked = {}
    for made in filter(pathlib.Path.is_file, tmp_path.rglob("*")):
        kept = ROOT / "examples" / made.relative_to(tmp_path)
        if made.suffix != ".zst":
            assert filecmp.cmp(made, kept, shallow=False)
            continue
        # Another zstd may pack otherwise; what was packed is the same.
        unpacked[made.name] = [subprocess.run(["zstd", "-dcq", p], check=True, capture_output=True).stdout
                               for p in (made, kept)]
    assert unpacked and all(one == two for one, two in unpacked.values())


def test_bundle_digests_are_those_of_the_members(aq):
    bundle = aq.validate(ROOT / "examples/starter-bundle")
    pinned = {r["name"]: r["sha256"] for r in bundle["package"]["references"]}
    for name, digest in pinned.items():
        assert aq.validate(ROOT / "examples" / name)["package"]["digest"] == digest
    assert set(pinned) == {"hello-skill", "line-counter"}


def test_same_verdict_digest_every_time(aq, tmp_path):
    """Another instance, another key, another time: the same verdict digest (principle 4)."""
    other = Aquarium(tmp_path)
    for name, *_ in ROWS:
        if name == "attack-envelope.json":
            continue  # an envelope is valid once; its replay is another verdict
        one, two = (a.validate(ROOT / "examples" / name) for a in (aq, other))
        assert one["verdict_digest"] == two["verdict_digest"], name
        assert one["submission"]["id"] != two["submission"]["id"]


@pytest.mark.parametrize("kind", ["link", "upper"])
def test_order_of_entries_does_not_count(aquarium, tmp_path, kind):
    """More findings of one rule than are kept: which ones stay must not depend on the order."""
    rng = random.Random(5)
    names = [f"{n:03}" for n in range(150)]
    seen = set()
    for attempt in range(3):
        rng.shuffle(names)
        path = tmp_path / f"{attempt}.tar"
        with tarfile.open(path, "w") as t:
            skill = b"---\nname: many\ndescription: Many entries. Use never.\nlicense: MIT\n---\nText.\n"
            info = tarfile.TarInfo("SKILL.md")
            info.size = len(skill)
            t.addfile(info, io.BytesIO(skill))
            for name in names:
                info = tarfile.TarInfo(f"d/{name}")
                if kind == "link":
                    info.type, info.linkname = tarfile.SYMTYPE, "SKILL.md"
                else:
                    t.addfile(tarfile.TarInfo(f"d/a{name}"))
                    info.name = f"d/A{name}"
                t.addfile(info)
        report = aquarium.validate(path)
        assert report["more"] and report["more"][0]["count"] == 50
        seen.add(report["verdict_digest"])
    assert len(seen) == 1


def test_replayed_envelope_is_rejected(aquarium):
    envelope = ROOT / "examples/attack-envelope.json"
    aquarium.validate(envelope)
    again, third = (aquarium.validate(envelope, check=2) for _ in range(2))
    assert "intake.replayed" in {f["rule"] for f in again["findings"]}
    assert again["admission"]["replayed"] and again["verdict_digest"] == third["verdict_digest"]
