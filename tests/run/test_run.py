"""aquarium run --quarantine: what programs of every kind do inside, and what is said of it."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import threading

import jsonschema
import pytest

from conftest import PROGRAM, ROOT, open_to_others

BUILD = PROGRAM.parent
SCHEMA = json.loads((ROOT / "docs/formats/run.schema.json").read_text())


class Runner:
    def __init__(self, place):
        self.place = place
        place.chmod(0o755)

    def run(self, *command, options=(), input=None, timeout=120):
        seed = [] if "--seed" in options or "none" in options else ["--seed", "1"]
        return subprocess.run([PROGRAM, "run", "--quarantine", *seed, *options, "--", *map(str, command)],
                              cwd=self.place, input=input, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def json(self, *command, options=(), **more):
        """The object, and the events."""
        events = self.place.parent / "events.jsonl"
        done = self.run(*command, options=("--json", "--events", events, *options), **more)
        assert done.returncode != 70, done.stderr.decode()
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        said = json.loads(done.stdout)
        jsonschema.validate(said, SCHEMA)
        assert said["exit_status"] == done.returncode
        return said, lines[1:-1]

    def copy(self, name):
        """One of the programs of this folder, where a run can see it."""
        return shutil.copy(BUILD / "tests/run" / name, self.place / name)


@pytest.fixture
def runner(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    open_to_others(tmp_path)
    return Runner(place)


# ---- the command ----


def test_output_and_status_pass_through(runner):
    done = runner.run("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, b"out\n")
    assert done.stderr.startswith(b"err\n")
    assert runner.run("sh", "-c", "kill -TERM $$").returncode == 128 + 15


def test_input_is_empty_unless_asked_for(runner):
    assert runner.run("cat", input=b"secret").stdout == b""
    assert runner.run("cat", options=["--stdin"], input=b"given").stdout == b"given"


def test_one_object(runner):
    said, events = runner.json("sh", "-c", "cat /etc/passwd >/tmp/copy; rm /tmp/copy; sleep 30; exit 5")
    assert said["exit_status"] == 5 and said["backend"] == "container" and said["tier"] == "t1"
    assert len(said["observation_digest"]) == 64 and said["guarantee"] and said["truncated"] is False
    s = said["summary"]
    assert "/etc/passwd" in s["files_read"] and "/tmp/copy" in s["files_written"]
    assert "/tmp/copy" in s["files_removed"] and s["hosts"] == []
    assert "cat /etc/passwd" in s["processes"] and "sleep 30" in s["processes"]
    assert s["sleeps"] == [{"count": 1, "ns": 30 * 10**9, "process": s["sleeps"][0]["process"]}]
    assert {e["kind"] for e in events} >= {"file", "process", "clock", "syscall"}
    done = runner.run("sh", "-c", "echo out; echo err >&2", options=["--json"])
    assert json.loads(done.stdout)["exit_status"] == 0 and done.stderr.split() == [b"out", b"err"]


def test_the_record_in_its_binary_form(runner):
    """It is checked by what docs/formats/observation.md says, and tells the same as the lines."""
    stream = runner.place.parent / "record"
    said, events = runner.json("cat", "/etc/passwd", options=["--stream", stream])
    data = stream.read_bytes()
    assert data.startswith(b"AQOBSV2\nH") and hashlib.sha256(data[:-32]).digest() == data[-32:]
    assert data[-64:-32].hex() == said["observation_digest"]
    assert len(data) < (runner.place.parent / "events.jsonl").stat().st_size / 2
    done = runner.run("true", options=["--quiet", "--stream", "-"])
    assert done.stdout.startswith(b"AQOBSV2\nH")
    for option in ("--stream", "--events"):
        done = runner.run("echo", "ran", options=["--json", option, "-"])
        assert (done.returncode, done.stdout) == (64, b"") and b"standard output" in done.stderr


def test_the_same_run_is_observed_the_same(runner):
    digests = {runner.json("/usr/bin/python3", "-c", "import json, hashlib; print(len(json.dumps(1)))")[0]
               ["observation_digest"] for _ in range(3)}
    assert len(digests) == 1


def test_text_is_short(runner):
    done = runner.run("/usr/bin/python3", "-c", "import asyncio, json")
    lines = done.stderr.decode().splitlines()
    assert len(lines) < 24 and all(len(line) < 400 for line in lines)
    for word in ("ended", "ran", "hosts", "wrote", "read", "digest"):
        assert any(line.startswith(word) for line in lines), word


def told(done):
    """The page as a dictionary: a list of rows for each title."""
    text = done.stderr.decode()
    page, title = {}, None
    for line in text[text.rindex("\nended ") + 1:].splitlines():
        title = line[:10].strip() or title
        page.setdefault(title, []).append(line[10:])
    return page


def test_text_tells_what_matters(runner):
    done = runner.run("sh", "-c", """
        for i in $(seq 40); do cat Makefile$i; done 2>/dev/null; touch $(seq 20)
        cat $(seq 20) /etc/hosts ~/.netrc ~/.no-such-key
        echo x >/tmp/t; rm /tmp/t; echo x >/dev/null; echo x >>/etc/profile; exit 3""")
    page = told(done)
    assert "with status 3 after" in page["ended"][0]
    assert page["denied"] == ["/etc/profile"]
    assert page["read"][0] == "~/ .netrc", "the home comes first"
    assert page["not there"] == ["~/.no-such-key"]
    assert page["wrote"] == [page["wrote"][0], "and 1 temporary, removed again"], "a line for each folder"
    assert page["wrote"][0].endswith("/ " + ", ".join(str(i) for i in range(1, 21)))
    assert "removed" not in page and "/dev/null" not in str(page["wrote"])
    assert "made up" in page["world"][0]


def test_a_sleep_beyond_the_end_is_told(runner):
    """Its own clock ran out while it slept: how long it meant to is what matters."""
    done = runner.run("sh", "-c", "sleep 5; sleep 100000")
    page = told(done)
    assert page["ended"][0].startswith("by the limit virtual-ns") and " h of its own time" in page["ended"][0]
    assert page["slept"] == ["100005.0 s in all, 100000.0 s at once (of virtual time)"]


def test_times_are_told(runner):
    said, _ = runner.json("sleep", "1000")
    assert said["elapsed_ms"] < 60_000 and said["summary"]["virtual_ns"] >= 10**12
    page = told(runner.run("sleep", "1000"))
    assert ", 0.3 h of its own time" in page["ended"][0]
    page = told(runner.run("sleep", "30"))
    assert ", 30.0 s of its own time" in page["ended"][0]
    assert "own time" not in told(runner.run("true"))["ended"][0]


def test_a_server_is_told(runner):
    page = told(runner.run("python3", "-c", "import socket; socket.create_server(('127.0.0.1', 8080))"))
    assert page["listened"] == ["127.0.0.1:8080"] and page["hosts"] == ["none asked for or reached for"]


def test_long_command_lines_are_cut(runner):
    page = told(runner.run("sh", "-c", ": " + "ä" * 400))
    assert len(page["ran"][0]) < 200 and page["ran"][0].endswith("ä…")


def test_a_limit_says_how_to_set_another(runner):
    page = told(runner.run("sleep", "100000000"))
    assert page["ended"][0].startswith("by the limit virtual-ns (86400 s)")
    assert "--limit virtual-ns=N" in page["ended"][1]


def test_the_home_is_kept_out_and_it_is_said(runner):
    def at_home(*command):
        return subprocess.run([PROGRAM, "run", "--quarantine", "--", *command], cwd=runner.place,
                              env={**os.environ, "HOME": str(runner.place)}, capture_output=True)
    assert b"the current folder is not inside" in at_home("./nothing").stderr
    assert b"the current folder is not inside" not in at_home("true").stderr
    assert b"the current folder is not inside" not in runner.run("./nothing").stderr


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("then", ["while :; do :; done", "trap '' INT TERM HUP; cat"])
def test_who_interrupts_is_told_what_was_seen(runner, sig, then):
    def interrupted(*options):
        p = subprocess.Popen([PROGRAM, "run", "--quarantine", "--stdin", *options, "--", "sh", "-c",
                              "echo x >left; echo begun >&2; " + then], cwd=runner.place,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert p.stderr.readline() == b"begun\n"
        p.send_signal(sig)
        p.wait(timeout=30)  # its input stays open: at its end cat would end by itself
        out, error = p.communicate()
        assert p.returncode == -sig, "as if nothing had held the signal back"
        return out, error
    out, error = interrupted()
    assert b"ended     by you (" in error and b"/left\n" in error
    out, error = interrupted("--json")
    said = json.loads(out)
    jsonschema.validate(said, SCHEMA)
    assert said["exit_status"] == 128 + sig and said["complete"] is False


def test_a_signal_that_we_ignore_stays_ignored(runner):
    p = subprocess.Popen(["sh", "-c", 'trap "" INT; exec "$@"', "-", PROGRAM, "run", "--quarantine", "--stdin",
                          "--", "sh", "-c", "echo begun; cat"], cwd=runner.place, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"begun\n"
    p.send_signal(signal.SIGINT)
    out, error = p.communicate(b"more", timeout=30)
    assert (p.returncode, out) == (0, b"more") and b"with status 0" in error


def test_usage(runner):
    bad = [["run"], ["run", "--", "true"], ["run", "--quarantine"], ["run", "--quarantine", "--"],
           ["run", "--quarantine", "--limit", "nothing=1", "--", "true"],
           ["run", "--quarantine", "--backend", "magic", "--", "true"],
           ["run", "--quarantine", "--share", "/nowhere", "--", "true"],
           ["run", "--quarantine", "--rootfs", "/nowhere", "--", "true"],
           ["run", "--quarantine", "--events", "/nowhere/x", "--", "touch", "/tmp/ran"]]
    for args in bad:
        done = subprocess.run([PROGRAM, *args], cwd=runner.place, capture_output=True)
        assert done.returncode == 64, (args, done.stderr)
        assert done.stderr.startswith(b"aquarium"), args


def test_wrong_words_are_the_callers(runner):
    """Every option with a wrong word: 64, before anything runs, and the words say what is wrong."""
    (runner.place / "file").write_text("x")
    os.mkfifo(runner.place / "fifo")
    wrong = {("--cwd", "/nowhere"): "there is none", ("--cwd", "here"): "begin with /",
             ("--cwd", "/etc/passwd"): "no folder", ("--cwd", "/proc/1/cwd"): "denied",
             ("--share", "/proc/self"): "its own", ("--share", "/dev/null"): "its own",
             ("--share", "fifo"): "only folders and files", ("--share", ".."): "lies in it",
             ("--share", "/"): "name a folder", ("--rootfs", "file"): "no folder",
             ("--events", "/tmp"): "a folder", ("--stream", "/tmp"): "a folder", ("--env", "=x"): "NAME=VALUE", ("--env", "X"): "NAME=VALUE",
             ("--color", "pink"): "auto, always or never", ("--limit", "memory=-1"): "NAME=N",
             ("--limit", "memory=0"): "NAME=N", ("--limit", "memory=99999999999999999999"): "NAME=N",
             ("--limit", "memory"): "NAME=N", ("--limit", "memory=1k"): "NAME=N"}
    valued = ("--cwd", "--share", "--env", "--rootfs", "--limit", "--events", "--stream", "--resolve", "--seed", "--pack")
    wrong |= {(option, ""): f"{option} needs a value" for option in valued}
    for (option, word), said in wrong.items():
        done = runner.run("sh", "-c", "echo ran", options=[option, word])
        assert (done.returncode, done.stdout) == (64, b""), (option, word, done.stderr)
        assert said in done.stderr.decode().splitlines()[0], (option, word, done.stderr)
    assert runner.run("").returncode == 64
    for words in (["--resolve", "", "true"], ["--resolve="], ["--resolve", "--", "true"], ["--resolve"]):
        done = subprocess.run([PROGRAM, "run", "--quarantine", *words], cwd=runner.place, capture_output=True, text=True)
        assert (done.returncode, done.stderr.splitlines()[0]) == (64, "aquarium: run: --resolve needs a value (NAME[,NAME…])"), words
    # The twins: right words of the same options.
    done = runner.run("pwd", options=["--cwd", "/tmp", "--share", "file", "--env", "A=", "--color", "never",
                                      "--limit", "memory=1000000000"])
    assert (done.returncode, done.stdout) == (0, b"/tmp\n")


def test_no_such_program(runner):
    done = runner.run("no-such-program-anywhere")
    assert done.returncode == 127, done.stderr
    assert b"no-such-program-anywhere" in done.stderr


# ---- programs of every kind ----

PYTHON = """
import asyncio, multiprocessing, subprocess, threading, time
def square(x): return x * x
def thread(l): time.sleep(0.01); l.append(1)
async def wait(): await asyncio.gather(*[asyncio.sleep(i / 10) for i in range(5)])
if __name__ == "__main__":
    l = []; t = [threading.Thread(target=thread, args=(l,)) for _ in range(5)]
    [x.start() for x in t]; [x.join() for x in t]
    with multiprocessing.Pool(3) as p: s = sum(p.map(square, range(50)))
    asyncio.run(wait())
    print(len(l), s, subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
"""

NODE = """
const {Worker, isMainThread, parentPort} = require('worker_threads');
if (!isMainThread) parentPort.postMessage(6 * 7);
else new Worker(__filename).on('message', m => require('child_process').exec('echo child', (e, o) =>
  setTimeout(() => console.log(m, o.trim()), 2000)));
"""

GO = """
package main
import ("fmt"; "io"; "net/http"; "net/http/httptest"; "os/exec"; "sync"; "time")
func main() {
	var w sync.WaitGroup
	c := make(chan int, 10)
	for i := 0; i < 10; i++ { w.Add(1); go func(i int) { defer w.Done(); time.Sleep(time.Second); c <- i }(i) }
	w.Wait(); close(c)
	n := 0
	for x := range c { n += x }
	o, _ := exec.Command("echo", "child").Output()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("ok")) }))
	r, err := http.Get(s.URL)
	if err != nil { panic(err) }
	b, _ := io.ReadAll(r.Body)
	fmt.Print(n, " ", string(b), " ", string(o))
}
"""

RUST = """
use std::{process::Command, sync::mpsc, thread, time::Duration};
fn main() {
    let (tx, rx) = mpsc::channel();
    for i in 0..5 { let tx = tx.clone(); thread::spawn(move || { thread::sleep(Duration::from_secs(1)); tx.send(i).unwrap(); }); }
    drop(tx);
    let n: i32 = rx.iter().sum();
    let o = Command::new("echo").arg("child").output().unwrap();
    println!("{} {}", n, String::from_utf8_lossy(&o.stdout).trim());
}
"""

JAVA = """
import java.util.concurrent.*;
public class Main { public static void main(String[] a) throws Exception {
    ExecutorService e = Executors.newFixedThreadPool(4);
    Future<Integer> f = e.submit(() -> { Thread.sleep(1000); return 42; });
    Process p = new ProcessBuilder("echo", "child").start();
    System.out.println(f.get() + " " + new String(p.getInputStream().readAllBytes()).trim());
    e.shutdown(); } }
"""


def needs(*programs):
    for program in programs:
        assert shutil.which(program), f"{program} is not installed; tools/setup test does that"


def build(runner, *command, **env):
    subprocess.run(command, cwd=runner.place, check=True, capture_output=True,
                   env={**os.environ, "GO111MODULE": "off", **env})


def inside(runner, *command):
    """What it prints inside is what it prints outside."""
    outside = subprocess.run(command, cwd=runner.place, capture_output=True, timeout=120)
    said, events = runner.json(*command)
    done = runner.run(*command)
    assert said["exit_status"] == outside.returncode == 0, (outside.stderr, said)
    assert done.stdout == outside.stdout
    return done.stdout.decode(), said, events


def test_python(runner):
    (runner.place / "x.py").write_text(PYTHON)
    out, said, _ = inside(runner, "/usr/bin/python3", "x.py")
    assert out == "5 40425 child\n" and "echo child" in said["summary"]["processes"]


def test_node(runner):
    needs("node")
    (runner.place / "x.js").write_text(NODE)
    assert inside(runner, "node", "x.js")[0] == "42 child\n"


def test_bash(runner):
    out, said, _ = inside(runner, "bash", "-c", "for i in 3 1 2; do echo $i; done | sort | tr '\\n' ' '; wait")
    assert out == "1 2 3 " and "sort" in said["summary"]["processes"]


def test_perl(runner):
    assert inside(runner, "perl", "-e", "$_ = fork; if (!$_) { sleep 2; exit 3 } wait; print $? >> 8")[0] == "3"


def test_go_static(runner):
    needs("go")
    (runner.place / "x.go").write_text(GO)
    build(runner, "go", "build", "-o", "x", "x.go", CGO_ENABLED="0")
    assert inside(runner, "./x")[0] == "45 ok child\n"


def test_rust(runner):
    needs("rustc")
    (runner.place / "x.rs").write_text(RUST)
    build(runner, "rustc", "-O", "x.rs")
    assert inside(runner, "./x")[0] == "10 child\n"


def test_java(runner):
    needs("java", "javac")
    (runner.place / "Main.java").write_text(JAVA)
    build(runner, "javac", "Main.java")
    assert inside(runner, "java", "Main")[0] == "42 child\n"


def test_gcc_and_its_program(runner):
    (runner.place / "x.c").write_text("#include <stdio.h>\nint main(void) { puts(\"built\"); }\n")
    done = runner.run("sh", "-c", "gcc -o x x.c && ./x")
    assert (done.returncode, done.stdout) == (0, b"built\n"), done.stderr
    assert not (runner.place / "x").exists()  # what is written stays inside


@pytest.mark.parametrize("command", [
    "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l",
    "tar cf x.tar /usr/share/common-licenses && tar tf x.tar | wc -l",
    "find /usr/share/common-licenses | wc -l",
    "sqlite3 x.db 'create table t(a); insert into t values(41+1); select a from t'",
    "seq 1000 | xargs -P 4 -n 50 echo | wc -l",
])
def test_tools(runner, command):
    needs("git", "sqlite3")
    outside = subprocess.run(["sh", "-c", f"cd $(mktemp -d) && {command}"], capture_output=True)
    done = runner.run("sh", "-c", f"cd $(mktemp -d) && {command}")
    assert (done.returncode, done.stdout) == (0, outside.stdout), done.stderr


def test_everything_that_waits(runner):
    program = runner.copy("waits")
    outside = subprocess.run([program, runner.place.parent], capture_output=True, timeout=120)
    assert runner.run("./waits", "/tmp").stdout == outside.stdout
    assert outside.stdout.count(b"\n") == 15


def test_those_who_need_each_other(runner):
    """Everything that can wait in the kernel: as outside, and the same in each run on a busy machine."""
    program = runner.copy("meets")
    (runner.place.parent / "here").mkdir()
    for _ in range(20):  # its ports are the host's, where others may have them for a while
        outside = subprocess.run([program, runner.place.parent / "here"], capture_output=True, timeout=120)
        if b"no port" not in outside.stdout:
            break
        time.sleep(1)
    load = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        runs = [runner.json("./meets", "/tmp") for _ in range(4)]
    finally:
        for p in load:
            p.kill()
            p.wait()
    lines = runner.run("./meets", "/tmp").stdout.splitlines()
    expected = outside.stdout.splitlines()
    assert lines == expected
    assert len(expected) == 18 and outside.returncode == 0
    assert len({said["observation_digest"] for said, _ in runs}) == 1


def test_changes_of_the_shared_folder(runner):
    (runner.place / "sub").mkdir()
    for name in ("kept", "changed", "gone", "touched", "sub/x"):
        (runner.place / name).write_text(name)
    said, _ = runner.json("sh", "-c", "echo more >> changed; touch -d yesterday changed touched; rm gone; "
                                      "rm -r sub; echo new > made; echo out > /tmp/elsewhere")
    here = str(runner.place)
    changes = {c["path"]: c["change"] for c in said["observation"]["changes"]}
    assert changes == {f"{here}/changed": "M", f"{here}/gone": "D", f"{here}/sub/": "D", f"{here}/made": "A",
                       "/tmp/elsewhere": "A"}
    assert (runner.place / "gone").exists() and not (runner.place / "made").exists()
    assert (runner.place / "changed").read_text() == "changed"


# ---- nothing escapes the record ----


def plain_user(runner, *args):
    """aquarium run as nobody, with a copy of the program where nobody can reach it."""
    program = runner.place.parent / "aquarium"
    if not program.exists():
        shutil.copy(PROGRAM, program)
        program.chmod(0o755)
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "run",
                           "--quarantine", *args], cwd=runner.place, capture_output=True, timeout=120)


def test_the_object_really_opened(runner):
    runner.copy("race")
    done = runner.run("./race", options=["--events", runner.place.parent / "events.jsonl"])
    letters = done.stdout.decode().strip()
    events = [json.loads(x) for x in (runner.place.parent / "events.jsonl").read_text().splitlines()]
    opens = [e["object"] for e in events if e.get("op") == "open" and e["thread"] == 0
             and e["process"] == 0 and e["object"] in ("/etc/passwd", "/etc/group")]
    truth = ["/etc/group" if x == "g" else "/etc/passwd" for x in letters if x != "-"]
    assert "g" in letters and "p" in letters
    for name in ("/etc/group", "/etc/passwd"):  # the record keeps the first ones of each and counts the rest
        counted = sum(e["args"]["left-out"] for e in events if e.get("op") == "repeat" and e["object"] == name)
        assert opens.count(name) + counted == truth.count(name), name


def test_ways_out_of_sight(runner):
    runner.copy("slip")
    done = runner.run("./slip", options=["--events", runner.place.parent / "events.jsonl"])
    got = dict(line.split() for line in done.stdout.decode().splitlines())
    events = [json.loads(x) for x in (runner.place.parent / "events.jsonl").read_text().splitlines()]
    opened = {e["object"] for e in events if e.get("op") == "open"}
    ran = {e["object"] for e in events if e.get("op") == "exec"}
    refused = {(e["op"], e["object"]) for e in events if e.get("rule")}
    assert {"/etc/services", "/etc/protocols"} <= opened  # by children that asked not to be traced
    assert any("hidden" in x for x in ran) and any("ld-linux" in x for x in ran)
    assert any("true" in (e["object"] or "") for e in events if e.get("op") in ("open", "map"))
    assert got["io_uring"] == "-1" and got["int80"] == "-38" and got["listener"] == "-16"
    assert got["userns"] == "-1" and got["traceme"] == "0" and got["newtime"] == "-1"
    assert got["notify"] == "-95" and got["errno"] == "0" and got["untraced3-kept"] == "1"
    assert got["clock-pages"] == "0"  # so every look at a clock is a call
    assert got["tsc-set"] == "0" and got["tsc"] == "100" and got["tsc-wrong"] == "-22"
    counter = [e for e in events if e.get("op") == "repeat" and e["args"].get("op") == "counter"]
    assert max(e["args"]["count"] for e in counter) >= 100  # though it was told that nobody minds
    assert got["dispatch"] == "-22" and got["zerocopy"] == "-95"
    assert got["poke"] == got["peek"] == "-1" and got["poke-own"] == "1"
    rules = {e["rule"] for e in events if e.get("rule")}
    assert rules == {"syscall.refused", "namespace.refused", "listener.refused", "ptrace.refused", "dispatch.refused",
                     "zerocopy.refused", "memory.refused"}
    assert ("refused", "io_uring_setup") in refused and ("refused", "other-architecture") in refused
    assert any(op == "seccomp" for op, _ in refused) and any(op == "unshare" for op, _ in refused)
    assert any(e.get("op") == "writable-code" for e in events)


PAGES = """
import ctypes, os
class Piece(ctypes.Structure): _fields_ = [("at", ctypes.c_void_p), ("len", ctypes.c_size_t)]
page = ctypes.create_string_buffer(b"recorded", 4096)
r, w = os.pipe()
print(ctypes.CDLL(None).vmsplice(w, ctypes.byref(Piece(ctypes.addressof(page), 8)), 1, 0))
page.value = b"replaced"
print(os.read(r, 100).decode())
"""


def test_pages_in_a_pipe_do_not_change(runner):
    """The kernel would hand on the page itself, with what was written into it after it was looked at."""
    assert runner.run("/usr/bin/python3", "-c", PAGES).stdout == b"8\nrecorded\n"


def old_program(path):
    """An ELF file for 32 bits that opens /etc/passwd and ends with what it got: 0, or its errno."""
    begin, header = 0x08048000, 52 + 32
    code = (b"\xb8\5\0\0\0\xbb%s\x31\xc9\x31\xd2\xcd\x80"  # open
            b"\x31\xdb\x85\xc0\x79\x04\xf7\xd8\x89\xc3"  # what to say
            b"\xb8\1\0\0\0\xcd\x80\xf4")  # exit
    name = struct.pack("<I", begin + header + len(code) + 2)
    body = code % name + b"/etc/passwd\0"
    size = header + len(body)
    path.write_bytes(b"\x7fELF\1\1\1".ljust(16, b"\0")
                     + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, begin + header, 52, 0, 0, 52, 32, 1, 0, 0, 0)
                     + struct.pack("<8I", 1, 0, begin, begin, size, size, 5, 4096) + body)
    path.chmod(0o755)


def test_programs_for_32_bits(runner):
    """They end before their first instruction, and that is said: their page of clocks cannot be taken away, and
    all that they could ask for would be refused (int80 above)."""
    old_program(runner.place / "old")
    try:
        assert subprocess.run([runner.place / "old"]).returncode == 0
    except OSError:
        pytest.skip("missing hardware: a kernel that runs 32-bit programs")
    said, events = runner.json("./old")
    assert [e["op"] for e in events] == ["exec", "unseen", "exit", "counts"]
    assert events[1]["args"] == {"what": "clock"} and events[3]["args"] == {"total": 0}
    assert said["exit_status"] == 128 + 9 and said["complete"] is False


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_what_cannot_be_seen_is_said(runner):
    """A program that an ordinary user may run and not read, as another's interpreter."""
    said, _ = runner.json("true")
    assert said["complete"] is True and said["summary"]["unseen"] == 0
    # What is shared is copied and belongs to the user inside; a root file system is not.
    root = runner.place / "root"
    hidden, script = root / "hidden", root / "script"
    root.mkdir()
    (runner.place / "x.c").write_text("#include <stdio.h>\nint main(void) { puts(\"ran\"); }\n")
    build(runner, "gcc", "-static", "-o", hidden, "x.c")
    script.write_text("#!/hidden\n")
    script.chmod(0o755)
    hidden.chmod(0o111)
    options = ["--rootfs", root, "--cwd", "/"]
    said = json.loads(plain_user(runner, "--json", *options, "--", "/script").stdout)
    jsonschema.validate(said, SCHEMA)
    assert said["complete"] is False and said["summary"]["unseen"] == 1 and said["truncated"] is False
    assert said["exit_status"] == 128 + 9
    assert b"not all of it could be seen" in plain_user(runner, *options, "--", "/script").stderr
    hidden.chmod(0o755)
    said = json.loads(plain_user(runner, "--json", *options, "--", "/script").stdout)
    assert said["complete"] is True and said["exit_status"] == 0


def test_names_that_are_asked_for(runner):
    said, events = runner.json("getent", "hosts", "some.example.org")
    assert said["exit_status"] == 2
    assert "some.example.org" in said["summary"]["hosts"]
    assert [e for e in events if e["op"] == "dns-query" and e["object"] == "some.example.org"]


def test_nothing_reaches_the_host(runner):
    """A listener on all addresses of the host hears nothing, and hears who is not in a world."""
    heard = []
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
    addresses = ["127.0.0.1", "10.0.2.2", "169.254.169.254", *(a for a in own if ":" not in a)]
    with socket.create_server(("0.0.0.0", 0)) as s:
        port = s.getsockname()[1]
        s.settimeout(0.2)
        code = f"""
import socket
for a in {addresses!r}:
    try:
        c = socket.create_connection((a, {port}), 2); c.sendall(b"out"); print("reached", a)
    except OSError as e: print(e)
"""
        done = runner.run("/usr/bin/python3", "-c", code)
        try:
            heard.append(s.accept())
        except TimeoutError:
            pass
        with socket.create_connection(("127.0.0.1", port), 2):
            s.accept()[0].close()
    assert not heard and b"reached" not in done.stdout, done.stdout


def parent(pid):
    return int((pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1])


def test_who_kills_process_1_is_not_the_program(runner):
    """The world dies of it, and what is told is a failure of ours, not how the program ended."""
    front = subprocess.Popen([PROGRAM, "run", "--quarantine", "--json", "--", "sh", "-c", "echo up >&2; while :; do :; done"],
                             cwd=runner.place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert front.stderr.readline() == b"up\n"
    inits = [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and
             (p / "comm").read_text() == "init\n" and int(p.name) > 1 and parent(parent(p.name)) == front.pid]
    assert len(inits) == 1
    os.kill(inits[0], signal.SIGKILL)
    out, _ = front.communicate(timeout=60)
    said = json.loads(out)
    jsonschema.validate(said, SCHEMA)
    assert said["exit_status"] == front.returncode == 70 and said["complete"] is False
    assert said["observation"]["exit"]["kind"] == "failure"
    killed, _ = runner.json("sh", "-c", "kill -9 $$")
    assert killed["exit_status"] == 137 and killed["complete"] and killed["observation"]["exit"] == {"kind": "signal", "value": 9}


def test_bytes_that_were_written_count(runner):
    """Also those of a file that is gone; not those that were there before."""
    said, _ = runner.json("sh", "-c", "head -c 1000000 /dev/zero > /tmp/a; rm /tmp/a")
    assert said["observation"]["resources"]["written_bytes"] == 1000000
    (runner.place / "large").write_bytes(bytes(300000))
    said, _ = runner.json("sh", "-c", "echo >> large")
    assert said["observation"]["resources"]["written_bytes"] == 1
    assert said["observation"]["changes"][0]["size"] == 300001


def test_floods_are_bounded_and_said(runner):
    code = "import os\nfor i in range(20000): os.stat('/etc/passwd')\nfor i in range(3000): os.access(f'/tmp/{i}', 0)"
    said, events = runner.json("/usr/bin/python3", "-c", code, options=["--limit", "events=1000"])
    assert said["truncated"] is True and said["observation"]["dropped"] > 0
    # what sums up others goes on: which calls were made, how often the same act
    assert [e["op"] for e in events[1000:]].count("counts") == 1
    assert {e["op"] for e in events[1000:]} == {"counts", "exit", "repeat"} and len(events) < 1100
    said, events = runner.json("/usr/bin/python3", "-c", code)
    assert said["truncated"] is False
    again = [e for e in events if e["op"] == "repeat" and e["object"] == "/etc/passwd"
             and e["args"].get("op") == "stat"]
    assert again and sum(e["args"]["left-out"] for e in again) >= 19000


def test_the_limit_of_calls(runner):
    """To the call: it is part of what fixes a verdict."""
    code = "import os\nos.write(1, b'begun')\nwhile 1: os.getppid()"
    said, events = runner.json("/usr/bin/python3", "-c", code, options=["--limit", "calls=5000"])
    assert said["exit_status"] == 3 and said["complete"] is False
    assert said["observation"]["exit"] == {"kind": "budget", "value": 0}
    assert [e["args"]["total"] for e in events if e["op"] == "counts"] == [5001]  # the one too many included
    assert b"by the limit calls (5000)" in runner.run("/usr/bin/python3", "-c", code, options=["--limit", "calls=5000"]).stderr


BURN = "perl -e 'for ($i = 0; $i < %d * 1000000; $i++) {}'"  # some hundredths of a second, each


@pytest.mark.parametrize("limit, within, beyond", [
    ("virtual-ns=10000000000", "sleep 9", "sleep 11"),
    ("processes=5", "for i in 1 2 3 4; do sleep 5 & done; wait", "for i in 1 2 3 4 5; do sleep 5 & done; wait"),
    ("output-bytes=1000", "head -c 500 /dev/zero; head -c 500 /dev/zero >&2",
     "head -c 501 /dev/zero; head -c 500 /dev/zero >&2"),
    ("disk-bytes=50000000", "head -c 10000000 /dev/zero >/tmp/a", "for i in $(seq 20); do head -c 10000000 /dev/zero >/tmp/$i; done"),
    ("inodes=2000", "touch $(seq 100)", "for i in $(seq 30); do touch $(seq $((i * 100)) $((i * 100 + 99))); done"),
    ("memory=100000000", "head -c 9000000 /dev/zero | tail -c 9000000 >/dev/null",
     "for i in 1 2 3; do head -c 40000000 /dev/zero | tail -c 40000000 | sleep 1 & done; wait"),
    ("cpu-ns=1000000000", BURN % 1, "for i in $(seq 20); do " + BURN % 10 + "; done"),
    ("io-bytes=2000000", "head -c 900000 /dev/zero >/dev/null", "head -c 1100000 /dev/zero >/dev/null"),
])
def test_where_limits_end(runner, limit, within, beyond):
    """What they allow is allowed, a little more is not, and the right one is named."""
    said, _ = runner.json("sh", "-c", within, options=["--limit", limit])
    assert said["observation"]["exit"] == {"kind": "status", "value": 0} and said["complete"] is True
    done = runner.run("sh", "-c", beyond, options=["--limit", limit])
    assert done.returncode == 3 and f"by the limit {limit.split('=')[0]} (" in done.stderr.decode(errors="replace")


@pytest.mark.parametrize("limit, good", [("memory=64M", True), ("disk-bytes=1G", True), ("disk-bytes=1T", True), ("memory=64m", False),
                                         ("memory=64MB", False), ("memory=M", False), ("wall-ms=10K", False), ("memory=16777216T", False),
                                         ("memory=99999999999999999999999", False), ("memory=-1", False)])
def test_units_of_limits(runner, limit, good):
    done = runner.run("true", options=["--limit", limit])
    assert done.returncode == (0 if good else 64)
    assert good or b"bytes also with K, M, G or T" in done.stderr


def test_asleep_for_ever(runner):
    said, _ = runner.json("/usr/bin/python3", "-c", "import signal\nwhile True: signal.pause()")
    assert said["exit_status"] == 3
    said, _ = runner.json("sh", "-c", "while :; do sleep 3600; done")
    assert said["exit_status"] == 3


def test_every_call_is_counted(runner):
    _, events = runner.json("/usr/bin/python3", "-c", "import os\nfor i in range(500): os.getppid()")
    counts = [e for e in events if e["op"] == "counts" and e["process"] == 0]
    text = " ".join(str(v) for e in counts for k, v in e["args"].items() if k.startswith("calls"))
    assert "getppid=500" in text, text


def on_a_terminal(place, *command):
    """What a person sees: standard error is a terminal."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen([PROGRAM, "run", "--quarantine", *command], cwd=place, stderr=theirs,
                           stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    run.wait(timeout=60)
    return seen


def test_who_waits_is_told(runner):
    long = ["--limit", "wall-ms=5000", "--", "sh", "-c", "while :; do :; done"]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        told = pool.submit(on_a_terminal, runner.place, *long)
        quiet = pool.submit(on_a_terminal, runner.place, "--quiet", *long)
        piped = pool.submit(runner.run, *long[3:], options=long[:2])
        assert told.result().count(b"still running; Ctrl-C") == 1
        assert b"still running" not in quiet.result()
        assert b"still running" not in piped.result().stderr
    assert b"still running" not in on_a_terminal(runner.place, "--", "true")


def test_output_that_is_lost_is_told(runner):
    command = [PROGRAM, "run", "--quarantine", "--quiet", "--", "sh", "-c"]
    with open("/dev/full", "w") as full:
        done = subprocess.run([*command, "echo out"], cwd=runner.place, stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 70 and b"No space left on device" in done.stderr
        done = subprocess.run([*command, "echo out; exit 5"], cwd=runner.place, stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 5 and b"No space left on device" in done.stderr
        done = subprocess.run([*command, "true"], cwd=runner.place, stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


def test_what_a_share_leaves_out_is_told(runner):
    (runner.place / "open").write_text("x")
    said, _ = runner.json("ls")
    assert said["containment"]["left_out"] == 0
    (runner.place / "locked").write_text("x")
    (runner.place / "locked").chmod(0o600 if os.geteuid() == 0 else 0)
    done = runner.run("ls")
    assert done.stdout == b"open\n" and b"1 of what is shared cannot be read without rights, and is not inside: locked\n" in done.stderr
    assert runner.json("ls")[0]["containment"]["left_out"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works in /root")
def test_work_in_the_home_of_root(runner):
    """It is closed to users inside, unless something in it is shown."""
    with tempfile.TemporaryDirectory(dir="/root") as place:
        pathlib.Path(place).chmod(0o755)
        pathlib.Path(place, "file").write_text("mine")
        assert runner.run("cat", f"{place}/file", options=("--share", place)).stdout == b"mine"
    assert runner.run("ls", "/root").returncode == 2
