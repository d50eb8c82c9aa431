import shutil
from pathlib import Path

import onnx
import pytest

from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.features.onnx_export.int8_rows import to_int8_rows
from fairgate.features.onnx_export.parity import _gate_texts
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.model_folder import ModelFolder

DEMO = Path(__file__).parents[3] / "fairgate/data/models/demo-slm"
PROMPTS, LABELS = _gate_texts()
ASKED = range(0, 200, 29)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "rows"
    shutil.copytree(DEMO, folder)
    changed = to_int8_rows(onnx.load(str(DEMO / "model.onnx")))
    (folder / "model.onnx").write_bytes(changed.SerializeToString())
    return folder


def answers(folder, places, **options):
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=6), **options)
    requests = [
        GenerationRequest(prompt=PROMPTS[place], labels=LABELS if place % 2 else ())
        for place in places
    ]
    found = dict(engine.generate(requests))
    return {place: found[row] for row, place in enumerate(places)}


def test_rows_share_and_join_as_in_float32(folder):
    session = DecoderSession(ModelFolder.find(folder), device="cpu", threads=1)
    assert (session.pads, session.shares, session.cuts_freely, session.joins) == (True,) * 4


def test_an_answer_is_the_same_bytes_whatever_is_asked_beside_it(folder):
    order = list(ASKED)
    whole = answers(folder, order, threads=1, batch_size=16)
    differing = [
        (options, len(places), place)
        for options, places in (
            ({"threads": 2, "batch_size": 16}, order),
            ({"threads": 1, "batch_size": 1}, order),
            ({"threads": 1, "batch_size": 5}, order[::-1]),
            ({"threads": 2, "batch_size": 3}, order[1::2]),
            ({"threads": 1, "batch_size": 16}, order[7:8]),
        )
        for place, answer in answers(folder, places, **options).items()
        if answer != whole[place]
    ]
    assert not differing


def test_the_embedded_model_keeps_its_labels_and_has_a_fingerprint_of_its_own(folder):
    before, after = (answers(one, list(ASKED), threads=1) for one in (DEMO, folder))
    labelled = [place for place in ASKED if place % 2]
    assert [before[place].text for place in labelled] == [after[place].text for place in labelled]
    plain, rows = (OnnxDecoder(one, decoding=Decoding()).fingerprint for one in (DEMO, folder))
    assert plain != rows
