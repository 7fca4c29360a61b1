"""Hosts that lack something: what is missing is said in words, what still holds is stated, and where
no world can be made nothing runs. Each host is made of the tools at hand around a run."""
import os
import subprocess

import pytest

from worlds import PLAIN, as_root, worlds  # fixtures

DROP = ["setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups"]
FEW = "--bounding-set=-all,+chown,+dac_override,+fowner,+setuid,+setgid,+kill,+net_bind_service"


def shell(setup):
    """A shell that spoils the host and then becomes the driver."""
    return ["sh", "-c", f'{setup} && exec "$@"', "sh"]


OWN = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]
NONE = shell("echo 0 > /proc/sys/user/max_user_namespaces")
# What is around, what is then said, or None where the world is made.
HOSTS = {
    "no user namespaces": (OWN + NONE, "user.max_user_namespaces"),
    "no user namespaces, plain": (DROP + OWN + NONE, "user.max_user_namespaces"),
    "one user namespace": (OWN + shell("echo 1 > /proc/sys/user/max_user_namespaces"), "user.max_user_namespaces"),
    "no /proc": (["unshare", "--mount"] + shell("mount -t tmpfs none /proc"), "no /proc"),
    "too many processes": (DROP + ["prlimit", "--nproc=2"], "ulimit -u"),
    "too few descriptors": (["prlimit", "--nofile=12"], "open files"),
    "root without any right": (["setpriv", "--bounding-set=-all", "--inh-caps=-all"], "plain user"),
    "root with few rights": (["setpriv", FEW, "--inh-caps=-all"], None),
    "covered /proc": (OWN + shell("mount -t tmpfs none /proc/driver"), None),
    "covered /proc, plain": (DROP + OWN + shell("mount -t tmpfs none /proc/driver"), None),
    "no cgroups": (["unshare", "--mount"] + shell("mount -t tmpfs none /sys/fs/cgroup"), None),
    "no new privileges": (DROP + ["--no-new-privs"], None),
    "root of its own id": (OWN, None),
    "a plain user's own": (DROP + OWN, None),
}


@pytest.mark.parametrize("host", HOSTS)
def test_host(as_root, host):
    around, missing = HOSTS[host]
    command = as_root.command("sh", "-c", "echo ran; id -u; ls /proc | head -1; ls -l /proc/self/ns | wc -l")
    done = subprocess.run(around + command, capture_output=True, text=True, timeout=60)
    if missing:
        assert (done.returncode, done.stdout) == (70, ""), (done.stdout, done.stderr)
        assert missing in done.stderr and "run_world: backend container: " in done.stderr
        probe = subprocess.run(around + [str(as_root.driver), "--probe"], capture_output=True, text=True, timeout=60)
        assert probe.stdout.startswith("not usable\nNone: no world can be made") and missing in probe.stdout
        return
    assert done.stdout.startswith("ran\n1000\n"), done.stderr
    probe = subprocess.run(around + [str(as_root.driver), "--probe"], capture_output=True, text=True, timeout=60)
    assert probe.stdout.startswith("usable\nOwn user, mount, pid"), probe.stdout
    guarantee = probe.stdout.splitlines()[1]
    assert ("there is no /proc inside" in guarantee) == host.startswith("covered /proc")
    assert (done.stdout.split("\n")[2] == "1") == (not host.startswith("covered /proc"))
    if host in ("no cgroups", "root with few rights") or "plain" in host:
        assert "limited by rlimit, rlimit and rlimit" in guarantee
    assert ("that nothing else has" in guarantee) == (host in ("root with few rights", "no cgroups"))


def test_in_an_aquarium(worlds):
    """The filter around the inner one forbids it, and that is what is said."""
    said, out = worlds.run("sh", "-c", f"/tool/{worlds.driver.name} -- echo ran 2>&1",
                           options=["--share", f"{worlds.place}:/tool"])
    assert "ran\n" not in out and "cannot make a user namespace: the host or the container that we are in" in out
