"""What is read with `tokenizers` alone is what `transformers`' plain class makes of the same folder."""

import json
import logging
import sys

import pytest
from fakes import tokenizers as fakes
from fakes.decoders import MODELS
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat
from fairgate.onnx.attention_settings import attention_windows
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import (
    ChatTemplate,
    FileTokenizer,
    PromptTokenizer,
    file_tokenizer,
    render_chat,
)

DECODERS = [path.parent for path in MODELS.glob("*/generation_config.json")]
TRICKY = [
    "",
    " ",
    "a",
    "Hello world, it isn't 1234567 bad\n\nAnswer: positive",
    "  two  spaces\tand\r\nlines  ",
    "<s>[INST] x </s> <|user|><|end|><unk><pad>",
    "< s > <|us er|>",
    "人工智能 и 🙂🙃🏳️‍🌈 e\u0301 é \u200b\u00a0",
    "\x00\x01 \ufffd \U000e0001",
    "x" * 500,
]
ADDED = (
    AddedToken("[L]", lstrip=True, special=False, normalized=False),
    AddedToken("[R]", rstrip=True, special=True),
    AddedToken("Word", single_word=True, normalized=True, special=False),
    AddedToken("<think>", special=False, normalized=False),
)
CONTROL = {"additional_special_tokens": ["<|user|>", "<|end|>"], "pad_token": "<pad>"}
WAYS = {
    "plain": {},
    "begins": {"begins": True},
    "ends": {"ends": True, "begins": True},
    "asked to begin, and does not": {"add_bos_token": True, "add_eos_token": True},
    "begins, and is asked not to": {"begins": True, "add_bos_token": False},
    "tokens of its own": {"added": ADDED},
    "control tokens": CONTROL,
    "cut and padded": {"model_max_length": 4, "padding_side": "left", "truncation_side": "left"},
    "cut and padded in its file": {"cut": True},
    "a class of its own name": {"tokenizer_class": "TokenizersBackend"},
    "an unknown model": {"config": {"model_type": "brand_new"}},
    "cleaned up": {"clean_up_tokenization_spaces": True, "unk_token": "<unk>"},
    "a prefix that is asked for": {"add_prefix_space": True},
}


def both(folder):
    """The folder's tokenizer as it is read here, and as `transformers` reads it."""
    found = ModelFolder.find(folder)
    logging.disable(logging.WARNING)
    try:
        from transformers import PreTrainedTokenizerFast

        return file_tokenizer(found), PreTrainedTokenizerFast.from_pretrained(folder)
    finally:
        logging.disable(logging.NOTSET)


def assert_same(ours, theirs, texts):
    for special in (True, False):
        found = ours.encode(texts, add_special_tokens=special)
        expected = theirs(texts, add_special_tokens=special, padding=False)["input_ids"]
        assert found == expected
        assert [ours.encode([one], add_special_tokens=special)[0] for one in texts] == expected
        for ids in expected:
            for skip in (True, False):
                assert ours.backend.decode(ids, skip_special_tokens=skip) == theirs.decode(
                    ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False
                )


@pytest.mark.walk(31)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", fakes.MAKERS)
def test_every_family_in_every_way(tmp_path, family, way):
    ours, theirs = both(fakes.write(tmp_path / "m", family, **WAYS[way]))
    assert_same(ours, theirs, [*TRICKY, "a [L] b [R]  c Word Words <think>x</think>"])
    assert ours.named == theirs.special_tokens_map
    assert ours.eos_token_id == theirs.eos_token_id
    assert dict(ours.added_tokens_decoder) == theirs.added_tokens_decoder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    place = tmp_path_factory.mktemp("families")
    return [
        both(fakes.write(place / family, family, begins=True, added=ADDED))
        for family in fakes.MAKERS
    ]


@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(["<s>", " ", "[L]", "[R]", "Word", "<|end|>", "é", "🙂", "</s", "\n"]),
        max_size=12,
    ).map("".join)
)
def test_any_text(pairs, text):
    clean = text.encode("utf-8", "replace").decode("utf-8")
    for ours, theirs in pairs:
        assert_same(ours, theirs, [clean])


LISTED = {
    "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True,
}  # fmt: skip
DECLARED = {
    "a token that is not there": ({"eos_token": "<|gone|>"}, {}),
    "further tokens that are not there": ({"additional_special_tokens": ["<x>", "<y>"], "pad_token": "<z>"}, {}),
    "a token of its own name": ({"image_token": "<image>"}, {}),
    "tokens with names": ({"extra_special_tokens": {"a": "<s>", "b_token": "<b>"}}, {}),
    "a token with other flags": ({"bos_token": {**LISTED, "content": "<s>", "__type": "AddedToken"}, "added_tokens_decoder": {}}, {}),
    "a list with other flags": ({"added_tokens_decoder": {"0": {**LISTED, "content": "<s>"}}}, {}),
    "a list of more": ({"added_tokens_decoder": {str(400 + n): {**LISTED, "content": f"<{n}>"} for n in range(12)}}, {}),
    "a listed word that is a control token": (
        {"added_tokens_decoder": {"400": {**LISTED, "content": "<u>", "special": False}}, "unk_token": "<u>"}, {}),
    "a map that says more": ({}, {"special_tokens_map.json": {"eos_token": "<x>"}}),
    "added tokens": ({}, {"added_tokens.json": {"<new>": 400}}),
    "split": ({"split_special_tokens": True}, {}),
    "Mistral": ({"config": {"model_type": "mistral"}}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", DECLARED)
def test_tokens_that_other_files_declare_are_added(tmp_path, case):
    declared, files = DECLARED[case]
    folder = fakes.write(tmp_path / "m", "llama-3", **declared)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    ours, theirs = both(folder)
    assert_same(ours, theirs, [*TRICKY, "a <x><y> <z> <image> <b> <|gone|> <s>  <3><11> <u> <new>"])
    assert dict(ours.added_tokens_decoder) == theirs.added_tokens_decoder
    found = {name: token for name, token in ours.named.items() if name in theirs.special_tokens_map}
    assert found == theirs.special_tokens_map


REFUSED = {
    "a number that is another's": ({"added_tokens_decoder": {"7": {**LISTED, "content": "<s>"}}}, "has the number 0"),
    "no number": ({"added_tokens_decoder": {"x": {**LISTED, "content": "<s>"}}}, "and 'x' in a file"),
    "no text": ({"eos_token": 3}, "name '3' as token 'eos_token'"),
    "a row without its text": ({"added_tokens_decoder": {"7": {}}}, "name '{}' as token '7'"),
    "code": ({"auto_map": {"AutoTokenizer": ["a.B", None]}}, "is code of its own"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_contradicts_the_file_is_refused(tmp_path, case):
    declared, said = REFUSED[case]
    folder = fakes.write(tmp_path / "m", "llama-3", **declared)
    with pytest.raises(ModelError) as found:
        PromptTokenizer(ModelFolder.find(folder))
    assert said in str(found.value)


def test_no_tokenizer_needs_transformers(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    folder = fakes.write(tmp_path / "m", "llama-3", tokenizer_class="Qwen2Tokenizer")
    assert PromptTokenizer(ModelFolder.find(folder)).encode(["a"])
    (folder / "tokenizer.json").rename(folder / "vocab.json")
    with pytest.raises(ModelError, match=r"has no tokenizer\.json \(splits prompts"):
        PromptTokenizer(ModelFolder.find(folder))
    for demo in sorted(DECODERS):
        assert PromptTokenizer(ModelFolder.find(demo)).encode(["a"])
        assert not attention_windows(ModelFolder.find(demo))


TEMPLATES = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "tokens": "{{ bos_token }}{{ messages[-1]['content'] }}{{ eos_token }}{{ pad_token }}",
    "blocks": "  {% if true %}\n  a\n  {% endif %}\n b{# c #}\n{{ messages[0].content }}\n",
    "loops": "{% for m in messages %}{% if loop.first and messages|length > 1 %}{% continue %}"
    "{% endif %}{{ m.content }}{% break %}{% endfor %}",
    "marks": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "json": "{{ messages | tojson }}{{ {'b': 1, 'a': 'é<&>'} | tojson(indent=2, sort_keys=true) }}",
    "namespace": "{% set ns = namespace(n=0, last='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% set ns.last = m.content %}{% endfor %}{{ ns.n }}{{ ns.last }}",
    "tools": "{% if tools is none %}-{% endif %}{% if not documents %}={% endif %}{{ messages[0].content }}",
    "undefined": "{{ nothing }}{% if absent is defined %}x{% endif %}{{ messages[0].content }}",
    "arguments": "{{ enable_thinking }}{{ level | default('none') }}{{ messages[0].content }}",
    "dict": "{{ dict(a=1) }}{{ dict.fromkeys(['x']) }}{{ messages[0].content }}",
    "raises": "{{ raise_exception('roles must alternate: ' ~ messages|length) }}",
    "syntax": "{% for %}",
    "missing filter": "{{ messages | nofilter }}",
    "a long range": "{{ range(10**9) | list | length }}",
}


def rendered(tokenizer, template, **arguments):
    """What a template gives, or the class of what it raises."""
    messages = [{"role": "system", "content": " Be brief "}, {"role": "user", "content": "Hé <s>?"}]
    given = {"add_generation_prompt": True, "enable_thinking": False, **arguments}
    try:
        if isinstance(tokenizer, FileTokenizer):
            return render_chat(template, messages=messages, **{**tokenizer.named, **given})
        return tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, **given
        )
    except Exception as error:  # noqa: BLE001 what is compared
        return type(error), str(error)


@pytest.fixture(scope="module")
def templated(tmp_path_factory):
    return both(fakes.write(tmp_path_factory.mktemp("t") / "m", "llama-3", pad_token=fakes.PADDING))


@pytest.mark.walk(16)
@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("arguments", [{}, {"level": "high", "bos_token": "own"}], ids=["", "more"])
def test_every_template_gives_the_same(templated, name, arguments):
    ours, theirs = templated
    found, expected = (rendered(one, TEMPLATES[name], **arguments) for one in (ours, theirs))
    assert found == expected


PLACES = {
    "in the configuration": ({"chat_template": "C{{ messages[0].content }}"}, {}),
    "a list": (
        {"chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "D{{ messages[0].content }}"}]},
        {},
    ),
    "a file": ({"chat_template": "C"}, {"chat_template.jinja": "F{{ messages[0].content }}\n"}),
    "files": (
        {},
        {
            "chat_template.jinja": "F{{ messages[0].content }}",
            "additional_chat_templates/rag.jinja": "R",
        },
    ),
    "none": ({}, {}),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_the_template_is_found_where_transformers_finds_it(tmp_path, place):
    declared, files = PLACES[place]
    folder = fakes.write(tmp_path / "m", "llama-3", **declared)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    ours, theirs = both(folder)
    assert ours.chat_template == theirs.chat_template
    if theirs.chat_template:
        assert ChatTemplate.of(ours, Chat(), "m").source == theirs.get_chat_template()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"name": "default"}, "`chat_template[1].template` is 'None'"),
        ({"name": "default", "template": None}, "`chat_template[1].template` is 'None'"),
        ({"template": "D"}, "`chat_template[1].name` is 'None'"),
        ({"name": 3, "template": "D"}, "`chat_template[1].name` is '3'"),
        ("D", "`chat_template[1].name` is 'None'"),
    ],
)
def test_a_template_without_its_name_or_text_is_named_with_file_and_key(tmp_path, row, said):
    rows = [{"name": "rag", "template": "R"}, row]
    folder = fakes.write(tmp_path / "m", "llama-3", chat_template=rows)
    with pytest.raises(ModelError) as found:
        PromptTokenizer(ModelFolder(path=folder, graph=folder / "model.onnx"))
    assert f"{str(folder / 'tokenizer_config.json')!r}: {said}, expected a text" in str(found.value)
