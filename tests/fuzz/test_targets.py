"""The libFuzzer targets: all of them build, and a short run from the committed corpus finds nothing.
Long runs are in tests/soak."""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT

TARGETS = re.findall(r"^  '(\w+)':", (ROOT / "fuzz/meson.build").read_text(), re.M)
SECONDS = 3


@pytest.fixture(scope="session")
def fuzz_build():
    folder = ROOT / "build-fuzz"
    env = dict(os.environ, CC="clang-14", CXX="clang++-14")
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder, "-Dfuzz=true", "-Dtests=false",
                        "-Db_sanitize=address,undefined", "-Db_lundef=false"], cwd=ROOT, env=env,
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def test_the_parsers_that_must_have_one_do():
    assert {"archive", "manifest", "frontmatter", "envelope", "ledger"} <= set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_short_run(fuzz_build, name, tmp_path):
    corpus = ROOT / "tests/fuzz/corpus" / name
    assert any(corpus.iterdir())
    work = tmp_path / "corpus"
    work.mkdir()
    done = subprocess.run([pathlib.Path(fuzz_build) / f"fuzz/fuzz_{name}", "-seed=1", "-timeout=20",
                           f"-max_total_time={SECONDS}", "-rss_limit_mb=2048",
                           f"-artifact_prefix={tmp_path}/", work, corpus],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:].decode(errors="replace")
