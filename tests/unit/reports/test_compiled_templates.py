"""The page's templates are compiled once, and again for whatever could have changed them."""

import sys

import jinja2
import pytest

from fairgate.reports import compiled_templates, html
from fairgate.reports.compiled_templates import CompiledTemplates


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of byte code, which only this test writes."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(
        compiled_templates,
        "cache_from_source",
        lambda _: str(tmp_path / "compiled_templates.x.pyc"),
    )
    return tmp_path


def rendered(text, **options):
    """What a template gives in a new environment, and how often it was compiled there."""
    made = []

    class Counting(jinja2.Environment):
        def _generate(self, *arguments, **named):
            made.append(1)
            return super()._generate(*arguments, **named)

    options = {"autoescape": True} | options
    environment = Counting(
        loader=jinja2.DictLoader({"t": text}), bytecode_cache=CompiledTemplates(), **options
    )
    return environment.get_template("t").render(a=3), len(made)


def test_a_template_is_compiled_once_and_gives_the_same(place):
    assert rendered("{{ a }}!") == ("3!", 1)
    assert rendered("{{ a }}!") == ("3!", 0)


def test_another_text_another_jinja_and_other_options_are_compiled_anew(place, monkeypatch):
    rendered("{{ a }}!")
    assert rendered("{{ a }}?") == ("3?", 1)
    assert rendered("{{ a }}?", trim_blocks=True) == ("3?", 1)
    monkeypatch.setattr(jinja2, "__version__", "99")
    assert rendered("{{ a }}?", trim_blocks=True) == ("3?", 1)


def test_functions_of_the_page_are_not_applied_when_its_code_is_made():
    """Else code that is kept would hold what they once returned for a constant."""
    environment = html._environment()
    assert environment.finalize.jinja_pass_arg.name == "context"
    assert environment.filters == jinja2.defaults.DEFAULT_FILTERS
    assert environment.tests == jinja2.defaults.DEFAULT_TESTS


@pytest.mark.parametrize("table", ["DEFAULT_FILTERS", "DEFAULT_TESTS"])
def test_what_others_register_with_jinja_stops_no_page(place, monkeypatch, table):
    environment = html._environment.__wrapped__()
    monkeypatch.setitem(getattr(jinja2.defaults, table), "foreign", bool)
    assert environment.get_template("report.html.j2")


def test_constants_of_the_page_are_made_harmless_when_it_is_made(monkeypatch):
    monkeypatch.setattr(html, "harmless", lambda value: f"<{value}>")
    template = html._environment().from_string("{{ 'x' }}")
    assert template.render() == "&lt;x&gt;"


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[:40], lambda b: b[:-1], lambda b: b"x" * 99]
)
def test_damaged_code_is_compiled_anew(place, damage):
    rendered("{{ a }}!")
    [file] = place.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert rendered("{{ a }}!") == ("3!", 1)
    assert file.read_bytes() == whole


def test_nothing_is_written_where_python_writes_nothing(place, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered("{{ a }}!") == ("3!", 1)
    assert list(place.iterdir()) == []


def test_a_folder_that_cannot_be_written_changes_nothing(place, monkeypatch):
    monkeypatch.setattr(
        compiled_templates, "cache_from_source", lambda _: "/proc/nowhere/compiled_templates.x.pyc"
    )
    assert rendered("{{ a }}!") == ("3!", 1)


def test_the_place_is_that_of_the_package_s_own_code():
    """Not a cache folder or a run's: code from there would be run."""
    bucket = jinja2.bccache.Bucket(jinja2.Environment(autoescape=True), "k", "c")
    found = compiled_templates._place(bucket)
    assert str(found.parent) == compiled_templates.__cached__.rpartition("/")[0]
