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
from node.programs import chromium, installed

from fairgate.reports.html import render_html
from fairgate.reports.present import present
from fairgate.reports.view import ReportOptions

pytestmark = pytest.mark.browser
DARK, LIGHT = "0", "1"
PHONE, DESK = 360, 1280
"""Width of the page in CSS pixels."""
USE_IT = """
const cells = (n) => [...document.querySelectorAll('.searchable tbody tr')].map(r => r.cells[n].textContent);
const press = (n) => document.querySelectorAll('.searchable th button')[n].click();
const out = {};
press(7); out.rising = cells(7);
press(7); out.falling = cells(7);
out.sorted = document.querySelectorAll('.searchable th')[7].getAttribute('aria-sort');
const box = document.querySelector('.searchable input');
box.value = 'GAY'; box.dispatchEvent(new Event('input'));
out.left = [...document.querySelectorAll('.searchable tbody tr')].filter(r => !r.hidden).length;
out.said = document.querySelector('.searchable [role=status]').textContent;
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
    return render_html(present(CANONICAL[name](), ReportOptions(run_path="runs/1"), baseline()))


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
    assert 'class="controls"' in dom or name == "first-run"
    assert 'class="controls" hidden' not in dom
    assert "9 of 9 shown" in dom or name != "regression"


def test_a_script_of_a_stranger_does_not_run(tmp_path):
    page = _page().replace("</main>", "<script>document.title='owned'</script></main>")
    dom, said = _opened(page, tmp_path)
    assert "<title>owned" not in dom
    assert any("Content Security Policy" in line for line in said)


def test_the_case_table_sorts_and_filters(tmp_path):
    report = "document.getElementById('result').textContent = JSON.stringify(out);"
    dom, said = _opened(_with_script(_page(), USE_IT + report), tmp_path)
    found = _result(dom)
    assert said == []
    assert found["rising"] == sorted(found["rising"], key=float)
    assert found["falling"] == found["rising"][::-1]
    assert found["sorted"] == "descending"
    assert found["left"] == 3
    assert found["said"] == "3 of 9 shown"


def _framed(page):
    """Return a page that holds the page at a phone's width; a window does not get so narrow."""
    frame = f"<iframe title=phone width={PHONE} height=740 style='border:0' srcdoc='{{}}'></iframe>"
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


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        ("<p style='color:#ccc;background:#fff'>pale</p>", "color-contrast"),
        ("<input>", "label"),
    ],
)
def test_axe_sees_a_bad_page(part, complaint, width, tmp_path):
    page = _page().replace("</main>", f"{part}</main>")
    assert complaint in dict(_examined(page, tmp_path, width=width)["complaints"])


def test_a_page_that_fetches_or_is_too_wide_is_seen(tmp_path):
    address = "http://127.0.0.1:9/x.png"
    part = f"<img alt='' src='{address}'><div style='width:2000px'>wide</div>"
    found = _examined(_page().replace("</main>", f"{part}</main>"), tmp_path, width=PHONE)
    assert found["fetched"] == [address]
    assert found["too_wide"] > 0
