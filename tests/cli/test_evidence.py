"""Evidence and ledger through the program: what holds, what does not, and that it says so."""
import json
import os
import shutil
import sqlite3
import subprocess
import time

import pytest

from conftest import PROGRAM, ROOT, Aquarium, schema

SKILL = ROOT / "examples/hello-skill"


@pytest.fixture
def made(aquarium, tmp_path):
    """A validated package and its evidence."""
    evidence = tmp_path / "evidence.json"
    aquarium.run("validate", "--evidence", evidence, SKILL, check=3)
    return aquarium, evidence


def points(done):
    return {p["name"]: p["holds"] for p in json.loads(done.stdout)["points"]}


def test_it_holds(made):
    aq, evidence = made
    done = aq.run("verify", "--json", evidence, SKILL, check=0)
    assert points(done) == {"signature": True, "ledger": True, "revocation": True, "package": True}
    assert b"holds" in aq.run("verify", evidence, check=0).stdout


def test_another_tree_is_told_apart(made, tmp_path):
    aq, evidence = made
    copy = tmp_path / "copy"
    shutil.copytree(SKILL, copy)
    assert points(aq.run("verify", "--json", evidence, copy, check=0))["package"]
    for spoil in (lambda p: p.symlink_to("/etc/passwd"), os.mkfifo,
                  lambda p: (p.write_bytes(b""), p.chmod(0o4755))):
        extra = copy / "scripts/extra"
        spoil(extra)
        assert points(aq.run("verify", "--json", evidence, copy, check=2))["package"] is False
        extra.unlink()
    (copy / "scripts/greet.py").chmod(0o4755)
    assert points(aq.run("verify", "--json", evidence, copy, check=3))["package"] is None
    (copy / "scripts/greet.py").write_text("print('replaced after review')\n")
    assert points(aq.run("verify", "--json", evidence, copy, check=2))["package"] is False


def test_third_party_needs_only_public_keys(made, tmp_path):
    aq, evidence = made
    keys = json.loads(aq.run("ledger", "--json", "keys", check=0).stdout)
    pem = tmp_path / "evidence.pem"
    pem.write_text(keys["evidence_key"])
    stranger = Aquarium(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "copy"
    shutil.copytree(aq.state / "state/ledger", copy)
    shutil.rmtree(copy / "journal")
    given = ["--json", "--key", pem, "--vkey", keys["vkey"]]
    done = stranger.run("verify", *given, "--ledger", copy, evidence, SKILL, check=0)
    assert points(done) == {"signature": True, "ledger": True, "revocation": True, "package": True}
    # Whether it was revoked since cannot be told without a ledger: unknown, not a pass.
    assert points(stranger.run("verify", *given, evidence, check=3))["revocation"] is None
    stranger.run("verify", *given, "--no-revocation", evidence, check=0)
    # Nor can the inclusion without the ledger's key.
    stranger.run("verify", "--key", pem, "--no-revocation", evidence, check=3)
    # Without any key nothing can be told, and no state is made on the way.
    assert points(stranger.run("verify", "--json", evidence, check=3))["signature"] is None
    assert not (stranger.state / "state").exists()
    # Another instance's own key says nothing about it; a key that is given and does not fit does.
    stranger.run("validate", SKILL, check=3)
    assert points(stranger.run("verify", "--json", evidence, check=3))["signature"] is None
    other = tmp_path / "other.pem"
    other.write_bytes(stranger.run("ledger", "keys", "--pem", check=0).stdout)
    assert points(stranger.run("verify", "--json", "--key", other, evidence,
                               check=2))["signature"] is False


def test_revoked_evidence_fails_for_a_third_party_too(made, tmp_path):
    aq, evidence = made
    index = json.loads(aq.run("verify", "--json", evidence).stdout)["ledger_index"]
    aq.run("ledger", "revoke", index, "--reason", "planted line found", check=0)
    pem = tmp_path / "evidence.pem"
    pem.write_bytes(aq.run("ledger", "keys", "--pem", check=0).stdout)
    vkey = aq.run("ledger", "keys", "--verifier", check=0).stdout.decode().strip()
    done = aq.run("verify", "--json", "--key", pem, "--vkey", vkey, "--ledger",
                  aq.state / "state/ledger", evidence, check=2)
    assert points(done)["revocation"] is False


def test_a_ledger_that_was_cut_or_wiped_is_noticed(made, tmp_path):
    aq, evidence = made
    old = tmp_path / "old"
    shutil.copytree(aq.state / "state/ledger", old)
    second = tmp_path / "second.json"
    aq.run("validate", "--evidence", second, ROOT / "examples/line-counter", check=3)
    ledger = aq.state / "state/ledger"
    shutil.rmtree(ledger)
    shutil.copytree(old, ledger)  # rolled back to before the second verdict
    assert points(aq.run("verify", "--json", second, check=2))["revocation"] is False
    assert b"cut or replaced" in aq.run("ledger", "verify", check=2).stdout
    assert b"cut or replaced" in aq.run("validate", SKILL, check=70).stderr
    shutil.rmtree(ledger)  # wiped
    assert points(aq.run("verify", "--json", evidence, check=2))["revocation"] is False
    assert b"gone" in aq.run("ledger", "verify", check=2).stdout
    assert b"gone" in aq.run("validate", SKILL, check=70).stderr
    assert not ledger.exists()  # an empty one in its place would have forgotten everything
    ledger.mkdir()
    assert points(aq.run("verify", "--json", evidence, check=2))["revocation"] is False


def test_a_revocation_is_not_undone_by_an_old_ledger(made, tmp_path):
    aq, evidence = made
    ledger, old = aq.state / "state/ledger", tmp_path / "old"
    shutil.copytree(ledger, old)
    index = json.loads(aq.run("verify", "--json", evidence, check=0).stdout)["ledger_index"]
    aq.run("ledger", "revoke", index, "--reason", "stolen key", check=0)
    now = tmp_path / "now"
    shutil.copytree(ledger, now)
    shutil.rmtree(ledger)
    shutil.copytree(old, ledger)
    assert points(aq.run("verify", "--json", evidence, check=2))["revocation"] is False
    assert b"cut or replaced" in aq.run("ledger", "verify", check=2).stdout
    # the old one grown on by entries of another history is no better
    store = aq.state / "state/store.db"
    with sqlite3.connect(store) as db:
        kept = db.execute("SELECT entries, leaf FROM mark").fetchall()
        db.execute("DELETE FROM mark")
    db.close()
    aq.run("validate", ROOT / "examples/line-counter", check=3)
    with sqlite3.connect(store) as db:
        db.executemany("INSERT INTO mark VALUES (1, ?, ?)", kept)
    db.close()
    assert points(aq.run("verify", "--json", evidence, check=2))["revocation"] is False
    # and the right one still tells of the revocation, not of a cut
    with sqlite3.connect(store) as db:
        db.execute("DELETE FROM report WHERE ledger_index > ?", (index,))
    db.close()
    shutil.rmtree(ledger)
    shutil.copytree(now, ledger)
    assert b"stolen key" in aq.run("verify", evidence, check=2).stdout


def test_budgets_of_the_policy_hold_at_verification(aquarium, tmp_path):
    package, evidence = tmp_path / "package", tmp_path / "evidence.json"
    shutil.copytree(SKILL, package)
    for i in range(20):
        (package / f"file{i}.txt").write_text(f"{i}\n")
    policy = aquarium.state / "state/policy.yaml"
    aquarium.run("validate", "--evidence", evidence, package, check=3)
    assert points(aquarium.run("verify", "--json", evidence, package, check=0))["package"] is True
    policy.write_text("budgets:\n  files: 10\n")
    done = aquarium.run("verify", "--json", evidence, package, check=3)
    assert points(done)["package"] is None and b"budget" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_folder_of_another_user_is_refused(aquarium):
    state = aquarium.state / "state"
    aquarium.run("validate", SKILL, check=3)
    os.chown(state, 12345, 12345)
    assert b"belongs to another user" in aquarium.run("validate", SKILL, check=70).stderr
    os.chown(state, 0, 0)
    aquarium.run("validate", SKILL, check=3)


def test_hostile_evidence_cannot_speak_to_the_terminal(made, tmp_path):
    aq, evidence = made
    for text in ('{"\\u001b]52;c;cHduZWQ=\\u0007":1}', '{"\\u202e":1}', '{"a": \x1b[2J}'):
        bad = tmp_path / "bad.json"
        bad.write_text(text.encode().decode("unicode_escape") if "x1b" in text else
                       text.replace("\\\\", "\\"))
        done = aq.run("verify", bad)
        assert done.returncode in (2, 64)
        shown = done.stdout + done.stderr
        assert b"\x1b" not in shown and b"\x07" not in shown and "\u202e".encode() not in shown


def test_a_fifo_is_no_evidence(aquarium, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    aquarium.run("verify", tmp_path / "fifo", check=64, timeout=20)


def test_verdict_and_age_can_be_required(made):
    aq, evidence = made
    done = aq.run("verify", "--require", "pass", evidence, check=1)
    assert b"is genuine, but DOES NOT MEET" in done.stdout and b"DOES NOT HOLD" not in done.stdout
    aq.run("verify", "--require", "review", evidence, check=1)  # it is inconclusive
    assert json.loads(aq.run("verify", "--json", "--require", "pass", evidence,
                             check=1).stdout)["result"] == "does-not-meet"
    # What is wrong, or cannot be told, outweighs what was wished for.
    aq.run("verify", "--require", "pass", evidence, ROOT / "examples/line-counter", check=2)
    pem = aq.state / "evidence.pem"
    pem.write_bytes(aq.run("ledger", "keys", "--pem", check=0).stdout)
    aq.run("verify", "--require", "pass", "--key", pem, evidence, check=3)
    aq.run("verify", "--max-age", "1h", evidence, check=0)
    time.sleep(1.1)
    assert points(aq.run("verify", "--json", "--max-age", "0s", evidence, check=1))["age"] is False
    document = json.loads(evidence.read_text())
    assert document["schema"] == "aquarium/evidence/v1"


def test_revocation(made):
    aq, evidence = made
    index = json.loads(aq.run("verify", "--json", evidence).stdout)["ledger_index"]
    aq.run("ledger", "revoke", index, check=64)
    aq.run("ledger", "revoke", index, "--reason", "a rule was wrong", check=0)
    done = aq.run("verify", "--json", evidence, check=2)
    assert points(done)["revocation"] is False
    assert "a rule was wrong" in done.stdout.decode()
    aq.run("ledger", "revoke", 0, "--reason", "not a verdict", check=64)
    assert b"there is no entry" in aq.run("ledger", "revoke", 99, "--reason", "x", check=64).stderr
    assert b"revoked before" in aq.run("ledger", "revoke", index, "--reason", "again",
                                       check=0).stdout
    assert json.loads(aq.run("ledger", "--json", "revoke", index, "--reason", "thrice",
                             check=0).stdout)["again"] is True


def test_the_ledger_lists_its_verdicts(made):
    aq, _ = made
    aq.run("validate", "--quiet", ROOT / "examples/attack-shadow.zip", check=2)

    def rows(*args):
        out = aq.run("ledger", "list", "--json", *args, check=0).stdout
        return [json.loads(line) for line in out.splitlines()]

    everything = rows()
    assert [r["verdict"] for r in everything] == ["inconclusive", "reject"]
    assert everything[0]["name"] == "hello-skill" and everything[0]["revoked"] is False
    assert [r["entry"] for r in rows("--verdict", "reject")] == [everything[1]["entry"]]
    assert rows("--package", "hello-skill") == rows("--package", everything[0]["package"]) == \
        everything[:1]
    assert rows("--since", "1h") == everything and rows("--since", "2100-01-01T00:00:00Z") == []
    assert b"--verdict is" in aq.run("ledger", "list", "--verdict", "maybe", check=64).stderr
    assert b"--since is" in aq.run("ledger", "list", "--since", "once", check=64).stderr
    aq.run("ledger", "revoke", everything[0]["entry"], "--reason", "x", check=0)
    assert [r["revoked"] for r in rows()] == [True, False]
    shown = aq.run("ledger", "list", check=0).stdout.decode()
    assert "hello-skill 1.0.0  REVOKED\n" in shown and len(shown.splitlines()) == 2


def test_json_of_the_ledger_names_its_schema(made, tmp_path):
    aq, _ = made
    proof = tmp_path / "proof.json"
    proof.write_bytes(aq.run("ledger", "prove", 2, check=0).stdout)
    for args in (["verify"], ["checkpoint"], ["keys"], ["check", proof], ["list"], ["show", 2],
                 ["revoke", 2, "--reason", "x"]):
        answer = json.loads(aq.run("ledger", "--json", *args, check=0).stdout)
        assert answer["schema"].startswith("aquarium/ledger"), args


def test_check_says_what_is_proved(made, tmp_path):
    aq, _ = made
    proof = tmp_path / "proof.json"
    proof.write_bytes(aq.run("ledger", "prove", 2, check=0).stdout)
    assert b"entry 2 (verdict inconclusive of package" in aq.run("ledger", "check", proof,
                                                                 check=0).stdout
    proof.write_bytes(aq.run("ledger", "prove", "--from", 1, check=0).stdout)
    assert b"the tree of 1 entries is a prefix of the signed tree of 3" in \
        aq.run("ledger", "check", proof, check=0).stdout


def test_ledger_commands(made, tmp_path):
    aq, _ = made
    audit = json.loads(aq.run("ledger", "--json", "verify", check=0).stdout)
    assert audit["holds"] and audit["entries"] == audit["published"] >= 3
    proof = tmp_path / "proof.json"
    for index in range(audit["entries"]):
        proof.write_bytes(aq.run("ledger", "prove", index, check=0).stdout)
        aq.run("ledger", "check", proof, check=0)
    broken = json.loads(proof.read_text())
    broken["leaf"] = "00" * 32
    proof.write_text(json.dumps(broken))
    assert b"DOES NOT HOLD" in aq.run("ledger", "check", proof, check=2).stdout
    for size in range(1, audit["entries"] + 1):
        proof.write_bytes(aq.run("ledger", "prove", "--from", size, check=0).stdout)
        aq.run("ledger", "check", proof, check=0)
    whole = json.loads(aq.run("ledger", "prove", "--from", 1, check=0).stdout)
    for key, value in (("to_root", "00" * 32), ("from_root", "00" * 32), ("from", 2),
                       ("hashes", ["00" * 32] * len(whole["hashes"])), ("hashes", [])):
        proof.write_text(json.dumps(whole | {key: value}))
        aq.run("ledger", "check", proof, check=2)
    aq.run("ledger", "prove", audit["entries"], check=64)
    aq.run("ledger", "show", audit["entries"], check=64)
    note = aq.run("ledger", "checkpoint", check=0).stdout.decode()
    assert note.splitlines()[1] == str(audit["entries"])


def test_decisions_precede_the_verdict(made):
    aq, _ = made
    kinds = []
    for index in range(json.loads(aq.run("ledger", "--json", "verify").stdout)["entries"]):
        entry = json.loads(aq.run("ledger", "show", index, check=0).stdout)
        kinds.append((entry["kind"], entry.get("stage"), entry.get("decision")))
    assert kinds[0][:2] == ("decision", "intake")
    assert kinds[1][:2] == ("decision", "l0")
    assert kinds[-1][0] == "verdict"
    first = json.loads(aq.run("ledger", "show", 0, check=0).stdout)
    for key in ("package", "findings", "prev"):
        assert len(first[key]) == 64


def test_the_store_keeps_the_report(made):
    aq, _ = made
    db = sqlite3.connect(aq.state / "state/store.db")
    rows = db.execute("SELECT verdict, ledger_index, report FROM report").fetchall()
    assert [r[:2] for r in rows] == [("inconclusive", 2)]
    assert json.loads(rows[0][2])["schema"] == "aquarium/report/v1"


def test_tampering_is_found(made):
    aq, _ = made
    for damaged in ("checkpoint", "vkey"):
        path = aq.state / "state/ledger" / damaged
        good = path.read_bytes()
        path.write_bytes(good[:-8] + b"AAAAAAA\n")
        assert b"DOES NOT HOLD" in aq.run("ledger", "verify", check=2).stdout, damaged
        path.write_bytes(good)
    aq.run("ledger", "verify", check=0)
    tile = next(p for p in (aq.state / "state/ledger/tile/entries").rglob("*") if p.is_file())
    data = bytearray(tile.read_bytes())
    data[len(data) // 2] ^= 1
    tile.write_bytes(data)
    assert b"DOES NOT HOLD" in aq.run("ledger", "verify", check=2).stdout


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "x" * 100, '{"schema":1}'])
def test_not_evidence_at_all(aquarium, tmp_path, text):
    file = tmp_path / "e.json"
    file.write_text(text)
    aquarium.run("validate", SKILL, check=3)
    assert b"not evidence" in aquarium.run("verify", file, check=64).stderr


@pytest.mark.parametrize("text", ["{", '{"schema":"aquarium/evidence/v1"}',
                                  '{"schema":"aquarium/evidence/v1",'])
def test_damaged_evidence_does_not_hold(aquarium, tmp_path, text):
    file = tmp_path / "e.json"
    file.write_text(text)
    aquarium.run("validate", SKILL, check=3)
    aquarium.run("verify", file, check=2)


def test_other_files_are_not_taken_for_evidence(aquarium, tmp_path):
    report = tmp_path / "report.json"
    aquarium.run("validate", "--quiet", "--report", report, SKILL, check=3)
    assert b"is a report, not evidence" in aquarium.run("verify", report, check=64).stderr
    assert b"is not evidence" in aquarium.run("verify", SKILL / "SKILL.md", check=64).stderr
    aquarium.run("verify", SKILL, check=64)


def test_a_package_that_is_not_there(made):
    aq, evidence = made
    assert b"/nonexistent" in aq.run("verify", evidence, "/nonexistent", check=64).stderr


def test_absent_evidence(aquarium):
    assert b"No such file" in aquarium.run("verify", "absent.json", check=64).stderr


def test_entry_of_another_verdict_proves_nothing(made, tmp_path):
    """A proof that holds, of an entry that is in the ledger, but not of this verdict."""
    aq, evidence = made
    document = json.loads(evidence.read_text())
    other = json.loads(aq.run("ledger", "prove", 0, check=0).stdout)
    document["ledger"]["proof"] = other
    evidence.write_text(json.dumps(document))
    done = aq.run("verify", "--json", evidence, check=2)
    assert points(done)["ledger"] is False


def test_documents_follow_their_schemas(aquarium, root, tmp_path):
    def check(name, document):
        schema(name).validate(document)

    evidence = tmp_path / "evidence.json"
    for package in sorted((root / "examples").iterdir()):
        if package.name in ("README.md", "attack-envelope.tar"):
            continue
        aquarium.validate(package, "--evidence", evidence)
        check("evidence.schema.json", json.loads(evidence.read_text()))
    check("verification.schema.json", json.loads(aquarium.run("verify", "--json", evidence).stdout))
    check("doctor.schema.json", json.loads(aquarium.run("doctor", "--json").stdout))


@pytest.fixture
def half_read(aquarium, tmp_path):
    """A package of which parts cannot be read, and evidence that says so."""
    package, evidence = tmp_path / "half", tmp_path / "half.json"
    shutil.copytree(SKILL, package)
    (package / "data.zip").write_bytes(b"PK\x03\x04" + bytes(60))
    report = aquarium.validate(package, "--evidence", evidence, check=3)
    assert any(f["incomplete"] for f in report["findings"]) or report["coverage"]["unread"]
    return aquarium, package, evidence


def test_the_same_files_half_read_are_not_vouched_for(half_read):
    aq, package, evidence = half_read
    done = aq.run("verify", "--json", evidence, package, check=3)
    assert points(done)["package"] is None
    assert json.loads(done.stdout)["result"] == "cannot-tell"


def test_what_was_refuted_stays_refuted(half_read):
    """A later point that cannot be told does not soften an earlier one that does not hold."""
    aq, package, evidence = half_read
    index = json.loads(evidence.read_text())["ledger"]["index"]
    aq.run("ledger", "revoke", index, "--reason", "test", check=0)
    done = aq.run("verify", "--json", evidence, package, check=2)
    assert points(done)["revocation"] is False and points(done)["package"] is None
    assert json.loads(done.stdout)["result"] == "does-not-hold"


def test_evidence_from_the_future_does_not_hold(made):
    """The pinned program (tests/golden) lives in the past of this evidence."""
    aq, evidence = made
    pinned = PROGRAM.parent / "tests/golden/aquarium_pinned"
    done = subprocess.run([pinned, "verify", "--json", "--max-age", "30d", "--state",
                           aq.state / "state", evidence], stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == 2
    assert points(done)["age"] is False and b"future" in done.stdout
    assert points(aq.run("verify", "--json", "--max-age", "30d", evidence, check=0))["age"]


def test_a_report_is_compared_with_what_was_signed(made, tmp_path):
    aq, evidence = made
    index = json.loads(evidence.read_text())["ledger"]["index"]
    kept = aq.run("ledger", "report", index, check=0).stdout
    report = json.loads(kept)
    aq.check_report(report)
    path = tmp_path / "report.json"
    path.write_bytes(kept)
    assert points(aq.run("verify", "--json", "--report", path, evidence, check=0))["report"]
    path.write_text(json.dumps(report, indent=7))  # the spelling is free
    aq.run("verify", "--report", path, evidence, check=0)
    for spoil in (lambda r: r.update(verdict="pass"), lambda r: r["findings"].pop(),
                  lambda r: r.update(schema="aquarium/report/v2"), lambda r: r.update(n=1.5)):
        other = json.loads(kept)
        spoil(other)
        path.write_text(json.dumps(other))
        done = aq.run("verify", "--json", "--report", path, evidence, check=2)
        assert points(done)["report"] is False
    path.write_text("{")
    aq.run("verify", "--report", path, evidence, check=2)
    aq.run("verify", "--report", tmp_path / "none.json", evidence, check=64)


def test_stored_reports_are_held_against_the_ledger(made):
    aq, evidence = made
    index = json.loads(evidence.read_text())["ledger"]["index"]
    assert b"no verdict" in aq.run("ledger", "report", 0, check=64).stderr
    assert b"no index" in aq.run("ledger", "report", "x", check=64).stderr
    aq.run("ledger", "report", 999, check=64)
    with sqlite3.connect(aq.state / "state/store.db") as db:
        db.execute("UPDATE report SET report = replace(report, 'inconclusive', 'pass')")
    done = aq.run("ledger", "report", index, check=2)
    assert b"commits to" in done.stderr and not done.stdout


def test_a_statement_that_nobody_knows_is_not_vouched_for(made, tmp_path):
    """Unknown fields and statements that the facts do not name are refused."""
    aq, evidence = made
    document = json.loads(evidence.read_text())
    document["statements"].append(document["statements"][0])
    evidence.write_text(json.dumps(document))
    assert points(aq.run("verify", "--json", evidence, check=2))["signature"] is False
