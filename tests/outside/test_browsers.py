"""What the profiles of browsers hold, read as whoever steals them would: SQLite opens the databases, and what is sealed is opened
with OpenSSL by the public rules of each browser. What comes out are decoys."""
import base64
import functools
import hashlib
import json
import re
import sqlite3
import subprocess

import pytest

from test_decoys import World, run, world  # world: fixture

FIREFOX = ("key4.db", "cookies.sqlite", "places.sqlite")
CHROME = ("Login Data", "Cookies", "History", "Web Data")
START = 1800000000  # 2027-01-15T08:00:00Z


def firefox(w, name):
    return f".mozilla/firefox/{w['browser.profile']}/{name}"


def chrome(w, name):
    return f".config/google-chrome/Default/{name}"


@functools.cache
def content(w, name):
    return w.file(firefox(w, name) if name in FIREFOX else chrome(w, name))


@pytest.fixture(scope="module")
def profile(world, tmp_path_factory):
    """Connections to all databases of a world, by name."""
    folder = tmp_path_factory.mktemp("profile")
    made = {}
    for name in FIREFOX + CHROME:
        (folder / name).write_bytes(content(world, name))
        made[name] = sqlite3.connect(folder / name)
    yield folder, made
    for connection in made.values():
        connection.close()


def test_databases_are_whole(profile):
    folder, made = profile
    for name, connection in made.items():
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], name
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == [], name
        assert run("sqlite3", folder / name, "PRAGMA integrity_check") == b"ok\n", name
        tables = [t for t, in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:  # as whoever looks at everything
            connection.execute(f'SELECT * FROM "{table}"').fetchall()
    # Firefox and Chrome can go on with them.
    for name, table in (("places.sqlite", "moz_places"), ("History", "urls"), ("Login Data", "logins")):
        copy = sqlite3.connect(":memory:", isolation_level=None)
        made[name].backup(copy)
        copy.execute(f"DELETE FROM {table} WHERE id = 1")
        copy.execute(f"DELETE FROM {table} WHERE id = 2")
        copy.execute("VACUUM")
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def opened(cipher, key, iv, sealed):
    return run("openssl", "enc", "-d", f"-{cipher}", "-K", key.hex(), "-iv", iv.hex(), input=sealed)


def from_chrome(sealed):
    assert sealed[:3] == b"v10"
    key = hashlib.pbkdf2_hmac("sha1", b"peanuts", b"saltysalt", 1, 16)
    return opened("aes-128-cbc", key, b" " * 16, sealed[3:]).decode()


def test_chrome_opens(world, profile):
    _, made = profile
    rows = made["Login Data"].execute("SELECT origin_url, username_value, password_value FROM logins").fetchall()
    found = {url.split("//")[1].split(".")[0]: from_chrome(sealed) for url, _, sealed in rows}
    assert found == {world["aws.account_id"]: world["chrome.console_password"],
                     "tickets": world["chrome.tickets_password"], "payroll": world["chrome.payroll_password"]}
    cookies = {name: from_chrome(v) for name, v in made["Cookies"].execute("SELECT name, encrypted_value FROM cookies")}
    assert cookies["_gitlab_session"] == world["chrome.gitlab_session"]
    assert cookies["MMAUTHTOKEN"] == world["chrome.chat_token"] and len(cookies) == 4
    (card, owner), = made["Web Data"].execute("SELECT card_number_encrypted, name_on_card FROM credit_cards")
    number = from_chrome(card)
    assert (number, owner) == (world["chrome.card_number"], world["person.name"]) and len(number) == 16
    twice = [int(d) * (1 + (i % 2 == 0)) for i, d in enumerate(number)]
    assert sum(d - 9 if d > 9 else d for d in twice) % 10 == 0
    (token,), = made["Web Data"].execute("SELECT encrypted_token FROM token_service")
    assert from_chrome(token) == world["chrome.refresh_token"]


def der(data):
    """Tag, content and rest of what begins here."""
    size, at = data[1], 2
    if size & 128:
        at += size & 127
        size = int.from_bytes(data[2:at], "big")
    return data[0], data[at:at + size], data[at + size:]


def parts(data):
    out = []
    while data:
        tag, inner, data = der(data)
        out.append((tag, parts(inner) if tag == 0x30 else inner))
    return out


def from_store(salt, sealed):
    """PBES2 with PBKDF2 and AES-256, as key4.db has it; there is no main password."""
    (_, (algorithm, (_, text))), = parts(sealed)
    kind, (_, (derive, cipher)) = algorithm[1]
    assert kind[1].hex() == "2a864886f70d01050d" and derive[1][0][1].hex() == "2a864886f70d01050c"
    (_, entry), (_, rounds), (_, size), hmac = derive[1][1][1]
    assert hmac[1][0][1].hex() == "2a864886f70d0209" and cipher[1][0][1].hex() == "60864801650304012a"
    key = hashlib.pbkdf2_hmac("sha256", hashlib.sha1(salt).digest(), entry, int.from_bytes(rounds, "big"), size[0])
    return opened("aes-256-cbc", key, b"\x04\x0e" + cipher[1][1][1], text)


def test_firefox_opens(world, profile):
    _, made = profile
    (salt, check), = made["key4.db"].execute("SELECT item1, item2 FROM metaData WHERE id = 'password'")
    assert len(salt) == 20 and from_store(salt, check) == b"password-check"
    (sealed, name), = made["key4.db"].execute("SELECT a11, a102 FROM nssPrivate")
    key = from_store(salt, sealed)
    assert len(key) == 24 and all(bin(b).count("1") % 2 for b in key)
    found = {}
    for login in json.loads(world.file(firefox(world, "logins.json")))["logins"]:
        pair = []
        for field in ("encryptedUsername", "encryptedPassword"):
            (_, ((_, of), (_, (kind, (_, iv))), (_, text))), = parts(base64.b64decode(login[field], validate=True))
            assert of == name and kind[1].hex() == "2a864886f70d0307"
            pair.append(opened("des-ede3-cbc", key, iv, text).decode())
        found[login["hostname"]] = tuple(pair)
    assert found == {"https://github.com": (world["github.login"], world["firefox.github_password"]),
                     "https://accounts.google.com": (world["person.private_mail"], world["firefox.mail_password"]),
                     "https://www.amazon.de": (world["person.private_mail"], world["firefox.shop_password"])}


def number_of(url):
    def mixed(text):
        h = 0
        for c in text.encode():
            h = ((h << 5 | h >> 27) & 0xFFFFFFFF ^ c) * 0x9E3779B9 & 0xFFFFFFFF
        return h
    return ((mixed(url.split(":")[0]) & 0xFFFF) << 32) + mixed(url)


def test_number_itself():
    """The numbers of addresses with this scheme begin so in every profile."""
    assert number_of("https://example.org/") >> 32 == 11026 == 47356370932282 >> 32


def test_what_was_visited(world, profile):
    _, made = profile
    rows = made["places.sqlite"].execute("SELECT url, rev_host, url_hash, guid, last_visit_date FROM moz_places").fetchall()
    assert len(rows) > 12 and any(world["company.domain"] in url for url, *_ in rows)
    for url, reverse, number, guid, last in rows:
        host = url.split("/")[2]
        assert reverse == host[::-1] + "." and number == number_of(url) and re.fullmatch(r"[\w-]{12}", guid)
        assert START - 400 * 86400 < last / 1e6 < START
    times = [t for t, in made["places.sqlite"].execute("SELECT visit_date FROM moz_historyvisits ORDER BY id")]
    assert times == sorted(times) and len(set(times)) == len(times) and len({t % 1000000 for t in times}) > 9
    assert made["places.sqlite"].execute("SELECT count(*) FROM moz_places p WHERE last_visit_date <> (SELECT max(visit_date) "
                                         "FROM moz_historyvisits v WHERE v.place_id = p.id)").fetchone() == (0,)
    marks = made["places.sqlite"].execute("SELECT p.url FROM moz_bookmarks b JOIN moz_places p ON p.id = b.fk").fetchall()
    assert (f"https://wiki.{world['company.domain']}/",) in marks
    urls = dict(made["History"].execute("SELECT url, last_visit_time FROM urls"))
    assert any(world["company.slug"] in url for url in urls)
    assert all(START - 400 * 86400 < t / 1e6 - 11644473600 < START for t in urls.values())
    session, = made["cookies.sqlite"].execute("SELECT value FROM moz_cookies WHERE name = 'user_session'").fetchone()
    assert session == world["firefox.github_session"]
    assert all(e > START for e, in made["cookies.sqlite"].execute("SELECT expiry FROM moz_cookies"))


def test_a_file_is_younger_than_what_is_in_it(world, profile):
    _, made = profile
    for name, query in (("places.sqlite", "SELECT max(visit_date) / 1000000 FROM moz_historyvisits"),
                        ("cookies.sqlite", "SELECT max(lastAccessed) / 1000000 FROM moz_cookies"),
                        ("History", "SELECT max(visit_time) / 1000000 - 11644473600 FROM visits"),
                        ("Cookies", "SELECT max(last_access_utc) / 1000000 - 11644473600 FROM cookies"),
                        ("Login Data", "SELECT max(date_last_used) / 1000000 - 11644473600 FROM logins"),
                        ("Web Data", "SELECT max(date_last_used) FROM autofill")):
        path = next(p for p in world.files if p.endswith("/" + name))
        written = world.files[path]["mtime"]
        last, = made[name].execute(query).fetchone()
        assert run("date", "-u", "-d", f"@{last}", "+%Y-%m-%dT%H:%M:%SZ").decode().strip() < written, name


def test_where_they_stand(world):
    """A decoy in a database is told with its place there, what is sealed too."""
    checked = set()
    for decoy in world.json["decoys"]:
        for place in decoy["places"]:
            name = place["where"].rsplit("/", 1)[-1]
            if place["kind"] != "file" or name not in FIREFOX + CHROME:
                continue
            value = bytes.fromhex(decoy["value"]) if decoy.get("encoding") == "hex" else decoy["value"].encode()
            assert content(world, name)[place["offset"]:][:len(value)] == value and "line" not in place
            checked.add(decoy["name"])
            break
    assert {"chrome.console_sealed", "chrome.chat_token_sealed", "firefox.key", "firefox.github_session", "company.slug"} <= checked


def test_twins():
    """Two worlds differ in nothing but decoys: the same rows, the same lengths, and not a sealed value in both."""
    a, b = World("twins", "A"), World("twins", "B")
    for name in FIREFOX + CHROME:
        dumps, blobs = [], []
        for w in (a, b):
            connection = sqlite3.connect(":memory:")
            connection.deserialize(content(w, name))
            text = "\n".join(connection.iterdump())
            blobs.append(set(re.findall(r"X'([0-9A-F]{32,})'", text)) - {"F8000000000000000000000000000001"})
            text = re.sub(r"X'([0-9A-F]*)'", lambda m: f"X{len(m[1])}", text)
            for decoy, value in sorted(w.decoys.items(), key=lambda d: (-len(d[1]), d[0])):
                text = text.replace(value, f"{{{decoy}}}").replace(value[::-1], f"{{reversed {decoy}}}")
            dumps.append(re.sub(r"\b473[56]\d{10}\b", "hash", text))
            assert text.count("INSERT") > 1
        assert dumps[0] == dumps[1] and not blobs[0] & blobs[1]
        assert len(content(a, name)) == len(content(b, name))


def test_same_bytes_again():
    first = World("again", "A")
    assert content(first, "places.sqlite") == content(World("again", "A"), "places.sqlite")
    assert content(first, "places.sqlite") != content(World("other", "A"), "places.sqlite")
    assert subprocess.run(["file", "--version"], capture_output=True).returncode != 0 or \
        b"SQLite 3.x database" in run("file", "-", input=content(first, "History"))
