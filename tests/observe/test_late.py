"""The home of a world is made when somebody looks at it, and what nobody can change is looked up once: whichever way a
program comes, it finds what was always there."""
import json
import subprocess

import pytest

from test_files import run

# Each as the first act of a program that could tell. `home` is its name in the environment.
WAYS = {
    "by its name": "print(open(home + '/.bashrc').read())",
    "by a link": "os.symlink('../home', '/tmp/way'); print(open('/tmp/way' + home[5:] + '/.bashrc').read())",
    "by a link to it": "os.symlink(home, '/tmp/way'); print(open('/tmp/way/.bashrc').read())",
    "by a descriptor of the root": "print(os.fdopen(os.open(home[1:] + '/.bashrc', os.O_RDONLY, "
                                   "dir_fd=os.open('/', os.O_PATH))).read())",
    "by a descriptor of its own": "print(os.fdopen(os.open('.bashrc', os.O_RDONLY, "
                                  "dir_fd=os.open(home, os.O_PATH))).read())",
    "by another's root": "print(open(f'/proc/{os.getpid()}/root' + home + '/.bashrc').read())",
    "by dots": "print(open('/usr/lib/../..' + home + '/.bashrc').read())",
    "from inside": "os.chdir(home); print(open('.bashrc').read())",
    "from above": "os.chdir('/home'); print(open(home[6:] + '/.bashrc').read())",
    "by a map": "import mmap; f = open(home + '/.bashrc'); "
                "print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:].decode())",
    "by another name": "os.rename(home + '/.bashrc', home + '/x'); print(open(home + '/x').read())",
    "by another link": "os.link(home + '/.bashrc', home + '/x'); print(open(home + '/x').read())",
}

# How a link could get into a home that is not laid: by paths that are hard to follow. The tail is a name in the home.
WINDING = {
    "many parts": "os.mkdir('/tmp/self'); there = '/tmp/self/' + './' * 600 + '../..' + home",
    "long links": "os.mkdir('/tmp/self'); os.chdir('/tmp/self'); pad = './' * 1900; os.symlink('/home', 'd')\n"
                  "for a, b in ('cd', 'bc', 'ab'): os.symlink(b + '/' + pad, a)\nthere = 'a/' + pad[:200] + home[6:]",
    "a folder that is gone": "os.mkdir('/tmp/x'); os.chdir('/tmp/x'); os.rmdir('/tmp/x'); os.symlink('/usr/share/doc', '/tmp/x (deleted)'); "
                             "there = '../..' + home",
}
OWN_ROOT = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
def open_below(folder, name, flags):
    how = struct.pack("QQQ", flags, 0o600 if flags & os.O_CREAT else 0, 0x10)
    fd = libc.syscall(437, os.open(folder, os.O_PATH), name.encode(), how, 24)
    return fd if fd >= 0 else -ctypes.get_errno()
"""


def alone(place, script, **more):
    """A script whose Python does not look at its user's home by itself."""
    return run(place, "/usr/bin/python3", "-I", "-S", "-c", f"import os; home = os.environ['HOME']\n{script}", **more)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place")


def test_every_way_leads_there(place):
    known = run(place, "/bin/sh", "-c", "cat ~/.bashrc; echo")
    assert len(known) > 100
    for name, way in WAYS.items():
        assert alone(place, way) == known, name


def test_nothing_is_made_over_it(place):
    script = """
import json, os
home, said = os.environ["HOME"], []
for flags in (os.O_EXCL, 0):
    try:
        fd = os.open(home + "/.bashrc", os.O_CREAT | os.O_WRONLY | flags, 0o600)
        said.append(os.fstat(fd).st_size)
    except OSError as e:
        said.append(e.errno)
try:
    os.mkdir(home + "/.ssh")
except OSError as e:
    said.append(e.errno)
print(json.dumps(said))
"""
    said = json.loads(alone(place, script))
    assert said[0] == 17 and said[1] > 100 and said[2] == 17


@pytest.mark.parametrize("way", WINDING)
def test_no_link_is_made_in_its_place(place, way, tmp_path):
    events = tmp_path / "events"
    script = WINDING[way] + """
try:
    os.symlink('/tmp', there + '/.ssh')
    said = 'made'
except FileExistsError:
    said = 'is there'
open(there + '/.new', 'w').close()
os.mkdir(there + '/' + 'fold')
print(said, os.path.islink(home + '/.ssh'), len(os.listdir(home + '/.ssh')) > 2, os.listdir('/tmp').count('id_ed25519'), home)
"""
    said = alone(place, script, options=["--events", str(events)]).split()
    assert said[:5] == ["is", "there", "False", "True", "0"]
    names = [e["object"] for e in map(json.loads, events.read_text().splitlines()) if e.get("op") in ("symlink", "mkdir")]
    assert [f"{said[5]}/.ssh", f"{said[5]}/fold"] == names[-2:]


def test_no_file_is_made_in_its_place_by_a_root_of_ones_own(place):
    script = OWN_ROOT + """
print(open_below('/home', home[5:] + '/.ssh', os.O_CREAT | os.O_WRONLY), open_below('/home', '/../' + home[6:] + '/.bashrc', os.O_RDONLY) > 0,
      len(os.listdir(home + '/.ssh')) > 2)
"""
    assert alone(place, script) == "-21 True True\n"
    assert alone(place, OWN_ROOT + "print(open_below('/home', home[5:] + '/.bashrc', os.O_RDONLY) > 0)") == "True\n"


def test_a_program_that_lies_there_runs(place):
    script = "cp /usr/bin/printf ~/x && printf '#!%s/x %%s\\n' ~ > /tmp/y && chmod +x /tmp/y && /tmp/y"
    assert run(place, "/bin/sh", "-c", script).endswith("/tmp/y")
    first = "try:\n os.execv(home + '/.bashrc', ['x'])\nexcept OSError as e:\n print(e)"
    assert "Permission denied" in alone(place, first)


def test_the_disk_is_as_full_before(place):
    script = """
import json, os
def used():
    s = os.statvfs("/var/tmp")
    return s.f_bfree, s.f_ffree
before = used()
os.listdir(os.environ["HOME"])
print(json.dumps([before, used()]))
"""
    before, after = json.loads(alone(place, script))
    assert before == after


@pytest.mark.parametrize("act,change", [
    ("pass", {}), ("os.stat(home)", {}), ("os.unlink(home + '/.bashrc')", {"/.bashrc": "D"}),
    ("open(home + '/.bashrc', 'a').write('x')", {"/.bashrc": "M"}), ("open(home + '/x', 'w')", {"/x": "A"}),
    ("open(home + '/.bashrc', 'r+').write(open(home + '/.bashrc').read())", {}),
])  # fmt: skip
def test_what_becomes_of_it_is_told(place, act, change):
    said = json.loads(alone(place, act, options=("--json",)))
    told = {c["path"]: c["change"] for c in said["observation"]["changes"] if c["path"].startswith("/home/")}
    assert {"/" + path.split("/", 3)[3]: kind for path, kind in told.items()} == change


def test_what_fills_the_disk_leaves_room_for_it(place):
    script = """
import os
for i in range(20000):
    open(f"/tmp/{i}", "w").write("x")
fd = os.open("/tmp/large", os.O_CREAT | os.O_RDWR)
for i in range(300):
    os.pwrite(fd, bytes(1 << 20), i << 20)
print(len(os.listdir(os.environ["HOME"])) > 20, os.path.getsize(os.environ["HOME"] + "/.bashrc") > 100)
"""
    assert alone(place, script) == "True True\n"


ANSWERS = r"""
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
def ask(*call):
    ctypes.set_errno(0)
    return [libc.syscall(*call), ctypes.get_errno()]
room = ctypes.create_string_buffer(512)
said = []
for path in (b"/usr/nothing", b"/usr/lib/nothing/../x", b"/usr/lib/../lib/nothing/", b"/usr/bin/env", b"/usr/bin/env/",
             b"/usr/bin/env/x", b"/usr//lib/./nothing", b"/usr/" + b"n" * 256, b"/usr/" + b"n/" * 2045 + b"nn", b"/usr/lib",
             b"/usr", b"/usr/.nothing", b"/lib/nothing", b"/usr/share/../../usr/bin/env", b""):
    for _ in range(2):
        said += [ask(4, path, room), ask(6, path, room), ask(21, path, 0), ask(21, path, 8), ask(89, path, room, 64),
                 ask(89, path, room, 0), ask(262, -100, path, room, 0), ask(262, -100, path, room, 1 << 30),
                 ask(269, -100, path, 4), ask(439, -100, path, 4, 0x200), ask(439, -100, path, 4, 1),
                 ask(439, -100, path, 4, 0x100), ask(332, -100, path, 0, 0x7ff, room),
                 ask(332, -100, path, 0x6000, 0x7ff, room)]
folder = os.open("/usr/share", os.O_RDONLY)
said += [ask(262, folder, name, room, 0) for name in (b"doc", b"nothing", b"../lib", b"..", b"../../etc/passwd") * 2]
print(json.dumps(said))
"""


def test_answers_are_the_kernels(place):
    """Of what is looked up once, and of what is not there: with every error in its order."""
    here = json.loads(subprocess.check_output(["/usr/bin/python3", "-c", ANSWERS]))
    assert json.loads(alone(place, ANSWERS)) == here
