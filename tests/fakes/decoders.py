"""The decoder engine on prompts that are tokens already, and a real builder folder to run it on."""

import json
import shutil
from pathlib import Path

import onnx

import fairgate
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_graph import drop_softmax_guards
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.trials import open_decoder

MODELS = Path(fairgate.__file__).parent / "data" / "models"
DEMO, MINILM = MODELS / "demo-slm", MODELS / "minilm"
BUILDER = Path(__file__).parent.parent / "data" / "builder_windowed"
BUILDER_WINDOW = 24
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def builder_folder(folder):
    """Copy the builder's folder, with the demonstrator's tokenizer, to `folder`."""
    shutil.copytree(BUILDER, folder, ignore=shutil.ignore_patterns("README.md", "expected.json"))
    add_tokenizer(folder)
    return folder


def demo_folder(folder, **changed):
    """Copy the embedded decoder to `folder`; keys of its JSON files, by file, are other ones."""
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    for name, keys in changed.items():
        content = json.loads((DEMO / f"{name}.json").read_text()) | keys
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def session_of(folder=DEMO):
    return open_decoder(ModelFolder.find(folder), device="cpu", threads=1)


def add_tokenizer(folder):
    for name in TOKENIZER_FILES:
        shutil.copy(DEMO / name, folder / name)


def builder_expected():
    """Return prompts as tokens, and the greedy tokens that transformers gives each by itself."""
    found = json.loads((BUILDER / "expected.json").read_text())
    return found["prompts"], found["answers"]


class TokenDecoder(OnnxDecoder):
    """The engine with prompts given as tokens, no end tokens, and its answers' tokens kept."""

    def __init__(self, folder, steps, **options):
        super().__init__(folder, decoding=Decoding(max_new_tokens=steps), **options)
        self.tokens = {}
        self._prompts.encode = lambda texts: [json.loads(text) for text in texts]
        self._prompts.decode = lambda tokens: " ".join(map(str, tokens))
        self.own_end_tokens = self._prompts.end_tokens
        self._prompts.end_tokens = frozenset()

    def _take(self, row, logits, likeliest):
        super()._take(row, logits, likeliest)
        self.tokens[row.position] = list(row.tokens)

    def answers(self, prompts):
        """Return each prompt's greedy tokens."""
        list(self.generate([GenerationRequest(prompt=json.dumps(prompt)) for prompt in prompts]))
        return [self.tokens[place] for place in range(len(prompts))]


class BitsDecoder(TokenDecoder):
    """Keeps every bit of the logits of every step."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.bits = {}

    def _take(self, row, logits, likeliest):
        self.bits.setdefault(row.position, []).append(logits.tobytes())
        super()._take(row, logits, likeliest)

    def bits_of(self, prompts):
        self.bits.clear()
        self.answers(prompts)
        return [self.bits[place] for place in range(len(prompts))]


def demo_graph():
    """Return the embedded decoder's graph without its checks of rows without a key."""
    model = onnx.load(str(DEMO / "model.onnx"))
    drop_softmax_guards(model)
    return model
