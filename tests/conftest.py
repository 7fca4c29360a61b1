"""Shared by all pytest files: where the program and the outside test data are."""
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def aquarium():
    """The program under test."""
    path = pathlib.Path(os.environ.get("AQUARIUM", ROOT / "build/aquarium"))
    assert path.is_file(), f"{path} is not built; run tools/build"
    return path


@pytest.fixture(scope="session")
def data():
    """The outside test data, unpacked (tools/test does that); skips the test where there is none."""
    path = os.environ.get("AQUARIUM_DATA")
    if not path or not pathlib.Path(path).is_dir():
        pytest.skip("AQUARIUM_DATA: the outside test data is not at hand")
    return pathlib.Path(path)
