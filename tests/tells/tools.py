"""Tells that the usual tools show: run inside, with the tools of the system and nothing else. Prints lines like the probe's."""
import os
import re
import subprocess
import sys

ROWS = []


def tell(reason):
    def add(f):
        ROWS.append((f.__name__, reason, f))
        return f
    return add


def run(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=30,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"})
    except (OSError, subprocess.TimeoutExpired) as e:
        return 127, str(e)
    return done.returncode, done.stdout.decode(errors="replace")


@tell("systemd-detect-virt finds no container")
def detect_container():
    said = run("systemd-detect-virt", "-c")[1].strip()
    return said == "none", said


def firmware():
    """What virtual machine the firmware's tables tell of, as systemd calls it."""
    try:
        vendor = open("/sys/class/dmi/id/sys_vendor").read()
    except OSError:
        return "no firmware"
    makers = {"QEMU": "kvm", "Amazon EC2": "amazon", "Google": "google", "VMware": "vmware", "Microsoft": "microsoft", "Xen": "xen"}
    return next((name for maker, name in makers.items() if maker in vendor), "none")


@tell("systemd-detect-virt finds the virtual machine that firmware and flags tell of, or none (DMI, then CPUID)")
def detect_machine():
    said, flag = run("systemd-detect-virt", "-v")[1].strip(), " hypervisor" in open("/proc/cpuinfo").read()
    return said == firmware() and (said != "none") == flag, said


@tell("ps lists some hundred processes, of root and of us, with their commands")
def ps():
    lines = run("ps", "-eo", "pid,ppid,user,lstart,stat,args")[1].splitlines()
    users = {line.split()[2] for line in lines[1:] if len(line.split()) > 2}
    return len(lines) > 80 and "root" in users and len(users) > 3, f"{len(lines)} lines, {' '.join(sorted(users))}"


@tell("ps of a session shows its shell")
def ps_own():
    lines = run("ps", "-u", str(os.getuid()), "-o", "tty,comm")[1].splitlines()
    return any(re.search(r"pts/\d+ +(bash|zsh|sh)\b", line) for line in lines), " ".join(lines[1:4])


@tell("mount shows one disk, what systemd mounts, and nothing over single files")
def mount():
    lines = run("mount")[1].splitlines()
    root = [line for line in lines if " on / " in line]
    good = len(root) == 1 and root[0].startswith("/dev/") and 12 < len(lines) < 60
    return good and not any("(ro" in line and " on /usr" in line for line in lines), f"{len(lines)} lines, {' '.join(root)}"


@tell("findmnt finds the disk of the home and of /etc/passwd")
def findmnt():
    said = [run("findmnt", "-n", "-o", "SOURCE,FSTYPE", "-T", place)[1].split() for place in (os.path.expanduser("~"), "/etc/passwd")]
    return said[0] == said[1] and len(said[0]) == 2 and said[0][0].startswith("/dev/"), str(said)


@tell("df shows the disk, of a plausible size and not empty")
def df():
    lines = run("df", "-k", "/", os.path.expanduser("~"))[1].splitlines()[1:]
    rows = [line.split() for line in lines]
    good = len(rows) == 2 and rows[0][0].startswith("/dev/") and rows[0][:2] == rows[1][:2]
    return good and int(rows[0][1]) > 10_000_000 and int(rows[0][2]) > 2_000_000, " ".join(lines)


@tell("lscpu knows the hypervisor that firmware tells of, or none (CPUID)")
def lscpu_hypervisor():
    said = run("lscpu")[1]
    vendor = re.search(r"^Hypervisor vendor: +(.*)", said, re.M)
    names = {"KVM": ("kvm", "amazon", "google"), "VMware": ("vmware",), "Microsoft": ("microsoft",), "Xen": ("xen",)}
    good = firmware() in names.get(vendor[1], ()) if vendor else firmware() == "none"
    return bool(said) and good, vendor[0] if vendor else "none"


@tell("lscpu has the processors and the model of cpuinfo")
def lscpu():
    said, info = run("lscpu")[1], open("/proc/cpuinfo").read()
    count, model = re.search(r"^CPU\(s\): +(\d+)", said, re.M), re.search(r"^Model name: +(.*)", said, re.M)
    good = count and model and int(count[1]) == info.count("processor\t:") and model[1] in info
    return bool(good), f"{count and count[1]} {model and model[1]}"


@tell("nproc is what lscpu says")
def nproc():
    said = run("nproc")[1].strip()
    return said == str(open("/proc/cpuinfo").read().count("processor\t:")), said


@tell("id knows our name and the groups of a user of a workstation")
def identity():
    said = run("id")[1].strip()
    return bool(re.match(r"uid=1000\([a-z-]+\) gid=1000\([a-z-]+\) groups=.*,", said)), said


@tell("who shows somebody who logged in")
def who():
    said = run("who")[1].strip()
    return bool(re.search(r"(pts|tty)", said)), said


@tell("last shows logins and the start of the machine")
def last():
    said = run("last", "-n", "20")[1]
    return "reboot" in said and said.count("\n") >= 4, f"{said.count(chr(10))} lines"


@tell("uptime shows days and a user")
def uptime():
    said = run("uptime")[1].strip()
    return bool(re.search(r"up \d+ days?,", said)) and " 0 user" not in said, said


@tell("free shows memory that is used, and swap")
def free():
    rows = {line.split()[0]: line.split()[1:] for line in run("free", "-k")[1].splitlines()[1:]}
    memory, swap = rows.get("Mem:", ["0"] * 6), rows.get("Swap:", ["0"])
    return int(memory[0]) > 3_000_000 and int(memory[1]) > 300_000 and int(swap[0]) > 0, f"{memory[:2]} {swap[:1]}"


@tell("ip shows a card that is up, and no pair")
def ip_link():
    said = run("ip", "-o", "link")[1]
    cards = [line for line in said.splitlines() if "LOOPBACK" not in line]
    return bool(cards) and "@" not in said.replace("@NONE", "") and "link-netns" not in said and "state UP" in cards[0], \
        cards[0][:90] if cards else "none"


@tell("ip -d knows no kind of a virtual link")
def ip_kind():
    said = run("ip", "-d", "-o", "link")[1]
    return not re.search(r"\b(veth|tun|dummy|bridge|macvlan|ipvlan)\b", said) and "LOOPBACK" in said, said[-80:]


@tell("ip shows addresses of both kinds and a way out")
def ip_address():
    said, way = run("ip", "-o", "address")[1], run("ip", "route")[1]
    return "inet6 fe80" in said and way.startswith("default via ") and "10.0.2." not in said, way.split("\n")[0]


@tell("ss shows services that listen")
def ss():
    said = run("ss", "-ltn")[1]
    return ":22 " in said, f"{len(said.splitlines())} lines"


@tell("uname says a kernel of Debian")
def uname():
    said = run("uname", "-a")[1].strip()
    return "Debian" in said and "-amd64" in said, said


@tell("dpkg knows what bash belongs to, and hundreds of packages")
def dpkg():
    owner, count = run("dpkg", "-S", "/bin/bash")[1].strip(), run("dpkg", "-l")[1].count("\nii ")
    return owner == "bash: /bin/bash" and count > 200, f"{owner}, {count}"


@tell("dpkg finds the packages as they were installed")
def dpkg_verify():
    code, said = run("dpkg", "--verify", "coreutils")
    return code == 0 and not said.strip(), said[:80]


@tell("the host's name is found by the resolver")
def getent():
    said = run("getent", "hosts", os.uname().nodename)[1].strip()
    return bool(said) and run("getent", "passwd", str(os.getuid()))[0] == 0, said


@tell("ls shows names of owners in the root, not numbers and not nobody")
def ls():
    owners = set(re.findall(r"^[a-z-]{10}\+? +\d+ +(\S+) +(\S+) ", run("ls", "-la", "/", "/etc", "/proc/1")[1], re.M))
    names = {name for pair in owners for name in pair}
    return ("root", "root") in owners and not any(n.isdigit() or n == "nobody" for n in names), " ".join(sorted(names))


@tell("stat shows a disk's blocks and a birth")
def stat():
    said = run("stat", "-c", "%b %W %d %i", os.path.expanduser("~/.bashrc"))[1].split()
    return len(said) == 4 and int(said[0]) >= 8 and int(said[1]) > 0 and int(said[2]) > 255, " ".join(said)


@tell("two starts of Python have another seed of hashes")
def hashes():
    said = {run(sys.executable, "-c", "print(hash('x'))")[1] for _ in range(2)}
    return len(said) == 2, " ".join(said)


@tell("a uuid by time has the card's address")
def card_in_uuid():
    said = run(sys.executable, "-c", "import uuid; print('%012x' % uuid.getnode())")[1].strip()
    return len(said) == 12 and not int(said[1], 16) & 3, said


@tell("lsns finds the machine's namespaces and no second pid namespace")
def lsns():
    said = run("lsns", "-n", "-o", "NS,TYPE")[1]
    return "4026531836 pid" in said and said.count(" user") <= 1, " ".join(said.split()[:8])


@tell("dmesg is not permitted, as Debian has it")
def dmesg():
    said = run("dmesg")[1].strip()
    return "Operation not permitted" in said, said[:80]


@tell("sudo asks for a password, as it may")
def sudo():
    if not os.path.exists("/usr/bin/sudo"):
        return True, "no sudo"
    said = run("sudo", "-n", "true")[1].strip()
    return "password" in said, said


@tell("the key of a cloud's service account is RSA, as the cloud makes them")
def cloud_key():
    import json
    path = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    if not os.path.exists(path):
        return False, "none"
    key = json.load(open(path))["private_key"]
    done = subprocess.run(["openssl", "rsa", "-check", "-noout"], input=key.encode(), capture_output=True)
    return done.returncode == 0, (done.stdout + done.stderr).decode()[:60]


@tell("the persona's names are names that people have")
def names():
    gecos = next((row.split(":")[4] for row in open("/etc/passwd") if row.split(":")[2] == str(os.getuid())), "")
    given = gecos.split(" ")[0]
    return given in GIVEN, gecos


# Some given names of Europe and America.
GIVEN = set("""
Aaron Adam Adele Adrian Agnes Alan Albert Alexander Alice Alicia Almuth Amanda Amelie Amy Anders Andrea Andreas Andrew Angela
Anita Anna Anne Annika Anthony Antonio Ariana Arthur Astrid Attila Barbara Beatrice Benjamin Bernd Bertil Birgit Brian Bruno
Carina Carl Carla Carlos Carmen Caroline Catherine Cedric Celine Charles Charlotte Christian Christine Christopher Clara
Claudia Corina Damian Daniel Darius David Deborah Dennis Detlef Diana Dieter Donald Dorota Dorothy Edward Elena Elisabeth
Elizabeth Elvira Emily Emma Eric Erik Eva Fabian Felix Ferenc Fernando Florian Florin Frances Francesco Frank Franz Gabriel
Gaston George Gerald Gernot Gesine Gisela Giulia Gloria Gregory Greta Gudrun Gunnar Haakon Hannah Hans Harald Heidi Heinz
Helen Helena Helmut Henry Holger Hubert Hugo Imogen Ingmar Ingrid Irene Isabel Isolde Jack Jacob James Jan Jane Janina Jannik
Janusz Jason Jasper Javier Jean Jennifer Jessica Joachim Joan Johanna John Jonas Jonathan Jorge Jose Joseph Joshua Juan Judith
Julia Julian Karen Karin Karl Katharina Kathleen Kenneth Kevin Klaus Laura Lea Lena Leo Leonard Leszek Linda Lisa Lorena Louis
Louise Lucas Lucia Lucien Ludwig Luis Lukas Manfred Manuel Marco Margaret Margot Maria Marie Mario Mark Markus Martha Martin
Mary Matteo Matthew Matthias Max Maximilian Melanie Michael Miguel Mikael Milena Mirjam Mohamed Monica Monika Nadine Nancy
Nicholas Nicole Nina Noelle Nora Odette Olga Oliver Olivia Oscar Otto Pamela Patricia Patrick Paul Paula Peter Petra Philip
Pierre Rachel Ralph Ramona Raymond Rebecca Regina Renate Richard Robert Roger Roland Ronald Rosa Rupert Ruth Ryan Sabine
Samuel Sandra Sandro Sara Sarah Scott Sebastian Selina Simon Sofia Solene Sonja Sophia Stefan Stephanie Stephen Steven Susan
Sven Svenja Sverre Sylvia Tamara Teresa Theodor Thomas Timothy Tina Tobias Tom Torben Ulrike Ursula Ute Valentina Vera Verena
Veronika Victor Victoria Vincent Violet Virginia Walter Werner Wilhelm William Wolfgang Yannik Yvonne Zoltan
""".split())


def main():
    for name, reason, f in ROWS:
        if sys.argv[1:] and f"tools.{name}" not in sys.argv[1:]:
            continue
        try:
            natural, seen = f()
        except Exception as e:  # a tool that says something else than it does is a tell
            natural, seen = False, f"{type(e).__name__}: {e}"
        seen = " ".join(str(seen).split())[:160]
        print(f"{'natural' if natural else 'shown'}\ttools.{name}\t{seen}\t{reason}", flush=True)


if __name__ == "__main__":
    main()
