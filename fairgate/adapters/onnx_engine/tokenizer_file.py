"""A tokenizer that is its `tokenizer.json` and nothing else: read with `tokenizers` alone.

`transformers` reads such a folder in the same way (its class `TokenizersBackend`), but takes 130 MB
of disk and more than a second. Where it would do anything beside (classes that build another
tokenizer of the file's words, tokens that other files add or change), `file_tokenizer` says so, and
the folder is left to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted

_PLAIN_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
_NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
_OTHERS_FILES = ("tekken.json", "added_tokens.json")
"""Files of tokens that `transformers` reads besides."""
_REPAIRED = ("mistral", "ministral", "voxtral", "pixtral")
"""Model types whose files `transformers` may repair as it reads them."""


class NeedsTransformersError(Exception):
    """A folder's tokenizer is more than its `tokenizer.json`; says what."""


@dataclass(frozen=True)
class FileTokenizer:
    """The tokenizer of a folder, with the methods of `transformers`' own that are used here."""

    backend: Any
    """A `tokenizers.Tokenizer`, without truncation and padding."""
    chat_template: str | Mapping[str, str] | None
    named: Mapping[str, str] = field(default_factory=dict)
    """The folder's control tokens by name (`bos_token`), as chat templates know them."""
    model_max_length: int | None = None

    def __call__(
        self, text: str | Sequence[str], *, add_special_tokens: bool = True, **_: object
    ) -> dict[str, Any]:
        """Return the ids of one text, or of each."""
        if isinstance(text, str):
            return {
                "input_ids": self.backend.encode(text, add_special_tokens=add_special_tokens).ids
            }
        found = self.backend.encode_batch_fast(list(text), add_special_tokens=add_special_tokens)
        return {"input_ids": [one.ids for one in found]}

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool, **_: object) -> str:
        """Return the text of tokens."""
        text: str = self.backend.decode(list(tokens), skip_special_tokens=skip_special_tokens)
        return text

    @cached_property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Return the tokens beside the vocabulary by id."""
        found: Mapping[int, Any] = self.backend.get_added_tokens_decoder()
        return found

    @property
    def eos_token_id(self) -> int | None:
        """Return the id of the token that ends a text."""
        token = self.named.get("eos_token")
        found: int | None = None if token is None else self.backend.token_to_id(token)
        return found

    def get_chat_template(self) -> str:
        """Return the template; of several the one called `default`. Raises ValueError."""
        if isinstance(self.chat_template, str):
            return self.chat_template
        several = self.chat_template or {}
        if "default" not in several:
            raise ValueError(f"there are {sorted(several)[:8]}, none of them called `default`")
        return several["default"]

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, object]],
        *,
        chat_template: str,
        add_generation_prompt: bool,
        tokenize: bool = False,
        **arguments: object,
    ) -> str:
        """Return the text that a template makes of messages. Raises whatever it raises."""
        from fairgate.adapters.onnx_engine.chat_environment import render_chat

        del tokenize
        return render_chat(
            chat_template,
            messages=conversation,
            add_generation_prompt=add_generation_prompt,
            **{**self.named, **arguments},
        )


def file_tokenizer(folder: ModelFolder) -> FileTokenizer:
    """Return the tokenizer of a folder.

    Raises NeedsTransformersError, ModelError for damaged settings, and for a damaged file whatever
    `tokenizers` raises.
    """
    settings = folder.mapping("tokenizer_config.json")
    _require_plain(folder)
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(folder.path / "tokenizer.json"))
    if backend.padding is not None:
        settings = {"pad_token": backend.padding["pad_token"], **settings}
    backend.no_truncation()
    backend.no_padding()
    named = _agreed_tokens(folder, settings, backend)
    longest = settings.get("model_max_length")
    return FileTokenizer(
        backend=backend,
        chat_template=_chat_template(folder, settings),
        named={name: token for name, token in named.items() if name.endswith("_token")},
        model_max_length=longest if isinstance(longest, int) else None,
    )


def _require_plain(folder: ModelFolder) -> None:
    """Raise NeedsTransformersError where the folder's settings ask for more than the file."""
    settings = folder.mapping("tokenizer_config.json")
    if not (folder.path / "tokenizer.json").is_file():
        raise NeedsTransformersError("it has no tokenizer.json")
    named = settings.get("tokenizer_class")
    if named not in _PLAIN_CLASSES:
        raise NeedsTransformersError(f"its tokenizer_class is {quoted(str(named))}")
    if settings.get("auto_map"):
        raise NeedsTransformersError("its tokenizer_config.json has an `auto_map`")
    if settings.get("split_special_tokens"):
        raise NeedsTransformersError("its tokenizer_config.json sets `split_special_tokens`")
    for name in _OTHERS_FILES:
        if (folder.path / name).is_file():
            raise NeedsTransformersError(f"it has a {name}")
    kind = str(folder.mapping("config.json").get("model_type"))
    if kind.startswith(_REPAIRED):
        raise NeedsTransformersError(f"its model_type is {quoted(kind)}")


def _agreed_tokens(
    folder: ModelFolder, settings: Mapping[str, Any], backend: Any
) -> dict[str, str]:
    """Return the control tokens by name.

    Raises NeedsTransformersError where a file beside `tokenizer.json` names one that is not there,
    or another: it would be added or changed.
    """
    inside = {
        token.content: {name: getattr(token, name) for name in _FLAGS}
        for token in backend.get_added_tokens_decoder().values()
    }
    listed = settings.get("added_tokens_decoder")
    others: Mapping[str, Any] = {}
    if isinstance(listed, dict):
        _require_same_numbers(listed, inside, backend)
        known = {str(row["content"]): inside[row["content"]] for row in listed.values()}
    else:
        others, known = folder.mapping("special_tokens_map.json"), inside
    found: dict[str, str] = {}
    for name, value in _control_tokens({**settings, **others}):
        token = value.get("content") if isinstance(value, dict) else value
        # What is in no list of added tokens would be added with these flags.
        flags = known.get(str(token), {name: name == "special" for name in _FLAGS})
        if isinstance(value, dict) and str(token) not in known:
            flags |= {key: value[key] for key in _FLAGS if key in value and key != "special"}
        if not isinstance(token, str) or inside.get(token) != flags or not flags["special"]:
            raise NeedsTransformersError(
                f"{quoted(name)}, {quoted(str(token))}, is no control token of its tokenizer.json"
            )
        found[name] = token
    return found


def _require_same_numbers(
    listed: Mapping[str, Any], inside: Mapping[str, Mapping[str, bool]], backend: Any
) -> None:
    for number, row in listed.items():
        token = row.get("content") if isinstance(row, dict) else None
        same = (
            isinstance(token, str)
            and str(backend.token_to_id(token)) == number
            and inside.get(token) == {name: row.get(name) for name in _FLAGS}
        )
        if not same:
            raise NeedsTransformersError(
                f"token {quoted(str(number))} of tokenizer_config.json is not the one of its "
                "tokenizer.json"
            )


def _control_tokens(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and tokens that settings declare, lists of further ones included."""
    named = [f"{name}_token" for name in _NAMED]
    for name, value in settings.items():
        if name in named or (name.endswith("_token") and isinstance(value, str)):
            if value is not None:
                yield name, value
        elif name in {"additional_special_tokens", "extra_special_tokens"} and value:
            if not isinstance(value, list):
                raise NeedsTransformersError(f"its {name} have names of their own")
            for position, one in enumerate(value):
                yield f"{name}[{position}]", one


def _chat_template(
    folder: ModelFolder, settings: Mapping[str, Any]
) -> str | Mapping[str, str] | None:
    """Return the folder's chat template or templates: files of their own come first."""
    file = folder.path / "chat_template.jinja"
    found = {"default": file.read_text(encoding="utf-8")} if file.is_file() else {}
    for one in sorted((folder.path / "additional_chat_templates").glob("*.jinja")):
        found[one.stem] = one.read_text(encoding="utf-8")
    if found:
        return found["default"] if list(found) == ["default"] else found
    declared = settings.get("chat_template")
    if isinstance(declared, list):
        return dict(_named_template(folder, place, row) for place, row in enumerate(declared))
    return declared if declared is None or isinstance(declared, str | dict) else str(declared)


def _named_template(folder: ModelFolder, place: int, row: object) -> tuple[str, str]:
    found = row if isinstance(row, dict) else {}
    name, template = found.get("name"), found.get("template")
    if isinstance(name, str) and isinstance(template, str):
        return name, template
    wrong = "template" if isinstance(name, str) else "name"
    raise ModelError(
        f"{str(folder.path / 'tokenizer_config.json')!r}: `chat_template[{place}].{wrong}` is "
        f"{quoted(repr(found.get(wrong))[:80])}, expected a text; each entry has a `name` and a "
        "`template`. Copy the file from the original model, or export again with `fairgate export "
        "MODEL`."
    )
