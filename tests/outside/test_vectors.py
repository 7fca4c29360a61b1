"""Outside vectors for trees and checkpoints. The unit tests leave these cases out where the data is
absent; here that shows as a skip, and where it is present that they really ran."""
import os
import subprocess

import pytest

from conftest import PROGRAM


@pytest.mark.parametrize("name,case", [("tree", "outside_vectors"),
                                       ("ledger", "outside_checkpoints")])
def test_outside_vectors_are_used(data, name, case):
    env = dict(os.environ, AQUARIUM_DATA=str(data), CMOCKA_MESSAGE_OUTPUT="TAP")
    done = subprocess.run([PROGRAM.parent / f"tests/unit/test_{name}"], env=env, check=True,
                          stdout=subprocess.PIPE)
    assert f"- {case}".encode() in done.stdout
