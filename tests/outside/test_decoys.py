"""What other programs think of decoys: OpenSSH, OpenSSL and GnuPG load the keys; checksums and formats are
computed again here, from their definitions and not from our code."""
import base64
import hashlib
import json
import os
import re
import shutil
import string
import subprocess
import zlib

import pytest

from conftest import PROGRAM, ROOT, schema

SEEDS = ["1", "42", "other"]
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def show(*options, seed="1", world="A"):
    done = subprocess.run([PROGRAM, "decoys", "show", "--seed", seed, "--world", world, "--start",
                           "2027-01-15T08:00:00Z", *options], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def run(*command, input=None, env=None):
    done = subprocess.run(command, input=input, capture_output=True, timeout=60, env=env)
    assert done.returncode == 0, (command, done.stderr.decode())
    return done.stdout


class World:
    def __init__(self, seed, side):
        self.seed, self.side = seed, side
        self.json = json.loads(show("--json", seed=seed, world=side))
        self.decoys = {d["name"]: d["value"] for d in self.json["decoys"]}
        self.files = {f["path"]: f for f in self.json["files"]}
        self.home = self.json["environment"]["HOME"]

    def __getitem__(self, name):
        return self.decoys[name]

    def file(self, path):
        return show("--file", path, seed=self.seed, world=self.side)


@pytest.fixture(scope="module", params=[(s, w) for s in SEEDS for w in "AB"], ids=lambda p: "-".join(p))
def world(request):
    return World(*request.param)


def test_schema(world):
    errors = [f"{e.json_path}: {e.message}" for e in schema("decoys.schema.json").iter_errors(world.json)]
    assert not errors, errors
    for f in world.json["files"]:
        if f["kind"] == "file" and f["path"].startswith(world.home):
            content = world.file(f["path"])
            assert (len(content), hashlib.sha256(content).hexdigest()) == (f["size"], f["sha256"])
            break


# ---- tokens ----


def checksum(token):
    """Six digits to the base 62 of the CRC-32 of the random part."""
    random, sum_ = token.rsplit("_", 1)[1][:-6], token[-6:]
    n, digits = zlib.crc32(random.encode()), ""
    while n:
        n, rest = divmod(n, 62)
        digits = BASE62[rest] + digits
    return sum_ == digits.rjust(6, "0")


def test_checksum_itself():
    """An example that its maker published."""
    assert checksum("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")
    assert not checksum("ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18")


def test_tokens(world):
    for name, prefix in (("github.token", "ghp"), ("github.oauth_token", "gho"), ("npm.token", "npm")):
        assert re.fullmatch(prefix + "_[0-9A-Za-z]{36}", world[name]) and checksum(world[name])
    forms = {
        "aws.access_key_id": r"AKIA[A-Z2-7]{16}", "aws.secret_access_key": r"[A-Za-z0-9+/]{40}",
        "azure.client_secret": r"[0-9A-Za-z]{3}\dQ~[0-9A-Za-z._~-]{34}", "azure.tenant_id": UUID,
        "gitlab.token": r"glpat-[\w-]{20}", "google.api_key": r"AIza[\w-]{35}",
        "openai.api_key": r"sk-proj-[\w-]{74}T3BlbkFJ[\w-]{74}",
        "anthropic.api_key": r"sk-ant-api03-[\w-]{93}AA", "huggingface.token": r"hf_[A-Za-z0-9]{34}",
        "groq.api_key": r"gsk_[A-Za-z0-9]{52}", "slack.bot_token": r"xoxb-\d{13}-\d{13}-[A-Za-z0-9]{24}",
        "slack.webhook": r"https://hooks\.slack\.com/services/T[A-Z0-9]{10}/B[A-Z0-9]{10}/[A-Za-z0-9]{24}",
        "stripe.secret_key": r"sk_live_51[A-Za-z0-9]{97}", "sendgrid.api_key": r"SG\.[\w-]{22}\.[\w-]{43}",
        "twilio.account_sid": r"AC[0-9a-f]{32}", "telegram.bot_token": r"\d{10}:AA[\w-]{33}",
        "digitalocean.token": r"dop_v1_[0-9a-f]{64}", "docker.token": r"dckr_pat_[\w-]{27}",
        "machine.mac": r"3c:fd:fe(:[0-9a-f]{2}){3}", "machine.id": r"[0-9a-f]{32}", "machine.boot_id": UUID,
        "aws.account_id": r"[1-9]\d{11}", "terraform.token": r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9]{67}",
        "cargo.token": r"cio[A-Za-z0-9]{32}", "replicate.token": r"r8_[0-9A-Za-z]{37}",
        "openrouter.api_key": r"sk-or-v1-[0-9a-f]{64}", "mistral.api_key": r"[A-Za-z0-9]{32}",
        "vault.token": r"hvs\.[\w-]{90,120}", "cloudflare.token": r"[\w-]{40}", "datadog.api_key": r"[0-9a-f]{32}",
        "sentry.dsn": r"https://[0-9a-f]{32}@o\d{6}\.ingest\.sentry\.io/\d{7}",
        "app.heroku_key": r"HRKU-AA[\w-]{58}", "stripe.webhook_secret": r"whsec_[A-Za-z0-9]{32}",
        "gcp.oauth_secret": r"GOCSPX-[\w-]{28}", "gcp.refresh_token": r"1//0[\w-]{100}",
        "gcp.oauth_client": r"\d{12}-[0-9a-z]{32}",
    }
    for name, form in forms.items():
        assert re.fullmatch(form, world[name]), (name, world[name])
    assert len(base64.b64decode(world["azure.storage_key"], validate=True)) == 64
    assert base64.b64decode(world["docker.auth"]).decode() == f"{world['person.user']}:{world['docker.token']}"


def unpad(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_macaroon(world):
    raw = unpad(world["pypi.token"].removeprefix("pypi-"))
    assert world["pypi.token"].startswith("pypi-AgEIcHlwaS5vcmc") and raw[0] == 2
    fields, at = [], 1
    while at < len(raw):
        kind = raw[at]
        if kind == 0:
            fields.append((0, b""))
            at += 1
            continue
        size = raw[at + 1]
        fields.append((kind, raw[at + 2:at + 2 + size]))
        at += 2 + size
    assert [k for k, _ in fields] == [1, 2, 0, 2, 0, 0, 6] and at == len(raw)
    assert re.fullmatch(UUID, fields[1][1].decode()) and json.loads(fields[3][1]) and len(fields[6][1]) == 32


def test_cluster_token(world):
    """What an API server of clusters issues for a service account: the claims agree with each other."""
    head, claims, signature = world["kube.token"].split(".")
    head, claims = json.loads(unpad(head)), json.loads(unpad(claims))
    assert head["alg"] == "RS256" and len(unpad(head["kid"])) == 32
    assert claims["iss"] == "kubernetes/serviceaccount"
    own = {k.rsplit("/", 1)[1]: v for k, v in claims.items() if k.startswith("kubernetes.io/")}
    assert claims["sub"] == f"system:serviceaccount:{own['namespace']}:{own['service-account.name']}"
    assert own["secret.name"].startswith(own["service-account.name"] + "-token-")
    assert re.fullmatch(UUID, own["service-account.uid"])
    assert len(unpad(signature)) == 256
    assert base64.urlsafe_b64encode(unpad(signature)).decode().rstrip("=") == signature  # no stray bits


def account(key):
    """The account that an access key's number holds."""
    return (int.from_bytes(base64.b32decode(key[4:])[:6], "big") & 0x7FFFFFFFFF80) >> 7


def test_account_itself():
    """An example that was published with its account."""
    assert account("ASIAQNZGKIQY56JQ7WML") == 29608264753


def test_facts_inside_keys(world):
    """What a number embeds is what the rest of the world says."""
    keys = [world[f"aws.{kind}access_key_id"] for kind in ("", "prod_", "role_")]
    assert [f"{account(k):012}" for k in keys] == [world["aws.account_id"]] * 3 and len({k[4:] for k in keys}) == 3
    assert [k[:4] for k in keys] == ["AKIA", "AKIA", "ASIA"]
    assert all(k[4] >= "Q" or k[4].isdigit() for k in keys)  # one that holds an account
    assert world["gcp.oauth_client"].startswith(world["gcp.project_number"] + "-")
    adc = json.loads(world.file(".config/gcloud/application_default_credentials.json"))
    assert adc["client_id"] == world["gcp.oauth_client"] + ".apps.googleusercontent.com"
    assert adc["quota_project_id"] == world["gcp.project_id"] and adc["client_secret"] == world["gcp.oauth_secret"]
    assert world["slack.bot_token"].split("-")[1] == world["slack.team"]
    assert world["telegram.bot_token"].split(":")[0].isdigit()


def test_vault_token(world):
    """A service token of a server that keeps indexes: two fields of a message, the second holds the older form."""
    raw = unpad(world["vault.token"].removeprefix("hvs."))
    assert raw[:4] == b"\x08\x01\x12\x20" and raw[36:40] == b"\x1a\x1e\x0a\x1c" and len(raw) == 68
    assert re.fullmatch(rb"hvs\.[0-9A-Za-z]{24}", raw[40:])
    assert base64.urlsafe_b64encode(raw).decode().rstrip("=") == world["vault.token"].removeprefix("hvs.")


def test_heroku_key(world):
    raw = unpad(world["app.heroku_key"].removeprefix("HRKU-") + "A" * 2)
    assert raw[0] == 0 and b"\xff\xff\xff\xff" in raw


# ---- wallets ----


def numbers():
    """Words of the phrases with their numbers in the standard's list."""
    text = (ROOT / "rules/decoys/words.pack").read_text()
    return {w[4:]: int(w[:4]) for line in text.splitlines() if line.startswith(" ") for w in line.split()}


def test_phrase(world):
    words, table = world["wallet.phrase"].split(), numbers()
    assert len(words) == 12 and len(table) == 555 and (table["about"], table["zebra"]) == (3, 2044)
    bits = "".join(f"{table[w]:011b}" for w in words)
    entropy = int(bits[:128], 2).to_bytes(16, "big")
    assert f"{hashlib.sha256(entropy).digest()[0]:08b}"[:4] == bits[128:]


def test_bitcoin_key(world):
    n = 0
    for c in world["wallet.bitcoin_key"]:
        n = n * 58 + BASE58.index(c)
    raw = n.to_bytes(38, "big")
    assert raw[0] == 0x80 and raw[33] == 1
    assert hashlib.sha256(hashlib.sha256(raw[:34]).digest()).digest()[:4] == raw[34:]


def test_keystore(world):
    path = next(p for p in world.files if "/.ethereum/keystore/" in p)
    store = json.loads(world.file(path))
    assert path.endswith(store["address"]) and store["version"] == 3
    assert len(bytes.fromhex(store["crypto"]["kdfparams"]["salt"])) == 32


# ---- keys ----


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
@pytest.mark.parametrize("name", ["id_ed25519", "deploy_ed25519"])
def test_ssh_keys(world, name, tmp_path):
    key = tmp_path / name
    key.write_bytes(world.file(f".ssh/{name}"))
    key.chmod(0o600)
    public = world.file(f".ssh/{name}.pub").decode()
    assert run("ssh-keygen", "-y", "-f", key).decode() == public
    message = tmp_path / "message"
    message.write_text("hello")
    run("ssh-keygen", "-Y", "sign", "-f", key, "-n", "file", message)
    allowed = tmp_path / "allowed"
    allowed.write_text(f"me {public}")
    run("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "me", "-n", "file", "-s", f"{message}.sig",
        input=b"hello")
    for line in world.file(".ssh/known_hosts").decode().splitlines():
        run("ssh-keygen", "-l", "-f", "-", input=line.split(" ", 1)[1].encode())


def test_service_account(world, tmp_path):
    path = next(p for p in world.files if p.endswith("-deploy.json"))
    account = json.loads(world.file(path))
    key = tmp_path / "key.pem"
    key.write_text(account["private_key"])
    assert b"RSA key ok" in run("openssl", "rsa", "-in", key, "-check", "-noout")
    assert b"2048 bit" in run("openssl", "pkey", "-in", key, "-text", "-noout")
    assert account["private_key"] == world["gcp.private_key"]
    assert account["client_x509_cert_url"].endswith("/" + account["client_email"].replace("@", "%40"))
    assert account["client_email"].endswith(f"@{account['project_id']}.iam.gserviceaccount.com")
    assert world.json["environment"]["GOOGLE_APPLICATION_CREDENTIALS"] == path


def test_cluster(world, tmp_path):
    config = world.file(".kube/config").decode()
    part = {k: base64.b64decode(v, validate=True) for k, v in
            re.findall(r"^ +([a-z-]+-data): (\S+)$", config, re.M)}
    for name, content in part.items():
        (tmp_path / name).write_bytes(content)
    ca, cert, key = (tmp_path / f"{n}-data" for n in
                     ("certificate-authority", "client-certificate", "client-key"))
    run("openssl", "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", ca, cert)
    run("openssl", "verify", "-CAfile", ca, ca)
    assert run("openssl", "x509", "-in", cert, "-noout", "-pubkey") == run("openssl", "pkey", "-in", key, "-pubout")
    subject = run("openssl", "x509", "-in", cert, "-noout", "-subject").decode()
    assert world["person.user"] in subject


@pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg")
def test_pgp(world, tmp_path):
    home = tmp_path / "g"
    home.mkdir(mode=0o700)
    env = {**os.environ, "GNUPGHOME": str(home)}
    try:
        run("gpg", "--batch", "--import", input=world.file(".gnupg/backup/secret-key.asc"), env=env)
        listed = run("gpg", "--batch", "--with-colons", "--list-secret-keys", env=env).decode()
        assert f"fpr:::::::::{world['pgp.fingerprint']}:" in listed and world["person.name"] in listed
        signed = run("gpg", "--batch", "--clearsign", input=b"hello\n", env=env)
        run("gpg", "--batch", "--verify", input=signed, env=env)
        assert b"sig!3" in run("gpg", "--batch", "--check-signatures", env=env)
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=env, capture_output=True)


@pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg")
def test_keyring(world, tmp_path):
    """GnuPG finds the key in its own files, as its owner's, and signs with it; it is the one that git signs with."""
    home = tmp_path / "g"
    home.mkdir(mode=0o700)
    below = world.home + "/.gnupg/"
    for path, f in world.files.items():
        if path.startswith(below) and "/backup" not in path:
            to = home / path.removeprefix(below)
            to.mkdir(mode=0o700) if f["kind"] == "folder" else to.write_bytes(world.file(path))
    env = {**os.environ, "GNUPGHOME": str(home)}
    before = {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    try:
        done = subprocess.run(["gpg", "--batch", "-K", "--with-colons"], env=env, capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr  # nothing is made, mended or missed
        rows = [line.split(":") for line in done.stdout.decode().splitlines()]
        field = {row[0]: row[9] for row in rows if row[0] != "sec"}
        assert (field["fpr"], field["grp"]) == (world["pgp.fingerprint"], world["pgp.keygrip"])
        assert field["uid"] == world["pgp.user_id"] and [row[1] for row in rows if row[0] == "uid"] == ["u"]
        config = tmp_path / "gitconfig"
        config.write_bytes(world.file(".gitconfig"))
        assert run("git", "config", "-f", config, "user.signingkey").decode().strip() == field["fpr"]
        signed = run("gpg", "--batch", "-u", field["fpr"], "--clearsign", input=b"hello\n", env=env)
        run("gpg", "--batch", "--verify", input=signed, env=env)
        run("gpg", "--batch", "--check-trustdb", env=env)
        assert b"sig!3" in run("gpg", "--batch", "--check-signatures", env=env)
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=env, capture_output=True)
    assert all(p.read_bytes() == was for p, was in before.items() if p.name != "pubring.kbx")


# ---- files that their tools read ----


def test_files_of_tools(world, tmp_path):
    for path, f in world.files.items():
        if f["kind"] == "file" and path.endswith((".json", "Bookmarks", "Preferences", "Local State")):
            json.loads(world.file(path))
    config = tmp_path / "gitconfig"
    config.write_bytes(world.file(".gitconfig"))
    assert run("git", "config", "-f", config, "user.email").decode().strip() == world["person.mail"]
    # Names of commits are cut where no two of a project can be the same: then all worlds show as many digits.
    assert run("git", "config", "-f", config, "core.abbrev") == b"10\n"
    history = world.file(".bash_history").decode().splitlines()
    assert len(history) > 40 and any(world["stripe.secret_key"] in line for line in history)
    for line in (world.file(".secrets"), world.file(".bashrc"), world.file(".profile")):
        run("sh", "-n", input=line)


def prime(name):
    raw = b"".join(hashlib.sha256(b"aquarium/v1/primes".ljust(32, b"\0") + i.to_bytes(4, "little") + name.encode()).digest() for i in range(4))
    return (int.from_bytes(raw, "big") | 3 << 1022) & ~3 | 1


def test_names():
    """Of one length in a list and in no two lists; the primes are what rsa.c needs of them."""
    lists, name = {}, None
    for line in (ROOT / "rules/decoys/names.pack").read_text().splitlines():
        if line.startswith("list "):
            name = line.split()[1]
        elif line.startswith(" "):
            lists.setdefault(name, []).extend(line.split())
    primes = [prime(name) for name in lists["primes"]]
    people = [w for n in ("given", "family", "colleague-given", "colleague-family") for w in lists[n]]
    assert len(people) == len(set(people)) > 200 and all(re.fullmatch("[A-Z][a-z]+", w) for w in people)
    assert not any(a != b and a in b for a in people for b in people)
    for words in lists.values():
        assert len(set(map(len, words))) == 1 and len(set(words)) == len(words)
    assert len(set(primes)) == len(primes) == 4096
    for p in primes[::32]:  # all of them take a minute
        assert p.bit_length() == 1024 and p % 4 == 1 and pow(65537, -1, p - 1).bit_length() == 1024
        assert all(pow(a, p - 1, p) == 1 for a in (2, 3, 65537))


def test_same_seed_same_world():
    assert show("--json", seed="7") == show("--json", seed="7")
    assert show("--json", seed="7") != show("--json", seed="8")
    assert show("--json", seed="7") != show("--json", seed="7", world="B")


def test_twins_from_outside():
    """The same shape: what is no decoy is equal when decoys are replaced by their names."""
    def plain(w):
        values = sorted(w.decoys.items(), key=lambda d: (-len(d[1]), d[0]))
        out = []
        for path, f in w.files.items():
            for name, value in values:
                path = path.replace(value, f"{{{name}}}")
            out.append((path, f["mode"], f["kind"], f.get("size"), f["mtime"]))
        return out

    a, b = World("twins", "A"), World("twins", "B")
    assert plain(a) == plain(b)
    assert not set(a.decoys.values()) & set(b.decoys.values())
    assert [len(v) for v in a.decoys.values()] == [len(v) for v in b.decoys.values()]
    assert list(a.decoys) == list(b.decoys)
    order = [sorted(range(len(w.files)), key=lambda i: list(w.files)[i].encode()) for w in (a, b)]
    assert order[0] == order[1]


# ---- the command ----


def test_text():
    text = show().decode()
    assert len(text.splitlines()) < 240
    for word in ("identity", "secret", "machine", "aws.secret_access_key", "$AWS_SECRET_ACCESS_KEY"):
        assert word in text


@pytest.mark.parametrize("options, says", [
    (["--world", "C"], "A or B"), (["--seed", "two words"], "--seed"), (["--seed", ""], "--seed"),
    (["--file", "nothing"], "no such file"), (["--start", "today"], "--start"),
    (["--pack", "/nowhere"], "/nowhere"),
])
def test_usage(options, says):
    done = subprocess.run([PROGRAM, "decoys", "show", *options], capture_output=True)
    assert done.returncode == 64 and says in done.stderr.decode(), done.stderr


def test_pack(tmp_path):
    pack = tmp_path / "ours.pack"
    pack.write_text("pack 1\ndecoy ours.badge identity text BADGE-%{digits:8}\n"
                    "file 0600 5 /home/%{person.user}/badge.txt\n|%{ours.badge}\n")
    first = show("--pack", str(pack), "--file", "badge.txt")
    assert re.fullmatch(rb"BADGE-\d{8}\n", first) and first == show("--pack", str(pack), "--file", "badge.txt")
    pack.write_text("pack 1\n\ndecoy ours.badge identity text %{nothing}\n")
    done = subprocess.run([PROGRAM, "decoys", "show", "--pack", pack], capture_output=True)
    assert done.returncode == 64 and b"ours.pack line 3: no decoy nothing" in done.stderr
