"""Runs the probe and the tools in a world, in a plain sandbox and on this machine, and reads what they say.

As a program it prints what shows in a world and whose part that is: tests/tells/tells.py [SEED]"""
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(os.environ.get("AQUARIUM", HERE.parent.parent / "build/aquarium"))
PROBE = PROGRAM.parent / "tests/tells/probe"
PLAIN = 1000  # as which user the probe runs on this machine

Tell = collections.namedtuple("Tell", "natural seen reason")


def read(text):
    """What probe and tools print, by name."""
    found = {}
    for line in text.splitlines():
        verdict, name, seen, reason = line.split("\t")
        assert verdict in ("natural", "shown") and name not in found, line
        found[name] = Tell(verdict == "natural", seen, reason)
    return found


def both(run):
    return {**read(run(["./probe"])), **read(run(["/usr/bin/python3", "tools.py"]))}


def place(folder):
    for path in (PROBE, HERE / "tools.py"):
        shutil.copy(path, folder)
    folder.chmod(0o755)


def in_world(folder, seed="1", side="A"):
    """What shows in a world."""
    place(folder)

    def run(command):
        done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", seed, "--world", side, "--", *command], cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return done.stdout.decode()

    return both(run)


def natively(folder):
    """What shows on this machine, to a plain user."""
    place(folder)
    drop = ["setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups"] if os.geteuid() == 0 else []

    def run(command):
        return subprocess.run([*drop, *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300,
                              env={"HOME": "/tmp", "PATH": os.environ["PATH"]}, check=True).stdout.decode()

    return both(run)


def sandbox(folder, user="1000", options=(), root=()):
    """The words before a command in a sandbox that only keeps things in."""
    return ["bwrap", *root, "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink",
            "usr/lib64", "/lib64", "--ro-bind", "/etc/passwd", "/etc/passwd", "--proc", "/proc", "--dev", "/dev", "--tmpfs",
            "/tmp", "--dir", "/home/user", "--ro-bind", str(folder), "/place", "--chdir", "/place", "--unshare-all", "--uid",
            user, "--gid", user, "--die-with-parent", "--clearenv", "--setenv", "HOME", "/home/user", "--setenv", "PATH",
            "/usr/bin", *options]


def plainly(folder):
    """What shows in a sandbox that only keeps things in."""
    place(folder)

    def run(command):
        return subprocess.run([*sandbox(folder), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300,
                              check=True).stdout.decode()

    return both(run)


def table(name):
    """A table of this folder: rows by their first column."""
    rows = {}
    for line in (HERE / name).read_text().splitlines():
        if line and not line.startswith("#"):
            first, *rest = line.split("\t")
            assert first not in rows and rest and all(rest), line
            rows[first] = rest
    return rows


def main(seed="1"):
    with tempfile.TemporaryDirectory() as folder:
        found = in_world(pathlib.Path(folder), seed)
    known = table("open.tsv")
    shown = {name: t for name, t in found.items() if not t.natural}
    print(f"{len(shown)} of {len(found)} show with seed {seed}")
    for name, t in sorted(shown.items(), key=lambda row: (known.get(row[0], ["?"])[0], row[0])):
        print(f"{known.get(name, ['NEW'])[0]:10} {name:28} {t.seen[:90]}  [{t.reason}]")
    over = sorted(set(known) - set(shown))
    if over:
        print("covered, to be taken out of open.tsv:", *over)


if __name__ == "__main__":
    main(*sys.argv[1:])
