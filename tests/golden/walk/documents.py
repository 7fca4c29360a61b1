"""Makes the golden documents: walks each case with the pinned program (tests/golden/pinned.c) in a
fresh state folder with a known key. Used by the test beside it and by tools/update-golden."""
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CASES = ("skill", "findings", "envelope")
KEY = bytes(range(32))
NAMES = ("report.json", "evidence.json", "entries.jsonl", "checkpoint", "verdict-digest",
         "evidence.pem", "vkey")


def program():
    build = pathlib.Path(os.environ.get("AQUARIUM", ROOT / "build/aquarium")).parent
    path = build / "tests/golden/aquarium_pinned"
    assert path.is_file(), f"{path} is not built; run tools/build"
    return path


def run(statuses, *args):
    done = subprocess.run([program(), *map(str, args)], capture_output=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
    assert done.returncode in statuses and not done.stderr, (done.returncode, done.stderr)
    return done.stdout


def envelope(folder, work):
    """The package as a tar that is the same everywhere, and an envelope that tells the truth of it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size = path.stat().st_size
            tar.addfile(entry, io.BytesIO(path.read_bytes()))
    (work / "package.tar").write_bytes(out.getvalue())
    package = {"namespace": "golden", "name": "line-sorter", "version": "2.1.0", "type": "tool"}
    (work / "package.tar.json").write_text(json.dumps({
        "schema": "intake/v1", "submission": "0190f4d2-7c1e-7a30-9b1a-5d2c8e6f0a12",
        "package": package, "publisher": {"id": "golden-publisher", "tier": "proven"},
        "manifest": {
            "schema": "arc/v1", **package,
            "description": "Sorts the lines of a text file and prints them.", "license": "MIT",
            "author": {"name": "Golden examples"},
            "capabilities": {"filesystem": {"read": ["./**"]}}},
        "artifact": {"sha256": hashlib.sha256(out.getvalue()).hexdigest(),
                     "size": len(out.getvalue()), "media_type": "application/x-tar"},
        "bundle": None, "time": "2026-01-01T00:00:00Z",
        "nonce": "6f1c2a9be07d4c3f8a5512d40b7e9c37"}))
    return work / "package.tar.json"


def entries(state):
    """The published entries, one a line: the bundle's own bytes, without their two-byte lengths."""
    (bundle,) = (state / "ledger/tile/entries/000.p").iterdir()
    data, lines = bundle.read_bytes(), []
    while data:
        size = int.from_bytes(data[:2], "big")
        lines.append(data[2:2 + size])
        data = data[2 + size:]
    assert len(lines) == int(bundle.name)
    return b"".join(line + b"\n" for line in lines)


def make(case, work):
    """All documents of one case by name."""
    state = work / "state"
    (state / "keys").mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    (state / "keys/instance.key").write_bytes(KEY)
    (state / "keys/instance.key").chmod(0o600)
    source = HERE / case / "package"
    if case == "envelope":
        source = envelope(source, work)
    run((1, 2, 3), "validate", "--quiet", "--state", state, "--report", work / "report.json",
        "--evidence", work / "evidence.json", source)
    report = (work / "report.json").read_bytes()
    return {"report.json": report, "evidence.json": (work / "evidence.json").read_bytes(),
            "entries.jsonl": entries(state), "checkpoint": (state / "ledger/checkpoint").read_bytes(),
            "verdict-digest": json.loads(report)["verdict_digest"].encode() + b"\n",
            "evidence.pem": run((0,), "ledger", "keys", "--pem", "--state", state),
            "vkey": (state / "ledger/vkey").read_bytes()}
