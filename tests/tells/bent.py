"""Places that were bent on purpose, so that a tell must show there: a sandbox with false files, a /proc that somebody made up,
calls that fail or do nothing, a clock that stands still, a start without chance. A check that shows in none of them, nor in a plain
sandbox, might be one that cannot fail.

As a program it is the hand that bends calls: bent.py CALL=ERRNO… -- COMMAND… runs the command under a filter that answers these
calls (by number) so; errno 0 means that nothing is done and success is told. `old` stands for all calls of 32-bit programs, and
`counter` for the processor's."""
import collections
import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import time

# How a place differs from the plain sandbox: files and links to lay, options of the sandbox, variables, calls to bend, a line
# of the shell before the probe; and what must show there.
Place = collections.namedtuple("Place", "shows files options env calls before user root",
                               defaults=({}, (), {}, "", ":", "1000", ()))

SCRIPT = "#!/bin/sh\n"
CPUS = 7  # more than a small machine has


def cpuinfo(count=CPUS):
    """Of a processor that nobody has; it tells of a hypervisor where this machine's does not."""
    real = " hypervisor" in pathlib.Path("/proc/cpuinfo").read_text()
    return "".join(f"processor\t: {n}\nmodel name\t: Bent\nsiblings\t: 99\nflags\t\t: fpu{'' if real else ' hypervisor'}\n"
                   "address sizes\t: 1 bits physical, 1 bits virtual\n\n" for n in range(count))


STATUS = """Name:	probe
State:	t (tracing stop)
TracerPid:	77
NSpid:	5	9
Seccomp:	2
Seccomp_filters:	3
NoNewPrivs:	1
CapBnd:	0000000000000000
Cpus_allowed_list:	0
"""


def proc():
    """The files of a /proc that is made up: {path: content}; a tuple is a link."""
    return {
        "self/status": STATUS, "self/stat": "5 (probe) t 1" + " 0" * 17 + " 100000 0\n", "self/mounts": "one\n",
        "self/mountinfo": "1 two\n2 two\n", "self/mountstats": "", "self/syscall": "270 0x1\n", "self/maps": "", "self/smaps": "",
        "self/auxv": struct.pack("4Q", 6, 1, 0, 0), "self/limits": "Max open files            5\n", "self/oom_score_adj": "900\n",
        "self/ns/pid": "", "self/timens_offsets": "monotonic 5 0\nboottime 5 0\n", "self/environ": "", "self/fdinfo/x": "",
        "self/exe": ("/place/same",), "cpuinfo": cpuinfo(), "stat": "cpu 1\ncpu0 1\nbtime 1\n", "interrupts": " CPU0\n",
        "uptime": "5.00 4.00\n", "loadavg": "0.00 0.00 0.00 1/3 2\n", "meminfo": "MemTotal: 500000 kB\n", "swaps": "",
        "filesystems": "nodev\ttmpfs\n", "kallsyms": "ffffffff81000000 T _text\n", "sys/kernel/random/boot_id": "1\n",
        "sys/kernel/random/uuid": "00000000-0000-4000-8000-000000000000\n", "sys/kernel/random/entropy_avail": "12\n",
        "sys/kernel/randomize_va_space": "0\n", "sys/kernel/pid_max": "32768\n",
        "sys/kernel/osrelease": "6.1.0-bent\n", "sys/kernel/perf_event_paranoid": "0\n", "self/loginuid": "4294967295",
        "self/cgroup": "0::/docker\n", "version": "Linux version 6.1.0-bent\n", "cmdline": "console=ttyS0\n", "modules": "",
    }


def passwd():
    return "nobody:x:0:0::/root:/bin/sh\nsandbox:x:1000:1000::/home/user:/bin/sh\n"


PLACES = {
    "a /proc that is made up": Place(
        """proc.tracer proc.seccomp proc.filters proc.nested_pid proc.cpus_allowed proc.mounts_agree proc.mount_id proc.running
        proc.waiting_child proc.switches proc.system_call proc.hypervisor proc.processors_agree proc.uptime proc.uptime_agrees
        proc.load proc.memory_agrees proc.swap proc.file_systems proc.kernel_names proc.boot_id proc.own_start proc.map_device
        proc.vdso proc.auxv_file proc.limits_file proc.oom proc.namespace_inodes proc.time_offsets proc.randomised
        proc.entropy_pool proc.pid_max proc.own_environment proc.whole entropy.numbers entropy.program_bytes calls.processors
        calls.page_map processor.abilities processor.address processor.cores processor.model proc.new_privileges
        proc.bounding_set proc.login proc.cgroup proc.version proc.release_agrees proc.command_line proc.modules proc.sysctl
        calls.performance calls.user_namespaces""",
        files={"/proc/" + path: content for path, content in proc().items()}, options=("--ro-bind", "LAID/proc", "/proc")),
    "files that a machine does not have": Place(
        """files.docker files.containers files.guests sys.hypervisor persona.user_name files.not_from_tomorrow time.date
        entropy.devices entropy.names files.listed_inodes calls.home_disk calls.loader_disk tools.dmesg tools.ip_kind tools.ls
        tools.nproc tools.detect_container tools.free tools.names tools.uname persona.full_name persona.host_name files.passwd""",
        files={"/passwd": passwd(), "/chance": "0123456789abcdef", "/mktemp": SCRIPT + "echo /tmp/tmp.same\n",
               "/dmesg": SCRIPT + "echo all\n", "/ip": SCRIPT + "echo '1: eth0: <LOOPBACK> veth'\n", "/cpuinfo": cpuinfo(),
               "/home/a/b": "", "/manager": "lxc\n", "/meminfo": "MemTotal: 500000 kB\n", "/uname": SCRIPT + "echo Linux\n"},
        options=("--hostname", "sandbox", "--ro-bind", "LAID/meminfo", "/proc/meminfo", "--ro-bind", "LAID/uname", "/usr/bin/uname",
                 "--dir", "/.dockerenv", "--ro-bind", "LAID/manager", "/run/host/container-manager", "--dir", "/etc/qemu", "--dir",
                 "/sys/hypervisor/type", "--ro-bind", "LAID/passwd", "/etc/passwd", "--ro-bind", "LAID/chance", "/dev/urandom", "--ro-bind", "LAID/mktemp", "/usr/bin/mktemp",
                 "--ro-bind", "LAID/dmesg", "/usr/bin/dmesg", "--ro-bind", "LAID/ip", "/usr/bin/ip", "--ro-bind", "LAID/cpuinfo",
                 "/proc/cpuinfo", "--tmpfs", "/boot/efi", "--bind", "LAID/home", "/home/user", "--tmpfs", "/home/user/a")),
    "a small machine": Place("proc.many_processors", files={"/cpuinfo": cpuinfo(1)},
                             options=("--ro-bind", "LAID/cpuinfo", "/proc/cpuinfo")),
    "a kernel without a name": Place("calls.names", calls="63=1"),
    "a folder for a root": Place("files.root_inode", root=("--bind", "LAID", "/")),
    "calls that fail": Place(
        """calls.memory_files calls.ring calls.keyring calls.unknown calls.landlock calls.age calls.own_filter calls.page_map
        calls.trace_me calls.trace_child calls.processors calls.refusals network.netlink entropy.ports time.adjustment
        calls.no_filter proc.seccomp proc.filters calls.home_disk calls.loader_disk calls.old_calls""",
        calls="321=38 319=1 425=38 250=1 600=1 444=38 439=38 317=22 27=38 101=1 204=1 41=1 49=1 305=1 137=13 old=38"),
    "calls that do nothing": Place(
        """entropy.calls_differ entropy.children_differ calls.moves time.sleep time.sleep_is_late time.timeouts
        time.library_clock_ticks calls.kernel_log network.raw time.alarms""",
        calls="318=0 203=0 35=0 230=0 7=0 271=0 103=0 41=0 38=0"),
    "hosts that all answer": Place("network.closed_here network.reserved", calls="42=0"),
    "a clock that stands still": Place(
        """time.work_takes_time time.work_takes_processor_time time.processor_time_adds_up time.call_cost time.clock_jitter
        time.fork_cost time.reading_takes_time time.clock_by_library time.sleep""", calls="228=0"),
    "a counter that is closed": Place("time.counter time.counter_rate time.counter_sees_work", calls="counter=1"),
    "a start without chance": Place(
        """calls.persona proc.randomised entropy.stack entropy.code entropy.heap entropy.map entropy.vdso entropy.high_addresses""",
        before="set -- setarch -R \"$@\""),
    "somebody else's habits": Place(
        "calls.priority user.mask user.working_folder user.home_rights files.stdio proc.limits proc.oom user.no_marks tools.hashes",
        env={"container": "lxc", "HOME": "/nonexistent", "PYTHONHASHSEED": "0"},
        before="echo 900 >/proc/self/oom_score_adj; umask 027; ulimit -n 100; exec 2>/tmp/errors; rm /tmp/errors; "
               "mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone; set -- nice -n 5 \"$@\""),
    "a user that is nobody": Place("user.number", user="65534"),
}


def lay(at, files):
    for path, content in files.items():
        path = at / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, tuple):
            path.symlink_to(*content)
            continue
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if str(content).startswith(SCRIPT):
            path.chmod(0o755)


def look(tells, name, folder, laid):
    """What shows in the place of this name, of all that it names."""
    place = PLACES[name]
    lay(laid, place.files)
    (folder / "same").write_text(SCRIPT + "echo 00\n")
    (folder / "same").chmod(0o755)
    if (laid / "passwd").exists():
        os.utime(laid / "passwd", (time.time() + 10**8,) * 2)
    root, options = ([o.replace("LAID", str(laid)) for o in some] for some in (place.root, place.options))
    for variable, value in place.env.items():
        options += ["--setenv", variable, value]
    names = place.shows.split()
    script = (f"{place.before}; for n in {' '.join(n for n in names if not n.startswith('tools.'))}; "
              "do \"$@\" /place/probe $n; done")
    if any(n.startswith("tools.") for n in names):
        script += f"; \"$@\" /usr/bin/python3 /place/tools.py {' '.join(n for n in names if n.startswith('tools.'))}"
    command = ["/bin/sh", "-c", script, "sh", "env"]
    if place.calls:
        command += ["/usr/bin/python3", "/place/bent.py", *place.calls.split(), "--"]
    done = subprocess.run([*tells.sandbox(folder, place.user, options, root), *command], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=300)
    lines = done.stdout.decode().splitlines()
    # A name may begin another one, which is looked at then as well.
    return tells.read("\n".join({line.split("\t")[1]: line for line in lines if line.split("\t")[1] in names}.values())), done


# ---- the hand that bends calls ----

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO, X86_64 = 0x7FFF0000, 0x00050000, 0xC000003E


def bend(words):
    answers = dict(word.split("=") for word in words)
    if answers.pop("counter", None):
        ctypes.CDLL(None).prctl(26, 2, 0, 0, 0)  # PR_SET_TSC: reading it is a fault
    old = int(answers.pop("old", "0"))
    if not answers:
        return
    code = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, X86_64), (RETURN, 0, 0, ERRNO | old if old else ALLOW), (LOAD, 0, 0, 0)]
    for number, answer in answers.items():
        code += [(EQUAL, 0, 1, int(number)), (RETURN, 0, 0, ERRNO | int(answer))]
    code.append((RETURN, 0, 0, ALLOW))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    filter = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(filter), 0, 0):
        sys.exit(f"bent: no filter: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    end = sys.argv.index("--")
    bend(sys.argv[1:end])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1:])
