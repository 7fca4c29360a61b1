"""Envelopes through the program: a good one walks, a bad one is refused with its reason."""
import hashlib
import json
import subprocess

import pytest

from conftest import ROOT

PACKAGE = ROOT / "examples/line-counter"


@pytest.fixture
def sent(tmp_path):
    """An envelope that fits its artifact."""
    artifact = tmp_path / "line-counter.tar.gz"
    subprocess.run(["tar", "-czf", artifact, "-C", PACKAGE, "."], check=True)
    data = artifact.read_bytes()
    # The manifest's own fields, as an honest publisher copies them.
    copy = {
        "schema": "arc/v1", "name": "line-counter", "namespace": "aquarium-examples",
        "version": "0.2.0", "type": "tool", "tier": "community",
        "description": "Counts lines, words and bytes of text files and prints a table.",
        "license": "MIT",
        "author": {"name": "Aquarium examples", "github": "aquarium-examples"},
        "provides": {"cli": [{"name": "line-counter", "command": "python3 src/count.py"}]},
        "capabilities": {"filesystem": {"read": ["./**"], "write": []}, "network": [],
                         "bash": {"allowed": False}, "secrets": []},
    }
    doc = {
        "schema": "intake/v1", "submission": "0190f4d2-7c1e-7a30-9b1a-5d2c8e6f0a12",
        "package": {"namespace": "aquarium-examples", "name": "line-counter", "version": "0.2.0",
                    "type": "tool"},
        "publisher": {"id": "aquarium-examples", "tier": "proven"},
        "manifest": copy,
        "artifact": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data),
                     "media_type": "application/gzip"},
        "bundle": None, "time": "2026-01-01T00:00:00Z",
        "nonce": "6f1c2a9be07d4c3f8a5512d40b7e9c37",
    }
    return tmp_path / "line-counter.tar.gz.json", doc


def rules(report):
    return {f["rule"] for f in report["findings"] if f["severity"] != "info"}


def test_honest_envelope(aquarium, sent):
    path, doc = sent
    path.write_text(json.dumps(doc))
    report = aquarium.validate(path, check=3)
    assert rules(report) == set()
    # Nobody signed it, so who sent it is not known: it cannot pass.
    assert [f["incomplete"] for f in report["findings"] if f["rule"] == "intake.unsigned"] == [True]
    assert report["stages"][0]["decision"] == "inconclusive"
    assert report["submission"]["publisher"] == "aquarium-examples"
    # The name is taken from now on, provisionally, and the store's snapshot says so.
    assert b"aquarium-examples/line-counter" in aquarium.run("index", "list", check=0).stdout
    later = aquarium.validate(PACKAGE)
    assert report["store"]["snapshot"] != later["store"]["snapshot"]
    assert later["store"]["known_names"] == 1
    # The same tree as the folder: one digest.
    assert report["package"]["digest"] == aquarium.validate(PACKAGE)["package"]["digest"]


def test_unchecked_signature_cannot_pass(aquarium, sent):
    path, doc = sent
    doc["bundle"] = {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}
    path.write_text(json.dumps(doc))
    report = aquarium.validate(path, check=3)
    unchecked = [f for f in report["findings"] if f["rule"] == "l0.signature.unchecked"]
    assert unchecked and unchecked[0]["incomplete"]
    assert report["submission"]["signature"] == "unchecked"
    assert report["stages"][1]["decision"] == "inconclusive"


def test_media_type_must_fit(aquarium, sent):
    path, doc = sent
    doc["artifact"]["media_type"] = "application/zip"
    path.write_text(json.dumps(doc))
    assert "l0.envelope.artifact" in rules(aquarium.validate(path, check=2))


def test_unknown_media_type_is_told(aquarium, sent):
    path, doc = sent
    doc["artifact"]["media_type"] = "application/x-something"
    path.write_text(json.dumps(doc))
    report = aquarium.validate(path, check=3)
    assert "l0.envelope.type" in {f["rule"] for f in report["findings"]}


def test_a_claimed_tier_opens_no_weaker_sandbox(aquarium, sent):
    path, doc = sent
    doc["publisher"]["tier"] = "steward"
    path.write_text(json.dumps(doc))
    assert aquarium.validate(path)["tier"] == "t2"


def test_taken_name_is_a_conflict(aquarium, sent):
    path, doc = sent
    aquarium.run("index", "add", "aquarium-examples/line-counter", "someone-else", check=0)
    path.write_text(json.dumps(doc))
    report = aquarium.validate(path, check=2)
    assert report["stages"][1]["decision"] == "reject"
    assert all("ended at L0" in s["reason"] for s in report["stages"][2:])


def test_rate_limit(aquarium, sent):
    path, doc = sent
    state = aquarium.state / "state"
    state.mkdir(mode=0o700)
    (state / "policy.yaml").write_text("rate_limit: 2\nrate_window: 3600\n")
    seen = []
    for n in range(4):
        doc["submission"] = f"0190f4d2-7c1e-7a30-9b1a-5d2c8e6f0b{n:02}"
        doc["nonce"] = f"{n:032x}"
        path.write_text(json.dumps(doc))
        seen.append(rules(aquarium.validate(path)))
    assert ["l0.rate" in s for s in seen] == [False, False, True, True]


def inputs(report):
    """What docs/formats/verdict.md says fixes the verdict digest."""
    package, sent = report["package"], report["submission"]
    return json.dumps([package["digest"], package["form"], package["artifact"], sent["claims"],
                       sent["local"], sent["publisher"], sent["publisher_tier"], sent["signature"],
                       report["admission"], report["rules"], report["policy"]["digest"],
                       report["store"]["snapshot"]], sort_keys=True)


def test_what_the_report_lists_fixes_the_verdict_digest(aquarium, sent):
    path, doc = sent
    state = aquarium.state / "state"
    state.mkdir(mode=0o700)
    (state / "policy.yaml").write_text("rate_limit: 6\nrate_window: 3600\n")
    digests, times = {}, {}

    def walk(number, time):
        doc.update(submission=f"0190f4d2-7c1e-7a30-9b1a-5d2c8e6f0b{number:02}",
                   nonce=f"{number:032x}", time=time)
        path.write_text(json.dumps(doc))
        report = aquarium.validate(path)
        key = inputs(report)
        digests.setdefault(key, set()).add(report["verdict_digest"])
        times[key] = times.get(key, 0) + 1
        return report

    for n in range(3):  # other ids, nonces and days; the first finds the name free
        walk(n, f"2026-01-0{n + 1}T00:00:00Z")
    for n in (3, 4):  # dated ahead
        assert walk(n, f"207{n}-01-01T00:00:00Z")["admission"]["dated_ahead"]
    for n in (1, 2):  # replayed
        assert walk(n, f"2026-01-0{n + 1}T00:00:00Z")["admission"]["replayed"]
    walk(5, "2026-01-01T00:00:00Z")
    for n in (6, 7):  # too many
        assert walk(n, "2026-01-01T00:00:00Z")["admission"]["over_rate"]
    assert sorted(times.values()) == [1, 2, 2, 2, 3]
    assert all(len(d) == 1 for d in digests.values()), digests
    # What the submission says is one of the inputs, so it must show there.
    doc["artifact"]["media_type"] = "application/zip"
    assert inputs(walk(8, "2026-01-01T00:00:00Z")) not in list(times)[:-1]


def test_refused_envelopes_have_one_digest_whatever_they_are_called(aquarium, sent):
    path, _ = sent
    seen = set()
    for name in ("a.json", "b.json", "large-1.json", "large-2.json"):
        other = path.parent / name
        other.write_text("{" if len(name) == 6 else " " * (5 << 20))
        report = aquarium.validate(other, "--artifact", path.parent / "line-counter.tar.gz", check=2)
        assert report["package"]["form"] == "none"
        seen.add((report["package"]["digest"], report["verdict_digest"]))
        assert str(path.parent) not in json.dumps(report["findings"])
    assert len(seen) == 2


@pytest.mark.parametrize("spoil", [
    lambda d: d.update(extra=1),
    lambda d: d.pop("nonce"),
    lambda d: d["package"].update(colour="red"),
    lambda d: d.update(time="yesterday"),
    lambda d: d["artifact"].update(sha256="XYZ"),
], ids=["unknown-field", "missing-nonce", "unknown-inner", "time", "digest"])
def test_malformed_is_refused_with_its_reason(aquarium, sent, spoil):
    path, doc = sent
    spoil(doc)
    path.write_text(json.dumps(doc))
    report = aquarium.validate(path, check=2)
    found = [f for f in report["findings"] if f["rule"] == "intake.envelope.malformed"]
    assert len(found) == 1 and path.name not in found[0]["message"]
    assert found[0]["message"].startswith("Not an Intake v1 envelope: ")
    assert [s["decision"] for s in report["stages"]] == ["reject"] + ["not-run"] * 5
    aquarium.run("ledger", "verify", check=0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a":1,"a":2}', "[" * 100000, "\0", "\xff"])
def test_not_an_envelope_at_all(aquarium, sent, text):
    path, _ = sent
    path.write_bytes(text.encode("latin-1"))
    report = aquarium.validate(path, check=2)
    assert "intake.envelope.malformed" in rules(report)
    text = aquarium.run("validate", path, check=2).stdout.decode()
    assert "REJECT" in text


def test_artifact_must_be_found(aquarium, sent):
    path, doc = sent
    path.write_text(json.dumps(doc))
    (path.parent / "line-counter.tar.gz").rename(path.parent / "elsewhere.tar.gz")
    assert b"--artifact" in aquarium.run("validate", path, check=64).stderr
    aquarium.run("validate", "--artifact", path.parent / "elsewhere.tar.gz", path, check=3)
