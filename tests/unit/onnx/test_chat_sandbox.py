"""A chat template of a stranger reaches nothing, and makes the same text each time."""

import contextlib

import pytest
from jinja2.exceptions import SecurityError, UndefinedError

from fairgate.onnx.prompts import render_chat

MESSAGES = [{"role": "user", "content": "What do you think?"}]
REACHING_OUT = {
    "a class of an object": "{{ messages.__class__ }}",
    "all classes": "{{ ().__class__.__base__.__subclasses__() }}",
    "a function's globals": "{{ raise_exception.__globals__ }}",
    "by a filter": "{{ (messages|attr('__class__')).mro() }}",
    "by a format": "{{ '{0.__class__.__mro__[1].__subclasses__}'.format(messages)() }}",
    "a changed message": "{{ messages.append(1) }}",
    "a cycler's globals": "{{ cycler.__init__.__globals__.os.popen('id') }}",
    "a macro's globals": "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
    "by a map": "{{ (messages | map(attribute='__class__') | first).mro() }}",
    "an attribute that is set": "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
    "a changed message's role": "{{ messages[0].update({'role': 'x'}) }}",
    "a changed namespace": "{% set x = namespace() %}{{ x.__init__.__globals__ }}",
}
RANDOM = {
    "lipsum": "{{ lipsum(1) }}",
    "random": "{{ [1, 2, 3]|random }}",
    "a method's address": "{{ messages[0].copy }}",
    "a function's": "{{ range }}",
    "an iterator's": "{{ messages|map(attribute='role') }}",
}


@pytest.mark.parametrize("name", REACHING_OUT)
def test_no_template_reaches_beyond_its_messages(name):
    printed = ""
    with contextlib.suppress(SecurityError, UndefinedError):
        printed = render_chat(REACHING_OUT[name], messages=MESSAGES)
    assert printed == ""


@pytest.mark.parametrize("name", RANDOM)
def test_nothing_random_is_printed(name):
    with pytest.raises(Exception, match=r"."):
        render_chat(RANDOM[name], messages=MESSAGES)
