#!/usr/bin/python3 -I
"""The first process of the guest of tests/soak/guest: runs the tests that make worlds, whole, on the
guest's kernel, and writes pytest's results to the second serial line."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, "/guest")
import inside  # noqa: E402

PATHS = ("tests/escape", "tests/observe", "tests/run")
# No compilers there; and limits or patience in real time, which emulation does not keep (tests/guest has
# limits of its own).
LEFT_OUT = "go_static or rust or java or gcc or bombs or background or more_than_can_be_told"


def main():
    inside.prepare()
    service = inside.groups()["service"]
    (service / "cgroup.procs").write_text("0")
    begun = time.monotonic()
    env = {**os.environ, "HOME": "/root", "AQUARIUM": "/guest/repo/build/aquarium", "AQUARIUM_KILL_ROUNDS": "20"}
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
                           "-k", f"not ({LEFT_OUT})", *PATHS], cwd="/guest/repo", env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    inside.tell({"status": done.returncode, "seconds": round(time.monotonic() - begun, 1),
                 "text": done.stdout[-60000:]})


if __name__ == "__main__":
    inside.as_init(main)
