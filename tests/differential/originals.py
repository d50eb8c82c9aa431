"""Models of random weights in transformers' own format, and what `generate` answers with them."""

import dataclasses
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from fakes.decoders import add_tokenizer
from model_families import VOCABULARY, Family

STEPS = 24
SIZES = (1, 3, 11, 40, 65, 127, 225, 300, 600, 1071)
SEED = 7
_RNG = np.random.default_rng(5)
PROMPTS = [_RNG.integers(3, VOCABULARY, size).tolist() for size in SIZES]
_BESIDE = (2, 5, 9, 37, 70, 121, 230, 290, 590, 1060)
COMPANIONS = [_RNG.integers(3, VOCABULARY, size).tolist() for size in _BESIDE]
"""Prompts of other lengths that are padded to the same widths as `PROMPTS`."""


@dataclasses.dataclass(frozen=True)
class Original:
    """A model in transformers' format with its greedy answers, each prompt by itself."""

    folder: Path
    tokens: list[list[int]]
    logits: np.ndarray
    """`[prompts, steps, vocabulary]`, before each of the tokens."""


def original(family: Family, cache: Path, attention: str | None = None) -> Original:
    """Return the model of a family and its answers, computed once for each version of torch."""
    import torch
    import transformers

    facts = [dataclasses.asdict(family), PROMPTS, STEPS, SEED, attention]
    facts += [torch.__version__, transformers.__version__]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]
    folder = cache / key
    if not folder.is_dir():
        # Test processes share the cache: a folder appears under its name when it is complete.
        part = Path(tempfile.mkdtemp(dir=cache))
        _make(family, part / "model", attention, part / "answers.npz")
        try:
            part.rename(folder)
        except OSError:  # another process was first, with the same model
            shutil.rmtree(part)
    with np.load(folder / "answers.npz") as found:
        return Original(folder / "model", found["tokens"].tolist(), found["logits"])


def _make(family: Family, folder: Path, attention: str | None, answers: Path) -> None:
    import torch
    import transformers

    config = getattr(transformers, f"{family.kind}Config")(**family.settings)
    torch.manual_seed(SEED)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    add_tokenizer(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation=attention
    ).eval()
    # No token ends an answer: all answers have the same length.
    model.generation_config = transformers.GenerationConfig(pad_token_id=2)
    tokens, logits = [], []
    with torch.inference_mode():
        for prompt in PROMPTS:
            row = torch.tensor([prompt])
            out = model.generate(
                row,
                attention_mask=torch.ones_like(row),
                max_new_tokens=STEPS,
                do_sample=False,
                output_logits=True,
                return_dict_in_generate=True,
            )
            tokens.append(out.sequences[0, len(prompt) :].tolist())
            logits.append(torch.stack([one[0] for one in out.logits]).float().numpy())
    np.savez(answers, tokens=np.array(tokens), logits=np.stack(logits))
