"""How wide rows may be, and which lengths are refused, from lengths and settings alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import CONFIG_MAPPING

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention_settings import _DEFAULT_WINDOWS, Reach, attention_windows, read_reach
from fairgate.onnx.batches import padded_width
from fairgate.onnx.decoder_graph import GraphFacts
from fairgate.onnx.model_folder import ModelFolder

PLAIN = GraphFacts(operators=frozenset({"MatMul", "Softmax"}))
COUNTS_ROWS = GraphFacts(operators=frozenset({"GroupQueryAttention"}))
LENGTHS = st.integers(min_value=1, max_value=3000)
STEPS = st.integers(min_value=1, max_value=200)
PLACES = st.integers(min_value=1, max_value=3000)


@given(length=LENGTHS, steps=STEPS, window=PLACES)
def test_a_window_that_counts_slots_sees_what_the_model_sees(length, steps, window):
    width = Reach(slot_window=window).width(length, steps, None)
    assert width in {length, padded_width(length)}
    # Slot `width + step - 1` sees the slots after `width + step - 1 - window`: of the prompt's
    # tokens just those that the model itself would see from position `length + step - 1`.
    for step in {1, steps}:
        first_slot = max(0, width + step - window)
        first_token = max(0, length + step - window)
        assert min(first_slot, length) == min(first_token, length)


@given(length=LENGTHS, steps=STEPS, switch=PLACES)
def test_padding_never_moves_a_row_across_a_switch_of_factors(length, steps, switch):
    width = Reach(switch=switch).width(length, steps, None)
    for step in range(steps + 1):
        if length + steps <= switch or length > switch:  # others are refused
            assert (width + step > switch) == (length + step > switch)


def test_prompts_that_go_too_far_are_refused_with_counts():
    limited, switching = Reach(limit=100, why="the graph ends there"), Reach(switch=100)
    limited.check([20, 90], 10, "m")
    with pytest.raises(ModelError, match=r"2 of 3 .* 300, the limit is 100: the graph ends"):
        limited.check([90, 91, 290], 10, "m")
    switching.check([90, 101, 500], 10, "m")
    switching.check([100], 0, "m")
    with pytest.raises(ModelError, match=r"2 of 4 prompts .* token 100 .*LongRoPE"):
        switching.check([90, 91, 100, 101], 10, "m")


def folder_with(tmp_path, config):
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps(config))
    return ModelFolder.find(tmp_path)


# As the models' own repositories write them, shortened to what matters.
MISTRAL = {"model_type": "mistral", "sliding_window": 4096}
LOCAL = {"attention_types": [[["global", "local"], 12]], "window_size": 256}
GPT_NEO = {"model_type": "gpt_neo", **LOCAL}
GEMMA_3 = {"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 6}
QWEN_2 = {"model_type": "qwen2", "sliding_window": 32768, "max_window_layers": 28}
LONGROPE = {
    "model_type": "phi3",
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "sliding_window": 262144,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48},
}


@pytest.mark.parametrize(
    ("config", "window"),
    [
        (MISTRAL, 4096),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "mistral"}, 4096),  # the architecture's own default
        (GPT_NEO, 256),
        (GEMMA_3, 512),
        ({"text_config": GEMMA_3, "vision_config": {"window_size": 7}}, 512),
        ({"model_type": "gemma2", "sliding_window": 4096, "num_hidden_layers": 4}, 4096),
        ({**QWEN_2, "use_sliding_window": False}, None),
        ({**QWEN_2, "use_sliding_window": True, "max_window_layers": 2}, 32768),
        ({"model_type": "phi3", "sliding_window": 2047}, 2047),
        (LONGROPE, 262144),
        ({"model_type": "llama"}, None),
        ({"model_type": "gpt2", "chunk_size_feed_forward": 3}, None),
        ({"model_type": "brand_new", "attention_chunk_size": 8192}, 8192),
        ({"model_type": "brand_new", "local_window": [128, 64]}, 64),
        ({"model_type": "brand_new", "sliding_window": True}, None),
        ({"sliding_window": 64, "layer_types": ["full_attention"]}, None),
        ({"sliding_window": 64, "layer_types": ["full_attention", "sliding_attention"]}, 64),
    ],
)
def test_windows_are_read_from_every_kind_of_configuration(tmp_path, config, window):
    folder = folder_with(tmp_path, config)
    windows = attention_windows(folder)
    assert min(windows, default=None) == window
    switch = 4096 if config is LONGROPE else None  # its graph has the short factors alone
    without = read_reach(folder, PLAIN)
    assert without.slot_window == window
    assert without.limit == (switch or window)
    for distance in (window - 1, window, window + 1) if window else ():
        shown = frozenset({distance, *(windows - {window})})
        reach = read_reach(folder, GraphFacts(operators=PLAIN.operators, mask_windows=shown))
        assert reach.limit == switch
        assert reach.slot_window == min(window, distance)


def test_every_window_must_be_in_the_graph(tmp_path):
    folder = folder_with(tmp_path, {"model_type": "brand_new", "local_window": [128, 64]})
    limits = {
        distances: read_reach(
            folder, GraphFacts(operators=PLAIN.operators, mask_windows=frozenset(distances))
        ).limit
        for distances in [(), (64,), (128,), (64, 128), (300,)]
    }
    assert limits == {(): 64, (64,): 128, (128,): 64, (64, 128): None, (300,): 64}
    with pytest.raises(
        ModelError, match=r"2 of 3 .* the limit is 64: the model attends .* its graph to more"
    ):
        read_reach(folder, PLAIN).check([20, 90, 300], 10, "m")
    counting = GraphFacts(operators=COUNTS_ROWS.operators, windows=frozenset({32}))
    folder = folder_with(tmp_path, {"model_type": "llama", "window_size": 64})
    assert read_reach(folder, counting).limit == 64


@pytest.mark.parametrize(
    "config",
    [
        LONGROPE,
        {**LONGROPE, "rope_scaling": {**LONGROPE["rope_scaling"], "type": "su"}},
        {**LONGROPE, "rope_scaling": {"rope_type": "longrope"}},
        {"text_config": LONGROPE},
        {"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 4096}},
    ],
)
def test_longrope_graphs_with_short_factors_end_where_the_long_ones_begin(tmp_path, config):
    folder = folder_with(tmp_path, config)
    reach = read_reach(folder, PLAIN)
    reach.check([4000], 96, "m")
    with pytest.raises(ModelError, match=r"1 of 2 .* the limit is 4096: .*LongRoPE.*short"):
        reach.check([4000, 4001], 96, "m")
    # A graph that has both sets of factors chooses by itself.
    both = read_reach(folder, GraphFacts(operators=COUNTS_ROWS.operators, switch=4096))
    assert both.limit is None or both.limit == 262144
    assert both.switch == 4096


@pytest.mark.parametrize(
    ("config", "windows", "limit"),
    [
        (MISTRAL, (), 4096),
        (MISTRAL, (4096,), None),
        ({"model_type": "gemma2", "sliding_window": 64}, (64,), None),
        ({"model_type": "gemma2"}, (64,), 4096),
        ({"model_type": "llama"}, (), None),
        ({"model_type": "of nobody"}, (64,), None),
    ],
)
def test_a_window_is_in_the_graphs_operators_or_the_graph_ends_with_it(
    tmp_path, config, windows, limit
):
    facts = GraphFacts(operators=COUNTS_ROWS.operators, windows=frozenset(windows))
    reach = read_reach(folder_with(tmp_path, config), facts)
    assert (reach.limit, reach.slot_window, reach.switch) == (limit, None, None)


@pytest.mark.parametrize(
    ("kind", "window"), [*_DEFAULT_WINDOWS.items(), ("llama", None), ("qwen2", None)]
)
def test_a_window_that_settings_leave_out_is_the_one_that_transformers_assumes(
    tmp_path, kind, window
):
    config = CONFIG_MAPPING[kind]()
    own = getattr(config, "sliding_window", None) or getattr(config, "window_size", None)
    assert own == window
    assert attention_windows(folder_with(tmp_path, {"model_type": kind})) == {window} - {None}
    switched_off = {"model_type": kind, "sliding_window": None}
    assert not attention_windows(folder_with(tmp_path, switched_off))
