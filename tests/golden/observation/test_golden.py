"""Re-derives the canonical digest of the golden observations from their JSON lines, and checks the
lines against the schemas, with nothing of ours: Python's json and hashlib, and jsonschema."""
import hashlib
import json
import pathlib

import jsonschema
import pytest

HERE = pathlib.Path(__file__).parent
FORMATS = HERE.parents[2] / "docs/formats"
CASES = sorted(HERE.glob("*.jsonl"))


def canonical(value):
    """RFC 8785 for what our formats use: integers, ASCII keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def lines(path):
    text = path.read_text()
    assert text.endswith("\n")
    return text[:-1].split("\n")


def derive(path):
    _, *events, summary = [json.loads(line) for line in lines(path)]
    covered = ["aquarium/observation/v1"]
    for event in events:
        del event["seq"], event["time"]
        covered.append(canonical(event))
    covered.append(canonical({k: summary[k] for k in ("by_kind", "dropped", "events")}))
    covered.append(canonical({"exit": summary["exit"]}))
    covered += [canonical({"output": output}) for output in summary["outputs"]]
    covered += [canonical({"change": change}) for change in summary["changes"]]
    covered += [canonical({"reached": path}) for path in summary["reached"]]
    return hashlib.sha256("".join(line + "\n" for line in covered).encode()).hexdigest()


def validator(name):
    schema = json.loads((FORMATS / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_there_are_vectors():
    assert len(CASES) == 4


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_digest(path):
    digest = path.with_suffix(".digest").read_text().strip()
    assert derive(path) == digest
    assert json.loads(lines(path)[-1])["digest"] == digest


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_stream_digest(path):
    stream = path.with_suffix(".bin").read_bytes()
    assert hashlib.sha256(stream[:-32]).digest() == stream[-32:]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_lines_are_canonical_and_fit_the_schemas(path):
    event, observation = validator("event.schema.json"), validator("observation.schema.json")
    all_lines = lines(path)
    for number, line in enumerate(all_lines):
        value = json.loads(line)
        assert canonical(value) == line
        if 0 < number < len(all_lines) - 1:
            event.validate(value)
    observation.validate(json.loads(all_lines[-1]))


@pytest.mark.parametrize(
    "change",
    [{"seq": -1}, {"kind": "thought"}, {"op": "Open"}, {"extra": 1}, {"declared": 0},
     {"decoys": ["a", "a"]}, {"result": {"number": "7"}}, {"time": 1.5}],
    ids=str,
)  # fmt: skip
def test_event_schema_refuses(change):
    event = json.loads(lines(HERE / "six-kinds.jsonl")[1])
    validator("event.schema.json").validate(event)
    with pytest.raises(jsonschema.ValidationError):
        validator("event.schema.json").validate({**event, **change})


def test_finding_schema():
    check = validator("finding.schema.json")
    finding = {"rule": "intake.path.duplicate", "layer": "intake", "adversary": "A2",
               "severity": "review", "incomplete": False, "file": "a/b", "line": 0, "column": 0,
               "span": 0, "message": "m", "title": "t", "why": "w", "fix": "f",
               "match_hash": None}  # fmt: skip
    check.validate(finding)
    for change in ({"adversary": "A11"}, {"severity": "bad"}, {"extra": 1}, {"line": -1}):
        with pytest.raises(jsonschema.ValidationError):
            check.validate({**finding, **change})
