"""Our SARIF is valid by the schema of its authors, and says what code hosts need."""
import hashlib
import json
import re

import jsonschema
import pytest
from samples import NAMES, ROOT, sample

SCHEMA = ROOT / "tests/outside/sarif/sarif-2.1.0.schema.json"


@pytest.fixture(scope="module")
def validator():
    text = SCHEMA.read_bytes()
    stated = re.search(r"SHA-256 of the file: `([0-9a-f]{64})`", (SCHEMA.parent / "SOURCE.md").read_text())
    assert hashlib.sha256(text).hexdigest() == stated[1], "the outside schema was changed"
    return jsonschema.Draft4Validator(json.loads(text))


@pytest.mark.parametrize("name", NAMES)
def test_valid(validator, name):
    errors = [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(json.loads(sample(name, "sarif")))]
    assert not errors, "\n".join(errors[:10])


@pytest.mark.parametrize("change", [
    lambda run: run["results"][0].update(level="bad"),
    lambda run: run["results"][0].pop("message"),
    lambda run: run["tool"]["driver"].pop("name"),
    lambda run: run["invocations"][0].pop("executionSuccessful"),
    lambda run: run.update(surprise=1),
])
def test_the_schema_can_refuse(validator, change):
    log = json.loads(sample("hostile", "sarif"))
    change(log["runs"][0])
    assert list(validator.iter_errors(log))


@pytest.mark.parametrize("name", NAMES)
def test_results_refer_to_rules(name):
    run = json.loads(sample(name, "sarif"))["runs"][0]
    report = json.loads(sample(name, "json"))
    rules = run["tool"]["driver"]["rules"]
    level = {"info": "note", "review": "warning", "reject": "error"}
    looks = [r for r in run["results"] if r["ruleId"].startswith("survey.")]
    assert len(run["results"]) - len(looks) == len(report["findings"])
    assert run["results"][len(report["findings"]):] == looks
    for look in looks:
        rule = rules[look["ruleIndex"]]
        assert rule["id"] == look["ruleId"]
        assert look["level"] == rule["defaultConfiguration"]["level"] != "error"
    for result, finding in zip(run["results"], report["findings"]):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == finding["rule"]
        assert result["level"] == level[finding["severity"]]
        assert rules[result["ruleIndex"]]["defaultConfiguration"]["level"] == result["level"]
        assert len(result["locations"]) == 1
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
        assert ("region" in place) == (finding["line"] > 0 and finding["file"] is not None)
        uri = place["artifactLocation"]["uri"]
        assert re.fullmatch(r"([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri)
        assert not uri.startswith("/")


@pytest.mark.parametrize("name", NAMES)
def test_what_did_not_run_is_said(name):
    invocation = json.loads(sample(name, "sarif"))["runs"][0]["invocations"][0]
    report = json.loads(sample(name, "json"))
    missing = [s for s in report["stages"] if s["decision"] in ("not-run", "inconclusive")]
    missing += report["coverage"]["unread"]
    assert invocation["executionSuccessful"] == (not missing)
    notes = [n for n in invocation["toolExecutionNotifications"] if n["level"] != "note"]
    assert len(notes) == len(missing)
