"""Splits texts into the tokens that an encoder was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless, quoted
from fairgate.onnx.encoder_session import Row
from fairgate.onnx.encoder_settings import EncoderSettings
from fairgate.onnx.folder import ModelFolder
from fairgate.onnx.tokenizer_errors import is_tokenizer_error

_BERT_SWITCHES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Keys of `tokenizer_config.json` and the same switches in the normalizer of `tokenizer.json`."""


class EncoderTokens:
    """The `tokenizer.json` of a folder, cut to the model's length. Read at the first text."""

    def __init__(self, folder: ModelFolder, settings: EncoderSettings) -> None:
        """Name the folder and how texts are cut."""
        self._folder = folder
        self._settings = settings

    def rows(self, texts: Sequence[str]) -> list[Row]:
        """Return the tokens of each text; at least one. Raises ModelError."""
        return [
            Row(ids=list(found.ids) or [0], types=list(found.type_ids) or [0])
            for found in self._tokenizer.encode_batch_fast([_clean(text) for text in texts])
        ]

    def prompt_length(self, prompt: str) -> int:
        """Return how many tokens a prompt takes, without a control token that ends every text."""
        [row] = self.rows([prompt])
        special = self._tokenizer.get_added_tokens_decoder().get(row.ids[-1])
        return len(row.ids) - (special is not None and special.special)

    def fitting(self, width: int) -> int:
        """Return a width that does not go beyond the model's length."""
        return min(width, self._settings.max_tokens or width)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        file = self._folder.path / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except BaseException as error:  # tokenizers raises nothing narrower
            if not is_tokenizer_error(error):
                raise
            raise ModelError(
                f"{str(file)!r} is no readable tokenizer ({harmless(str(error)[:200])}). Copy it "
                "from the original model, or export again with `fairgate export MODEL`."
            ) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._check_agreement(tokenizer)
        if self._settings.lower:
            tokenizer.normalizer = _lowered(tokenizer.normalizer)
        if self._settings.max_tokens is not None:
            self._check_room(tokenizer, self._settings.max_tokens)
            side = "left" if self._settings.cut_on_the_left else "right"
            tokenizer.enable_truncation(self._settings.max_tokens, direction=side)
        return tokenizer

    def _check_room(self, tokenizer: Any, limit: int) -> None:
        """Refuse what leaves no token to the text: all texts would be the same."""
        for prompt in (self._settings.query_prompt, self._settings.document_prompt):
            taken = len(tokenizer.encode(_clean(prompt)).ids)
            if taken >= limit:
                what = f"the prompt {quoted(prompt)} takes" if prompt else "special tokens take"
                raise ModelError(
                    f"{what} {taken} tokens, but {str(self._folder.path)!r} reads only {limit}, so "
                    "nothing of a text is left. Choose a shorter prompt in the policy, or another "
                    "model."
                )

    def _check_agreement(self, tokenizer: Any) -> None:
        """Refuse settings that transformers would follow and `tokenizer.json` does not."""
        declared = self._folder.mapping("tokenizer_config.json")
        ids = tokenizer.encode("a").ids
        for key, name, end in (
            ("add_bos_token", "bos_token", 0),
            ("add_eos_token", "eos_token", -1),
        ):
            token = declared.get(name)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(declared.get(key), bool) and isinstance(token, str):
                has = bool(ids) and ids[end] == tokenizer.token_to_id(token)
                self._compare(key, wanted=declared[key], found=has)
        prefixed = declared.get("add_prefix_space")
        for one in _byte_levels(self._folder.mapping("tokenizer.json").get("pre_tokenizer")):
            found = one.get("add_prefix_space")
            if isinstance(prefixed, bool) and isinstance(found, bool):
                self._compare("add_prefix_space", wanted=prefixed, found=found)
        normalizer = self._folder.mapping("tokenizer.json").get("normalizer")
        if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
            for key, name in _BERT_SWITCHES.items():
                if isinstance(declared.get(key), bool) and isinstance(normalizer.get(name), bool):
                    self._compare(key, wanted=declared[key], found=normalizer[name])

    def _compare(self, key: str, *, wanted: bool, found: bool) -> None:
        if wanted != found:
            raise ModelError(
                f"the tokenizer in {str(self._folder.path)!r} is not certain: "
                f"tokenizer_config.json sets {quoted(key)} to {str(wanted).lower()}, but "
                f"tokenizer.json behaves as for {str(found).lower()}. Export the model again with "
                "`fairgate export MODEL --task feature-extraction`, which makes them agree."
            )


def _byte_levels(pre_tokenizer: object) -> list[dict[str, Any]]:
    """Return the byte-level parts of a pre-tokenizer: they may put a space before a text."""
    if not isinstance(pre_tokenizer, dict):
        return []
    inner = pre_tokenizer.get("pretokenizers")
    parts = inner if isinstance(inner, list) else [pre_tokenizer]
    return [one for one in parts if isinstance(one, dict) and one.get("type") == "ByteLevel"]


def _clean(text: str) -> str:
    # A lone surrogate (from broken input) is no text; the tokenizer would refuse it.
    return text.encode("utf-8", "replace").decode("utf-8")


def _lowered(normalizer: Any) -> Any:
    """Return the normalizer with lower-casing before it, as `do_lower_case` means."""
    from tokenizers.normalizers import Lowercase, Sequence

    return Lowercase() if normalizer is None else Sequence([Lowercase(), normalizer])
