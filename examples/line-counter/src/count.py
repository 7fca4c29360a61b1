"""Counts lines, words and bytes of the files named on the command line."""
import sys


def count(path):
    with open(path, "rb") as f:
        data = f.read()
    return data.count(b"\n"), len(data.split()), len(data)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: count.py FILE…")
    print(f"{'lines':>8} {'words':>8} {'bytes':>10}  file")
    for path in sys.argv[1:]:
        lines, words, size = count(path)
        print(f"{lines:8} {words:8} {size:10}  {path}")


if __name__ == "__main__":
    main()
