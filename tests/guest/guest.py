"""A virtual machine with a stock kernel: Debian's, unpacked and never installed, with version 2
control groups and nothing around them. Its disk holds the program, Python and a few tools of this
host; its first process is inside.py, which writes one JSON object to the second serial line."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys

from conftest import PROGRAM, ROOT

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = (str(ROOT / "build-kernel/boot/vmlinuz-*"), "/boot/vmlinuz-*-amd64")
TOOLS = ("/usr/bin/python3", "/bin/sh", "/bin/cat", "/bin/true", "/bin/echo", "/bin/sleep", "/bin/ls",
         "/bin/rm", "/bin/cp")
LINKS = ("bin", "sbin", "lib", "lib64")
PLAIN = 1000


def kernel():
    found = [path for pattern in KERNELS for path in sorted(glob.glob(pattern)) if os.access(path, os.R_OK)]
    return pathlib.Path(found[0]) if found else None


def libraries(program):
    """What the dynamic linker would load for it."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return {word for line in said.splitlines() for word in line.split() if word.startswith("/")}


def copy(path, root):
    """To the same place below `root`. The host's /bin may be a link; the guest's is one."""
    folder = pathlib.Path(path).parent
    real = folder.resolve()
    to = root / str(real)[1:] / pathlib.Path(path).name
    if not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(path), to)


def fill(root, tools):
    for folder in ("proc", "sys", "dev", "run", "tmp", "root", "etc", "home/plain", "guest"):
        (root / folder).mkdir(parents=True)
    for name in LINKS:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for tool in tools:
        for path in (tool, *libraries(tool)):
            copy(path, root)
    modules = pathlib.Path(f"/usr/lib/python3.{sys.version_info.minor}")
    shutil.copytree(modules, root / str(modules)[1:], dirs_exist_ok=True, symlinks=True,
                    ignore=shutil.ignore_patterns("test", "config-*", "dist-packages", "idlelib", "tkinter",
                                                  "lib2to3", "pydoc_data", "ensurepip", "distutils"))
    for module in modules.glob("lib-dynload/*.so"):
        for path in libraries(module):
            copy(path, root)
    (root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\nplain:x:{PLAIN}:{PLAIN}::/home/plain:/bin/sh\n")
    (root / "etc/group").write_text(f"root:x:0:\nplain:x:{PLAIN}:\n")
    for program in PROGRAM.parent.glob("aquarium*"):  # the door, and what it opens
        if program.is_file():
            shutil.copy2(program, root / "usr/bin" / program.name)
            for path in libraries(program):
                copy(path, root)
    for script in ("inside.py", "suite.py"):
        shutil.copy2(HERE / script, root / "guest" / script)
        (root / "guest" / script).chmod(0o755)
    shutil.copytree(ROOT / "examples/hello-skill", root / "guest/skill")


def disk(place, tools=TOOLS, more=None):
    """A file system image with all of it, and what `more` puts there; all belongs to root."""
    root, image = place / "root", place / "disk"
    root.mkdir()
    fill(root, tools)
    if more:
        more(root)
    used = int(subprocess.run(["du", "-sm", root], check=True, capture_output=True, text=True).stdout.split()[0])
    subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", root, image,
                    f"{used + used // 4 + 512}M"], check=True, capture_output=True)
    shutil.rmtree(root)
    return image


def boot(place, image, seconds, first="inside.py"):
    """Boots, waits for the end, gives what its first process wrote."""
    out, console = place / "out", place / "console"
    accel = os.environ.get("AQUARIUM_GUEST_ACCEL", "tcg")  # kvm, where that works
    command = ["qemu-system-x86_64", "-accel", accel, "-cpu", "host" if accel == "kvm" else "max",
               "-smp", "2", "-m", "1024", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
               "-kernel", kernel(), "-append",
               f"console=ttyS0 quiet panic=-1 root=/dev/nvme0n1 rw init=/guest/{first}",
               "-drive", f"if=none,id=disk,format=raw,snapshot=on,file={image}",
               "-device", "nvme,drive=disk,serial=disk",
               "-serial", f"file:{console}", "-serial", f"file:{out}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        # What runs inside has its own patience and would have said what hung: this is the emulator.
        print(f"the machine said nothing for {seconds} s and is started again")
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    text = console.read_text(errors="replace") if console.exists() else ""
    assert done.returncode == 0, (done.stderr, text[-3000:])
    try:
        return json.loads(out.read_text())
    except (OSError, ValueError):
        raise AssertionError(f"the guest said nothing of use: {text[-3000:]}")
