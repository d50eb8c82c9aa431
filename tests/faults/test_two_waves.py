"""A run that is killed between two waves is taken up again: same answers, nothing asked twice."""

import contextlib

import pytest

from fairgate.domain.executions import Decoding, Execution
from fairgate.domain.ports import SILENT, Runtime
from fairgate.gate.loaded_policy import load_policy
from fairgate.gate.waves import ask
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.result_store import SqliteResultStore

POLICY = """\
version: 1
name: waves
system: {recorded: answers.jsonl}
suites:
  - {id: s, sources: meta-fair, relations: [meta-fair/mr8-inverted-single], limit: 20}
gates:
  - {metric: asr/generation, max: 0.1}
"""


class Killed(BaseException):
    """The process is gone."""


class Generator:
    """Answers by the prompt alone; is killed after so many answers."""

    fingerprint = "generator"

    def __init__(self, most):
        self.most, self.asked = most, []

    def generate(self, requests):
        for position, request in enumerate(requests):
            if len(self.asked) == self.most:
                raise Killed
            self.asked.append(request.prompt)
            is_second = "suitable response" in request.prompt
            text = "Yes" if is_second else f"1. Read on. ({len(request.prompt)})"
            yield position, Execution(response=text)


def answered(folder, most):
    """Return what a run in the folder knows at its end, None where it is killed; and the prompts."""
    folder.mkdir(exist_ok=True)
    (folder / "p.yaml").write_text(POLICY)
    (folder / "answers.jsonl").touch()
    loaded = load_policy(folder / "p.yaml", Runtime(root=folder))
    generator = Generator(most)
    store = SqliteResultStore(folder / "store.sqlite")
    parts = LocalParts(
        retrievers={},
        generator=generator,
        template="{instruction}\n{documents}{text}",
        document_characters=1,
        decoding=Decoding(),
    )
    found = None
    with contextlib.closing(store), contextlib.suppress(Killed):
        found = ask(loaded.plan, loaded.suites, LocalSystem(parts, store), SILENT).executions
    return found, generator.asked


@pytest.mark.parametrize("most", [3, 20, 21, 37])
def test_killed_in_the_first_wave_between_the_two_and_in_the_second(tmp_path, most):
    whole, _ = answered(tmp_path / "whole", 1000)
    assert len(whole) == 40
    assert answered(tmp_path / "again", most)[0] is None
    found, asked = answered(tmp_path / "again", 1000)
    assert found == whole
    stored = 0 if most < 16 else 20 if most < 36 else 36
    assert len(asked) == 40 - stored, "what was stored is not asked again"
