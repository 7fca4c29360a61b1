#!/bin/bash
# Ledger appends against SQLite inserts, both durable, on the disk of FOLDER (default: the build
# folder's). Fails when a ratio is below the 0.5 that the design asks for.
#   bench/ledger.sh [FOLDER] [ROWS]
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/bench/bench_ledger
[ -x "$program" ] || { echo "build first: ninja -C build bench" >&2; exit 70; }
place=$(mktemp -d "${1:-$PWD/build}/bench-ledger-XXXXXX")
trap 'rm -rf "$place"' EXIT
"$program" "$place" "${2:-2000}" | tee "$place/out"
/usr/bin/python3 - "$place/out" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
low = min(row["ratio"] for row in rows)
print(f"lowest ratio {low} (must be 0.5 or more, goal 1)")
sys.exit(low < 0.5)
PY
