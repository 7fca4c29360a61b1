"""Reports keep to their schema, and the schema notices when one does not."""
import copy
import hashlib
import json

import pytest
from conftest import schema
from samples import NAMES, ROOT, sample


@pytest.fixture(scope="module")
def validator():
    return schema("report.schema.json")


@pytest.mark.parametrize("name", NAMES)
def test_report_keeps_to_its_schema(validator, name):
    errors = [f"{e.json_path}: {e.message}" for e in validator.iter_errors(json.loads(sample(name, "json")))]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("path, value", [
    (["verdict"], "fine"),
    (["verdict_digest"], "ABC"),
    (["surprise"], 1),
    (["stages", 2, "reason"], None),
    (["package", "name"], "two\nlines"),
    (["checklist"], []),
    (["findings", 0, "severity"], "meh"),
])
def test_schema_notices(validator, path, value):
    report = copy.deepcopy(json.loads(sample("plain", "json")))
    at = report
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert list(validator.iter_errors(report))


@pytest.mark.parametrize("name", NAMES)
def test_verdict_digest_can_be_derived_from_the_report(name):
    """As docs/formats/verdict.md says, with nothing but a JSON library."""
    report = json.loads(sample(name, "json"))
    facts = ("rule", "layer", "severity", "incomplete", "file", "line", "column", "span", "message")
    verdict = {
        "schema": "aquarium/verdict/v1",
        "verdict": report["verdict"],
        "package": report["package"]["digest"],
        "stages": {s["layer"]: s["decision"] for s in report["stages"]},
        "findings": [{k: f[k] for k in facts} for f in report["findings"]],
        "more": {m["rule"]: m["count"] for m in report["more"]},
        "observations": [],
        "divergences": [],
    }
    text = json.dumps(verdict, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == report["verdict_digest"]


def test_text_and_json_tell_the_same():
    report, text = json.loads(sample("planted", "json")), sample("planted", "text")
    assert report["verdict"].upper() in text.splitlines()[0]
    for line in report["checklist"]:
        assert any(row.startswith(f" {line['risk']} ") for row in text.splitlines()[:24])
