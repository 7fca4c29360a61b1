"""The HTML report in a real browser: nothing runs, nothing is fetched, hostile text is text, and
the planted line is on the first screen."""
import html
import json
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "report"))
from samples import NAMES, sample  # noqa: E402

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--virtual-time-budget=2000",
]  # fmt: skip
OUTSIDE = re.compile(r"""(?:src|href|action|data|srcset|poster|background)\s*=|url\(|@import|<script|<iframe|<object""", re.I)


def chromium(folder, page, *extra):
    return subprocess.run(
        ["chromium", *FLAGS, f"--user-data-dir={folder / 'profile'}", *extra, page.as_uri()],
        check=True, capture_output=True, timeout=120,
    ).stdout.decode()  # fmt: skip


def write(folder, name, tail=""):
    page = folder / f"{name}.html"
    page.write_text(sample(name, "html").replace("</body>", tail + "</body>"), encoding="utf-8")
    return page


@pytest.mark.parametrize("name", NAMES)
def test_the_file_asks_for_nothing(name):
    text = sample(name, "html")
    bare = re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    assert not OUTSIDE.search(re.sub(r">[^<]*<", "><", bare))
    assert "url(" not in text and "@import" not in text


def test_hostile_names_are_text(tmp_path):
    dom = chromium(tmp_path, write(tmp_path, "hostile"), "--dump-dom")
    assert not re.search(r"<(script|img|iframe|svg onload)", dom.lower())
    assert not re.search(r"\son[a-z]+\s*=", re.sub(r">[^<]*<", "><", dom))
    title = re.search(r"<title>(.*?)</title>", dom, re.S)[1]
    assert "owned" != html.unescape(title).strip()
    assert "&lt;script&gt;document.title='owned'&lt;/script&gt;" in dom
    for hidden in "\u202e\u200b\x1b":
        assert hidden not in dom


def test_the_policy_stops_a_script(tmp_path):
    """If markup ever got through, the policy of the page would still hold: a script, a picture and
    a style attribute that are put into the file do nothing."""
    tail = (
        "<p id=canary style='width:1px'>quiet</p><img src='http://127.0.0.1:9/x.png'>"
        "<script>document.getElementById('canary').textContent = 'ran'</script>"
    )
    dom = chromium(tmp_path, write(tmp_path, "plain", tail), "--dump-dom")
    assert ">quiet<" in dom and ">ran<" not in dom


def test_the_same_script_would_run_without_it(tmp_path):
    """The control: the test above can fail."""
    page = write(tmp_path, "plain", "<p id=canary>quiet</p><script>document.getElementById('canary').textContent = 'ran'</script>")
    page.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text()))
    assert ">ran<" in chromium(tmp_path, page, "--dump-dom")


@pytest.mark.parametrize("width, height", [(1280, 800), (400, 800)])
def test_first_screen(tmp_path, width, height):
    """Reads the place of the planted line on the laid-out page, with a script of the test's own in
    a copy without the policy."""
    probe = """<script>
      const plant = [...document.querySelectorAll('code.line')].find(e => e.textContent.includes('curl -s'));
      const box = plant.getBoundingClientRect(), all = document.documentElement;
      const out = document.createElement('pre');
      out.id = 'probe';
      out.textContent = JSON.stringify({top: box.top, bottom: box.bottom, wide: all.scrollWidth,
        style: getComputedStyle(document.querySelector('.banner')).color});
      document.body.append(out);
    </script>"""
    page = write(tmp_path, "planted", probe)
    page.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text()))
    dom = chromium(tmp_path, page, f"--window-size={width},{height}", "--dump-dom")
    seen = json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', dom)[1]))
    if width > 1000:
        assert 0 < seen["top"] and seen["bottom"] <= height
    assert seen["wide"] <= max(width, 500), "the page scrolls sideways"
    assert seen["style"] == "rgb(255, 255, 255)"


def test_the_style_sheet_passes_the_policy(tmp_path):
    """With its hash wrong the page would come out unstyled: two pictures tell."""
    page = write(tmp_path, "pass")
    shot, bare = tmp_path / "styled.png", tmp_path / "bare.png"
    chromium(tmp_path, page, "--window-size=800,600", f"--screenshot={shot}")
    page.write_text(page.read_text().replace("<style>", "<style> "))
    chromium(tmp_path, page, "--window-size=800,600", f"--screenshot={bare}")
    assert shot.stat().st_size > 1000 and shot.read_bytes() != bare.read_bytes()
