"""Other tokens than those that an export was compared on are refused, whatever file made them so."""

import json

import pytest
from fakes import tokenizers as fakes

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat, Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer

TEXTS = [
    "The service was good,  isn't it?\n\nAnswer: positive",
    " Straße  CAFÉ naïve ﬁne 人工智能 🙂",
    "it says: Word Words [L] word",
    "x",
]
CHAT = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"


OTHERWISE = {
    "another normalizer": ("tokenizer.json", lambda of: of | {"normalizer": {"type": "Lowercase"}}),
    "another pre-tokenizer": ("tokenizer.json", lambda of: of | {"pre_tokenizer": {"type": "Digits", "individual_digits": True}}),
    "nothing is put before": ("tokenizer.json", lambda of: of | {"post_processor": None}),
    "other merges": ("tokenizer.json", lambda of: of | {"model": of["model"] | {"merges": []}}),
    "an added word": ("tokenizer.json", lambda of: of | {"added_tokens": [*of["added_tokens"], {"id": 400, "content": "good", "special": False, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}]}),
    "a listed word": ("tokenizer_config.json", lambda of: of | {"added_tokens_decoder": {"400": {"content": "good"}}}),
    "a further control token": ("tokenizer_config.json", lambda of: of | {"extra_special_tokens": ["good"]}),
    "another control token": ("special_tokens_map.json", lambda of: {"pad_token": "good"}),
    "an added token": ("added_tokens.json", lambda of: {"good": 400}),
    "split control tokens": ("tokenizer_config.json", lambda of: of | {"split_special_tokens": True}),
    "another template": ("tokenizer_config.json", lambda of: of | {"chat_template": CHAT + " "}),
    "a template of its own file": ("chat_template.jinja", lambda of: None),
}  # fmt: skip
"""Every file that decides tokens, changed after an export was compared."""


@pytest.mark.parametrize("name", OTHERWISE)
def test_other_tokens_than_the_compared_ones_are_refused_and_are_another_model(tmp_path, name):
    file, change = OTHERWISE[name]
    template = {} if name == "nothing is put before" else {"chat_template": CHAT}
    folder = fakes.write(tmp_path / "m", "llama-3", begins=True, **template)
    found = ModelFolder.find(folder)
    texts = [*TEXTS, "<s>"]
    tokens = PromptTokenizer(found).encode(texts)
    prompts = {text: " ".join(map(str, ids)) for text, ids in zip(texts, tokens, strict=True)}
    (folder / "provenance.json").write_text(json.dumps({"parity": {"prompts": prompts}}))
    system = Chat(system="Be brief.")
    if template:
        assert PromptTokenizer(found, system).encode(texts) != tokens
    before = found.fingerprint()
    path = folder / file
    old = json.loads(path.read_text()) if path.is_file() else {}
    new = change(old)
    path.write_text("{{ messages[-1].content }}" if new is None else json.dumps(new))
    with pytest.raises(ModelError, match=r"of 5 prompts on which the export .* have other tokens"):
        PromptTokenizer(found)
    decoder = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=1))
    with pytest.raises(ModelError, match="have other tokens"):  # the graph is empty: never opened
        list(decoder.generate([GenerationRequest(prompt="x")]))
    assert found.fingerprint() != before
