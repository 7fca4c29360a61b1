"""The command line as a person meets it: help, mistakes, exit statuses, pipes, terminals."""
import json
import os
import pty
import re
import shutil
import stat
import subprocess

import pytest

from conftest import PROGRAM, ROOT, SANITIZER

COMMANDS = re.findall(r"^AQ_COMMAND\((\w+)\)", (ROOT / "src/cli/commands.def").read_text(), re.M)
SKILL = ROOT / "examples/hello-skill"


def test_no_argument_shows_help_and_fails(aquarium):
    done = aquarium.run(check=64)
    assert b"Usage: aquarium COMMAND" in done.stderr and done.stdout == b""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(aquarium, command):
    text = aquarium.run(command, "--help", check=0).stdout.decode()
    for part in ("Usage: aquarium " + command, "Options:", "Exit status:", "Examples:"):
        assert part in text
    assert not [line for line in text.splitlines() if len(line) > 80]
    options = [line for line in text.splitlines() if line.startswith("  --")]
    assert options and not [line for line in options if line[24] != " " or line[25] == " "]
    assert aquarium.run("help", command, check=0).stdout.decode() == text
    page = aquarium.run("--man", command, check=0).stdout.decode()
    for part in (".TH aquarium", ".SH NAME", ".SH OPTIONS", ".SH EXIT STATUS", ".SH EXAMPLES"):
        assert part in page.replace("\\-", "-")
    assert (PROGRAM.parent / "docs" / f"aquarium-{command}.1").read_text() == page


def test_help_of_help(aquarium):
    text = aquarium.run("help", check=0).stdout
    assert aquarium.run("help", "--help", check=0).stdout == text
    assert b"--version" in text


def needs(program):
    assert shutil.which(program), f"{program}: run tools/setup test"


def test_completion_of_fish(aquarium, tmp_path):
    needs("fish")
    script = tmp_path / "aquarium.fish"
    script.write_bytes(aquarium.run("completion", "fish", check=0).stdout)
    for line, want in (("val", "validate"), ("validate --js", "--json"), ("ledger pr", "prove")):
        done = subprocess.run(["fish", "-N", "-c", f"source {script}; complete -C 'aquarium {line}'"],
                              capture_output=True, text=True, timeout=60, cwd=tmp_path,
                              env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
        assert want in done.stdout.split(), (line, done)


def test_completion_of_zsh(aquarium, tmp_path):
    """A terminal, because zsh completes nowhere else: what Tab made of a line is then echoed."""
    needs("zsh")
    (tmp_path / "_aquarium").write_bytes(aquarium.run("completion", "zsh", check=0).stdout)
    typed = (f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D\r"
             "aquarium val\t\x01echo one \raquarium validate --js\t\x01echo two \r"
             "aquarium ledger pr\t\x01echo three \rexit\r")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {"PATH": os.environ["PATH"], "HOME": str(tmp_path),
                                                "TERM": "dumb", "LANG": "C.UTF-8"})
    os.write(fd, typed.encode())
    said = b""
    try:
        while more := os.read(fd, 4096):
            said += more
    except OSError:  # the terminal's other end is closed
        pass
    os.waitpid(pid, 0)
    os.close(fd)
    for line in ("one aquarium validate", "two aquarium validate --json", "three aquarium ledger prove"):
        assert re.search(rf"^{line} ?\r?$", said.decode(), re.M), said.decode()


def test_completion_offers_every_command_and_option(aquarium):
    script = aquarium.run("completion", "bash", check=0).stdout.decode()
    probe = script + """
COMP_WORDS=(aquarium ''); COMP_CWORD=1; _aquarium; echo "${COMPREPLY[@]}"
COMP_WORDS=(aquarium validate --s); COMP_CWORD=2; _aquarium; echo "${COMPREPLY[@]}"
"""
    out = subprocess.run(["bash", "-c", probe], stdout=subprocess.PIPE, check=True).stdout.decode()
    first, second = out.splitlines()
    assert set(COMMANDS) <= set(first.split())
    assert second.split() == ["--sarif", "--state"]
    for shell in ("zsh", "fish"):
        text = aquarium.run("completion", shell, check=0).stdout.decode()
        assert all(c in text for c in COMMANDS)


@pytest.mark.parametrize("args,words", [
    (["vlidate"], "did you mean 'validate'"),
    (["validate"], "an argument is missing"),
    (["validate", "--jsn", "x"], "did you mean --json"),
    (["validate", "-x", "y"], "options are long"),
    (["verify", "a", "b", "c"], "one argument too many: c"),
    (["ledger", "verify", "x"], "one argument too many: x"),
    (["ledger", "list", "x"], "one argument too many: x"),
    (["ledger", "show", "1", "2"], "one argument too many: 2"),
    (["index", "list", "x"], "one argument too many: x"),
    (["index", "add", "a/b"], "needs NAMESPACE/NAME and PUBLISHER"),
    (["doctor", "x"], "one argument too many: x"),
    (["doctor", "--color", "pink"], "auto, always or never"),
    (["--version", "x"], "one argument too many: x"),
    (["help", "validate", "x"], "one argument too many: x"),
    (["validate", "--html", "x", "a", "b"], "holds one package"),
    (["validate", "--artifact", "x", "a", "b"], "belongs to one envelope"),
    (["validate", "--json", "--json", "x"], "given twice"),
    (["validate", "--json=1", "x"], "takes no value"),
    (["validate", "--html"], "needs a value"),
    (["validate", "--json", "--html", "-", "x"], "only one document"),
    (["validate", "--color", "pink", "x"], "auto, always or never"),
    (["verify", "--max-age", "soon", "x"], "--max-age is a number"),
    (["verify", "--require", "maybe", "x"], "--require is pass or review"),
    (["ledger", "burn"], "there is no 'burn', only: verify, list"),
    (["ledger"], "say what to do: verify, list"),
    (["decoys"], "say what to do: show"),
    (["run", "--quarantine", "--seed", "--", "true"], "--seed needs a value"),
    (["ledger", "prove"], "needs the INDEX"),
    (["ledger", "show", "-1"], "unknown option"),
    (["ledger", "show", "--from", "3"], "show needs the INDEX"),
    (["completion", "tcsh"], "bash, zsh or fish"),
])
def test_mistakes_are_told(aquarium, args, words):
    done = aquarium.run(*args, check=64)
    assert words in done.stderr.decode()
    assert done.stdout == b""


@pytest.mark.parametrize("path,words", [
    ("absent", "No such file"),
    ("/dev/null", ""),
    ("", ""),
])
def test_bad_paths_are_usage_errors(aquarium, path, words):
    done = aquarium.run("validate", path, check=64)
    assert words in done.stderr.decode() and len(done.stderr) > 20


def test_json_has_what_scripts_need(aquarium):
    report = aquarium.validate(SKILL, check=3)
    for key in ("verdict", "verdict_digest", "package", "findings", "coverage", "tier"):
        assert key in report
    for finding in report["findings"]:
        for key in ("rule", "layer", "adversary", "severity", "file", "line", "message"):
            assert key in finding
    assert [s["decision"] for s in report["stages"][2:]] == ["not-run"] * 4
    assert report["host"]["jail"]["seccomp"] is True


def test_layers_that_did_not_run_are_named(aquarium):
    text = aquarium.run("validate", SKILL, check=3).stdout.decode()
    assert "INCONCLUSIVE" in text.upper()
    for layer in ("L1", "L1.5", "L2", "L3"):
        assert layer in text


def test_unsigned_is_said(aquarium):
    report = aquarium.validate(SKILL)
    assert "intake.unsigned" in {f["rule"] for f in report["findings"]}
    assert report["submission"]["signature"] == "none"


def test_no_colour_in_a_pipe_and_colour_on_a_terminal(aquarium):
    assert b"\033" not in aquarium.run("validate", SKILL).stdout
    assert b"\033" in aquarium.run("validate", "--color", "always", SKILL).stdout
    assert b"\033[" in on_terminal(aquarium, "validate", SKILL)
    assert b"\033[" not in on_terminal(aquarium, "validate", SKILL, NO_COLOR="1")


def on_terminal(aquarium, *args, **env):
    """What a person sees on a terminal."""
    master, slave = pty.openpty()
    e = {"PATH": os.environ["PATH"], "TERM": "xterm", "HOME": str(aquarium.state),
         "AQUARIUM_HOME": str(aquarium.state / "state"), **env}
    child = subprocess.Popen([PROGRAM, *map(str, args)], stdout=slave, stderr=slave, env=e)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    child.wait(timeout=60)
    os.close(master)
    return shown


@pytest.mark.large
def test_progress_is_for_terminals(aquarium, tmp_path):
    folder = tmp_path / "many"
    for n in range(95000):
        if n % 1000 == 0:
            (folder / f"{n // 1000}").mkdir(parents=True)
        (folder / f"{n // 1000}/{n}.md").write_bytes(b"x")
    assert b"\r\033[K" in on_terminal(aquarium, "validate", folder)
    assert b"\r\033[K" not in on_terminal(aquarium, "validate", "--quiet", folder)
    assert b"\r\033[K" not in on_terminal(aquarium, "validate", folder, TERM="dumb")
    assert aquarium.run("validate", folder).stderr == b""


def test_quiet_prints_nothing(aquarium):
    done = aquarium.run("validate", "--quiet", SKILL, check=3)
    assert done.stdout == b"" and done.stderr == b""


def test_faces_are_written(aquarium, tmp_path):
    names = {f: tmp_path / f for f in ("report", "html", "sarif", "evidence")}
    args = [x for f, p in names.items() for x in ("--" + f, p)]
    aquarium.run("validate", *args, SKILL, check=3)
    report = json.loads(names["report"].read_text())
    assert report["schema"] == "aquarium/report/v1"
    assert names["html"].read_text().startswith("<!doctype html>")
    assert json.loads(names["sarif"].read_text())["version"] == "2.1.0"
    assert json.loads(names["evidence"].read_text())["schema"] == "aquarium/evidence/v1"


def test_unwritable_output_is_told_before_the_walk(aquarium):
    done = aquarium.run("validate", "--html", "/nowhere/x.html", SKILL, check=64)
    assert b"/nowhere/x.html" in done.stderr
    aquarium.run("validate", SKILL, check=3)
    entries = json.loads(aquarium.run("ledger", "--json", "verify", check=0).stdout)["entries"]
    assert entries == 3


def test_output_inside_the_package_is_refused(aquarium, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(SKILL, copy)
    for target, cwd in ((copy / "out.sarif", None), (copy / "scripts/x", None), ("x.sarif", copy)):
        done = aquarium.run("validate", "--sarif", target, copy, cwd=cwd, check=64)
        assert b"inside the package" in done.stderr
    assert not (copy / "out.sarif").exists()
    aquarium.run("validate", "--sarif", tmp_path / "copy.sarif", copy, check=3)


@pytest.fixture
def entries(aquarium):
    """How many entries the ledger has: nothing is walked when an output is refused."""
    return lambda: json.loads(aquarium.run("ledger", "--json", "verify", check=0).stdout)["entries"]


def test_only_files_are_replaced(aquarium, tmp_path):
    """Devices and FIFOs are written into, links are followed; nothing of them is replaced."""
    fifo, link, file = tmp_path / "fifo", tmp_path / "link", tmp_path / "file.html"
    os.mkfifo(fifo)
    file.write_text("old")
    link.symlink_to(file.name)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE)
    aquarium.run("validate", "--quiet", "--html", fifo, SKILL, check=3)
    assert reader.communicate(timeout=30)[0].startswith(b"<!doctype html>")
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    aquarium.run("validate", "--quiet", "--html", link, SKILL, check=3)
    assert link.is_symlink() and file.read_text().startswith("<!doctype html>")
    if os.geteuid() == 0:
        node = tmp_path / "null"
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        aquarium.run("validate", "--quiet", "--html", node, SKILL, check=3)
        assert stat.S_ISCHR(node.lstat().st_mode)
        full = tmp_path / "full"
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        assert b"No space" in aquarium.run("validate", "--quiet", "--html", full, SKILL,
                                           check=70).stderr
        assert stat.S_ISCHR(full.lstat().st_mode)


def test_a_descriptor_is_an_output(aquarium, tmp_path):
    env = {"PATH": os.environ["PATH"], "AQUARIUM_HOME": str(aquarium.state / "state"), "HOME": "/"}
    script = (f'"{PROGRAM}" validate --quiet --html >(wc -l >{tmp_path}/count) "{SKILL}"; '
              f'exec 5>{tmp_path}/both; echo before >&5; '
              f'"{PROGRAM}" validate --quiet --sarif /dev/fd/5 "{SKILL}"; echo after >&5; wait')
    subprocess.run(["bash", "-c", script], env=env, check=True, stderr=subprocess.PIPE)
    both = (tmp_path / "both").read_text()
    assert both.startswith("before\n{") and both.endswith("}\nafter\n")
    assert int((tmp_path / "count").read_text()) > 10
    assert b"not open" in aquarium.run("validate", "--html", "/dev/fd/77", SKILL, check=64).stderr


def test_outputs_that_cannot_be_are_told_before_the_walk(aquarium, entries, tmp_path):
    aquarium.run("validate", "--quiet", SKILL, check=3)
    (tmp_path / "dangling").symlink_to("nowhere")
    for option, target, words in (("--report", tmp_path, b"is a folder"),
                                  ("--html", tmp_path / "dangling", b"a link to a file"),
                                  ("--sarif", tmp_path / "absent/x", b"cannot write there")):
        assert words in aquarium.run("validate", option, target, SKILL, check=64).stderr
    same = tmp_path / "out"
    (tmp_path / "again").symlink_to("out")
    same.write_text("")
    for other in (same, tmp_path / "." / "out", tmp_path / "again"):
        assert b"the same file" in aquarium.run("validate", "--html", same, "--sarif", other, SKILL,
                                                check=64).stderr
    assert entries() == 3


def test_the_state_never_lies_in_the_package(aquarium, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(SKILL, copy)
    for state in (copy / "new/state", copy):
        done = aquarium.run("validate", "--state", state, copy, check=64)
        assert b"inside the package" in done.stderr
    done = aquarium.run("validate", ".", cwd=copy, env={"AQUARIUM_HOME": "state"}, check=64)
    assert b"inside the package" in done.stderr
    assert sorted(p.name for p in copy.iterdir()) == ["SKILL.md", "scripts"]
    aquarium.run("validate", "--state", tmp_path / "copy-state", copy, check=3)


def test_several_packages(aquarium, tmp_path):
    """One report after another, and the worst status."""
    bundle, rejected = ROOT / "examples/starter-bundle", ROOT / "examples/attack-shadow.zip"
    text = aquarium.run("validate", SKILL, bundle, check=3).stdout.decode()
    assert "hello-skill" in text and "starter" in text
    done = aquarium.run("validate", "--json", SKILL, rejected, bundle, check=2)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["verdict"] for r in rows] == ["inconclusive", "reject", "inconclusive"]
    done = aquarium.run("validate", "--json", rejected, tmp_path / "absent", SKILL, check=64)
    assert len(done.stdout.splitlines()) == 2 and b"absent" in done.stderr


def test_no_home_is_told(aquarium):
    env = {"PATH": os.environ["PATH"]}
    for args in (["validate", SKILL], ["ledger", "verify"], ["index", "add", "a/b", "c"]):
        done = subprocess.run([PROGRAM, *args], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        assert done.returncode == 64 and b"--state DIR" in done.stderr, args


def test_looking_makes_no_state(aquarium):
    aquarium.run("doctor")
    assert b"no names are known" in aquarium.run("index", "list", check=0).stderr
    aquarium.run("ledger", "verify", check=64)
    aquarium.run("ledger", "list", check=64)
    assert not (aquarium.state / "state").exists()


def test_our_own_trouble_is_not_a_usage_error(aquarium):
    aquarium.run("validate", SKILL, check=3)
    state = aquarium.state / "state"
    shutil.rmtree(state / "evidence")
    (state / "evidence").write_text("in the way")
    aquarium.run("validate", SKILL, check=70)
    (state / "evidence").unlink()


def test_a_bad_policy_is_told_with_its_path(aquarium):
    aquarium.run("validate", SKILL, check=3)
    policy = aquarium.state / "state/policy.yaml"
    assert b"no policy.yaml" in aquarium.run("doctor").stdout
    policy.write_text("rate_limit: 5\n")
    assert f"{policy} is read".encode() in aquarium.run("doctor").stdout
    for text in ("rate_limit: [", "rate_limit: -1\n", "colour: red\n"):
        policy.write_text(text)
        assert str(policy).encode() in aquarium.run("validate", SKILL, check=64).stderr
        assert str(policy).encode() in aquarium.run("doctor", check=3).stdout


def test_index_round_trip(aquarium, tmp_path):
    aquarium.run("index", "add", "acme/tool", "acme", check=0)
    names = tmp_path / "names.jsonl"
    names.write_text('{"namespace":"b","name":"x","publisher":"p","confirmed":false}\n'
                     '{"namespace":"b","name":"y","publisher":"p"}\n')
    aquarium.run("index", "import", names, check=0)
    listed = aquarium.run("index", "--json", "list", check=0).stdout.decode().splitlines()
    assert [json.loads(x)["confirmed"] for x in listed] == [True, False, True]
    assert b"(provisional)" in aquarium.run("index", "list", check=0).stdout
    names.write_bytes(b'{"namespace":"c","name":"x","publisher":"p"}\n\0{"junk"')
    assert b"NUL" in aquarium.run("index", "import", names, check=64).stderr
    names.write_text('{"namespace":"c","name":"x","publisher":"p"}\n{"name":"x"}\n')
    assert b"line 2" in aquarium.run("index", "import", names, check=64).stderr
    assert len(aquarium.run("index", "list", check=0).stdout.splitlines()) == 3  # all or none


def test_index_says_what_changed(aquarium):
    assert aquarium.run("index", "add", "acme/tool", "acme", check=0).stdout == b"1 name added.\n"
    assert b"known already" in aquarium.run("index", "add", "acme/tool", "acme", check=0).stdout
    conflict = aquarium.run("index", "add", "acme/tool", "other", check=0).stdout
    assert b"1 name added" in conflict and b"publisher acme has this name, too" in conflict
    done = json.loads(aquarium.run("index", "--json", "add", "acme/tool", "third", check=0).stdout)
    assert (done["added"], done["other_publishers"]) == (1, 2)
    for publisher in ("other", "third"):
        aquarium.run("index", "remove", "acme/tool", publisher, check=0)
    assert b"is not known" in aquarium.run("index", "remove", "acme/tool", "third", check=64).stderr
    assert aquarium.run("index", "list", check=0).stdout == b"acme/tool  acme\n"
    aquarium.run("index", "add", "acme/helo-skill", "acme", check=0)
    assert "l0.name.lookalike" in rules(aquarium.validate(SKILL))
    aquarium.run("index", "remove", "acme/helo-skill", "acme", check=0)
    assert "l0.name.lookalike" not in rules(aquarium.validate(SKILL))


def rules(report):
    return {f["rule"] for f in report["findings"]}


def test_closed_pipe_is_no_error(aquarium):
    env = {"PATH": os.environ["PATH"], "AQUARIUM_HOME": str(aquarium.state / "s"), "HOME": "/"}
    done = subprocess.run(["bash", "-c", f'"{PROGRAM}" validate --json "{SKILL}" | true; '
                           'echo ${PIPESTATUS[0]}'], env=env, stdout=subprocess.PIPE)
    assert done.stdout.strip() == b"3"


def test_doctor_says_what_to_do_where_no_jail_can_be_made(aquarium):
    around = ["unshare", "--user", "--map-root-user", "sh", "-c",
              'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]
    done = subprocess.run([*around, PROGRAM, "doctor", "--json", "--state", aquarium.state], capture_output=True)
    jail = next(row for row in json.loads(done.stdout)["clean_room"] if row["name"] == "jail")
    assert not jail["usable"] and "jailed job" in jail["level"]
    assert "sysctl user.max_user_namespaces" in jail["remedy"]


def test_doctor(aquarium):
    aquarium.run("validate", "--quiet", SKILL, check=3)
    done = aquarium.run("doctor", "--json")
    assert done.returncode in (0, 1)
    doc = json.loads(done.stdout)
    points = {p["name"]: p for p in doc["clean_room"] + doc["host"]}
    for name in ("jail", "state-folder", "store", "policy", "ledger", "landlock", "seccomp", "kvm"):
        assert name in points
    assert all(p["remedy"] for p in points.values() if not p["usable"])
    # What only later tiers use is told, and is no defect of this version.
    assert points["seccomp"]["used"] and not points["kvm"]["used"]
    assert (done.returncode == 0) == all(p["usable"] for p in points.values() if p["used"])
    assert all(p["usable"] for p in doc["clean_room"])
    assert [p["level"] for p in doc["aquariums"] if p["name"] == "container.own-files"] == ["unseen"], "not installed in /usr"
    assert "Landlock" in aquarium.run("doctor").stdout.decode() or "landlock" in \
        aquarium.run("doctor").stdout.decode()


def test_doctor_can_fail(aquarium):
    state = aquarium.state / "state"
    aquarium.run("validate", SKILL, check=3)
    key = next((state / "keys").glob("instance.key"))
    key.chmod(0o644)
    done = aquarium.run("doctor", check=3)
    assert b"instance.key" in done.stdout
    aquarium.run("validate", SKILL, check=70)


def test_state_folder_writable_by_others_is_refused(aquarium):
    state = aquarium.state / "state"
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    assert b"chmod" in aquarium.run("validate", SKILL, check=70).stderr


def test_strange_words_do_not_command_the_terminal(aquarium, tmp_path):
    bad = "\x1b[31mred\u202e\x9b"
    (tmp_path / bad).mkdir()
    (tmp_path / "n.json").write_text('{"' + bad.replace("\x1b", "\\u001b") + '": 1}')
    for args in (["validate", bad], [bad], ["validate", "--" + bad], ["verify", bad],
                 ["ledger", "show", bad], ["ledger", "check", bad], ["verify", "--max-age", bad, "x"],
                 ["index", "import", bad], ["index", "import", "n.json"], ["ledger", "check", "n.json"],
                 ["validate", "--report", bad + "/x/y", SKILL], ["ledger", bad], ["help", bad]):
        done = aquarium.run(*args, cwd=tmp_path)
        for out in (done.stdout, done.stderr):
            assert b"\x1b" not in out and b"\xc2\x9b" not in out and b"\xe2\x80\xae" not in out, args
    plain = aquarium.run("validate", "n\u00e4chste", cwd=tmp_path).stderr.decode()
    assert "n\u00e4chste" in plain


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_descriptors(aquarium, tmp_path, closed):
    """What is said must not go into a file that got the number of a closed descriptor."""
    shell = " ".join(["exec", str(PROGRAM), "validate", "--report", str(tmp_path / "r.json"),
                      "--json", str(SKILL), *(f"{n}>&-" for n in closed)])
    done = subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path),
                               "AQUARIUM_HOME": str(aquarium.state / "state"), **SANITIZER})
    assert done.returncode in (3, 70), done.stderr
    aquarium.run("ledger", "verify", check=0)
    for path in [p for p in (aquarium.state / "state").rglob("*") if p.is_file()]:
        assert not path.read_bytes().startswith(b'{"schema":"aquarium/report'), path


def test_a_short_key_is_named_with_its_folder_and_a_next_step(aquarium):
    state = aquarium.state / "state"
    (state / "keys").mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    (state / "keys/instance.key").write_bytes(b"short")
    (state / "keys/instance.key").chmod(0o600)
    done = aquarium.run("validate", SKILL, check=70)
    assert f"{state}: keys/instance.key".encode() in done.stderr
    assert b"put the real key back" in done.stderr and b"--state" in done.stderr


@pytest.mark.parametrize("file", ["journal/0", "checkpoint", "vkey", "tile/0/000.p/3"])
def test_a_damaged_ledger_is_named_with_its_folder_and_a_next_step(aquarium, file):
    aquarium.run("validate", SKILL, check=3)
    ledger = aquarium.state / "state/ledger"
    whole = (ledger / file).read_bytes()
    (ledger / file).write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    for command, status in (("validate", 70), ("checkpoint", 70), ("prove", 70)):
        args = [SKILL] if command == "validate" else ["0"] if command == "prove" else []
        if command == "checkpoint" and file.startswith("tile"):
            continue  # it is published already, and its signature holds
        done = aquarium.run(*([command] if command == "validate" else ["ledger", command]), *args,
                            check=status)
        assert f"{ledger}: ".encode() in done.stderr, command
        assert b"put it back from a copy" in done.stderr and b"'aquarium ledger verify'" in done.stderr
        if not file.startswith("tile"):  # what is seen is that the tiles lead elsewhere
            assert f"{ledger}: {file}".encode() in done.stderr, command
    assert f"{ledger}: {file}".encode() in aquarium.run("ledger", "verify", check=2).stdout
    (ledger / file).write_bytes(whole)
    aquarium.run("validate", SKILL, check=3)  # as it was said
    aquarium.run("ledger", "verify", check=0)


def test_a_tile_that_is_gone_is_named_with_its_folder_and_a_next_step(aquarium):
    aquarium.run("validate", SKILL, check=3)
    ledger = aquarium.state / "state/ledger"
    (ledger / "tile/0/000.p/3").unlink()
    said = aquarium.run("validate", SKILL, check=70).stderr
    assert b"the verdict could not be recorded" in said
    assert f"{ledger}: cannot open tile/0/000.p/3".encode() in said and b"ledger verify" in said
