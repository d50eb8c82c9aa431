"""The HTML report in a real browser: it opens, asks for nothing, and axe-core has no complaint."""

from __future__ import annotations

import html
import json
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from canonical_results import CANONICAL, baseline
from canonical_rules import view_of
from node.programs import chromium, installed

from fairgate.reports.blocks import CaseList, Chapter, Section
from fairgate.reports.html import render_html
from fairgate.reports.present import SECTIONS
from fairgate.reports.sections.case_browser import CaseBrowser

pytestmark = pytest.mark.browser
DARK, LIGHT = "0", "1"
PHONE, DESK = 360, 1280
"""Width of the page in CSS pixels."""
USE_IT = """
const out = {};
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const said = () => one('.browser [role=status]').textContent;
const rows = () => all('.found > li').map(row => row.textContent);
const field = (label) => all('label').find(l => l.firstChild.textContent === label).lastElementChild;
const set = (label, value, event) => {
  const at = field(label); at.value = value; at.dispatchEvent(new Event(event));
};
out.all = said();
out.chips = all('.chips button').map(chip => chip.textContent);
set('Search', 'GAY', 'input');
out.found = [said(), rows().every(row => row.includes('A gay person'))];
set('Search', 'rev5#age', 'input');
out.key = rows().length;
all('.controls button').at(-1).click();
set('Identity', 'An elderly person', 'change');
all('.chips button')[0].click();
out.both = [said(), location.hash];
one('.found summary').click();
setTimeout(() => {
  out.detail = one('.detail').textContent;
  out.linked = location.hash;
  all('#who tbody th button').find(b => b.textContent === 'A gay person').click();
  out.who = [said(), location.hash];
  document.getElementById('result').textContent = JSON.stringify(out);
}, 200);
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
    assert ('class="controls"' in dom) is ('class="browser"' in _page(name))
    assert "1–9 of 9" in dom or name != "regression"


def test_a_script_of_a_stranger_does_not_run(tmp_path):
    page = _page().replace("</main>", "<script>document.title='owned'</script></main>")
    dom, said = _opened(page, tmp_path)
    assert "<title>owned" not in dom
    assert any("Content Security Policy" in line for line in said)


def test_cases_are_searched_filtered_and_linked(tmp_path):
    dom, said = _opened(_with_script(_page(), USE_IT), tmp_path)
    found = _result(dom)
    assert said == []
    assert found["all"] == "1–9 of 9"
    assert found["chips"] == ["newly changed 7", "changed, not new 2"]
    assert found["found"] == ["1–3 of 3 (of 9)", True]
    assert found["key"] == 1
    assert found["both"] == ["1–3 of 3 (of 9)", "#cases?show=new&identity=An+elderly+person"]
    assert "An elderly person says the following text" in found["detail"]
    assert "fairgate explain runs/1 'rev" in found["detail"]
    assert "case=rev" in found["linked"]
    assert found["who"] == ["1–3 of 3 (of 9)", "#cases?identity=A+gay+person"]


def _many(rows):
    """Return the page's list with so many cases of 50 sources and 20 identities."""
    data = {
        "explain": "fairgate explain runs/1", "several": False, "compared": True,
        "texts": ["", "positive", "negative", *(f"text {n}" for n in range(50)),
                  *(f"identity {n}" for n in range(20)), "group", "same"],
        "sources": [[3 + n, 3 + n, 1, 0, 4, 1, []] for n in range(50)],
        "variants": [[53 + n, 1, 53 + n, 73, 74, 74, 0, 0, 53 + n] for n in range(20)],
        "documents": [], "moves": [[0.0, 0, [], []]],
        "rows": [[n % 4, n % 50, n % 20, 0, 2, 0, 0, None] for n in range(rows)],
    }  # fmt: skip
    return CaseBrowser(id="cases", label="many", rows=rows, data=data, clearest=CaseList(cases=[]))


def _page_of(block):
    def toy(material):
        yield Section(id="toy", title="Toy", blocks=[block], chapter=Chapter.CASES)

    with mock.patch("fairgate.reports.present.SECTIONS", (*SECTIONS, toy)):
        view = view_of(CANONICAL["first-run"]())
    kept = [section for section in view.sections if section.id == "toy"]
    return render_html(replace(view, sections=kept))


def test_a_hundred_thousand_cases_are_listed_25_at_a_time(tmp_path):
    script = """
    const next = [...document.querySelectorAll('.pages button')][1];
    const out = [document.querySelectorAll('.found > li').length];
    next.click();
    out.push(document.querySelector('.browser [role=status]').textContent);
    document.getElementById('result').textContent = JSON.stringify(out);
    """
    dom, said = _opened(_with_script(_page_of(_many(100_000)), script), tmp_path)
    assert said == []
    assert _result(dom) == [25, "26–50 of 100,000"]


SHARED_KEYS = """
const all = (selector) => [...document.querySelectorAll(selector)];
const open = () => all('.found details').map((one) => one.open);
const out = [all('.found > li').length];
all('.found summary')[1].click();
setTimeout(() => {
  out.push(open(), location.hash);
  dispatchEvent(new Event('hashchange'));
  setTimeout(() => {
    out.push(open());
    location.hash = location.hash.replace('second', 'first');
    setTimeout(() => {
      out.push(open());
      document.getElementById('result').textContent = JSON.stringify(out);
    }, 200);
  }, 200);
}, 200);
"""


def _pairs():
    block = _many(2)
    variants = [[53, 1, 53, 73, 74, suite, 0, 0, 53] for suite in (75, 76)]
    rows = [[0, 0, variant, 0, 2, 0, 0, None] for variant in (0, 1)]
    texts = [*block.data["texts"], "first", "second"]
    data = {**block.data, "several": True, "texts": texts, "variants": variants, "rows": rows}
    return replace(block, data=data)


def test_a_key_that_two_suites_have_opens_and_links_one_case(tmp_path):
    dom, said = _opened(_with_script(_page_of(_pairs()), SHARED_KEYS), tmp_path)
    many, clicked, address, restored, other = _result(dom)
    assert said == []
    assert many == 2
    assert clicked == restored == [False, True]
    assert address.endswith("%40second")
    assert other == [True, False]


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
