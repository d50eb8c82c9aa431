"""A new key of a policy changes nothing for policies without it: no fingerprint, no baseline."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from pydantic import Field

from fairgate.domain.executions import Chat, Decoding
from fairgate.domain.schema import Later, facts
from fairgate.io.replies import ReplyPaths
from fairgate.systems.generator import DecodingPolicy

ALWAYS = {
    DecodingPolicy: "temperature top_p top_k max_new_tokens seed",
}
"""Fields that stand in every fingerprint of a model's parts; all others are marked as `Later`."""
WRITTEN = {
    Decoding: "temperature top_p top_k max_new_tokens thinking_tokens seed",
    Chat: "system arguments",
    ReplyPaths: "answer documents may_lack_documents text id label score",
}
"""The same of dataclasses whose text is hashed: another field takes `repr=False`, and is hashed by
itself where it is set."""


class _WithStop(DecodingPolicy):
    stop: Annotated[list[str], Later()] = Field(default_factory=list)


def test_a_later_field_stands_in_a_fingerprint_only_where_it_is_set():
    assert facts(_WithStop(temperature=0.5)) == facts(DecodingPolicy(temperature=0.5))
    assert facts(_WithStop(stop=["END"]))["stop"] == ["END"]
    assert facts(_WithStop(stop=["END"]), exclude=["seed"])["stop"] == ["END"]


def test_fields_that_were_added_to_what_is_hashed_are_marked():
    unmarked = {
        model: {
            name
            for name, field in model.model_fields.items()
            if not any(isinstance(entry, Later) for entry in field.metadata)
        }
        for model in ALWAYS
    }
    assert unmarked == {model: set(names.split()) for model, names in ALWAYS.items()}
    hashed = {shape: {field.name for field in fields(shape) if field.repr} for shape in WRITTEN}
    assert hashed == {shape: set(names.split()) for shape, names in WRITTEN.items()}
