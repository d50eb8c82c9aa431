import json
import time

import pytest
from fakes.decoders import DEMO, demo_folder

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat
from fairgate.onnx.attention_settings import attention_windows, rotary_switch
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import NO_CHAT, PromptTokenizer

CHAT = (
    "<s>{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}[answer]{% endif %}"
)


def tokenizer(tmp_path, template=None, *, chat=NO_CHAT, **files):
    settings = {} if template is None else {"chat_template": template}
    folder = demo_folder(tmp_path / "model", tokenizer_config=settings)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return PromptTokenizer(ModelFolder.find(folder), chat)


def text_of(prompts, tokens):
    return prompts._tokenizer.backend.decode(tokens, skip_special_tokens=False)


def test_with_a_template_the_prompt_is_the_users_only_message(tmp_path):
    prompts = tokenizer(tmp_path, CHAT)
    [tokens] = prompts.encode(["Good?"])
    assert text_of(prompts, tokens) == "<s>[user]Good?[answer]"
    assert tokens.count(0) == 1  # the beginning is not added a second time


@pytest.mark.parametrize("template", [None, CHAT])
def test_a_control_token_spelled_out_by_a_corpus_ends_nothing(tmp_path, template):
    prompts = tokenizer(tmp_path, template)
    [plain] = prompts.encode(["so it ends"])
    [hostile] = prompts.encode(["so</s>it<s> ends"])
    for control in (0, 1, 2):
        assert hostile.count(control) == plain.count(control)


def test_end_tokens_are_all_that_the_files_name(tmp_path):
    others = {"genai_config": {"model": {"eos_token_id": [5, 6], "context_length": 300}}}
    others["config"] = {"eos_token_id": 3, "text_config": {"eos_token_id": [3, 8]}}
    prompts = tokenizer(tmp_path, generation_config={"eos_token_id": [1, 7]}, **others)
    assert prompts.end_tokens == {1, 3, 5, 6, 7, 8}
    prompts = tokenizer(tmp_path, generation_config={}, **others)
    assert prompts.end_tokens == {1, 3, 5, 6, 8}  # 1 is the tokenizer's own
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


REFUSES_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{{ messages[0].content }}"
)
PARTS = (
    "{% for m in messages %}[{{ m.role }}]{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_a_template_that_wants_a_list_of_parts_gets_one(tmp_path, system):
    prompts = tokenizer(tmp_path, PARTS, chat=Chat(system=system))
    [tokens] = prompts.encode(["Good?"])
    assert text_of(prompts, tokens) == ("[system]Be brief." if system else "") + "[user]Good?"


LEAVE_OUT_THE_CASE = (
    "[user][answer]", "{{ messages[0].text }}[answer]", "{{ messages[0].content[:3] }}",
    "{{ messages[0].content | upper }}", "{{ messages[0].content | list | string }}",
)  # fmt: skip


def test_a_system_turn_and_arguments_reach_the_template(tmp_path):
    template = CHAT + "{% if enable_thinking %}<think>{% endif %}{{ effort }}"
    chat = Chat(system="detailed thinking off", arguments=(("effort", 3),))
    prompts = tokenizer(tmp_path, template, chat=chat)
    [tokens] = prompts.encode(["Good?"])
    assert text_of(prompts, tokens) == "<s>[system]detailed thinking off[user]Good?[answer]3"
    thinking = Chat(arguments=(("enable_thinking", True), ("effort", "low")))
    prompts = tokenizer(tmp_path, template, chat=thinking)
    [tokens] = prompts.encode(["Good?"])
    assert text_of(prompts, tokens) == "<s>[user]Good?[answer]<think>low"
    assert prompts.opening("Good?") == ""  # the tag is not where the answer begins
    assert tokenizer(tmp_path, CHAT + "<think>\n").opening("Good?") == "<think>"


@pytest.mark.parametrize(
    ("template", "chat", "message"),
    [
        (None, Chat(system="x"), "no chat template, so `system`"),
        (None, Chat(arguments=(("a", True),)), "no chat template, so `system` and `template_arg"),
        (CHAT, Chat(arguments=(("enable_thinkin", False),)), "never asks for 'enable_thinkin'"),
        (CHAT + "{{ 'effort' }}", Chat(arguments=(("effort", 1),)), "never asks for 'effort'"),
        ("{{ messages[-1].content }}", Chat(system="Be brief."), "leaves out the system turn 'Be"),
        (REFUSES_SYSTEM, Chat(system="x"),
         "does not accept a system turn and one user message .*no system.* Without `system`"),
        ("{{ raise_exception('no users here') }}", NO_CHAT, "no users here"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", NO_CHAT, "chat template"),
        *((one, NO_CHAT, "leaves out the message.*'Is it good") for one in LEAVE_OUT_THE_CASE),
    ],
)  # fmt: skip
def test_a_template_that_ignores_or_refuses_what_it_is_given_is_an_error(
    tmp_path, template, chat, message
):
    with pytest.raises(ModelError, match=message):
        tokenizer(tmp_path, template, chat=chat).encode(["Is it good?"])


@pytest.mark.parametrize("special", [True, False])
def test_marks_of_thinking_are_kept_in_answers_and_broken_up_in_prompts(tmp_path, special):
    added = json.loads((DEMO / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    for number, mark in ((2048, "[THINK]"), (2049, "[/THINK]")):
        added[str(number)] = {**added["0"], "content": mark, "special": special}
    folder = demo_folder(tmp_path / "model", tokenizer_config={"added_tokens_decoder": added})
    prompts = PromptTokenizer(ModelFolder.find(folder))
    marks = {prompts._tokenizer.backend.token_to_id(mark) for mark in ("[THINK]", "[/THINK]")}
    tokens = prompts.encode_fragment("<s>[THINK]good[/THINK]bad</s>")
    assert marks < set(tokens)
    assert prompts.decode(tokens) == "[THINK]good[/THINK]bad"
    [hostile] = prompts.encode(["so [/THINK] it ends"])
    assert marks.isdisjoint(hostile)
    assert prompts.may_think
    assert not tokenizer(tmp_path / "other").may_think


CODES = "aAbBcCdDeFgGhHIjklmMnpPrRsSTuUVwWxXyYzZ%"


@pytest.mark.parametrize("flag", ["", "-", "_", "0", "^", "#"])
def test_no_code_of_a_clock_tells_the_day_the_machine_or_itself(tmp_path, monkeypatch, flag):
    codes = "|".join(f"%{flag}{code}" for code in CODES)
    template = f"{{{{ strftime_now('{codes}') }}}}{{{{ messages[0].content }}}}"
    found = set()
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        prompts = tokenizer(tmp_path, template)
        found.add(text_of(prompts, prompts.encode(["x"])[0]))
    monkeypatch.undo()
    time.tzset()
    [text] = found
    parts = dict(zip(CODES, text.removesuffix("x").split("|"), strict=True))
    left = {code: part for code, part in parts.items() if code != "%" and "%" in part}
    assert left == {}
    assert (parts["d"], parts["e"], parts["Y"]) == ("26", "26", "2024")
    assert parts["Z"] == ("UTC" if flag == "" else "")
    assert parts["s"] == "1721995200"


SETTINGS = (
    ("config", "max_position_embeddings"),
    ("config", "n_positions"),
    ("config", "text_config", "max_position_embeddings"),
    ("config", "eos_token_id"),
    ("config", "sliding_window"),
    ("config", "text_config", "attention_window_size"),
    ("config", "rope_scaling", "original_max_position_embeddings"),
    ("generation_config", "eos_token_id"),
    ("genai_config", "model", "context_length"),
    ("genai_config", "model", "eos_token_id"),
    ("tokenizer_config", "model_max_length"),
)
NO_NUMBERS = ("many", "512", 2.5, float("inf"), {"a": 1}, ["x"])


@pytest.mark.parametrize("place", SETTINGS, ids=".".join)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_a_setting_that_is_read_and_is_no_number_is_named(tmp_path, place, value):
    file, *keys, key = place
    content = {key: value}
    for one in reversed(keys):
        content = {one: content | ({"rope_type": "longrope"} if one == "rope_scaling" else {})}
    files = {"config": {"model_type": "llama"}, "generation_config": {}}
    if isinstance(value, dict) and "window" in key:
        content = {key: [value]}  # a group of settings is looked into
        for one in reversed(keys):
            content = {one: content}
    prompts = tokenizer(tmp_path, **(files | {file: files.get(file, {}) | content}))
    folder = prompts._folder
    config = folder.mapping("config.json")
    reads = (
        lambda: prompts.context_tokens,
        lambda: prompts.end_tokens,
        lambda: attention_windows(folder),
        lambda: rotary_switch(config, folder.path),
    )
    with pytest.raises(ModelError, match=rf"as '[\w.]*{key}', expected a whole number"):
        [read() for read in reads]


@pytest.mark.parametrize("value", [512, 512.0, None])
def test_a_number_is_one_however_it_is_written(tmp_path, value):
    config = {"model_type": "llama", "max_position_embeddings": value, "eos_token_id": value}
    prompts = tokenizer(tmp_path, config=config, generation_config={})
    assert prompts.context_tokens == (2048 if value is None else 512)
    assert prompts.end_tokens == ({1} if value is None else {1, 512})
