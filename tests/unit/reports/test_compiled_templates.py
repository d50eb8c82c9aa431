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


def test_code_holds_nothing_that_a_changed_finalize_would_show_otherwise(place):
    """Constants are folded into code where finalize is a plain function: so it may not be one."""
    text = "{{ 'a\x07' }}{{ a }}{{ 7 }}"

    def finalizes(mark):
        return jinja2.pass_context(lambda _, value: f"{value}{mark}")

    assert rendered(text, finalize=finalizes("?")) == ("a\x07?3?7?", 1)
    assert rendered(text, finalize=finalizes("!")) == ("a\x07!3!7!", 0)
    assert rendered(text) == ("a\x0737", 1)
    assert rendered(text, finalize=finalizes("!")) == ("a\x07!3!7!", 1)
    for early in (str, jinja2.pass_environment(lambda _, value: value)):
        with pytest.raises(ValueError, match=r"expected jinja2\.pass_context"):
            rendered(text, finalize=early)


@pytest.mark.parametrize("table", ["filters", "tests"])
def test_code_holds_no_result_of_filters_and_tests_of_ours(place, table):
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({"t": "{{ 1 }}"}),
        bytecode_cache=CompiledTemplates(),
        autoescape=True,
    )
    getattr(environment, table)["own"] = bool
    with pytest.raises(ValueError, match="expected a global"):
        environment.get_template("t")


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
