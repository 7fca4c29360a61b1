"""Callers of every kind: limits that they set, descriptors that they closed, signals that they ignore,
folders that are gone, terminals that go away. A run works, or one line says what to do."""
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from conftest import SANITIZER, schema
from test_left import runner  # fixture: as root and as a plain user

SOFT = {  # a habit of the caller's: raised
    "files": "ulimit -Sn 20", "size": "ulimit -Sf 1", "stack": "ulimit -Ss 64", "memory": "ulimit -Sv 20000"}
HARD = {  # a border: said
    "files": ("ulimit -n 20", "at most 20 open files here (ulimit -n)"),
    "size": ("ulimit -f 100", "at most 100 KB in a file here (ulimit -f)"),
    "no size": ("ulimit -f 0", "at most 0 KB in a file here (ulimit -f)"),
    "stack": ("ulimit -s 64", "at most 64 KB of stack here, and 192 are needed: ulimit -s"),
    "memory": ("ulimit -v 20000", "at most 20000 KB of memory here (ulimit -v)"),
    "processes": ("ulimit -u 1", "at most 1 processes of yours here (ulimit -u"),
    "time": ("ulimit -t 1", "a process may use a processor for 1 s here (ulimit -t)")}
if SANITIZER:  # which need more memory, and threads of their own
    del SOFT["memory"], HARD["memory"], HARD["processes"]
BUSY = "import os\nos.listdir('/')\nfor i in range(1000000): os.getppid()"


def called(runner, before, *command, options=(), after="", **more):
    """A run by a shell that first does something to itself."""
    words = [str(runner.program), "run", "--quarantine", "--quiet", *options, "--", *command]
    drop = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    return subprocess.run([*(drop if runner.user == "plain" and os.geteuid() == 0 else []), "bash", "-c",
                           f'{before}\n"$@" {after}', "-", *words], cwd=runner.place, capture_output=True,
                          timeout=60, **more)


def test_a_failure_of_ours_is_an_object_too(runner):
    done = called(runner, "ulimit -n 20", "true", options=("--json",))
    said = json.loads(done.stdout)
    assert not list(schema("run.schema.json").iter_errors(said))
    assert done.returncode == 70 and set(said) == {"schema", "exit_status", "complete", "error"}
    assert (said["exit_status"], said["complete"]) == (70, False) and "Too many open files" in said["error"]
    said["exit_status"] = 0
    assert list(schema("run.schema.json").iter_errors(said))


@pytest.mark.parametrize("name", SOFT)
def test_a_soft_limit_is_no_border(runner, name):
    done = called(runner, SOFT[name], "sh", "-c", "ls -d /; ulimit -n; ulimit -s")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"/\n1024\n8192\n", b"")


@pytest.mark.parametrize("name", HARD)
def test_a_hard_limit_is_said(runner, name):
    before, text = HARD[name]
    done = called(runner, before, "/usr/bin/python3", "-c", BUSY)
    assert done.returncode == 70 and done.stdout == b"", done
    assert text.encode() in done.stderr and done.stderr.count(b"\n") == 1, done.stderr


def test_a_record_that_may_not_grow_is_said(runner):
    events = runner.place.parent / "acts.jsonl"
    done = called(runner, "ulimit -Sf 1", "ls", "-d", "/", options=("--events", str(events)))
    assert done.returncode == 70 and not events.exists()
    assert b"acts.jsonl: File too large; at most 1 KB in a file here (ulimit -f)\n" in done.stderr


def test_closed_streams(runner):
    assert called(runner, "", "cat", options=("--stdin",), after="<&-").returncode == 0
    assert called(runner, "", "true", after="<&- >&- 2>&-").returncode == 0
    done = called(runner, "", "echo", "lost", after=">&-")
    assert done.returncode == 70 and b"could be passed on: Bad file descriptor" in done.stderr
    done = called(runner, "", "true", options=("--json",), after=">&-")
    assert done.returncode == 70 and b"standard output: Bad file descriptor" in done.stderr
    done = called(runner, "", "cat", options=("--stdin",), after="</")
    assert done.returncode == 64 and b"standard input is a folder" in done.stderr


def test_a_reader_that_leaves(runner):
    done = called(runner, "set -o pipefail", "seq", "100000", after="| head -1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")


def test_odd_surroundings(runner):
    """The mask for new files, folders and variables are the world's own."""
    inside = "umask; echo $LANG $TMPDIR; touch a && stat -c %a a; mktemp -u | cut -c1-5"
    for before in ("umask 777", "unset HOME PATH", "export LANG=xx_YY.odd LC_ALL=none TMPDIR=/nowhere", "cd /",
                   "mkdir gone; cd gone; rmdir ../gone", "mkdir -p closed; cd closed; chmod 0 ."):
        done = called(runner, before, "sh", "-c", inside)
        assert done.stdout == b"0022\nC.UTF-8 /tmp\n644\n/tmp/\n", (before, done)


@pytest.mark.parametrize("way", ["ignored", "blocked"])
def test_signals_of_the_caller(runner, way):
    """What the caller ignores or blocks is not so inside, and children are heard of."""
    every = [s for s in range(1, signal.NSIG) if s not in (signal.SIGKILL, signal.SIGSTOP, 32, 33)]

    def before():
        if way == "blocked":
            signal.pthread_sigmask(signal.SIG_BLOCK, every)
        for s in every if way == "ignored" else []:
            signal.signal(s, signal.SIG_IGN)
    code = "sleep 1; (exit 3); echo $?; yes | head -1; grep -E 'Sig(Blk|Ign)' /proc/self/status; timeout 5 sleep 9; echo $?"
    done = called(runner, "", "sh", "-c", code, preexec_fn=before)
    assert done.stdout == b"3\ny\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n124\n", done


def test_a_folder_of_many_files(runner):
    for i in range(10000):
        (runner.place / f"file-{i}").touch()
    done = called(runner, "", "sh", "-c", "ls | wc -l; echo x >file-7")
    assert (done.returncode, done.stdout) == (0, b"10000\n"), done.stderr


# ---- terminals ----


def left(runner):
    """Our processes that are still there."""
    found = set()
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/exe").startswith(str(runner.program)):
                found.add(entry)
        except OSError:
            continue
    return found


def groups(pid):
    return [f for _, folders, _ in os.walk("/sys/fs/cgroup") for f in folders
            if f.startswith("aquarium-") and f.split("-")[2] == str(pid)]


def read_all(fd):
    seen, end = b"", time.monotonic() + 30
    while select.select([fd], [], [], max(end - time.monotonic(), 0))[0]:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    return seen


def on_a_terminal(runner, wait, key, command):
    """Starts it on a terminal of its own, waits for so long (or for the text), and types a key or hangs up."""
    words = [str(runner.program), "run", "--quarantine", "--stdin", "--", *command]
    begun, begins = os.pipe()  # the second end closes when the program is executed
    pid, fd = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if runner.user == "plain" and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(12345, 12345, 12345)
            os.setresuid(12345, 12345, 12345)
        os.chdir(runner.place)
        os.execv(words[0], words)
    os.close(begins)
    assert os.read(begun, 1) == b""
    os.close(begun)
    if isinstance(wait, bytes):
        seen = b""
        while wait not in seen:
            seen += os.read(fd, 4096)
    else:
        time.sleep(wait)
    if key:
        os.write(fd, key)
    else:
        os.close(fd)
    return pid, fd


STAGES = [0, 0.001, 0.003, 0.006, 0.01, 0.02, b"begun"]


@pytest.mark.parametrize("key", [b"\x03", b"\x1c", None], ids=["interrupt", "quit", "hang-up"])
def test_a_terminal_ends_it_at_every_stage(runner, key):
    for stage in STAGES:
        # Who reads from a terminal that is gone ends by itself.
        pid, fd = on_a_terminal(runner, stage, key, ["sh", "-c", "echo begun; cat" if key else "echo begun; while :; do :; done"])
        said = read_all(fd) if key else b""
        end = time.monotonic() + 20
        while (done := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < end:
            time.sleep(0.005)
        assert done[0] == pid, (stage, said)
        assert os.WIFSIGNALED(done[1]), (stage, done, said)
        assert os.WTERMSIG(done[1]) in {b"\x03": (signal.SIGINT,), b"\x1c": (signal.SIGQUIT,)}.get(key, (signal.SIGHUP,))
        if key:
            os.close(fd)
        while (left(runner) or groups(pid)) and time.monotonic() < end:
            time.sleep(0.005)
        assert not left(runner) and not groups(pid), stage


def test_a_stopped_run_goes_on(runner):
    """Ctrl-Z stands still in front of the user; the world may go on, and its end is told after."""
    for stage in STAGES:
        pid, fd = on_a_terminal(runner, stage, b"\x1a", ["sh", "-c", "echo begun; sleep 5; echo after"])
        _, status = os.waitpid(pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGCONT)
        said = read_all(fd)
        if os.WIFSTOPPED(status):
            _, status = os.waitpid(pid, 0)
        os.close(fd)
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, (stage, said)
        if not isinstance(stage, bytes):  # else the whole of it may have been read with what was waited for
            assert b"after" in said and b"with status 0" in said, (stage, said)


URGENCY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    ctypes.set_errno(0); r = libc.syscall(nr, *args); return r if r >= 0 else -ctypes.get_errno()
def fields(path): return open(path).read().rsplit(")")[-1].split()
def tell(who):
    s = fields("/proc/self/stat"); param = ctypes.create_string_buffer(16); attr = ctypes.create_string_buffer(64)
    sched = dict(x.split(":") for x in open("/proc/self/sched") if ":" in x and "#" not in x)
    sched = {k.strip(): v.strip() for k, v in sched.items()}
    print(who, "nice", [20 - call(140, w, 0) for w in (0, 1, 2)], "stat", s[15], s[16], s[37], s[38], "sched", sched["policy"], sched["prio"],
          sched["se.load.weight"], "io", [call(252, w, 0) for w in (1, 2, 3)], "policy", call(145, 0), call(143, 0, param), param.raw[0],
          "attr", call(315, 0, attr, 64, 0), attr.raw[:20].hex(), "turn", call(148, 0, param), param.raw.hex(), flush=True)
tell("first")
print(call(141, 0, 0, -1), call(141, 0, 0, 3), call(141, 0, 0, 2), call(141, 9, 0, 0), call(141, 0, 99999, 0), call(140, 0, 1), flush=True)
print(call(144, 0, 1, ctypes.byref(ctypes.c_int(5))), call(144, 0, 1, ctypes.byref(ctypes.c_int(0))), call(144, 0, 3, ctypes.byref(ctypes.c_int(0))),
      call(144, -1, 0, 0), call(251, 1, 0, 1 << 13 | 4), call(251, 1, 0, 2 << 13 | 7), call(251, 1, 0, 4 << 13), flush=True)
if os.fork() == 0: tell("child"); os._exit(0)
os.wait()
os.system("nice -n 20 nice; nice; ionice; ionice -c3 ionice; chrt -p $$; cat /proc/self/autogroup; ps -o ni,pri,cls -p $$ | tail -1")
"""
URGENT = """first nice [0, 0, 0] stat 20 0 0 0 sched 0 120 1048576 io [0, 16388, 16388] policy 0 0 0 attr 0 3800000000000000000000000000000000000000 turn 0 00000000000000000000000000000000
-13 0 -13 -22 -3 20
-1 -22 0 -22 -1 0 -22
child nice [3, 3, 0] stat 23 3 0 3 sched 3 123 538624 io [16391, 16391, 16391] policy 3 0 0 attr 0 3800000003000000000000000000000003000000 turn 0 00000000000000000000000000000000
19
3
best-effort: prio 7
idle
"""


@pytest.mark.parametrize("how", ["", "nice -n 7 ionice -c 2 -n 1", "chrt -b 0", "chrt -i 0", "chrt -f 1", "nice -n -5", "ionice -c 3"])
def test_how_urgent_the_caller_is_does_not_show(runner, how):
    """Nor does it stay: what a program asks for itself is there, and in its children."""
    if runner.user == "plain" and how in ("chrt -f 1", "nice -n -5"):
        how = "nice -n 12"  # what anybody may
    done = called(runner, f'set -- {how} "$@"', "/usr/bin/python3", "-c", URGENCY)
    assert done.returncode == 0 and done.stdout.decode().startswith(URGENT), (done.stdout.decode(), done.stderr)
    rest = done.stdout.decode()[len(URGENT):].split("\n")
    assert rest[0].endswith("SCHED_BATCH") and rest[2] == "/autogroup-84 nice 0" and rest[3].split() == ["3", "16", "B"], rest


def test_without_a_machine_the_caller_shows(runner):
    done = called(runner, 'set -- nice -n 7 "$@"', "nice", options=("--world", "none"))
    assert done.stdout == b"7\n"
