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
    """The folder with the outside test data; tests that need it are skipped where it is absent."""
    path = pathlib.Path(os.environ.get("AQUARIUM_DATA", ROOT / "../shared/data"))
    if not path.is_dir():
        pytest.skip(f"AQUARIUM_DATA: no test data at {path}")
    return path
