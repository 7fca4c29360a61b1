"""The program has given up what it does not need before it hears the first byte."""
import os

from private import START, authorities, internet, twins  # noqa: F401


def test_locked_in(internet):
    done = internet.python("""
import os
pid = os.environ["INTERNET_PID"]
status = dict(l.split(":\\t", 1) for l in open(f"/proc/{pid}/status").read().splitlines() if ":\\t" in l)
for name in ("Seccomp", "NoNewPrivs", "CapEff", "CapPrm", "CapBnd", "Threads"): print(name, status[name].strip())
print("Uid", status["Uid"].split()[1])
limits = open(f"/proc/{pid}/limits").read()
print("processes", [l for l in limits.splitlines() if l.startswith("Max processes")][0].split()[2])
""")
    told = dict(line.split() for line in done.stdout.decode().splitlines())
    assert told["Seccomp"] == "2" and told["NoNewPrivs"] == "1" and told["Threads"] == "1"
    assert int(told["CapEff"], 16) == 0 and int(told["CapPrm"], 16) == 0
    assert told["processes"] == "0"
    assert internet.hello["seccomp"] == 1
    if os.geteuid() == 0:
        assert told["Uid"] == "65534"


def test_no_descriptor_of_a_file(internet):
    """As root the descriptors can be looked at: sockets, its epoll, the standard ones; no file, no
    memory file with the key."""
    if os.geteuid() != 0:
        return
    done = internet.python("""
import os
pid = os.environ["INTERNET_PID"]
for fd in sorted(map(int, os.listdir(f"/proc/{pid}/fd"))): print(fd, os.readlink(f"/proc/{pid}/fd/{fd}"))
""")
    links = dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())
    assert len(links) > 50
    for fd, link in links.items():
        assert int(fd) < 3 or link.startswith(("socket:", "anon_inode:[eventpoll]")), (fd, link)


def test_its_own_network_is_empty(internet):
    if os.geteuid() != 0:
        return
    done = internet.python("""
import os
pid = os.environ["INTERNET_PID"]
print(open(f"/proc/{pid}/net/dev").read().count(":"), os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"))
""")
    assert done.stdout.split() == [b"1", b"False"]  # lo


def test_it_ends_with_its_line(internet):
    """When the keeper is gone nothing is left."""
    done = internet.python("import os; print(os.environ['INTERNET_PID'])")
    pid = int(done.stdout)
    import time
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.05)
    raise AssertionError("aquarium-internet outlived its keeper")
