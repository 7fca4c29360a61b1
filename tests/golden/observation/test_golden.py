"""Re-derives the canonical digest of the golden observations from their JSON lines, and checks the
lines against the schemas, with nothing of ours: Python's json and hashlib, and jsonschema."""
import hashlib
import json
import pathlib
import re

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
    covered = ["aquarium/observation/v2"]
    for event in events:
        del event["seq"], event["time"]
        covered.append(canonical(event))
    covered.append(canonical({k: summary[k] for k in ("by_kind", "dropped", "events")}))
    covered.append(canonical({"exit": summary["exit"]}))
    covered += [canonical({"output": output}) for output in summary["outputs"]]
    covered += [canonical({"change": change}) for change in summary["changes"]]
    covered += [canonical({"reached": path}) for path in summary["reached"]]
    return hashlib.sha256("".join(line + "\n" for line in covered).encode()).hexdigest()


DECOYS = {"10.0.0.7": "{decoy:host}", "Ada": "{decoy:person}"}  # the longest first
DESCRIPTORS = {("file", "open"), ("file", "memfd"), ("file", "queue"), ("network", "socket"),
               ("network", "accept"), ("process", "pidfd")}
NAMING = {"fork": ["child"], "wait": ["child"], "signal": ["from"], "kill": ["process"]}


def replaced(value):
    """Texts stand quoted; no decoy of ours holds what quoting changes."""
    if isinstance(value, dict) and "text" in value:
        return {**value, "text": replaced(value["text"])}
    if isinstance(value, str):
        for decoy, name in DECOYS.items():
            value = value.replace(decoy, name)
    return value


def magnitude(number):
    value = int(number["number"]) if isinstance(number, dict) else number
    power = 1
    while value > 0 and power < 10**18 and value * 1000 >= 3162 * power:
        power *= 10
    power = power if value > 0 else value
    return {"number": str(power)} if abs(power) > 2**53 - 1 else power


class Canon:
    """The canonical form, from docs/formats/observation.md."""

    def __init__(self):
        self.names, self.births, self.lines = {(0, 0): "p1"}, {}, {(0, 0): []}

    def name(self, process, thread=0):
        return self.names.get((process, thread), "unknown")

    def birth(self, event):
        args, key = event["args"], (event["process"], event["thread"])
        thread = event["op"] == "thread"
        if event["result"] < 0 or "child" not in args:
            return
        child = (event["process"], args["child"]) if thread else (args["child"], 0)
        if child not in self.names:
            self.births[key] = self.births.get(key, 0) + 1
            name = f"{self.names[key]}.{'t' if thread else 'p'}{self.births[key]}"
            if len(name) > 160:
                name = "~" + hashlib.sha256(name.encode()).hexdigest()[:32]
            self.names[child] = name
            self.lines[child] = []
        args["child"], event["result"] = self.name(*child), 0

    def edges(self, event):
        op, args = event["op"], event["args"]
        if op in ("fork", "thread"):
            self.birth(event)
        elif op == "kill" and "process" in args:
            if "thread" in args:
                args["thread"] = self.name(args["process"], args["thread"])
            args["process"] = self.name(args["process"])
            args.pop("target", None), args.pop("task", None)
        elif op == "after" and "process" in args:
            args["thread"] = self.name(args.pop("process"), args["thread"])
        elif op == "exec" and "caller" in args:
            args["caller"] = self.name(event["process"], args["caller"])
        for field in NAMING.get(op, []):
            if isinstance(args.get(field), int):
                args[field] = self.name(args[field])

    def add(self, event):
        key, kind, op, args = (event["process"], event["thread"]), event["kind"], event["op"], event["args"]
        if kind == "syscall" and {"preempted", "switched"} & {op, args.get("op")}:
            return
        if key not in self.names:
            self.names[key], self.lines[key] = f"unborn-{key[0]}-{key[1]}", []
        if kind == "process":
            self.edges(event)
        if (kind, op) in DESCRIPTORS and isinstance(event["result"], int) and event["result"] > 0:
            event["result"] = 0
        if kind == "clock" and "ns" in args and (op == "wait" or (op in ("sleep", "timer") and "absolute" in args)):
            args["ns"] = magnitude(args["ns"])
        event["object"] = replaced(event["object"])
        event["args"] = {name: replaced(value) for name, value in args.items()}
        del event["seq"], event["time"]
        self.lines[key].append(canonical({**event, "process": 0, "thread": 0}))

    def digest(self, summary):
        covered = ["aquarium/canon/v2"]
        for key in sorted(self.names, key=lambda k: self.names[k].encode()):
            d = bytes(32)
            for line in self.lines[key]:
                d = hashlib.sha256(d + line.encode() + b"\n").digest()
            covered.append(canonical({"thread": {"digest": d.hex(), "events": len(self.lines[key]),
                                                 "name": self.names[key]}}))
        covered.append(canonical({"dropped": summary["dropped"]}))
        covered.append(canonical({"exit": summary["exit"]}))
        for output in summary["outputs"]:
            head = output["head"].replace("\\x0a", "\n")
            assert output["content"] == hashlib.sha256(replaced(head).encode()).hexdigest()
            output["digest"] = output.pop("content")
            covered.append(canonical({"output": {**output, "head": replaced(output["head"])}}))
        for change in summary["changes"]:
            change["digest"] = change.pop("content")
            covered.append(canonical({"change": {**change, "path": replaced(change["path"])}}))
        covered += [canonical({"reached": replaced(path)}) for path in summary["reached"]]
        return hashlib.sha256("".join(line + "\n" for line in covered).encode()).hexdigest()


def derive_canon(path):
    _, *events, summary = [json.loads(line) for line in lines(path)]
    form = Canon()
    for event in events:
        form.add(event)
    return form.digest(summary)


def validator(name):
    schema = json.loads((FORMATS / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_there_are_vectors():
    assert len(CASES) == 5


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_digest(path):
    digest = path.with_suffix(".digest").read_text().strip()
    assert derive(path) == digest
    assert json.loads(lines(path)[-1])["digest"] == digest


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_canonical_digest(path):
    assert derive_canon(path) == path.with_suffix(".canon").read_text().strip()


def test_noise_is_documented_and_small():
    rows = re.findall(r'AQ_NOISE\((\w+), "([^"]+)", "([^"]+)", (\w+),\s*"([^"]+)"\)',
                      (HERE.parents[2] / "src/observe/noise.def").read_text())
    text = (FORMATS / "observation.md").read_text()
    assert 0 < len(rows) <= 10
    for kind, op, field, how, why in rows:
        assert f"| `{kind.lower()}` `{op}` `{field}` | {how.lower()} | {why} |" in text


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
