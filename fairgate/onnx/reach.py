"""Up to which lengths a graph computes what its model would, and which widths change nothing.

Right padding leaves unused slots between a prompt and its answer. Most graphs do not notice. A
sliding window that counts slots loses as many tokens as there are unused slots, and a graph that
chooses its rotary factors by the mask's width counts them as tokens. Where either could happen a
row is as wide as it is long; whether it could depends on the row's own length alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention_settings import read_attention_settings
from fairgate.onnx.batches import padded_width
from fairgate.onnx.builder_folder import refuse_wrong_builds
from fairgate.onnx.decoder_graph import GraphFacts
from fairgate.onnx.folder import ModelFolder

_SHORTER = (
    "Lower `document_characters` or `top_k` of the retriever, or `max_new_tokens`, or export the "
    "model with `fairgate export MODEL`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How long prompt and answer may be together, and where padding would be seen."""

    slot_window: int | None = None
    """A window that counts slots of the cache; None where there is none."""
    switch: int | None = None
    """Width above which the graph itself uses other rotary factors."""
    limit: int | None = None
    """Tokens of prompt and answer up to which the graph is right."""
    why: str = ""
    """What happens beyond `limit`."""

    def width(self, length: int, new_tokens: int, widest: int | None) -> int:
        """Return how wide a prompt of `length` tokens may be padded before `new_tokens` follow."""
        width = padded_width(length)
        if widest is not None:
            width = max(length, min(width, widest))  # a table of positions may end there
        end = width + new_tokens
        in_window = self.slot_window is None or not new_tokens or end <= self.slot_window
        same_factors = self.switch is None or length > self.switch or end <= self.switch
        return width if in_window and same_factors else length

    def furthest(self, length: int) -> int | None:
        """Return how long prompt and answer may become; None where the graph sets no limit."""
        switch = self.switch if self.switch is not None and length <= self.switch else None
        return min((end for end in (self.limit, switch) if end is not None), default=None)

    def check(self, lengths: Sequence[int], new_tokens: int, name: str) -> None:
        """Raise ModelError, with counts, where a prompt and its answer go beyond the reach."""
        ends = [length + new_tokens for length in lengths]
        if self.limit is not None and (many := sum(end > self.limit for end in ends)):
            raise ModelError(
                f"{many} of {len(ends)} prompts are too long for {name!r}: with {new_tokens} "
                f"tokens kept for the answer the longest needs {max(ends)}, the limit is "
                f"{self.limit}: {self.why}. {_SHORTER}."
            )
        switch = self.switch
        if switch is None:
            return
        crossing = sum(length <= switch < length + new_tokens for length in lengths)
        if crossing:
            raise ModelError(
                f"{crossing} of {len(ends)} prompts end less than {new_tokens} tokens before token "
                f"{switch} of {name!r}, where the model turns to other rotary factors (LongRoPE): "
                "an answer across that place would mix both. Lower `max_new_tokens` or change "
                "`document_characters` or `top_k` of the retriever."
            )


def read_reach(folder: ModelFolder, facts: GraphFacts) -> Reach:
    """Return how far a folder's graph reaches. Raises ModelError for graphs that are not right."""
    refuse_wrong_builds(folder, facts)
    settings = read_attention_settings(folder)
    limits: list[tuple[int, str]] = []
    slot_window = None
    windows = [*facts.windows.values(), *([settings.window] if settings.window else [])]
    window = min(windows, default=None)
    if window is not None:
        if facts.cannot_window or (facts.counts_rows and not facts.windows):
            why = f"the model attends to the last {window} tokens, its graph to all of them"
            limits.append((window, why))
        elif facts.counts_rows and settings.layers not in {None, frozenset(facts.windows)}:
            why = (
                f"the graph keeps to the last {window} tokens in other layers than the model, as "
                "far as its files show (config.json of the original, copied beside it, shows more)"
            )
            limits.append((window, why))
        elif not facts.counts_rows:
            slot_window = window
    if window is None and not facts.counts_rows:
        slot_window = facts.mask_window  # config.json is silent
    if settings.switch is not None and facts.switch is None:
        why = (
            f"after {settings.switch} tokens the model uses other rotary factors (LongRoPE), of "
            "which its graph has the short ones only"
        )
        limits.append((settings.switch, why))
    limit, why = min(limits, default=(None, ""))
    return Reach(slot_window=slot_window, switch=facts.switch, limit=limit, why=why)
