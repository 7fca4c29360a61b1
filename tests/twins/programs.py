"""Programs whose two runs must be twins: real ones, single- and multi-threaded, that wait, race, sleep,
signal, lock and share memory. Each row is a name and the words of a command, run in a folder that holds
what `prepare` makes there. All that they need comes from tools/packages.txt: where a tool is missing, tests fail.
"""
import pathlib
import shutil
import subprocess

PY, SH = "/usr/bin/python3", "/bin/sh"

# The world that all of them run in.
WORLD = ("--seed", "twin", "--start", "2026-05-01T09:00:00Z", "--resolve", "api.example.org")

PYTHON = {
    "python-plain": "import json, hashlib; print(hashlib.sha256(json.dumps([1, 2]).encode()).hexdigest())",
    "python-random": "import random, os, uuid, secrets; print(random.random(), os.urandom(4), uuid.uuid4(), "
                     "secrets.token_hex(4))",
    "python-hash": "print(hash('a'), {'x', 'y', 'z', 'w'}, id(object()) & 0xfff)",
    "python-time": "import time, datetime; a = time.monotonic(); time.sleep(3600); "
                   "print(time.monotonic() - a, time.time(), datetime.datetime.now(), time.perf_counter_ns())",
    "python-threads": """
import threading, queue
q, out, lock = queue.Queue(), [], threading.Lock()
def work(n):
    while (i := q.get()) is not None:
        with lock: out.append((n, i))
ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in ts]
[q.put(i) for i in range(200)]
[q.put(None) for _ in ts]
[t.join() for t in ts]
print(out)""",
    "python-race": """
import threading
n, seen = 0, []
def add(me):
    global n
    for _ in range(20000): n += 1
    seen.append((me, n))
ts = [threading.Thread(target=add, args=(i,)) for i in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
print(n, seen)""",
    "python-asyncio": """
import asyncio
async def one(n):
    await asyncio.sleep(n / 10)
    return n
async def main():
    p = await asyncio.create_subprocess_exec('/bin/echo', 'hi', stdout=asyncio.subprocess.PIPE)
    print(await asyncio.gather(*(one(i) for i in range(20))), (await p.communicate())[0])
    loop = asyncio.get_running_loop()
    print(await asyncio.gather(*(loop.run_in_executor(None, sum, range(i)) for i in range(8))))
asyncio.run(main())""",
    "python-multiprocessing": """
import multiprocessing as m
def f(x): return x * x
if __name__ == '__main__':
    with m.Pool(3) as p: print(p.map(f, range(30)), p.apply(f, (9,)))""",
    "python-shared-memory": """
import multiprocessing as m
from multiprocessing import shared_memory
def f(name, sem, v):
    s = shared_memory.SharedMemory(name)
    for i in range(50):
        with sem: s.buf[0] = (s.buf[0] + 1) % 256
    with v.get_lock(): v.value += 1
    s.close()
if __name__ == '__main__':
    s, sem, v = shared_memory.SharedMemory(create=True, size=16), m.Semaphore(1), m.Value('i', 0)
    ps = [m.Process(target=f, args=(s.name, sem, v)) for _ in range(3)]
    [p.start() for p in ps]; [p.join() for p in ps]
    print(s.buf[0], v.value); s.close(); s.unlink()""",
    "python-subprocess": """
import subprocess
print(subprocess.run(['ls', '/etc'], capture_output=True).stdout[:60])
ps = [subprocess.Popen(['sort', '-r'], stdin=-1, stdout=-1) for _ in range(3)]
print([p.communicate(b'b\\na\\n' * 5000)[0][:4] for p in ps])""",
    "python-files": """
import tempfile, os, pathlib, shutil
d = tempfile.mkdtemp()
for i in range(30): pathlib.Path(d, f'f{i}').write_text(str(i))
print(d, os.listdir(d), [e.inode() > 0 for e in os.scandir(d)], os.stat(d + '/f3'))
shutil.rmtree(d)""",
    "python-signals": """
import signal, os, time
got = []
for n in (signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD): signal.signal(n, lambda s, f: got.append(s))
signal.setitimer(signal.ITIMER_REAL, .01, .01)
if os.fork() == 0:
    os.kill(os.getppid(), signal.SIGUSR1); os._exit(3)
for _ in range(5): time.sleep(.05)
print(os.wait(), got)""",
    "python-sqlite": "import sqlite3; c = sqlite3.connect('x.db'); c.execute('create table t(a)'); "
                     "c.executemany('insert into t values(?)', [(i,) for i in range(500)]); c.commit(); "
                     "print(c.execute('select sum(a), random() from t').fetchall())",
    "python-http": """
import http.client
for c in http.client.HTTPConnection('8.8.8.8'), http.client.HTTPSConnection('api.example.org'):
    for i in range(3):
        c.request('POST', f'/{i}', b'x' * 40000 * i)
        r = c.getresponse()
        print(r.status, len(r.read()))""",
    "python-http-threads": """
import threading, urllib.request as u
def get(i): print(i, len(u.urlopen(f'https://api.example.org/{i}').read()))
ts = [threading.Thread(target=get, args=(i,)) for i in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]""",
    "python-asyncio-net": """
import asyncio
async def serve(r, w):
    w.write((await r.readline()).upper()); await w.drain(); w.close()
async def ask(port, i):
    r, w = await asyncio.open_connection('127.0.0.1', port)
    w.write(b'hello %d\\n' % i); print(await r.read(), w.get_extra_info('sockname')); w.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(ask(port, i) for i in range(8)))
    r, w = await asyncio.open_connection('api.example.org', 443, ssl=True)
    w.write(b'GET / HTTP/1.0\\r\\nHost: api.example.org\\r\\n\\r\\n'); print(len(await r.read()))
asyncio.run(main())""",
    "loopback-threads": """
import socket, threading
s = socket.create_server(('127.0.0.1', 0))
def answer(c):
    with c:
        while (d := c.recv(1000)): c.sendall(d[::-1])
def serve():
    for _ in range(6): threading.Thread(target=answer, args=(s.accept()[0],)).start()
def ask(i):
    with socket.create_connection(s.getsockname()) as c:
        c.sendall(b'%d' % i * 3000); c.shutdown(1); n = 0
        while (d := c.recv(700)): n += len(d)
        print(i, n, c.getsockname())
ts = [threading.Thread(target=serve)] + [threading.Thread(target=ask, args=(i,)) for i in range(6)]
[t.start() for t in ts]; [t.join() for t in ts]""",
    "loopback-processes": """
import os, socket
s = socket.create_server(('127.0.0.1', 0))
for i in range(4):
    if os.fork() == 0:
        with socket.create_connection(s.getsockname()) as c:
            c.sendall(b'%d' % i * 5000); c.shutdown(1); print(i, len(c.recv(100)), c.getsockname(), flush=True)
        os._exit(i)
for _ in range(4):
    c, who = s.accept(); n = 0
    while (d := c.recv(900)): n += len(d)
    c.sendall(b'%d' % n); c.close(); print(n, who, flush=True)
u, v = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
u.bind(('127.0.0.1', 0)); v.sendto(b'x', u.getsockname()); print(u.recvfrom(9))
print(sorted(os.wait() for _ in range(4)))""",
    "python-proc": "print(open('/proc/self/status').read(), open('/proc/self/stat').read(), "
                   "open('/proc/meminfo').read()[:200], open('/proc/self/maps').read())",
}

GIT = ("git init -q r && cd r && git config user.email a@b && git config user.name n && echo 1 > f && git add f && "
       "git commit -qm one --author='n <a@b>' && git -c user.name=n -c user.email=a@b clone -q . ../c && "
       "cd ../c && git log --format='%H %ad'")

SHELL = {
    "bash-pipeline": "bash -c 'for i in 3 1 2; do echo $i; done | sort | tee a | wc -l; cat a; echo $RANDOM $$ $SECONDS'",
    "bash-jobs": "bash -c 'for i in 1 2 3; do (sleep $i; echo $i) & done; wait; trap \"echo t\" TERM; kill -TERM $$; echo e'",
    "find-xargs": "find /usr/share/doc -maxdepth 1 | head -300 | xargs -P 3 -n 20 echo | wc",
    "awk-sed-sort": "seq 2000 | awk '{print $1 % 97, $1}' | sort -k1,1n -k2,2nr | sed -n '1~50p' | md5sum",
    "tar": "tar czf t.tgz -C /usr/share perl5 2>/dev/null; tar tzvf t.tgz | md5sum; md5sum t.tgz; ls -la --time-style=full-iso t.tgz",
    "git": GIT,
    "git-plain": "export GIT_CONFIG_GLOBAL=/dev/null; " + GIT,
    "sqlite3": "sqlite3 s.db 'create table t(a,b); insert into t values(1,random()); select * from t; select datetime()'",
    "perl": "perl -e 'print rand, \" \", time, \"\\n\"; my %h = map { $_ => 1 } 1..20; print join(\",\", keys %h), \"\\n\"; "
            "my @k = map { my $p = fork; if (!$p) { exit $_ } $p } 1..3; print wait, $? >> 8, \"\\n\" for @k'",
    "flock": "flock l sh -c 'sleep 1; echo a' & flock l sh -c 'sleep 1; echo b' & flock l echo c; wait",
    "fifo": "mkfifo p; (for i in 1 2 3; do echo $i; done > p) & cat p; wait; (cat p | wc -c) & seq 20000 > p; wait",
    "make": "make -j2 -f Makefile",
    "gcc": "gcc -O1 -pipe a.c b.c -o ab && ./ab",
    "dd-big": "dd if=/dev/zero bs=1M count=3 2>/dev/null | md5sum; seq 60000; seq 60000 >&2",
    "curl": "curl -sS --http1.1 -o 1 https://api.example.org/1 -o 2 https://api.example.org/2; wc -c 1 2; rm 1 2; "
            "curl -sS -o /dev/null -w '%{http_version} %{local_port} %{time_total}' -d a=b https://api.example.org/3",
    "curl-h2": "curl -sS --http2 -Z -w '%{http_version} %{size_download}' https://api.example.org/{1,2,3} -o /dev/null -o /dev/null "
               "-o /dev/null",
    "git-remote": "git ls-remote https://api.example.org/a/b.git | wc",
    "sockets": "for a in 8.8.8.8 [2606:4700::1] 10.0.0.1 8.8.8.8:81 nobody.test; do curl -sS -o /dev/null -m 9 http://$a/; done; true",
    "gcc-make": "make -j2 -f objects",
    "ps-top": "ps aux; cat /proc/loadavg /proc/uptime; ls -la /proc/self/fd",
    "ls-recursive": "ls -laR --time-style=full-iso . /tmp /etc | md5sum; df; stat . /etc/passwd /tmp",
}

OTHERS = {
    "pip-list": ["pip3", "list"],
    "node-plain": ["node", "-e", "console.log(Math.random(), Date.now(), process.hrtime.bigint())"],
    "node-async": ["node", "-e", """
const fs = require('fs'), c = require('crypto'), cp = require('child_process');
for (let i = 0; i < 6; i++) c.pbkdf2('a', 'b', 2000 + i, 16, 'sha256', (e, k) => console.log(i, k.toString('hex')));
for (let i = 0; i < 6; i++) fs.readFile('/etc/passwd', (e, d) => console.log('f', i, d.length));
setTimeout(() => console.log('t'), 500); setImmediate(() => console.log('i'));
cp.exec('echo child; sleep 1', (e, o) => console.log(o, c.randomBytes(4).toString('hex')));"""],
    "node-workers": ["node", "-e", """
const { Worker } = require('worker_threads');
for (let n = 0; n < 3; n++) new Worker(`const { parentPort, workerData } = require('worker_threads');
let s = 0; for (let i = 0; i < 2e6; i++) s = (s + i * workerData) % 1000003; parentPort.postMessage(s)`,
{ eval: true, workerData: n }).on('message', m => console.log(n, m));"""],
    "node-fetch": ["node", "-e", "for (let i = 0; i < 3; i++) fetch('https://api.example.org/' + i)"
                   ".then(r => r.text()).then(t => console.log(i, t.length))"],
    "node-server": ["node", "-e", """
const http = require('http'), s = http.createServer((q, a) => a.end(q.url.toUpperCase())).listen(0, '127.0.0.1', async () => {
  const at = 'http://127.0.0.1:' + s.address().port;
  console.log(at, await Promise.all([1, 2, 3, 4].map(i => fetch(at + '/a' + i).then(r => r.text())))); s.close();
  s.closeAllConnections(); });"""],
    "npm-pack": ["npm", "pack", "--logs-max=0", "./module"],
    "java-version": ["java", "-version"],
    "java-threads": ["java", "-Xshare:auto", "T"],
    "java-http": ["java", "H"],
    "javac": ["javac", "-d", "out", "T.java"],
    "go": ["./go-program"],
    "go-http": ["./go-http"],
    "rust": ["./rust-program"],
    "rust-net": ["./rust-net"],
}

FILES = {
    "Makefile": ".PHONY: all\nall: 1.o 2.o 3.o 4.o\n%.o:\n\t@sleep 0.$*; echo made $@ > $@; echo $@\n",
    "objects": "prog: a.o b.o\n\t$(CC) $^ -o $@\n\t./$@\n%.o: %.c\n\t$(CC) -O1 -c $< -o $@\n",
    "module/package.json": '{"name": "module", "version": "1.0.0", "main": "a.js", "license": "MIT"}\n',
    "module/a.js": "module.exports = 1;\n",
    "a.c": '#include <stdio.h>\nint b(int);\nint main(void) { printf("%d %s %s\\n", b(2), __DATE__, __TIME__); }\n',
    "b.c": "int b(int x) { return x * x; }\n",
    "T.java": """
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class T { public static void main(String[] a) throws Exception {
 ExecutorService e = Executors.newFixedThreadPool(3); List<Future<Integer>> f = new ArrayList<>();
 for (int i = 0; i < 20; i++) { int n = i; f.add(e.submit(() -> n * n)); }
 for (Future<Integer> x : f) System.out.print(x.get() + " "); e.shutdown();
 System.out.println(IntStream.range(0, 20000).parallel().map(x -> x % 7).sum());
 System.out.println(new Random().nextInt() + " " + System.nanoTime() + " " + new Object().hashCode() + UUID.randomUUID()); } }
""",
    "H.java": """
import java.net.*; import java.net.http.*; import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class H { public static void main(String[] a) throws Exception {
 HttpClient c = HttpClient.newHttpClient();
 var all = IntStream.range(0, 3).mapToObj(i -> c.sendAsync(HttpRequest.newBuilder(URI.create("https://api.example.org/" + i)).build(),
  HttpResponse.BodyHandlers.ofString())).collect(Collectors.toList());
 for (var f : all) System.out.println(f.get().version() + " " + f.get().body().length()); } }
""",
    "h.go": """
package main
import ("fmt"; "io"; "net/http"; "net/http/httptest"; "sync")
func main() {
 s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
 var w sync.WaitGroup
 for _, at := range []string{s.URL + "/a", s.URL + "/b", "https://api.example.org/c", "https://api.example.org/d", "http://8.8.8.8/e"} {
  w.Add(1); go func(at string) { defer w.Done(); r, e := http.Get(at); if e != nil { fmt.Println(e); return }
   b, _ := io.ReadAll(r.Body); r.Body.Close(); fmt.Println(at, r.Proto, len(b)) }(at) }
 w.Wait(); s.Close()
}
""",
    "n.rs": """
use std::{io::{Read, Write}, net::*, thread};
fn main() {
 let l = TcpListener::bind("127.0.0.1:0").unwrap(); let at = l.local_addr().unwrap();
 let server = thread::spawn(move || for _ in 0..4 { let (mut s, who) = l.accept().unwrap(); thread::spawn(move || {
   let mut b = String::new(); s.read_to_string(&mut b).unwrap(); write!(s, "{} {}", who, b.len()).unwrap(); }); });
 let hs: Vec<_> = (0..4).map(|i| thread::spawn(move || { let mut s = TcpStream::connect(at).unwrap();
   s.write_all(&vec![b'x'; 1000 * i]).unwrap(); s.shutdown(Shutdown::Write).unwrap();
   let mut b = String::new(); s.read_to_string(&mut b).unwrap(); println!("{} {}", i, b); })).collect();
 for h in hs { h.join().unwrap(); } server.join().unwrap();
 let mut s = TcpStream::connect(("api.example.org", 80)).unwrap();
 s.write_all(b"GET / HTTP/1.0\\r\\nHost: api.example.org\\r\\n\\r\\n").unwrap();
 let mut b = Vec::new(); s.read_to_end(&mut b).unwrap(); println!("{}", b.len());
}
""",
    "p.go": """
package main
import ("fmt"; "math/rand"; "sync"; "time"; "os/exec"; "crypto/rand")
func main() {
 m := map[string]int{"a": 1, "b": 2, "c": 3, "d": 4}
 for k := range m { fmt.Print(k) }
 c, done := make(chan int), make(chan bool); var w sync.WaitGroup; var mu sync.Mutex; s := 0
 for i := 0; i < 4; i++ { w.Add(1); go func(n int) { defer w.Done(); for x := range c { mu.Lock(); s += x * n; mu.Unlock() } }(i) }
 go func() { time.Sleep(time.Second); done <- true }()
 for i := 0; i < 1000; i++ { c <- i }
 close(c); w.Wait(); <-done
 o, _ := exec.Command("echo", "x").Output(); b := make([]byte, 4); crand.Read(b)
 fmt.Println(s, rand.Int(), time.Now(), string(o), b)
}
""".replace('"crypto/rand"', 'crand "crypto/rand"'),
    "p.rs": """
use std::{collections::HashMap, sync::{mpsc, Arc, Mutex}, thread, time::*};
fn main() {
 let (t, r) = mpsc::channel(); let m = Arc::new(Mutex::new(0));
 let hs: Vec<_> = (0..4).map(|i| { let (t, m) = (t.clone(), m.clone()); thread::spawn(move || for j in 0..50 {
   *m.lock().unwrap() += j; t.send((i, j)).unwrap(); if j % 10 == 0 { thread::sleep(Duration::from_millis(1)) } }) }).collect();
 drop(t); let got: Vec<_> = r.iter().collect(); for h in hs { h.join().unwrap(); }
 let h: HashMap<i32, i32> = (0..9).map(|i| (i, i)).collect();
 println!("{:?} {} {:?} {:?}", got, m.lock().unwrap(), h, SystemTime::now());
}
""",
}

# What the rows call and Debian does not always have, and the packages that bring it.
TOOLS = {"pip3": "python3-pip", "node": "nodejs", "npm": "npm", "java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless",
         "go": "golang-go", "rustc": "rustc", "git": "git", "sqlite3": "sqlite3", "curl": "curl", "gcc": "gcc", "make": "make",
         "ps": "procps"}

# More than a few runs of these take minutes: tests/soak/twins runs them as often as the others.
SLOW = {"tar", "node-workers", "pip-list", "npm-pack", "java-threads", "java-http", "javac"}

# These print what their world's decoys became (names cut to fit, digests over listings with owners), or keep what its internet said.
# Between worlds the bytes that they write differ, their acts do not.
TELL_DECOYS = {"ps-top", "ls-recursive", "curl", "git-remote"}
# These work with decoys: a table of names decides when garbage is collected, in which order authorities are tried, and how much
# memory the names of ~/.gitconfig take.
USE_DECOYS = {"npm-pack", "java-http", "git"}

# Small programs of tests/twins/acts.c: what few programs do, done on purpose.
ACTS = ["spin", "spin-lock", "spin-atomic", "timers", "posix-timers", "timerfd", "sysv", "pi", "robust", "exec-thread", "vfork",
        "condvar", "barrier", "eventfd", "signalfd", "rwlock", "mqueue", "socketpair", "sigqueue", "shm-spin", "spin-for-sleeper",
        "spin-for-alarm"]
# And of waits.c.
WAITS = ["requeue", "bitset", "shared-barrier", "shared-condition", "timed-semaphore", "waitid", "sigtimedwait", "inotify", "epoll",
         "moments"]
# And of ends.c.
ENDS = ["vsyscall", "timer-shared", "statuses", "status-of-run"]


def real():
    """[(name, words)] of programs that people use."""
    found = [(name, [PY, "-c", text]) for name, text in PYTHON.items()]
    found += [(name, [SH, "-c", text]) for name, text in SHELL.items()]
    return found + list(OTHERS.items())


def rows():
    """[(name, words)] of all, our own small programs among them."""
    found = real()
    found += [("act-" + name, ["./twins_acts", name]) for name in ACTS]
    found += [("wait-" + name, ["./twins_waits", name]) for name in WAITS]
    found += [("edges", ["./twins_edges", "all"])]
    found += [("end-" + name, ["./twins_ends", name]) for name in ENDS]
    found += [("unsent-" + name, ["./twins_unsent", name]) for name in ("pipe", "key", "background", "halted")]
    return found


def prepare(folder, build):
    """What the rows need in the folder that they run in."""
    folder = pathlib.Path(folder)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    missing = sorted({TOOLS[tool] for tool in TOOLS if not shutil.which(tool)})
    assert not missing, f"not installed: {' '.join(missing)}; run tools/setup test"
    for source, program in ("p.go", "go-program"), ("h.go", "go-http"):
        subprocess.run(["go", "build", "-o", program, source], cwd=folder, check=True, timeout=600,
                       env={"PATH": "/usr/bin:/bin:/usr/local/go/bin", "HOME": str(folder), "GO111MODULE": "off",
                            "GOCACHE": str(folder / ".gocache")})
    shutil.rmtree(folder / ".gocache", ignore_errors=True)
    for source, program in ("p.rs", "rust-program"), ("n.rs", "rust-net"):
        subprocess.run(["rustc", "-o", program, source], cwd=folder, check=True, timeout=600)
    subprocess.run(["javac", "T.java", "H.java"], cwd=folder, check=True, timeout=600)
    for name in "twins_acts", "twins_edges", "twins_ends", "twins_unsent", "twins_waits":
        shutil.copy(pathlib.Path(build) / "tests/twins" / name, folder / name)
