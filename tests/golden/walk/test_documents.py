"""The documents of a walk, to the byte: report, evidence, ledger entries, checkpoint and verdict
digest of three packages, by the whole program with pinned clock, ids and key. A change of any format
shows here; if it is meant, run tools/update-golden and read the difference before it is committed.

The other half re-derives the digests from the golden files with Python alone, so that what is held
still is also right."""
import base64
import difflib
import hashlib
import hmac
import json

import pytest

import documents

FINDING = ("rule", "layer", "severity", "incomplete", "file", "line", "column", "span", "message")


def canonical(value):
    """RFC 8785 for what our formats use: integers, ASCII keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def derived_key(label):
    """HKDF-SHA256 without salt, one block: RFC 5869."""
    secret = hmac.digest(bytes(32), documents.KEY, "sha256")
    return hmac.digest(secret, label.encode() + b"\x01", "sha256")


@pytest.fixture(params=documents.CASES)
def golden(request):
    """A case's files, as they are committed."""
    folder = documents.HERE / request.param
    return {name: (folder / name).read_bytes() for name in documents.NAMES}


@pytest.mark.parametrize("case", documents.CASES)
def test_the_same_to_the_byte(case, tmp_path):
    for name, made in documents.make(case, tmp_path).items():
        held = (documents.HERE / case / name).read_bytes()
        if made != held:
            lines = (text.decode(errors="replace").splitlines() for text in (held, made))
            pytest.fail(f"{case}/{name} changed (tools/update-golden, if that is meant):\n" +
                        "\n".join(difflib.unified_diff(*lines, "golden", "now", n=1, lineterm="")))


def test_verdict_digest(golden):
    report = json.loads(golden["report.json"])
    covered = {
        "schema": "aquarium/verdict/v1", "verdict": report["verdict"],
        "package": report["package"]["digest"],
        "stages": {s["layer"]: s["decision"] for s in report["stages"]},
        "findings": [{k: f[k] for k in FINDING} for f in report["findings"]],
        "more": {m["rule"]: m["count"] for m in report["more"]},
        "observations": [], "divergences": []}
    assert golden["verdict-digest"].decode().strip() == sha256(canonical(covered))


def test_evidence_is_of_this_report(golden):
    report, evidence = (json.loads(golden[name]) for name in ("report.json", "evidence.json"))
    digest = sha256(canonical(report))
    mac = hmac.digest(derived_key("aquarium/v1/evidence-hmac"), bytes.fromhex(digest), "sha256")
    assert evidence["report"]["digest"] == digest
    assert evidence["report"]["hmac"]["sha256"] == mac.hex()
    assert evidence["verdict_digest"] == report["verdict_digest"]
    statements = [json.loads(base64.b64decode(s["payload"])) for s in evidence["statements"]]
    assert len(statements) == 2
    for statement in statements:
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert [s["digest"] for s in statement["subject"]] == [
            {"sha256": report["package"]["digest"]}]
    assert digest.encode() in canonical(statements[1])


@pytest.mark.parametrize("case", documents.CASES)
def test_what_was_signed_then_verifies_now(aquarium, case):
    """The program as people run it reads old evidence, with the public keys alone."""
    folder = documents.HERE / case
    given = ["--key", folder / "evidence.pem", "--vkey", (folder / "vkey").read_text().strip(),
             "--no-revocation", folder / "evidence.json"]
    aquarium.run("verify", *given, folder / "package", check=0)
    others = documents.HERE / ("skill" if case != "skill" else "findings") / "package"
    aquarium.run("verify", *given, others, check=2)


def test_entries_chain_up_to_the_evidence(golden):
    evidence = json.loads(golden["evidence.json"])
    prev, leaves = "0" * 64, []
    for index, line in enumerate(golden["entries.jsonl"].splitlines()):
        entry = json.loads(line)
        assert canonical(entry) == line
        assert (entry["index"], entry["prev"]) == (index, prev)
        prev = sha256(b"\x00" + line)
        leaves.append(prev)
    assert evidence["ledger"]["leaf"] == leaves[evidence["ledger"]["index"]]
    assert golden["checkpoint"].decode().split("\n")[1] == str(len(leaves))
    last = json.loads(golden["entries.jsonl"].splitlines()[-1])
    assert last["report"] == evidence["report"]["digest"]
