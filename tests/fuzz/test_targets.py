"""The libFuzzer targets: all of them build, and a short run from the committed corpus finds nothing. The run is the same every
time: a number of inputs, never of seconds, ends it, and the seed, the order of the corpus and the addresses are fixed. So it
fails when something changed and not by chance; looking for what nobody found yet is left to tests/soak/run."""
import concurrent.futures
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

TARGETS = re.findall(r"^  '(\w+)':", (ROOT / "fuzz/meson.build").read_text(), re.M)
CORPUS = ROOT / "tests/fuzz/corpus"

# How many inputs take about two seconds where the tests are tried; those that are not here take USUAL.
USUAL = 50_000
RUNS = {"archive": 6_000, "canon": 1_200, "gate": 30_000, "manifest": 15_000, "observation": 4_000, "survey": 150, "talk": 8_000,
        "ledger": 100_000, "line": 400_000, "dns": 100_000, "netlink": 400_000, "payload": 400_000, "veil": 100_000,
        "capability": 200_000}


@pytest.fixture(scope="session")
def fuzz_build():
    folder = ROOT / "build-fuzz"
    env = dict(os.environ, CC="clang-14", CXX="clang++-14")
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder, "-Dfuzz=true", "-Dtests=false",
                        "-Db_sanitize=address,undefined", "-Db_lundef=false"], cwd=ROOT, env=env,
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, *(f"fuzz/fuzz_{name}" for name in TARGETS)], check=True, stdout=subprocess.DEVNULL)
    return folder


def same_addresses():
    """The words before a command whose addresses are not drawn, where that is allowed: pointers that a parser compares steer the
    fuzzer, too."""
    fixed = ["setarch", "-R"]
    return fixed if subprocess.run([*fixed, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []


def fuzz(folder, name, place, runs):
    """One run in an empty place, with nothing of the caller's in its environment."""
    (place / "found").mkdir()
    seeds = sorted((CORPUS / name).iterdir())
    assert seeds
    # By name and in order: libFuzzer takes a folder as it is listed, which is another order on another disk.
    for seed in seeds:
        (place / seed.name).write_bytes(seed.read_bytes())
    (place / "seeds").write_text(",".join(seed.name for seed in seeds))
    # By their names leaks of libfyaml are told from ours; libFuzzer asks for none by itself.
    env = {"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "symbolize=1", "ASAN_SYMBOLIZER_PATH": shutil.which("llvm-symbolizer-14")}
    return subprocess.run([*same_addresses(), folder / f"fuzz/fuzz_{name}", "-seed=1", f"-runs={runs}", "-reload=0", "-timeout=60",
                           "-rss_limit_mb=2048", "-print_final_stats=1", "-seed_inputs=@seeds", "found"],
                          cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)


@pytest.fixture(scope="session")
def runs(fuzz_build, tmp_path_factory):
    """All runs, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return {name: pool.submit(fuzz, fuzz_build, name, tmp_path_factory.mktemp(name), RUNS.get(name, USUAL)) for name in TARGETS}


def test_the_parsers_that_must_have_one_do():
    assert {"archive", "manifest", "frontmatter", "envelope", "ledger"} <= set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_short_run(runs, name):
    done = runs[name].result()
    assert done.returncode == 0, done.stdout[-3000:].decode(errors="replace")


def outcome(done):
    """What a run came to: coverage, features and corpus, and how many inputs it took."""
    said = done.stdout.decode(errors="replace")
    last = re.findall(r"^#\d+\tDONE +(cov: \d+ ft: \d+ corp: \d+/\w+)", said, re.M)
    return last, re.findall(r"number_of_executed_units: (\d+)", said)


@pytest.mark.parametrize("name", ["envelope", "line"])
def test_runs_are_the_same(fuzz_build, tmp_path, name):
    seen = []
    for way in "one", "two":
        (tmp_path / way).mkdir()
        seen.append(outcome(fuzz(fuzz_build, name, tmp_path / way, 5_000)))
    assert seen[0] == seen[1] and all(seen[0]), seen
