"""The golden vectors of Intake v1 under an outside validator. tests/unit/test_submission.c holds our
reader against the same files, so the schema and the reader agree on every one of them."""
import json
import re

import jsonschema
import pytest

from conftest import ROOT

VECTORS = ROOT / "tests/golden/intake-v1"
SCHEMA = json.loads((ROOT / "docs/formats/intake-v1.schema.json").read_text())
VALID = sorted((VECTORS / "valid").glob("*.json"))
INVALID = sorted((VECTORS / "invalid").glob("*.json"))


def errors(path):
    return list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(json.loads(path.read_text())))


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_there_are_vectors():
    assert len(VALID) >= 8 and len(INVALID) >= 30


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_valid(path):
    assert not errors(path)


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.stem)
def test_invalid_by_one_defect(path):
    places = {tuple(e.absolute_path) for e in errors(path)}
    assert len(places) == 1, "one defect each, so that each field is checked for itself"


def test_every_level_refuses_unknown_fields():
    for name in ("", "package", "publisher", "artifact"):
        level = SCHEMA["properties"][name] if name else SCHEMA
        assert level["additionalProperties"] is False


def test_types_are_those_of_the_model():
    table = (ROOT / "src/model/types.def").read_text()
    assert SCHEMA["properties"]["package"]["properties"]["type"]["enum"] == re.findall(
        r'^AQ_TYPE\(\w+, "(\w+)"\)', table, re.M)
