"""The checks of the house: who may include whom, sizes, banned calls, tables and their pages.

Every check is a function from the root of a tree to a list of complaints ("file:line: what"), so
that test_checks.py can show on a small wrong tree that it complains.
"""
import pathlib
import re
import subprocess

MAX_FILE = 800  # lines
MAX_FUNCTION = 60  # lines between the braces
SOURCES = (".c", ".cc", ".cpp", ".h", ".def")

# Calls that cannot be used safely, or that have a better twin in src/base.
BANNED = {
    "strcpy": "aq_buf_adds", "strcat": "aq_buf_adds", "stpcpy": "aq_buf_adds",
    "sprintf": "snprintf or aq_buf_addf", "vsprintf": "aq_buf_addv", "gets": "aq_read_full",
    "strtok": "strcspn", "strtok_r": "strcspn", "system": "the jail", "popen": "the jail",
    "alloca": "an arena", "atoi": "strtol with a check", "atol": "strtol with a check",
    "atoll": "strtoll with a check", "atof": "no real numbers", "scanf": "a parser",
    "sscanf": "a parser", "fscanf": "a parser", "mktemp": "aq_temp_fd", "tmpnam": "aq_temp_fd",
    "tempnam": "aq_temp_fd", "tmpfile": "aq_temp_fd", "asctime": "aq_time_str",
    "ctime": "aq_time_str", "gmtime": "gmtime_r", "localtime": "nothing: reports are in UTC",
    "rand": "getrandom", "srand": "getrandom", "random": "getrandom", "setenv": "an explicit envp",
    "putenv": "an explicit envp", "strncpy": "aq_arena_strndup", "strncat": "aq_buf_add",
    "bcopy": "memcpy", "vfork": "fork",
}  # fmt: skip


def sources(root):
    return [p for p in sorted((root / "src").rglob("*")) if p.suffix in SOURCES and p.is_file()]


def all_code(root):
    """The sources, and the C of tests, fuzz targets and benches: sizes count there too."""
    return sources(root) + [p for top in ("tests", "fuzz", "bench") for p in sorted((root / top).rglob("*"))
                            if p.suffix in SOURCES and p.is_file()]  # fmt: skip


def place(root, path, line):
    return f"{path.relative_to(root)}:{line}"


def room_table(root):
    """{room: (set of rooms that it may use, built?)} from the table in ARCHITECTURE.md."""
    table, inside = {}, False
    for line in (root / "ARCHITECTURE.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if line.startswith("| room "):
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not set(line) <= set("|-: "):
            name, uses, state = cells[0].strip("`"), cells[2], cells[3]
            used = set() if uses == "nothing" else {u.strip(" `") for u in uses.split(",")}
            table[name] = (used, state == "built")
    return table


def check_table(root):
    """The table and the folders say the same, the rooms used exist, and nothing goes in circles."""
    table, wrong = room_table(root), []
    folders = {p.name for p in (root / "src").iterdir() if p.is_dir()}
    if not table:
        return ["ARCHITECTURE.md: no room table found"]
    wrong += [f"src/{f}: no row in the room table" for f in sorted(folders - set(table))]
    for room, (uses, built) in table.items():
        wrong += [f"ARCHITECTURE.md: {room} uses {u}, which is no room" for u in sorted(uses - set(table))]
        if built and room not in folders:
            wrong.append(f"ARCHITECTURE.md: {room} is called built, but there is no src/{room}")
        if not built and room in folders:
            wrong.append(f"ARCHITECTURE.md: {room} is called planned, but there is src/{room}")
    above = {room: set(uses) for room, (uses, _) in table.items()}
    while above:
        free = [room for room, uses in above.items() if not uses & set(above)]
        if not free:
            return wrong + [f"ARCHITECTURE.md: rooms in a circle: {', '.join(sorted(above))}"]
        for room in free:
            del above[room]
    return wrong


def check_includes(root):
    table, wrong = room_table(root), []
    names = {p.name for p in sources(root)}
    for path in sources(root):
        room = path.relative_to(root / "src").parts[0]
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1)
            other = target.split("/")[0]
            where = place(root, path, number)
            if re.fullmatch(r"[a-z0-9_]+\.(inc|h)", target) and target not in names:
                continue  # the build generated it for this room
            if "/" not in target or ".." in target:
                wrong.append(f'{where}: "{target}" does not start with a room')
            elif other not in table:
                wrong.append(f'{where}: "{target}" is of no room in the table')
            elif other != room and target.endswith("/internal.h"):
                wrong.append(f"{where}: {target} is for {other} alone")
            elif other != room and other not in table.get(room, (set(),))[0]:
                wrong.append(f"{where}: {room} may not use {other}")
    return wrong


def check_sizes(root):
    wrong = []
    for path in all_code(root):
        lines = path.read_text(errors="replace").splitlines()
        if len(lines) > MAX_FILE:
            wrong.append(f"{place(root, path, MAX_FILE)}: {len(lines)} lines; {MAX_FILE} is the limit")
        # A body is between two lone braces of the same indent; clang-format puts them there.
        starts, before = {}, ""
        for number, line in enumerate(lines, 1):
            indent = len(line) - len(line.lstrip())
            if line.strip() == "{" and not before.startswith("namespace"):
                starts[indent] = number
            elif line.strip() == "}" and indent in starts:
                length = number - starts.pop(indent) - 1
                if length > MAX_FUNCTION:
                    wrong.append(f"{place(root, path, number - length - 1)}: function of {length} "
                                 f"lines; {MAX_FUNCTION} is the limit")  # fmt: skip
            before = line
    return wrong


def without_comments_and_strings(text):
    """Blanks comments, strings and characters; line breaks stay."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def check_banned(root):
    calls = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    wrong = []
    for path in sources(root):
        text = without_comments_and_strings(path.read_text(errors="replace"))
        for number, line in enumerate(text.splitlines(), 1):
            for match in calls.finditer(line):
                name = match.group(1)
                wrong.append(f"{place(root, path, number)}: {name}(); use {BANNED[name]}")
    return wrong


def check_words(root):
    """Marks of unfinished work."""
    mark = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
    return [
        f"{place(root, path, number)}: unfinished: {line.strip()}"
        for path in sources(root)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if mark.search(line)
    ]


def tracked(root):
    """What git tracks; without git (an unpacked archive) everything but build folders."""
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"]
    if (root / ".git").exists():
        out = subprocess.run(command, capture_output=True, check=True)
        return [root / name for name in out.stdout.decode().split("\0") if name]
    return [p for p in root.rglob("*")
            if p.is_file() and not p.relative_to(root).parts[0].startswith(("build", "."))]  # fmt: skip


def check_places(root, files):
    """No path of one machine and no host of a package registry in any file. The words are put
    together here, so that this file passes its own check."""
    machine = [r"/" + "work/(?:main|shared)", r"/tmp/" + r"wt\b", r"\." + "pyenv"]
    hosts = ["registry.npm" + "js.org", "registry.yarn" + "pkg.com", "py" + "pi.org",
             "files.python" + "hosted.org", "crates" + ".io", "proxy.golang" + ".org",
             "ruby" + "gems.org", "registry-1." + "docker.io"]  # fmt: skip
    pattern = re.compile("|".join(machine + [re.escape(h) for h in hosts]))
    wrong = []
    for path in files:
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            match = pattern.search(line)
            if match:
                wrong.append(f"{place(root, path, number)}: names {match.group()}")
    return wrong


def rows(path, macro):
    """The rows of a .def table: the arguments as written, strings without their quotes."""
    found = []
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    for match in re.finditer(rf"^{macro}\((.*?)\)\s*$", text, flags=re.S | re.M):
        parts = re.findall(r'"(?:\\.|[^"\\])*"|[^,"\s][^,"]*', match.group(1))
        found.append([p.strip().strip('"') for p in parts])
    return found


def check_pages(root):
    """Every row of a table has its page, and the code of a command its file."""
    wrong = []
    model, docs = root / "src/model", root / "docs"
    threats = (root / "THREATS.md").read_text()
    for number, title, _ in rows(model / "adversaries.def", "AQ_ADVERSARY"):
        if not re.search(rf"^#+ A{number} {re.escape(title)}\b", threats, flags=re.M):
            wrong.append(f"THREATS.md: no section 'A{number} {title}'")
    event = (docs / "formats/event.md").read_text()
    for _, name, _ in rows(model / "event_kinds.def", "AQ_EVENT_KIND"):
        if f"`{name}`" not in event:
            wrong.append(f"docs/formats/event.md: kind `{name}` is not described")
    for table, macro, column, page in (("trust/keys.def", "AQ_KEY", 2, "keys.md"),
                                       ("base/budgets.def", "AQ_BUDGET", 1, "budgets.md"),
                                       ("model/limits.def", "AQ_LIMIT", 1, "backend.md")):  # fmt: skip
        if (root / "src" / table).exists():
            text = (docs / "formats" / page).read_text()
            wrong += [f"docs/formats/{page}: `{row[column]}` is not described"
                      for row in rows(root / "src" / table, macro)
                      if f"`{row[column]}`" not in text]  # fmt: skip
    commands = root / "src/cli/commands.def"
    if commands.exists():
        pages = (docs / "meson.build").read_text()
        names = [row[0] for row in rows(commands, "AQ_COMMAND")]
        if not names:
            wrong.append("src/cli/commands.def: no row AQ_COMMAND(…) found")
        for name in names:
            if f"'{name}'" not in pages:
                wrong.append(f"docs/meson.build: no manual page for the command {name}")
            if not (root / f"src/cli/{name}.c").exists():
                wrong.append(f"src/cli/{name}.c: the command {name} has no file")
    index = (docs / "formats/README.md").read_text()
    for page in sorted((docs / "formats").glob("*.md")):
        if page.name != "README.md" and f"({page.name})" not in index:
            wrong.append(f"docs/formats/README.md: {page.name} is not listed")
    return wrong


def check_rules_page(root):
    tool = root / "tools/gen-rules-page"
    out = subprocess.run([str(tool), "--check"], capture_output=True, text=True, check=False)
    return [out.stderr.strip()] if out.returncode else []


def check_links(root, files):
    """Relative links in the documents lead to a file."""
    wrong = []
    for path in files:
        if path.suffix != ".md" or not path.is_file() or "tests" in path.relative_to(root).parts[:1]:
            continue
        if path.relative_to(root).parts[0] == "examples":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
                if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                    wrong.append(f"{place(root, path, number)}: link to {target} leads nowhere")
    return wrong


def check_tests(root, files):
    """Python tests of the same name in two folders cannot be collected together: then no test runs at all."""
    seen = {}
    for path in files:
        if path.suffix == ".py" and path.name.startswith("test_") and path.is_file():
            seen.setdefault(path.name, []).append(str(path.relative_to(root)))
    return [f"{places[1]}: the name of {places[0]} as well" for places in map(sorted, seen.values()) if len(places) > 1]


def format_files(root, files):
    return [p for p in files
            if p.suffix in (".c", ".cc", ".cpp", ".h") and p.is_file()
            and p.relative_to(root).parts[0] in ("src", "fuzz", "bench", "tests")]  # fmt: skip


def check_format(root, files):
    names = [str(p) for p in format_files(root, files)]
    if not names:
        return ["no source file found"]
    out = subprocess.run(["clang-format-14", "--dry-run", "-Werror", "--style=file", *names],
                         capture_output=True, text=True, cwd=root, check=False)  # fmt: skip
    if out.returncode == 0:
        return []
    lines = [l for l in out.stderr.splitlines() if "error:" in l]
    return [l.replace(f"{root}/", "") for l in lines] or [out.stderr.strip()]


def repository():
    return pathlib.Path(__file__).resolve().parents[2]
