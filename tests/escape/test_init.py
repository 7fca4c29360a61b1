"""Process 1 of a world is ours. It lays the home, makes /sys and fills large files when the keeper sends it a signal; nobody
inside gives it such an order, also where the program has the same user id and Landlock keeps no signals apart (the kernels
of most hosts today)."""
import json
import os
import subprocess
import sys

import pytest

from conftest import PROGRAM, open_to_others
from worlds import PLAIN

OLD_HOST = """
import ctypes, os, struct, sys
code = b"".join(struct.pack("HBBI", *row) for row in ((0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)))
kept = ctypes.create_string_buffer(code)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", 4, ctypes.addressof(kept)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""

ORDERS = """
import ctypes, errno, fcntl, os, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    return 0 if libc.syscall(*args) == 0 else errno.errorcode[ctypes.get_errno()]
pipe = os.pipe()
fd, folder = os.pidfd_open(1), os.open("/proc/1", os.O_RDONLY)
said = {}
def owner(request, value):
    try:
        fcntl.fcntl(pipe[0], request, value)
        return 0
    except OSError as e:
        return errno.errorcode[e.errno]
def give(order):
    info = ctypes.create_string_buffer(struct.pack("iiiiiii", order, 0, -1, 0, 0, 0, 3), 128)
    said[order] = [call(62, 1, order), call(129, 1, order, info), call(200, 1, order), call(234, 1, 1, order), call(297, 1, 1, order, info),
                   call(424, fd, order, None, 0), call(424, folder, order, None, 0), call(16, pipe[0], 0x8901, ctypes.byref(ctypes.c_int(1)))]
    said[order] += [owner(fcntl.F_SETOWN, 1), owner(15, struct.pack("ii", 0, 1)), owner(15, struct.pack("ii", 1, 1))]
    fcntl.fcntl(pipe[0], fcntl.F_SETSIG, order)
    fcntl.fcntl(pipe[0], fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(pipe[1], b"x")
    os.read(pipe[0], 1)
for order in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGBUS): give(order)
key = os.path.expanduser("~/.ssh/id_ed25519")
size = os.stat(key).st_size
for order in (signal.SIGBUS, signal.SIGUSR1): give(order)
print([set(rows) for rows in said.values()], call(62, 1, 999), call(62, os.getpid(), 0), len(open(key).read()) == size,
      open("/sys/class/net/lo/mtu").read().strip())
"""


@pytest.mark.parametrize("landlock", [True, False])
@pytest.mark.parametrize("user", ["root", "plain"])
def test_nobody_inside_gives_orders(tmp_path, user, landlock):
    if os.geteuid() != 0:
        pytest.skip("missing hardware: not root on this machine")
    open_to_others(tmp_path)
    tmp_path.chmod(0o777)
    drop = ["setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups"] if user == "plain" else []
    old = [] if landlock else [sys.executable, "-c", OLD_HOST]
    done = subprocess.run(drop + old + [PROGRAM, "run", "--quarantine", "--seed", "orders", "--json", "--",
                                        "/usr/bin/python3", "-c", ORDERS],
                          cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path / "home")}, capture_output=True, text=True, timeout=60)
    assert "[{'EPERM'}, {'EPERM'}, {'EPERM'}, {'EPERM'}] EINVAL 0 True 65536" in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert told["exit_status"] == 0 and (told["containment"]["landlock"] > 0) == landlock
