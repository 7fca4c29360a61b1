#!/usr/bin/python3
"""Holds what a bench measured against bench/musts.tsv, the one place where it says what must be reached.

    bench/musts.py BENCH ROW PEER FIGURE VALUE

A bench in Python makes a Musts and ends with its status: 1 when a must was missed, with a line MISSED for each.
What could not be measured is named, and is neither reached nor missed."""
import pathlib
import sys
from typing import NamedTuple

TABLE = pathlib.Path(__file__).resolve().parent / "musts.tsv"


class Must(NamedTuple):
    bench: str
    row: str
    peer: str
    figure: str
    side: str
    must: float
    goal: float

    def holds(self, value):
        return value <= self.must if self.side == "most" else value >= self.must


def table():
    rows = []
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        parts = line.split("\t")
        if len(parts) != 7 or parts[3] not in ("ours", "ratio") or parts[4] not in ("most", "least"):
            raise ValueError(f"{TABLE.name}:{number}: not seven columns that make sense")
        rows.append(Must(*parts[:5], float(parts[5]), float(parts[6])))
    return rows


class Musts:
    def __init__(self, bench, out=None):
        self.out = out or sys.stdout
        self.rows = {(m.row, m.peer): m for m in table() if m.bench == bench}
        self.missed, self.met, self.unknown = [], [], []

    def of(self, row, peer):
        """The must of a row, or None."""
        return self.rows.get((row, peer))

    def judge(self, row, peer, value):
        """True when it is reached; says so when it is not."""
        must = self.rows[row, peer]
        good = must.holds(value)
        (self.met if good else self.missed).append(must)
        if not good:
            print(f"MISSED {row}, against {peer}: {must.figure} {value:.3g}, must be at {must.side} {must.must:g}",
                  file=self.out, flush=True)
        return good

    def open(self, row, peer):
        if (row, peer) in self.rows:
            self.unknown.append(self.rows[row, peer])

    def status(self):
        told = [f"{len(self.met)} musts reached, {len(self.missed)} missed"]
        told += [f"not measured: {m.row}, against {m.peer}" for m in self.unknown]
        if self.rows:
            print("; ".join(told), file=self.out, flush=True)
        return int(bool(self.missed))


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    bench, row, peer, figure, value = sys.argv[1:]
    musts = Musts(bench)
    must = musts.of(row, peer)
    if not must or must.figure != figure:
        sys.exit(f"musts: {TABLE.name} has no such row: {bench}, {row}, {peer}, {figure}")
    musts.judge(row, peer, float(value))
    return musts.status()


if __name__ == "__main__":
    sys.exit(main())
