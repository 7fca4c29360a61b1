"""What lies outside of the home: devices that lead nowhere, the kernel's modules and package, days that agree with the clock."""
import datetime
import re


def inside(aquarium, tmp_path, script, side="A"):
    done = aquarium.run("run", "--quarantine", "--seed", "7", "--world", side, "--start", "2026-11-02T10:50:18Z", "--", "bash", "-c",
                        script, cwd=tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.decode(errors="replace")


def test_devices(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "find /dev -mount ! -type d ! -type l -printf '%y %p\\n' | sort; echo; "
                                      "stat -c '%n %t:%T %U:%G %a' /dev/null /dev/tty1 /dev/mem /dev/rtc0 /dev/nvme0n1p2")
    listed, known = text.split("\n\n")
    kinds = dict(reversed(line.split(" ", 1)) for line in listed.splitlines())
    assert len(kinds) > 130 and set(kinds.values()) == {"b", "c"}, kinds
    assert sum(kind == "b" for kind in kinds.values()) == 4 and "/dev/sda" not in kinds
    assert known.split("\n")[:5] == ["/dev/null 1:3 root:root 666", "/dev/tty1 4:1 root:tty 620", "/dev/mem 1:1 root:kmem 640",
                                     "/dev/rtc0 f8:0 root:root 600", "/dev/nvme0n1p2 103:2 root:disk 660"]


def test_devices_agree_with_sys(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "for d in /sys/class/block/* /sys/class/tty/tty[0-9]*; do [ -e $d/dev ] || continue; "
                                      "echo $(cat $d/dev) $(stat -c '%Hr:%Lr' /dev/${d##*/}); done")
    rows = [line.split() for line in text.splitlines()]
    assert len(rows) >= 4 and all(len(row) == 2 and row[0] == row[1] for row in rows), rows


def test_devices_cannot_be_opened(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, """python3 - <<'EOF'
import errno, glob, os
for path in sorted(glob.glob('/dev/**', recursive=True)):
    if os.path.isdir(path) or os.path.realpath(path).startswith(('/proc', '/dev/pts', '/run')): continue
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDONLY | os.O_NONBLOCK):
        try: os.close(os.open(path, flags)); said = 'open'
        except OSError as e: said = errno.errorcode[e.errno]
        print(os.path.realpath(path), said)
EOF""")
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines())
    usual = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
    assert {name for name, said in rows.items() if said == "open"} == usual
    assert rows["/dev/nvme0n1"] == rows["/dev/mem"] == rows["/dev/tty1"] == "EACCES" and rows["/dev/kmsg"] == "EPERM"


def test_kernel_modules_lie_nowhere_else(aquarium, tmp_path):
    """Found by any walk, called by one name from everywhere, and not where they really are."""
    text = inside(aquarium, tmp_path, """python3 - <<'EOF'
import os
def told(f, *a):
    try: return f(*a)
    except OSError as e: return type(e).__name__
lib = os.open('/usr/lib', os.O_RDONLY)
found = {os.path.join(d, f) for d, _, fs in os.walk('/var') for f in fs if f.endswith('.ko') or 'linux-image-6' in f}
found |= {os.path.join('/usr/lib', d, f) for d, _, fs, _ in os.fwalk('modules', dir_fd=lib) for f in fs if f.endswith('.ko')}
print(len(found) > 50, {os.path.dirname(f).split('/kernel')[0] for f in found if f.endswith('.ko')} == {'/usr/lib/modules/' + os.uname().release})
print(sorted({os.path.dirname(f) for f in found if 'linux-image-6' in f}), 'lib' in os.listdir('/var/backups'), os.stat('/var/backups').st_nlink)
top = os.open('/var', os.O_RDONLY)
for path in ('/var/backups/lib', '/var/backups/lib/modules', '//var/./backups/lib/info'):
    print(*[told(f, path) for f in (os.stat, os.listdir, os.chdir, open, os.readlink, os.statvfs)], os.access(path, os.F_OK))
print(told(lambda: os.stat('backups/lib', dir_fd=top)), told(lambda: os.open('backups/lib/modules', os.O_PATH, dir_fd=top)))
os.chdir('/var/backups'); print(told(os.stat, 'lib'), told(os.listdir, './lib/info'), told(os.mkdir, 'lib'), os.getcwd())
os.chdir('/lib/modules'); print(os.getcwd(), os.readlink('/proc/self/cwd'), os.path.exists('../os-release'), os.listdir('..') == os.listdir('/usr/lib'))
os.chdir(os.uname().release + '/kernel'); print(os.getcwd()[16:], os.path.exists('fs'), os.path.samefile('..', '/lib/modules/' + os.uname().release))
fd = os.open('fs', os.O_RDONLY); fd = os.dup(fd); print(os.readlink(f'/proc/self/fd/{fd}')[16:]); os.fchdir(fd); print(os.getcwd()[16:])
import sys; sys.stdout.flush(); os.system('/bin/pwd; readlink /proc/self/cwd')
EOF""")
    release, text = re.search(r"/(6[^/]*)/kernel", text)[1], text.splitlines()
    none = "FileNotFoundError"
    assert text[:2] == ["True True", "['/var/lib/dpkg/info'] False 2"]
    assert text[2:5] == [" ".join([none] * 6 + ["False"])] * 3 and text[5] == f"{none} {none}"
    assert text[6] == f"{none} {none} PermissionError /var/backups"
    assert text[7] == "/usr/lib/modules /usr/lib/modules True True"
    assert text[8:11] == [f"/{release}/kernel True True", f"/{release}/kernel/fs", f"/{release}/kernel/fs"]
    assert text[11:] == [f"/usr/lib/modules/{release}/kernel/fs"] * 2


def test_kernel_modules(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "R=$(uname -r); cd /; cut -d' ' -f1 /proc/modules | sort; echo; find /lib/modules/ -name '*.ko' | "
                                      "sed 's,.*/,,;s,-,_,g;s,.ko$,,' | sort; echo; sed 's/:.*//' /lib/modules/$R/modules.dep | while "
                                      "read f; do stat -c %s /usr/lib/modules/$R/$f; done; echo; ls /usr/lib | grep -c '^modules$'; "
                                      "ls -a /lib/modules /usr/lib/modules/..| head -3; realpath /lib/modules/$R/kernel/")
    loaded, files, sizes, rest = text.split("\n\n")
    assert set(loaded.split()) <= set(files.split()) and len(files.split()) > 100
    assert len(sizes.split()) == len(files.split()) and all(int(size) > 1000 for size in sizes.split())
    assert rest.split()[0] == "1" and "/usr/lib/modules/" in rest


def test_kernel_package(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "R=$(uname -r); dpkg-query -W -f '${Package} ${Status} ${Version}\\n' linux-image-$R; uname -v; "
                                      "dpkg -S /lib/modules/$R/kernel/fs/ext4/ext4.ko /boot/vmlinuz-$R; dpkg -L linux-image-$R | wc -l; "
                                      "ls /var/lib/dpkg/info | grep linux-image; wc -c < /var/lib/dpkg/status; "
                                      "stat -c %s /var/lib/dpkg/status")
    package, said, *rest = text.splitlines()
    name, status, version = re.fullmatch(r"(\S+) (.*) (\S+)", package).groups()
    assert status == "install ok installed" and version in said
    assert rest[0].startswith(name + ":") and rest[1].startswith(name + ":") and int(rest[2]) > 100
    assert rest[3:5] == [name + ".list", name + ".md5sums"] and rest[5] == rest[6]


def test_days(aquarium, tmp_path):
    text = inside(aquarium, tmp_path, "date +%F; head -c 10 /var/log/dpkg.log; echo; stat -c %y /var/log/dpkg.log | cut -c1-10; "
                                      "sed -n 's/Start-Date: //p' /var/log/apt/history.log | cut -c1-10; stat -c %w / | cut -c1-10; "
                                      "head -c 10 /var/log/dpkg.log.1")
    now, *days = map(datetime.date.fromisoformat, text.split())
    assert days[0] == days[1] == days[2] and 7 < (now - days[0]).days < 30
    assert abs((days[3] - days[4]).days) <= 1 and (now - days[4]).days > 100


def test_no_link_over_file_systems(aquarium, tmp_path):
    """What cannot be linked lies on two file systems, and says so."""
    text = inside(aquarium, tmp_path, "cd; touch x; for d in /tmp /var/tmp /dev/shm /run/user/1000 ~/Documents; do "
                                      "ln x $d/x 2> /dev/null; echo $? $(( $(stat -c %d ~) == $(stat -c %d $d) )); done; "
                                      "grep -c ' /var/tmp ' /proc/self/mounts /etc/fstab")
    assert text.splitlines() == ["1 0"] * 4 + ["0 1", "/proc/self/mounts:1", "/etc/fstab:1"]


def test_twins(aquarium, tmp_path):
    script = "ls -lainR /dev; ls -laiR /lib/modules/ | tail -40; ls -li /var/log; md5sum /var/lib/dpkg/status"
    assert inside(aquarium, tmp_path, script) == inside(aquarium, tmp_path, script, "B")


def test_the_users_terminal_takes_everything(aquarium, tmp_path):
    """Nobody reads there, and yet nobody waits. What programs make for themselves has readers, and works as ever."""
    text = inside(aquarium, tmp_path, """python3 - <<'EOF'
import fcntl, os, pty, select, termios, threading
def told(f, *a):
    try: return f(*a)
    except OSError as e: return type(e).__name__
fd, only = os.open('/dev/pts/0', os.O_RDWR | os.O_NOCTTY), os.open('/dev/pts/0', os.O_RDONLY | os.O_NOCTTY)
print(os.isatty(fd), sum(os.write(fd, b'x' * 1000) for i in range(200)), os.write(fd, b'y' * (1 << 20)), os.writev(fd, [b'a' * 99, b'b' * 70000]))
print(select.select([], [fd], [], 0)[1] == [fd], told(os.write, only, b'x'), told(os.pwrite, fd, b'x', 0), os.write(fd, b''))
open('/tmp/much', 'wb').write(b'm' * 500000); much = os.open('/tmp/much', os.O_RDONLY); pipe = os.pipe(); os.write(pipe[1], b'p')
print(told(os.sendfile, fd, much, 0, 500000), told(os.splice, pipe[0], fd, 1), os.read(pipe[0], 1))
main, side = pty.openpty(); got = []
def read():
    while sum(map(len, got)) < 30000: got.append(os.read(main, 4096))
reader = threading.Thread(target=read); reader.start()
print(os.ttyname(side) != '/dev/pts/0', sum(os.write(side, b'z' * 1000) for i in range(30))); reader.join(); print(sum(map(len, got)))
if os.fork() == 0:
    os.setsid(); told(fcntl.ioctl, fd, termios.TIOCSCTTY, 0)
    own = told(os.open, '/dev/tty', os.O_RDWR)
    if isinstance(own, int): os.write(own, b'w' * 100000)
    os._exit(0)
print(os.wait()[1])
EOF
echo good""")
    assert text.splitlines() == ["True 200000 1048576 70099", "True OSError OSError 0", "OSError OSError b'p'", "True 30000", "30000", "0", "good"], text
