from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError, UsageError
from fairgate.features.onnx_export import agreement, command
from fairgate.features.onnx_export.agreement import LIMITS, PromptReading
from fairgate.features.onnx_export.command import ExportChoice, export_model
from fairgate.features.onnx_export.int8_rows import to_int8_rows
from fairgate.onnx.integer_products import rounds_by_stored_scales
from fairgate.onnx.session import open_session

WIDTH, INNER, WORDS = 48, 96, 11
RNG = np.random.default_rng(4)
NORM = RNG.uniform(0.2, 3, WIDTH).astype(np.float32)
MATRICES = {
    "up": RNG.standard_normal((WIDTH, INNER)),
    "gate": RNG.standard_normal((WIDTH, INNER)),
    "down": RNG.standard_normal((INNER, WIDTH)) / 9,
    "words": RNG.standard_normal((WIDTH, WORDS)),
}


def layer(version=18):
    """A gated layer behind a norm's weights, beside a residual, then the vocabulary."""
    nodes = [
        ("Mul", ["x", "norm"], "normed"),
        ("Shape", ["normed"], "shape"),
        ("MatMul", ["normed", "up"], "raised"),
        ("MatMul", ["normed", "gate"], "opened"),
        ("Sigmoid", ["opened"], "open"),
        ("Mul", ["open", "raised"], "inner"),
        ("MatMul", ["inner", "down"], "lowered"),
        ("Add", ["x", "lowered"], "out"),
        ("MatMul", ["out", "words"], "logits"),
    ]
    stored = {"norm": NORM} | {name: one.astype(np.float32) for name, one in MATRICES.items()}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(kind, read, [made]) for kind, read, made in nodes],
        "g",
        [value("x", TensorProto.FLOAT, ["rows", "tokens", WIDTH])],
        [value("logits", TensorProto.FLOAT, ["rows", "tokens", WORDS])],
        [numpy_helper.from_array(one, name) for name, one in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def opened(model):
    # As the engine opens it: without VNNI signed weights would overflow.
    content = model.SerializeToString()
    return open_session(Path("model.onnx"), device="cpu", content=content, multiplies_integers=True)


def run(model, x):
    return opened(model).run(None, {"x": np.asarray(x, dtype=np.float32)})[0]


def operators(model):
    return [node.op_type for node in model.graph.node]


X = RNG.standard_normal((3, 5, WIDTH)).astype(np.float32)
OUTLIER = X * np.where(np.arange(WIDTH) == 7, 60, 1)


@pytest.mark.parametrize("version", [13, 14, 17, 18, 20])
def test_logits_stay_near_whatever_the_version(version):
    model = to_int8_rows(layer(version))
    onnx.checker.check_model(model)
    assert operators(model).count("MatMulIntegerToFloat") == 6
    assert operators(model).count("MatMul") == 1  # onto the vocabulary
    assert rounds_by_stored_scales(model)
    single = to_int8_rows(layer(version), terms=1)
    assert operators(single).count("MatMulIntegerToFloat") == 3
    assert rounds_by_stored_scales(single)
    plain = run(layer(version), X)
    assert np.abs(run(single, X) - plain).max() < 0.05 * np.abs(plain).max()
    assert np.abs(run(model, X) - plain).max() < 0.03 * np.abs(plain).max()
    assert {one.name for one in model.graph.initializer}.isdisjoint({"up", "gate", "down"})


def test_channels_beside_an_outlier_keep_their_precision():
    errors = {}
    for size in (1, 60, 1e3, 1e4):
        x = X * np.where(np.arange(WIDTH) == 7, size, 1).astype(np.float32)
        model, plain = layer(), layer()
        for one in (model, plain):  # weights without rounding, and no other channel's product
            even_weights(one)
        difference = np.abs(run(to_int8_rows(model), x) - run(plain, x)).max()
        errors[size] = difference / np.abs(run(plain, x)).max()
    assert max(errors.values()) < 1e-3, errors


def even_weights(model):
    for tensor in model.graph.initializer:
        if tensor.name in {"up", "gate", "down"}:
            signs = np.sign(numpy_helper.to_array(tensor)) / 16
            tensor.CopyFrom(numpy_helper.from_array(signs.astype(np.float32), tensor.name))


def rounding_errors(channels, rows_of, terms):
    """The mean error of logits without and with calibration, over drawn inputs and matrices."""
    errors = np.zeros(2)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        drawn = rng.standard_normal((4, 16, WIDTH)) * rng.permutation(channels) / NORM
        x = drawn.astype(np.float32)
        plain = run(layer(), x)
        for place, rows in enumerate(({}, {"normed": rows_of(x)})):
            model = to_int8_rows(layer(), rows, terms)
            assert rounds_by_stored_scales(model)
            errors[place] += np.abs(run(model, x) - plain).mean() / np.abs(plain).mean()
    return errors


def test_channels_are_divided_where_that_rounds_less():
    shapes = {
        "one": np.where(np.arange(WIDTH) == 7, 300, 1),
        "few": np.where(np.arange(WIDTH) % 12 == 5, 100, 1),
        "spread": np.geomspace(1e3, 1, WIDTH),
        "none": np.ones(WIDTH),
    }
    errors = {
        (name, terms): rounding_errors(channels, lambda x: (x * NORM).reshape(-1, WIDTH), terms)
        for name, channels in shapes.items()
        for terms in (1, 2)
    }
    worse = {key: pair for key, pair in errors.items() if pair[1] > 1.05 * pair[0]}
    assert not worse
    gains = {key: pair[1] / pair[0] for key, pair in errors.items() if key[0] in {"one", "few"}}
    assert max(gains.values()) < 0.7, gains


def test_what_makes_a_channel_is_divided_where_nothing_else_reads_it():
    rows = {"normed": X.reshape(-1, WIDTH) * 9 ** RNG.uniform(size=WIDTH).astype(np.float32)}
    rows["inner"] = np.geomspace(1, 50, INNER, dtype=np.float32)[None]
    divisions = {"none": 0, "output": 1, "another reader": 1, "a shared norm": 1, "two columns": 1}
    for name, expected in divisions.items():
        model = layer()
        nodes, outputs = model.graph.node, model.graph.output
        if name == "output":
            outputs.append(helper.make_tensor_value_info("normed", TensorProto.FLOAT, None))
        elif name == "another reader":
            nodes.append(helper.make_node("Neg", ["normed"], ["negative"]))
        elif name == "a shared norm":
            nodes.append(helper.make_node("Neg", ["norm"], ["negative"]))
        elif name == "two columns":
            outputs.append(helper.make_tensor_value_info("raised", TensorProto.FLOAT, None))
        read = [output.name for output in outputs]
        plain = opened(model).run(read, {"x": X})
        changed = to_int8_rows(model, rows)
        divided = [node for node in changed.graph.node if node.output[0].endswith("divided")]
        assert len(divided) == expected, name
        for before, after in zip(plain, opened(changed).run(read, {"x": X}), strict=True):
            assert np.abs(after - before).max() < 0.03 * np.abs(before).max(), name


def test_channels_that_are_always_zero_are_no_divisors():
    alone = np.where(np.arange(WIDTH) == 3, 1e4, 0)
    for channels in (np.zeros(WIDTH), alone, np.full(WIDTH, 1e-40)):
        model = to_int8_rows(layer(), {"normed": channels[None].astype(np.float32)})
        plain = run(layer(), X)
        assert np.abs(run(model, X) - plain).max() < 0.1 * np.abs(plain).max()


def test_a_row_has_the_same_bits_whatever_stands_beside_it():
    model = to_int8_rows(layer())
    whole = run(model, OUTLIER)
    differing = []
    for row in range(3):
        for scale in (0, 1e-20, 1, 1e20):
            beside = np.concatenate([OUTLIER * scale, OUTLIER[row : row + 1]])
            if not np.array_equal(run(model, beside)[-1], whole[row]):
                differing.append((row, scale))
        alone = OUTLIER[row : row + 1]
        differing += [
            (row, tokens)
            for tokens in range(1, 6)
            if not np.array_equal(run(model, alone[:, :tokens])[0], whole[row, :tokens])
        ]
    assert not differing


def test_rows_of_zeros_and_of_the_smallest_numbers_are_finite():
    model = to_int8_rows(layer())
    for value in (0.0, 1e-45, 1e-38, 1e-30, 1e15):
        assert np.isfinite(run(model, np.full((1, 2, WIDTH), value))).all(), value
    assert not run(model, np.zeros((1, 2, WIDTH))).any()


def test_what_is_not_finite_does_not_come_out_as_a_number():
    model = to_int8_rows(layer())
    for value in (np.nan, np.inf, -np.inf):
        for place in (0, 7, WIDTH - 1):
            x = X.copy()
            x[1, 2, place] = value
            found = run(model, x)
            assert not np.isfinite(found[1, 2]).all(), (value, place)
            assert np.isfinite(np.delete(found.reshape(15, -1), 7, axis=0)).all()


def test_a_column_of_zeros_stays_one():
    model = layer()
    [down] = [one for one in model.graph.initializer if one.name == "down"]
    zeros = numpy_helper.to_array(down).copy()
    zeros[:, 5] = 0
    down.CopyFrom(numpy_helper.from_array(zeros, "down"))
    model.graph.output.append(helper.make_tensor_value_info("lowered", TensorProto.FLOAT, None))
    changed = to_int8_rows(model)
    assert not opened(changed).run(["lowered"], {"x": X})[0][..., 5].any()


def test_a_graph_without_stored_products_is_refused():
    model = layer()
    del model.graph.initializer[1:]
    with pytest.raises(ModelError, match="would change nothing"):
        to_int8_rows(model)


def test_an_encoder_is_refused_before_anything_is_read(tmp_path):
    choice = ExportChoice(task="feature-extraction", precision="int8-rows")
    with pytest.raises(UsageError, match="is for decoders"):
        export_model("any/model", tmp_path / "out", choice)


def readings(*, shift=0.0, worse=1.0):
    scores = (1.0, 3.0 + shift, -np.inf)
    return [PromptReading(1, -64 * np.log(30 * worse), 64, scores)] * 200


def answers(*, lost=0, unread=0, silent=0):
    return [None] * (unread + silent) + ["B"] * lost + ["A"] * (200 - lost - unread - silent)


def test_each_figure_beyond_its_limit_refuses_and_is_told():
    limits = LIMITS["int8-rows"]
    for change, within in (
        ({}, True),
        ({"lost": 2}, True),
        ({"lost": 3}, False),
        ({"unread": 2}, True),
        ({"unread": 3}, False),
        ({"silent": 100}, True),
        ({"silent": 101}, False),
        ({"silent": 100, "lost": 2}, False),
        ({"silent": 200}, False),
        ({"shift": 0.09}, True),
        ({"shift": 0.11}, False),
        ({"shift": -0.11}, False),
        ({"worse": 1.019}, True),
        ({"worse": 1.03}, False),
        ({"worse": 0.97}, False),
        ({"shift": float("nan")}, False),
        ({"worse": float("nan")}, False),
    ):
        of_answers = {name: change[name] for name in change.keys() & {"lost", "unread", "silent"}}
        others = {name: change[name] for name in change.keys() - of_answers.keys()}
        silent = {"silent": change.get("silent", 0)}
        gate = agreement._compare_gate(readings(), readings(**others))
        gate |= agreement._compare_answers(answers(**silent), answers(**of_answers))
        assert agreement._is_within(gate, limits) is within, change
        figures = dict.fromkeys(
            ("equal_labels", "compared_labels", "perplexity_of_original", "perplexity",
             "equal_greedy_tokens", "compared_tokens", "share_of_largest_logit"), 1.0,
        )  # fmt: skip
        told = agreement.explain("m", "int8-rows", figures | gate)
        equal, compared = gate["gate_equal_labels"], gate["gate_compared_labels"]
        assert f"of a gate's prompts {equal} of {compared} are answered with the same label" in told
    nothing = [PromptReading(None, -1.0, 1, (-np.inf, -np.inf))]
    gate = agreement._compare_gate(nothing, nothing) | agreement._compare_answers(
        answers(), answers()
    )
    assert not agreement._is_within(gate, limits)


def test_two_terms_are_taken_where_one_is_not_within_the_limits(tmp_path, monkeypatch):
    tried = []

    def change(graph, precision, *, terms):
        tried.append((precision, terms))
        graph.write_text(f"in {terms}")

    monkeypatch.setattr(command, "answered_labels", lambda folder: ["A"])
    monkeypatch.setattr(command, "change_precision", change)
    for allowed, expected in (((1, 2), 1), ((2,), 2), ((), 2)):

        def compare(name, revision, folder, precision, answered, allowed=allowed):
            return {"within_limits": int(folder.graph.read_text()[-1]) in allowed}

        monkeypatch.setattr(command, "compare_decoder", compare)
        tried.clear()
        folder = tmp_path / f"{allowed}" / "model"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_text("as it was")
        record = command._in_integers(command.ExportSource(name="m"), folder)
        assert record == {"within_limits": bool(allowed), "activation_terms": expected}
        assert (folder / "model.onnx").read_text() == f"in {expected}"
        assert tried == [("int8-rows", terms) for terms in range(1, expected + 1)]
        assert [path.name for path in folder.parent.iterdir()] == ["model"]
