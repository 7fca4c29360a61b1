"""Prints one tide table."""
import pathlib
import sys

print(pathlib.Path("tides", sys.argv[1] + ".txt").read_text())
