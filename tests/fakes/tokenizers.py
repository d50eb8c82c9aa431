"""Tokenizers of every family that published models use, trained on a few sentences."""

import json
from functools import cache
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

UNKNOWN, PADDING = "<unk>", "<pad>"
TEXTS = [
    "The service was good, and the staff (all 12 of them) helped us quickly.",
    "A woman wrote: it isn't bad; the café's menu costs 1,234.50 € – naïve?",
    "Answer: positive\nAnswer: negative\n\n  indented\ttext with  spaces ",
    "人工智能 и русский текст, עברית, emoji 🙂🙃 and \uff26\uff35\uff2c\uff2c width",
] * 3
SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "<|user|>", "<|end|>"]
QUIETLY = {"special_tokens": SPECIAL, "show_progress": False}
_SPLIT = Regex(r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+")


def _byte_level(*, split: bool, prefix: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not split)
    parts = [pre_tokenizers.Split(_SPLIT, "isolated"), level] if split else [level]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, **QUIETLY)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def _llama_2() -> Tokenizer:
    """SentencePiece's BPE as it is exported: a dummy prefix, bytes where a character is unknown."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    back = (decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse())
    tokenizer.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)])
    special = [*SPECIAL, *(f"<0x{n:02X}>" for n in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=520, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([text.replace("🙂", "") for text in TEXTS], trainer)
    return tokenizer


def _unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=200, unk_token=UNKNOWN, **QUIETLY)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def _word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=250, **QUIETLY)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def _word_level() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(**QUIETLY)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


MAKERS = {
    "gpt-2": lambda: _byte_level(split=False),
    "gpt-2-prefixed": lambda: _byte_level(split=False, prefix=True),
    "llama-3": lambda: _byte_level(split=True),
    "llama-2": _llama_2,
    "unigram": _unigram,
    "word-piece": _word_piece,
    "word-level": _word_level,
}


@cache
def trained(family: str) -> str:
    """Return a family's tokenizer as the text of a `tokenizer.json`."""
    return MAKERS[family]().to_str()


def write(
    folder: Path,
    family: str,
    *,
    begins: bool = False,
    ends: bool = False,
    added: tuple[AddedToken, ...] = (),
    cut: bool = False,
    normalizer: normalizers.Normalizer | None = None,
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
    config: dict | None = None,
    **settings: object,
) -> Path:
    """Write a folder's tokenizer; `settings` are those of `tokenizer_config.json`."""
    tokenizer = Tokenizer.from_str(trained(family))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.add_tokens(list(added))
    if begins or ends:
        around = {"single": f"{'<s> ' * begins}$A{' </s>' * ends}"}
        around["special_tokens"] = [(each, tokenizer.token_to_id(each)) for each in ("<s>", "</s>")]
        tokenizer.post_processor = processors.TemplateProcessing(**around)
    if cut:
        tokenizer.enable_truncation(3)
        tokenizer.enable_padding(length=8, pad_id=3, pad_token=PADDING)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    plain = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(plain | settings))
    (folder / "config.json").write_text(json.dumps(config or {"model_type": "llama"}))
    (folder / "model.onnx").write_bytes(b"")
    return folder
