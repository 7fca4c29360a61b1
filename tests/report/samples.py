"""Runs the sample program of the unit tests: reports in every form without a walk."""
import functools
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ["plain", "pass", "reject", "flood", "hostile", "planted"]


def program():
    build = pathlib.Path(os.environ.get("AQUARIUM", ROOT / "build/aquarium")).parent
    path = build / "tests/unit/report_sample"
    assert path.is_file(), f"{path} is not built; run tools/build"
    return path


@functools.lru_cache(maxsize=None)
def sample(name, form):
    return subprocess.run(
        [program(), name, form], check=True, capture_output=True, timeout=60
    ).stdout.decode("utf-8")
