"""Addresses look random to a program and come out of the seed: the same again and in both worlds, others for another
seed and for the next program. Whatever form a program has, the kernel's view and its own agree."""
import shutil
import subprocess

import pytest

from conftest import PROGRAM, open_to_others
from test_truth import BUILD

START = "2026-11-02T10:50:18Z"
FORMS = ["pie", "fixed", "static", "static_pie"]
# What stays where the linker put it.
FIXED = {"pie": set(), "fixed": {"code", "data", "cleared"}, "static": {"code", "data", "cleared"}, "static_pie": set()}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slide")
    open_to_others(folder)
    for form in FORMS:
        shutil.copy(BUILD / f"tests/observe/places_{form}", folder / form)
    return folder


def run(place, *command, seed="1", world="A", code=0):
    of = [] if world == "none" else ["--seed", seed, "--start", START]
    done = subprocess.run([PROGRAM, "run", "--quarantine", *of, "--world", world, "--quiet", "--", *command],
                          cwd=place, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == code, done.stderr.decode()[-2000:]
    return done.stdout.decode()


def places(text):
    return {line.split()[0]: int(line.split()[1], 16) for line in text.splitlines() if line[0] != "!"}


@pytest.mark.parametrize("form", FORMS)
def test_by_the_seed(place, form):
    said = run(place, f"./{form}")
    assert run(place, f"./{form}", world="B") == said
    first, other = places(said), places(run(place, f"./{form}", seed="2"))
    first.pop("loader" if not first["loader"] else "none", None)
    for name, at in first.items():
        if name.startswith("again-"):
            continue
        stays = name in FIXED[form]
        assert (at == other[name]) == stays, name
        assert (at == first["again-" + name]) == stays, name
    assert all(line.endswith(" 1") for line in said.splitlines() if line[0] == "!"), said
    assert said.count("!") == 10


def test_where_a_machine_puts_things(place):
    """As the kernel does it on its own: within these borders, in this order."""
    low = set()
    for seed in "34567":
        at = places(run(place, "./pie", seed=seed))
        low |= {at["stack"] % 4096, at["again-stack"] % 4096}
        for of in ("", "again-"):
            assert 0x555555554000 < at[of + "code"] < 0x565580000000
            assert 0 < at[of + "heap"] - at[of + "data"] < 0x2100000
            assert 0x7EF000000000 < at[of + "map"] < 0x7FFFFFFFF000 - 0x400000000
            assert 0x7FFBF0000000 < at[of + "stack"] < 0x7FFFFFE00000
            assert 0 < at[of + "library"] - at[of + "stack"] < 0x200000
            assert at[of + "large"] < at[of + "loader"] and at[of + "map"] < at[of + "stack"]
    assert len(low) > 5 and all(x % 16 == min(low) % 16 for x in low)


def test_a_world_without_a_machine_has_the_places_of_always(place):
    at = places(run(place, "./pie", world="none"))
    assert at["code"] == at["again-code"] and at["code"] >> 32 == 0x5555 and at["stack"] >> 24 == 0x7FFFFF


def test_the_stack_ends_where_it_did(place):
    """The limit that was raised for the exec is given back, also when the exec fails."""
    for what in ("deep", "fail"):
        out = run(place, "./pie", what, code=128 + 11).splitlines()
        assert 96 <= int(out[-1].split()[1]) <= 127, "8 MiB, in steps of one"
        if what == "fail":
            assert out[:2] == ["folder EACCES", "empty ENOEXEC"]


def test_a_program_with_a_filter_of_its_own(place):
    """It is left in peace: a filter may kill for what is done to it."""
    assert run(place, "./pie", "filtered") == "alive\n"


FILTERED = """
import ctypes, os, signal, struct, sys, time
c = ctypes.CDLL(None)
c.getauxval.restype, c.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
if sys.argv[1] == "look":
    print(sum(map(bool, ctypes.string_at(c.getauxval(33), 8192)[2048:])))
    sys.exit()
code = b"".join(struct.pack("HBBI", *row) for row in (
    (0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[2])), (6, 0, 0, int(sys.argv[3])), (6, 0, 0, 0x7fff0000)))
keep = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(keep)))
c.prctl(38, 1, 0, 0, 0)
c.syscall(317, 1, 0, program) if sys.argv[1] == "seccomp" else c.prctl(22, 2, program)
if sys.argv[4] == "sleep":
    signal.signal(signal.SIGALRM, lambda *_: print("woken"))
    signal.alarm(1)
    time.sleep(2)
else:
    os.execv("/usr/bin/python3", ["python3", sys.argv[0], "look"])
"""


@pytest.mark.parametrize("call", ["seccomp", "prctl"])
@pytest.mark.parametrize("number", [11, 25, 157], ids=["munmap", "mremap", "prctl"])
def test_a_filter_may_forbid_what_is_done_to_a_new_program(place, call, number):
    """However it was made; and it finds nothing of ours in the library."""
    (place / "filtered.py").write_text(FILTERED)
    plain = run(place, "/usr/bin/python3", "filtered.py", "look")
    assert run(place, "/usr/bin/python3", "filtered.py", call, str(number), str(0x50016), "exec") == plain


@pytest.mark.parametrize("call", ["seccomp", "prctl"])
def test_a_filter_sees_no_call_of_ours(place, call):
    (place / "filtered.py").write_text(FILTERED)
    assert run(place, "/usr/bin/python3", "filtered.py", call, "34", str(0x80000000), "sleep") == "woken\n"


def test_two_children_of_one_parent_differ(place):
    out = run(place, "sh", "-c", "./pie again; ./pie again").splitlines()
    half = len(out) // 2
    assert all(a != b for a, b in zip(out[:half], out[half:])), out


@pytest.mark.parametrize("command", [
    ["/usr/bin/python3", "-c", "import subprocess, threading; t = threading.Thread(target=print, args=('thread',)); "
     "t.start(); t.join(); print(subprocess.run(['true']).returncode)"],
    ["perl", "-e", "print join(' ', map { $_ * 2 } 1..5), qq(\\n); system('true') == 0 or die"],
    ["node", "-e", "console.log(require('child_process').execSync('echo inner').toString(), [1,2].map(x => x * 2))"],
    ["java", "-version"],
    ["gcc", "-x", "c", "-o", "/tmp/out", "/dev/null", "-c"],
    ["bash", "-c", "exec -a other cat /proc/self/cmdline"],
    ["env", "-i", "true"],
    ["go", "version"],
])  # fmt: skip
def test_programs(place, command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not on this machine")
    for seed in "123":
        run(place, *command, seed=seed)


IN_THE_WAY = """
static char many[(2ul << 30) - 65536];
static long call(long n, long a, long b) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(0L) : "rcx", "r11", "memory");
    return r;
}
void go(void) {
    int bad = 0;
    for (unsigned i = 0; i < sizeof many; i += 1 << 16) many[i] = (char)(i >> 16);
    for (unsigned i = 0; i < sizeof many; i += 1 << 16) bad |= many[i] != (char)(i >> 16);
    call(231, bad ? 9 : 5, 0);
}
__asm__(".globl _start\\n_start: and $-16,%rsp\\n call go\\n");
"""


def test_a_program_with_a_fixed_place_keeps_it(tmp_path):
    """Eight that fill all the room in which a stack may be put, two gigabytes each."""
    (tmp_path / "fixed.c").write_text(IN_THE_WAY)
    for n in range(8):
        place = 0x7FFFFFF00000 - (n + 1) * (2 << 30) & ~0x1FFFFF
        subprocess.run(["cc", "-O0", "-mcmodel=large", "-fno-stack-protector", "-nostdlib", "-static", "-no-pie",
                        f"-Wl,-Ttext-segment={place:#x}", "-o", tmp_path / f"fixed{n}", tmp_path / "fixed.c"], check=True)
    open_to_others(tmp_path)
    done = subprocess.run([PROGRAM, "run", "--quarantine", "--seed", "slide", "--quiet", "--", "/bin/sh", "-c",
                           "for i in 0 1 2 3 4 5 6 7; do ./fixed$i; echo $?; done"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=100)
    assert done.stdout.split() == ["5"] * 8, done
