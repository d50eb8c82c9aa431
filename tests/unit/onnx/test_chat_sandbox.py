"""A chat template of a stranger ends soon, stays small and makes the same text each time."""

import resource
import time

import pytest

from fairgate.onnx.prompts import render_chat

MESSAGES = [{"role": "user", "content": "What do you think? " * 50}]

ENDLESS = {
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops over one list": "{% set r = range(9999)|list %}"
    + "{% for a in r %}" * 4 + "{% endfor %}" * 4,
    "a macro that calls itself twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}"
    "{% endif %}{% endmacro %}{{ f(40) }}",
    "filters over filters": "{% for a in range(9999) %}{{ range(9999)|map('abs')|list|length }}{% endfor %}",
    "a recursive loop": "{% for a in [[1]] recursive %}{% for b in range(9999) %}{{ loop(range(9999)) }}"
    "{% endfor %}{% endfor %}",
    "a list of lists of itself": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
    "the same, compared": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x is eq(ns.y) }}",
    **{
        f"the same, {how}": "{% set ns = namespace(x=(1,), y=(1,)) %}{% for i in range(60) %}"
        f"{{% set ns.x = (ns.x, ns.x) %}}{{% set ns.y = (ns.y, ns.y) %}}{{% endfor %}}{{{{ {how} }}}}"
        for how in (
            "ns.x == ns.y", "ns.x != ns.y", "ns.x < ns.y", "1 < 2 == (ns.x >= ns.y)", "ns.x in [ns.y]",
            "[] if ns.x not in (ns.y,)", "{ns.x: 1}", "{}[ns.x]", "{}.get(ns.x)", "ns.x[:] is eq(ns.y)",
        )
    },
    **{
        f"a long text, {how}": f"{{% set s = 'a' * 4000000 %}}{{% set t = s + '' %}}"
        f"{{% for i in range(99999) %}}{{% set x = {how} %}}{{% endfor %}}"
        for how in ("s == t", "s < t", "'aab' in s", "s[1:]", "s|upper", "s.upper()", "s.count('aab')", "s + 'b'")
    },
    **{
        f"the square of a length, {name}": f"{{{{ ({text!r} * 200000)|{name} }}}}"
        for name, text in (("wordwrap(1)", "aaaa"), ("striptags", "<!---->"), ("urlize", "(((("))
    },
    "a search in a list": "{% set r = range(99999)|list %}{% for i in range(99999) %}{{ r|max }}{% endfor %}",
}  # fmt: skip
LARGE = {
    "doubled by +": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}",
    "doubled by ~": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x|length }}",
    "doubled in a block": "{% set x = 'ab' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "doubled by join": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = [ns.x, ns.x]|join %}{% endfor %}",
    "times": "{{ 'a' * 10**10 }}", "times a list": "{{ ([1] * 10**10)|length }}",
    "a number times": "{{ 10**10 * 'a' }}", "a power": "{{ 10**(10**10) }}",
    "powers of powers": "{% set ns = namespace(x=3) %}{% for i in range(60) %}"
    "{% set ns.x = ns.x * ns.x %}{% endfor %}{{ ns.x }}",
    "center": "{{ 'a'|center(10**10) }}", "indent": "{{ 'a\na'|indent(10**10) }}",
    "ljust": "{{ 'a'.ljust(10**10) }}", "zfill": "{{ 'a'.zfill(10**10) }}",
    "expandtabs": "{{ '\t'.expandtabs(10**10) }}", "format": "{{ '{:>9999999999}'.format('a') }}",
    "a width of format": "{{ '{:{w}}'.format('a', w=10**10) }}", "percent": "{{ '%9999999999d' % 1 }}",
    "percent and a star": "{{ '%*d' % (10**10, 1) }}", "the filter format": "{{ '%9999999999d'|format(1) }}",
    "replace": "{{ ('a' * 10**5).replace('a', 'a' * 10**5)|length }}",
    "the filter replace": "{{ ('a' * 10**5)|replace('a', 'a' * 10**5)|length }}",
    "join": "{{ (range(99999)|list)|join('a' * 10**5)|length }}",
    "tojson": "{{ [[1]]|tojson(indent=10**10) }}", "batch": "{{ [1]|batch(10**10, 1)|list|length }}",
    "slice": "{{ [1]|slice(10**9)|list|length }}", "wordwrap": "{{ 'a b'|wordwrap(1, wrapstring='a' * 10**7) }}",
    "many outputs": "{% for a in range(9999) %}{{ messages[0].content }}{{ messages[0].content }}{% endfor %}",
    "a long template": "a" * (2 << 20),
}  # fmt: skip


@pytest.mark.parametrize("name", [*ENDLESS, *LARGE])
def test_no_template_takes_long_or_much(name):
    template = (ENDLESS | LARGE)[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    with pytest.raises(Exception, match=r".") as error:
        render_chat(template, messages=MESSAGES)
    assert not isinstance(error.value, MemoryError)
    assert time.process_time() - begin < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 * 1024, "KiB"


RANDOM = {
    "lipsum": "{{ lipsum(1) }}", "random": "{{ [1, 2, 3]|random }}",
    "a method's address": "{{ messages[0].copy }}", "a function's": "{{ range }}",
    "an iterator's": "{{ messages|map(attribute='role') }}", "as a text": "{{ range|string }}",
    "joined": "{{ [range]|join }}", "in a list": "{{ [joiner(',')] }}", "by ~": "{{ 'a' ~ range }}",
    "formatted": "{{ '%s'|format(range) }}", "in a namespace": "{{ namespace(a=range) }}",
    "of an iterator, as a text": "{{ (messages|map(attribute='role'))|string }}",
    "by a method": "{{ '{}'.format(range) }}", "by percent": "{{ '%s' % range }}",
    "upper": "{{ range|upper }}",
}  # fmt: skip


@pytest.mark.parametrize("name", RANDOM)
def test_nothing_random_can_be_printed(name):
    with pytest.raises(Exception, match=r"."):
        render_chat(RANDOM[name], messages=MESSAGES)


def test_what_templates_do_is_far_below_the_limits():
    """A conversation of 1,000 turns and a long text, through loops, filters and tests."""
    turns = [{"role": "user", "content": "A long answer. " * 100}] * 1000
    template = (
        "{% for m in messages %}{% if m.role is in ['user', 'system'] and loop.first %}<s>{% endif %}"
        "{{ '<' ~ m['role'] ~ '>' + m.content|trim }}{% if m.content is string %}{{ m.content|length }}"
        "{% endif %}{% endfor %}{{ messages|selectattr('role', 'equalto', 'user')|list|length }}"
    )
    assert render_chat(template, messages=turns).endswith("1000")
    text = "word " * 100_000
    assert text.strip() in render_chat("{{ messages[0].content }}", messages=[{"content": text}])
