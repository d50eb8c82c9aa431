"""A model that continues texts instead of answering: its report says that it may be a base model."""

import json
import shutil

import pytest
from contract.conftest import NO_RETRIEVAL

from fairgate.io.named_files import bundled_path

BASE = "may be a base model"


@pytest.fixture
def model(place):
    """A decoder's folder, whose answers can be read or not by the labels of the task."""
    folder = place.root / "models" / "slm"
    shutil.copytree(bundled_path("models", "demo-slm"), folder)
    return folder


def gate(place, system, *, readable):
    labels = "labels: [positive, negative, neutral, mixed]" if readable else "labels: [zyx, xyz]"
    task = f"{{id: t, instruction: 'Say one: positive, negative.', {labels}}}"
    code = place.gate(system, **{"task: sentiment": f"task: {task}", **NO_RETRIEVAL})
    place.out = " ".join(place.out.split())
    report = (place.root / "out" / "report.md").read_text()
    return code, report


def with_template(folder, template):
    for name in ("chat_template.jinja",):
        (folder / name).unlink(missing_ok=True)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    if template == "settings":
        settings["chat_template"] = "{% for m in messages %}{{ m.content }}{% endfor %}"
    if template == "file":
        (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.mark.whole
def test_only_a_model_without_a_template_that_nothing_can_be_read_of_may_be_one(place, model):
    wrong = []
    system = {"generator": {"model": "./models/slm"}}
    for template in ("none", "settings", "file"):
        with_template(model, template)
        for readable in (True, False):
            code, report = gate(place, system, readable=readable)
            owed = template == "none" and not readable
            if (BASE in report) != owed or (code != 5 and not readable):
                wrong.append((template, readable, code, report[:300]))
            if owed:
                assert BASE in place.out
                assert place.call("rescore", "out") == 5
                assert BASE in " ".join(place.out.split())
    assert not wrong


def test_a_model_behind_an_endpoint_may_be_one_too(place, chat):
    system = {"generator": {"endpoint": {"base_url": chat.url, "model": "some-base"}}}
    usual = chat.answer
    chat.answer = lambda prompt: "and then they went home. The end"
    assert gate(place, system, readable=True)[0] == 5
    assert "'some-base' may be a base model" in place.out
    chat.answer = usual
    assert BASE not in gate(place, system, readable=True)[1]
