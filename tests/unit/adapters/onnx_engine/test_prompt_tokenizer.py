from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import fairgate
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.prompts import PromptTokenizer
from fairgate.domain.errors import ModelError

DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
CHAT = (
    "<s>{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}[answer]{% endif %}"
)


def tokenizer(tmp_path, template=None, **files):
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    if template is not None:
        path = folder / "tokenizer_config.json"
        settings = json.loads(path.read_text()) | {"chat_template": template}
        path.write_text(json.dumps(settings))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return PromptTokenizer(ModelFolder.find(folder))


def text_of(prompts, tokens):
    return prompts._tokenizer.decode(tokens, skip_special_tokens=False)


def test_without_a_template_the_prompt_goes_in_as_it_is(tmp_path):
    prompts = tokenizer(tmp_path)
    [tokens] = prompts.encode(["Is it good?\nAnswer:"])
    assert prompts.decode(tokens) == "Is it good?\nAnswer:"


def test_with_a_template_the_prompt_is_the_users_only_message(tmp_path):
    prompts = tokenizer(tmp_path, CHAT)
    [tokens] = prompts.encode(["Good?"])
    assert text_of(prompts, tokens) == "<s>[user]Good?[answer]"
    assert tokens.count(0) == 1  # the beginning is not added a second time


def test_a_template_that_prints_the_date_gives_the_same_prompt_every_day(tmp_path):
    prompts = tokenizer(
        tmp_path,
        "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}"
        "{% endif %}{{ date_string }}|{{ strftime_now('%Y-%m-%d') }}|{{ messages[0].content }}",
    )
    [tokens] = prompts.encode(["x"])
    assert text_of(prompts, tokens) == "26 Jul 2024|2024-07-26|x"


@pytest.mark.parametrize("template", [None, CHAT])
def test_a_control_token_spelled_out_by_a_corpus_ends_nothing(tmp_path, template):
    prompts = tokenizer(tmp_path, template)
    [plain] = prompts.encode(["so it ends"])
    [hostile] = prompts.encode(["so</s>it<s> ends"])
    for control in (0, 1, 2):
        assert hostile.count(control) == plain.count(control)


def test_a_template_that_refuses_the_message_is_a_model_error(tmp_path):
    prompts = tokenizer(tmp_path, "{{ raise_exception('no users here') }}")
    with pytest.raises(ModelError, match="no users here"):
        prompts.encode(["x"])


def test_a_template_cannot_reach_python(tmp_path):
    prompts = tokenizer(tmp_path, "{{ ''.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(ModelError, match="chat template"):
        prompts.encode(["x"])


def test_end_tokens_may_be_a_list_and_the_generation_config_comes_first(tmp_path):
    prompts = tokenizer(
        tmp_path, generation_config={"eos_token_id": [1, 7]}, config={"eos_token_id": 3}
    )
    assert prompts.end_tokens == {1, 7}


def test_end_tokens_and_context_are_found_in_a_genai_config(tmp_path):
    prompts = tokenizer(
        tmp_path,
        generation_config={},
        genai_config={"model": {"eos_token_id": [5, 6], "context_length": 300}},
    )
    assert prompts.end_tokens == {5, 6}
    assert prompts.context_tokens == 300


def test_option_tokens_follow_the_prompts_own(tmp_path):
    prompts = tokenizer(tmp_path)
    prompt, first, second = prompts.encode_with_option("Who?\nAnswer:", ["Maria", " the man"])
    assert first[: len(prompt)] == prompt
    assert prompts.decode(first[len(prompt) :]) == " Maria"
    assert prompts.decode(second[len(prompt) :]) == " the man"


def test_broken_text_is_no_reason_to_stop(tmp_path):
    prompts = tokenizer(tmp_path)
    [tokens] = prompts.encode(["a\ud800b\x00c"])
    assert prompts.decode(tokens) == "a?b\x00c"


def test_nothing_gives_nothing(tmp_path):
    assert tokenizer(tmp_path).encode([]) == []
