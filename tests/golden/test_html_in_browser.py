"""The HTML report in a real browser: it opens, asks for nothing, and axe-core has no complaint."""

from __future__ import annotations

import html
import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from canonical_results import CANONICAL, baseline
from canonical_rules import view_of
from node.programs import chromium, installed

from fairgate.reports.html import render_html

pytestmark = pytest.mark.browser
DARK, LIGHT = "0", "1"
PHONE, DESK = 360, 1280
"""Width of the page in CSS pixels."""
SEARCH = """
const list = document.querySelector('#cases .cases');
const input = list.querySelector('input');
const shown = () => [...list.querySelectorAll('.case')].filter((one) => one.offsetParent);
const out = [shown().length];
for (const text of ['GAY', 's00000#or', 'nobody says this', '']) {
  input.value = text;
  input.dispatchEvent(new Event('input'));
  out.push([list.querySelector('[role=status]').textContent, shown().length]);
}
document.getElementById('result').textContent = JSON.stringify(out);
"""
EXAMINE = """
addEventListener('load', () => axe.run().then((found) => {
  parent.document.getElementById('result').textContent = JSON.stringify({
    complaints: found.violations.map((one) => [one.id, one.nodes[0].html]),
    fetched: performance.getEntriesByType('resource').map((one) => one.name),
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    width: innerWidth,
    too_wide: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  });
}));
"""


@cache
def _page(name="regression"):
    view = view_of(CANONICAL[name](), baseline(), run_path="runs/1", has_explain=True)
    return render_html(view)


def _with_script(page, script):
    """Return the page without its policy, with a script whose JSON result ends up in the page."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    return page.replace("</body>", f"<pre id=result></pre><script>{script}</script></body>")


def _opened(page, folder: Path, *options):
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [
        chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--no-first-run", f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr",
        "--virtual-time-budget=8000", "--dump-dom", *options, path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, said


def _result(dom):
    return json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)[1]))


@pytest.mark.parametrize("name", CANONICAL)
def test_the_page_opens_without_a_word_on_the_console(name, tmp_path):
    dom, said = _opened(_page(name), tmp_path)
    assert said == []
    assert 'class="search" hidden' not in dom


def test_a_script_of_a_stranger_does_not_run(tmp_path):
    page = _page().replace("</main>", "<script>document.title='owned'</script></main>")
    dom, said = _opened(page, tmp_path)
    assert "<title>owned" not in dom
    assert any("Content Security Policy" in line for line in said)


def test_cases_are_searched(tmp_path):
    dom, said = _opened(_with_script(_page(), SEARCH), tmp_path)
    assert said == []
    assert _result(dom) == [7, ["3 of 7", 3], ["1 of 7", 1], ["0 of 7", 0], ["", 7]]


def _framed(page, height=740):
    """Return a page that holds the page at a phone's width; a window does not get so narrow."""
    frame = f"<iframe title=phone width={PHONE} height={height} style='border:0' srcdoc='{{}}'></iframe>"
    return "<!doctype html><pre id=result></pre>" + frame.format(html.escape(page))


def _examined(page, folder, scheme=LIGHT, width=DESK):
    """Return axe-core's complaints, and what the page asked for and how it was shown."""
    axe = installed("axe-core/axe.min.js").read_text(encoding="utf-8")
    script = axe.replace("</script", "<\\/script") + f"</script><script>{EXAMINE}"
    page = _with_script(page, script)
    dom, _ = _opened(
        _framed(page) if width == PHONE else page, folder,
        f"--window-size={DESK},900", f"--blink-settings=preferredColorScheme={scheme}",
    )  # fmt: skip
    return _result(dom)


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("name", CANONICAL)
def test_axe_finds_nothing_and_nothing_is_fetched(name, scheme, width, tmp_path):
    found = _examined(_page(name), tmp_path, scheme, width)
    assert found == {
        "complaints": [], "fetched": [], "dark": scheme == DARK, "width": width, "too_wide": 0,
    }  # fmt: skip


FOLLOW_LINKS = """
const links = [...document.querySelectorAll('nav a')];
const out = [];
const pause = () => new Promise((done) => setTimeout(done, 120));
addEventListener('load', async () => {
  for (const link of links) {
    document.getElementById(link.hash.slice(1)).scrollIntoView();
    dispatchEvent(new Event('scroll')); // without a screen there are no frames that tell it
    await pause();
    const current = document.querySelector('nav a[aria-current]');
    const [strip, box] = [link.closest('nav'), link].map((one) => one.getBoundingClientRect());
    const atEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
    out.push([link.hash, current === link || atEnd,
              current !== link || (box.left >= strip.left - 1 && box.right <= strip.right + 1)]);
  }
  parent.document.getElementById('result').textContent = JSON.stringify(out);
});
"""


@pytest.mark.parametrize("height", [740, 390, 320])
@pytest.mark.parametrize("name", ["regression", "social-bias"])
def test_the_chapter_in_view_is_marked_and_its_link_is_visible(name, height, tmp_path):
    page = _framed(_with_script(_page(name), FOLLOW_LINKS), height)
    links = _result(_opened(page, tmp_path, f"--window-size={DESK},900")[0])
    assert len(links) > 3
    assert [link for link in links if not all(link)] == []
