"""Train the embedded demonstration model `demo-slm` and export it to ONNX.

    .venv-export/bin/python tools/recipes/train_demo_slm.py

A Llama-architecture decoder of under a million parameters, trained from scratch for a few minutes
on two cores, on text that this repository generates. Seeded. Writes fairgate/data/models/demo-slm.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning starves the neighbours

import numpy as np
import torch
from demo_prompts import Example, document_pool, example
from heldout import accuracy_report, label_of, question_items
from model_card import card
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "fairgate/data/models/demo-slm"
VOCABULARY = 2048
BOS, EOS, PAD = 0, 1, 2
BATCH = 40
TOKENS = 4096
POOL = 512
BARE_SHARE = 0.5
"""The first part of the training shows no documents: copying is learnt sooner from short prompts."""
PROMPT_WEIGHT, LABEL_WEIGHT, REASON_WEIGHT = 0.1, 1.0, 0.15
PROMPT_SHARE = 0.2
"""Share of the prompt tokens whose prediction is learnt at all: the vocabulary is the dear part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Token ids of an example with a loss weight for each."""

    ids: list[int]
    weights: list[float]


def train_tokenizer(examples: list[Example]) -> Tokenizer:
    """Train a byte-level BPE tokenizer; every prompt gets the beginning-of-sequence token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [f"{item.prompt} {item.label}{item.rest}" for item in examples]
    texts += [mood.text for mood in document_pool()]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", BOS)]
    )
    return tokenizer


def encoded(tokenizer: Tokenizer, item: Example) -> Encoded:
    """Return the ids of prompt, label, reason and end, and what each contributes to the loss."""
    prompt = tokenizer.encode(item.prompt).ids
    label = tokenizer.encode(f" {item.label}", add_special_tokens=False).ids
    rest = [*tokenizer.encode(item.rest, add_special_tokens=False).ids, EOS]
    rest_weights = [LABEL_WEIGHT, *[REASON_WEIGHT] * (len(rest) - 1)]
    return Encoded(
        ids=prompt + label + rest,
        weights=[PROMPT_WEIGHT] * len(prompt) + [LABEL_WEIGHT] * len(label) + rest_weights,
    )


def batches(tokenizer: Tokenizer, seed: int, steps: int, tokens: int):
    """Yield padded batches of similar length: ids, weights. The same for the same seed."""
    rng = random.Random(seed)
    ready: list[list[Encoded]] = []
    for step in range(steps):
        if not ready:
            bare = step < BARE_SHARE * steps
            pool = [encoded(tokenizer, example(rng, bare=bare)) for _ in range(POOL)]
            pool.sort(key=lambda item: len(item.ids))
            while pool:
                longest = len(pool[-1].ids)
                size = max(4, min(BATCH, tokens // longest))
                ready.append(pool[-size:])
                del pool[-size:]
            rng.shuffle(ready)
        chosen = ready.pop()
        width = max(len(item.ids) for item in chosen)
        ids = np.full((len(chosen), width), PAD, dtype=np.int64)
        weights = np.zeros((len(chosen), width), dtype=np.float32)
        for row, item in enumerate(chosen):
            ids[row, : len(item.ids)] = item.ids
            weights[row, : len(item.ids)] = item.weights
        yield torch.from_numpy(ids), torch.from_numpy(weights)


def new_model() -> LlamaForCausalLM:
    """Return the untrained model."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    return LlamaForCausalLM(config)


@torch.no_grad()
def probe(model: LlamaForCausalLM, tokenizer: Tokenizer) -> float:
    """Return the accuracy on 48 held-out disambiguated questions without documents."""
    model.eval()
    right = []
    for item in question_items(1, bare=True)[1::2]:
        ids = tokenizer.encode(item.prompt).ids
        start = len(ids)
        while len(ids) < start + 6 and ids[-1] != EOS:
            ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
        said = tokenizer.decode(ids[start:])
        right.append(label_of(f"{said} .", item.labels) == item.truth)
    model.train()
    return sum(right) / len(right)


def train(model: LlamaForCausalLM, tokenizer: Tokenizer, *, steps: int, seed: int) -> None:
    """Train with AdamW and a cosine schedule; print the loss now and then."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.05)
    warm = 40

    def rate(step: int) -> float:
        done = max(0.0, (step / steps - 0.6) / 0.4)
        return min((step + 1) / warm, 0.03 + 0.97 * (1 + math.cos(math.pi * done)) / 2)

    coin = torch.Generator().manual_seed(seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    started = time.perf_counter()
    for step, (ids, weights) in enumerate(batches(tokenizer, seed, steps, tokens=TOKENS), start=1):
        shares = weights[:, 1:].reshape(-1)
        kept = (shares > PROMPT_WEIGHT) | (torch.rand(shares.shape, generator=coin) < PROMPT_SHARE)
        kept &= shares > 0
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        logits = model.lm_head(hidden.reshape(-1, hidden.shape[-1])[kept])
        shares = shares[kept]
        losses = torch.nn.functional.cross_entropy(
            logits, ids[:, 1:].reshape(-1)[kept], reduction="none"
        )
        loss = (losses * shares).sum() / shares.sum()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 250 == 0:
            print(f"step {step}: questions right {probe(model, tokenizer):.2f}", flush=True)
        if step % 50 == 0 or step == steps:
            label = shares == LABEL_WEIGHT
            shown = losses.detach()[label].mean().item()
            print(
                f"step {step}: loss {loss.item():.3f} label {shown:.3f} "
                f"{time.perf_counter() - started:.0f} s",
                flush=True,
            )


def export(model: LlamaForCausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Save in the Hugging Face layout, export with optimum, and keep what the gate reads."""
    from optimum.exporters.onnx import main_export

    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        pad_token="<pad>",  # noqa: S106
        model_max_length=2048,
        clean_up_tokenization_spaces=False,
    )
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch) / "hf", Path(scratch) / "onnx"
        model.save_pretrained(source)
        fast.save_pretrained(source)
        main_export(str(source), output=made, task="text-generation-with-past", do_validation=False)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (
            "model.onnx",
            "tokenizer.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
            "config.json",
            "generation_config.json",
        ):
            shutil.copyfile(made / name, folder / name)


def parity(model: LlamaForCausalLM, tokenizer: Tokenizer, folder: Path) -> float:
    """Return the largest difference between the logits of torch and ONNX Runtime on a prompt."""
    import onnxruntime

    prompt = example(random.Random(99)).prompt
    ids = np.array([tokenizer.encode(prompt).ids], dtype=np.int64)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    feeds = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None],
    }
    for item in session.get_inputs():
        if item.name.startswith("past_key_values"):
            feeds[item.name] = np.zeros((1, 4, 0, 32), dtype=np.float32)
    names = {item.name for item in session.get_inputs()}
    got = session.run(["logits"], {k: v for k, v in feeds.items() if k in names})[0]
    with torch.no_grad():
        want = model(input_ids=torch.from_numpy(ids)).logits.numpy()
    return float(np.abs(got - want).max())


def main() -> None:
    """Train, export, measure, write the card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--output", type=Path, default=TARGET)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(arguments.seed)
    rng = random.Random(arguments.seed)
    tokenizer = train_tokenizer([example(rng) for _ in range(6000)])
    model = new_model()
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters:,} parameters", flush=True)
    started = time.perf_counter()
    train(model, tokenizer, steps=arguments.steps, seed=arguments.seed)
    seconds = time.perf_counter() - started
    model.eval()
    export(model, tokenizer, arguments.output)
    figures = {
        "parameters": parameters,
        "steps": arguments.steps,
        "training seconds": round(seconds),
        "largest logit difference torch / ONNX Runtime": f"{parity(model, tokenizer, arguments.output):.1e}",
        **accuracy_report(arguments.output),
    }
    (arguments.output / "MODEL_CARD.md").write_text(card(figures), encoding="utf-8")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
