import numpy as np
import pytest

from fairgate.domain.errors import ModelError
from fairgate.onnx.trials import pads

LARGEST = 40.0


class Session:
    """A decoder whose logits move with the width of a row and with its companions."""

    def __init__(self, *, by_width=0.0, by_batch=0.0, is_fine=False, multiplies_integers=False):
        self._by_width, self._by_batch = by_width, by_batch
        self.is_fine, self.multiplies_integers = is_fine, multiplies_integers

    def prefill(self, rows, width, read=None, before=None):
        moved = self._by_width * (width > 3) + self._by_batch * (rows[0] != rows[-1])
        return np.full((len(rows), 1, 5), LARGEST * (1 + moved)), None

    def step(self, cache, tokens):
        return np.full((len(tokens), 5), LARGEST)


def test_steps_of_rounding_are_no_seen_padding_and_seen_padding_is_no_rounding():
    kinds = {
        "float32": {"is_fine": True},
        "fp16": {},
        "int8-rows": {"multiplies_integers": True},
    }
    padded = {
        (name, moved): pads(Session(by_width=moved, **kind), "m.onnx")
        for name, kind in kinds.items()
        for moved in (0, 5e-4, 5e-3, 0.018, 0.36)
    }
    allowed = {"float32": 5e-4, "fp16": 5e-3, "int8-rows": 0.018}
    assert padded == {(name, moved): moved <= allowed[name] for name, moved in padded}


def test_companions_of_the_same_width_move_nothing_whatever_is_multiplied():
    for is_integer in (True, False):
        with pytest.raises(ModelError, match="depend on what else is in the batch"):
            pads(Session(by_batch=0.006, multiplies_integers=is_integer), "m.onnx")
