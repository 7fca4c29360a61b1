"""The scripts of tools/: help, mistakes, and what they promise about where they run."""
import json
import pathlib
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def run(name, *args, **more):
    return subprocess.run([str(TOOLS / name), *args], capture_output=True, text=True, timeout=60,
                          check=False, **more)  # fmt: skip


@pytest.mark.parametrize("name", ["demo", "build", "test"])
def test_help_and_mistakes(name):
    done = run(name, "--help")
    assert done.returncode == 0 and f"tools/{name}" in done.stdout and not done.stderr
    done = run(name, "--jsno")
    assert done.returncode == 64 and "--jsno" in done.stderr and not done.stdout


def test_demo_refuses_what_is_not_there(tmp_path):
    done = run("demo", "absent", cwd=tmp_path)
    assert done.returncode == 64 and "absent: no such" in done.stderr
    assert run("demo", "a", "b").returncode == 64


def test_configured_names_the_source(tmp_path):
    assert run("configured", str(tmp_path)).stdout == ""
    info = tmp_path / "meson-info"
    info.mkdir()
    (info / "meson-info.json").write_text(json.dumps({"directories": {"source": "/a b"}}))
    assert run("configured", str(tmp_path)).stdout == "/a b\n"
