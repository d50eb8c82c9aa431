"""The HTML report in a real browser: runs only where Chromium is installed."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from canonical_results import CANONICAL, baseline

from fairgate.reports.html import render_html
from fairgate.reports.present import present
from fairgate.reports.view import ReportOptions

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = os.environ.get("FAIRGATE_AXE", "")
"""Path of axe-core's axe.min.js."""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
USE_IT = """
const cells = (n) => [...document.querySelectorAll('#cases tbody tr')].map(r => r.cells[n].textContent);
const press = (n) => document.querySelectorAll('#cases th button')[n].click();
const out = {};
press(7); out.rising = cells(7);
press(7); out.falling = cells(7);
out.sorted = document.querySelectorAll('#cases th')[7].getAttribute('aria-sort');
const box = document.getElementById('filter');
box.value = 'GAY'; box.dispatchEvent(new Event('input'));
out.left = [...document.querySelectorAll('#cases tbody tr')].filter(r => !r.hidden).length;
out.said = document.getElementById('shown').textContent;
"""


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
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
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
    assert 'id="controls"' in dom
    assert 'id="controls" hidden' not in dom
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


@pytest.mark.skipif(not Path(AXE).is_file(), reason="FAIRGATE_AXE does not name axe.min.js")
@pytest.mark.parametrize("scheme", ["0", "1"], ids=["dark", "light"])
@pytest.mark.parametrize("name", CANONICAL)
def test_axe_finds_nothing(name, scheme, tmp_path):
    axe = Path(AXE).read_text(encoding="utf-8").replace("</script", "<\\/script")
    ask = (
        "axe.run().then(r => { document.getElementById('result').textContent ="
        " JSON.stringify(r.violations.map(v => [v.id, v.nodes[0].html])); })"
    )
    page = _with_script(_page(name), f"{axe}</script><script>{ask}")
    dom, _ = _opened(page, tmp_path, f"--blink-settings=preferredColorScheme={scheme}")
    assert _result(dom) == []
