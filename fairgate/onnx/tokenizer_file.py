"""A model's tokenizer is its `tokenizer.json`, read with `tokenizers` alone.

Versions of `transformers` make different tokenizers of one folder: by its `tokenizer_class`, by
flags such as `add_bos_token` and `add_prefix_space`. Here the other files name control tokens, add
tokens and hold the chat template; how a text is split, and what is put around it, is in
`tokenizer.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless, quoted
from fairgate.onnx.model_folder import ModelFolder

_NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True)
class FileTokenizer:
    """The tokenizer of a folder."""

    backend: Any
    """A `tokenizers.Tokenizer`, without truncation and padding."""
    chat_template: str | Mapping[str, str] | None
    named: Mapping[str, str] = field(default_factory=dict)
    """The folder's control tokens by name (`bos_token`), as chat templates know them."""

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int]]:
        """Return the ids of each text."""
        found = self.backend.encode_batch_fast(list(texts), add_special_tokens=add_special_tokens)
        return [one.ids for one in found]

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


def file_tokenizer(folder: ModelFolder) -> FileTokenizer:
    """Return the tokenizer of a folder.

    Raises ModelError for missing files and damaged settings, and for a damaged `tokenizer.json`
    whatever `tokenizers` raises.
    """
    settings = folder.mapping("tokenizer_config.json")
    file = folder.file("tokenizer.json", "splits prompts into tokens")
    if settings.get("auto_map"):
        raise ModelError(
            f"the tokenizer of {str(folder.path)!r} is code of its own (`auto_map` in its "
            "tokenizer_config.json), which is never run. Remove `auto_map` where the folder's "
            "tokenizer.json says the same, or choose another model."
        )
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(file))
    if backend.padding is not None:
        settings = {"pad_token": backend.padding["pad_token"], **settings}
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = settings.get("split_special_tokens") is True
    named = _add_tokens(folder, settings, backend)
    return FileTokenizer(
        backend=backend,
        chat_template=_chat_template(folder, settings),
        named={name: token for name, token in named.items() if "[" not in name},
    )


def _add_tokens(folder: ModelFolder, settings: Mapping[str, Any], backend: Any) -> dict[str, str]:
    """Add the tokens that other files declare, as they declare them; return control tokens by name.

    Raises ModelError where one has another number in `tokenizer.json`.
    """
    from tokenizers import AddedToken

    listed, others = settings.get("added_tokens_decoder"), dict[str, Any]()
    if not isinstance(listed, dict):
        others = folder.mapping("special_tokens_map.json")
        listed = {str(number): text for text, number in folder.mapping("added_tokens.json").items()}
    named = {
        name: _declared(folder, name, value)
        for name, value in _control_tokens({**settings, **others})
    }
    inside = {
        token.content: {name: getattr(token, name) for name in ("content", *_FLAGS)}
        for token in backend.get_added_tokens_decoder().values()
    }
    wanted = [(number, _declared(folder, str(number), row)) for number, row in listed.items()]
    wanted.sort(key=lambda pair: (len(pair[0]), pair[0]))
    rows = {row["content"]: row for _, row in wanted}
    for token, row in ((row["content"], row) for row in named.values()):
        rows[token] = {**(rows.get(token) or inside.get(token) or row), "special": True}
    new = [AddedToken(**row) for token, row in rows.items() if row != inside.get(token)]
    backend.add_tokens(new)
    for number, row in wanted:
        found = backend.token_to_id(row["content"])
        if str(found) != number:
            raise ModelError(
                f"token {quoted(row['content'])} has the number {found} in the tokenizer.json of "
                f"{str(folder.path)!r}, and {quoted(number)} in a file beside it. Copy all of "
                "them from the original model, or export again with `fairgate export MODEL`."
            )
    return {name: row["content"] for name, row in named.items()}


def _declared(folder: ModelFolder, name: str, value: object) -> dict[str, Any]:
    """Return a token's text and flags as settings declare them. Raises ModelError."""
    row = value if isinstance(value, dict) else {"content": value}
    if not isinstance(row.get("content"), str) or not row["content"]:
        raise ModelError(
            f"the settings of the tokenizer in {str(folder.path)!r} name "
            f"{quoted(repr(value)[:80])} as token {quoted(name)}, expected a text. Copy "
            "tokenizer_config.json from the original model, or export again with `fairgate export "
            "MODEL`."
        )
    flags = {flag: row[flag] for flag in _FLAGS if isinstance(row.get(flag), bool)}
    return {"content": row["content"], **flags}


def _control_tokens(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and tokens that settings declare, in the order in which they are added."""
    known = [f"{name}_token" for name in _NAMED]
    own = [name for name in settings if name.endswith("_token")]
    for name in dict.fromkeys([*known, *own]):
        value = settings.get(name)
        if value is not None and (name in known or isinstance(value, str)):
            yield name, value
    for name in ("additional_special_tokens", "extra_special_tokens"):
        value = settings.get(name) or []
        if isinstance(value, dict):
            yield from value.items()
        else:
            for position, one in enumerate(value if isinstance(value, list) else [value]):
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


def is_tokenizer_error(error: BaseException) -> bool:
    """Return whether the file is to blame.

    A panic of Rust code arrives as a BaseException whose class no module exports, so that it is
    recognised by its name; an interrupt or an exit is none of ours.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def named_tokenizer(folder: ModelFolder) -> Iterator[None]:
    """Turn what is raised for a damaged file in the block into a ModelError that names the folder.

    ModelError stays what it is.
    """
    try:
        yield
    except BaseException as error:  # neither library documents a narrower class
        if isinstance(error, ModelError) or not is_tokenizer_error(error):
            raise
        raise ModelError(
            f"the tokenizer in {str(folder.path)!r} cannot be loaded ({type(error).__name__}: "
            f"{harmless(' '.join(str(error).split())[:300])}). Copy tokenizer.json, "
            "tokenizer_config.json and config.json from the original model, or export again with "
            "`fairgate export MODEL`."
        ) from error
