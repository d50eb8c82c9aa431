"""A user's message to the tokens a model expects, by its chat template, and tokens to text.

A model's tokenizer is its `tokenizer.json`, read with `tokenizers` alone. Versions of
`transformers` make different tokenizers of one folder: by its `tokenizer_class`, by flags such as
`add_bos_token` and `add_prefix_space`. Here the other files name control tokens, add tokens and
hold the chat template; how a text is split, and what is put around it, is in `tokenizer.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Node
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat
from fairgate.domain.wording import harmless, quoted
from fairgate.io.regular import text_of
from fairgate.onnx.model_folder import (
    ModelFolder,
    is_tokenizer_error,
    neutralised,
    whole_number,
    within,
)
from fairgate.relations.oracles.text import (
    THINKING_TAGS,
    Pairs,
    has_tag,
    open_tag,
    unknown_control,
    with_known_tags,
)

NO_CHAT = Chat()
_PLACES = (("genai_config.json", "model"), ("config.json",), ("config.json", "text_config"))
_BEFORE_A_LABEL = ("\n", ":", "(", '"', "*")
_DEFAULTS = {"enable_thinking": False}
"""The answer is asked for at once; thinking is switched on in the policy."""
_LEAST_TAG = 3
_PROBE = "FairGate asks"
_LITERAL = r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\""""
_THOUGHT = (
    r"[\w.\[\]'\"]*(?:reason|think|thought)[\w.\[\]'\"]*(?:\|\w+|\.\w+\([^()]*\)|\([^()]*\))*"
)
_THINKING_IN_TEMPLATE = re.compile(rf"(?:{_LITERAL})\s*[+~]\s*{_THOUGHT}\s*[+~]\s*(?:{_LITERAL})")
"""How a template writes what was thought: `'<think>' + message.reasoning + '</think>'`."""
_OPENING = re.compile(r"[<\[][^<>\[\]\s]{1,40}[>\]]\w*$")
_CLOSING = re.compile(r"^[<\[][^<>\[\]\s]{1,40}[>\]]")


def thinking_in(template: str) -> Pairs:
    """Return the tags between which a chat template puts what a model has thought."""
    pairs = []
    for match in _THINKING_IN_TEMPLATE.finditer(template):
        before, after = (
            (match[n] or match[n + 1] or "").replace("\\n", "\n").strip() for n in (1, 3)
        )
        opening, closing = _OPENING.search(before), _CLOSING.search(after)
        if opening is not None and closing is not None:
            pairs.append((opening[0], closing[0]))
    return tuple(dict.fromkeys(pairs))


_NOW = datetime(2024, 7, 26, 12, tzinfo=UTC)


def render_chat(template: str, **variables: object) -> str:
    """Render a template with messages and arguments. Raises whatever it raises.

    A template comes with a model: it runs in jinja2's sandbox, with the names and options of
    `transformers`' own, but those that are random (a differential test compares what they give).
    """
    return _compiled(template).render({"tools": None, "documents": None, **variables})


@lru_cache(maxsize=8)
def _compiled(template: str) -> jinja2.Template:
    # A prompt is text, not HTML: nothing is escaped.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, loopcontrols],
        finalize=_require_data,
    )
    del environment.filters["random"], environment.globals["lipsum"]
    environment.filters["tojson"] = _to_json
    environment.globals.update(
        raise_exception=_raise_exception, strftime_now=_strftime_now, namespace=_Namespace
    )
    return environment.from_string(template)


def _require_data(value: object) -> object:
    """Refuse to print a function or an iterator: its text is an address, new in each run."""
    is_data = isinstance(value, str | int | float | list | tuple | Mapping | jinja2.Undefined)
    if value is not None and not is_data:
        raise jinja2.exceptions.SecurityError(f"the template prints a {type(value).__name__}")
    return value


class _Generation(Extension):
    """`{% generation %}`, which marks what a model has said: its content, as it is."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own declaration)

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_content"), [], [], body).set_lineno(line)

    def _content(self, caller: Macro) -> str:
        return str(caller())


class _Namespace(jinja2.utils.Namespace):
    """`namespace` without names that begin with an underscore."""

    def __init__(*values: Any, **keywords: Any) -> None:
        self, *mappings = values
        attributes = dict(*mappings, **keywords)
        for name in attributes:
            _require_public(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _require_public(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def _require_public(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(
            f"chat templates cannot store {name!r}, a name with an underscore before it"
        )


def _raise_exception(message: object) -> NoReturn:
    raise jinja2.exceptions.TemplateError(str(message))


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 (as templates call it)
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _strftime_now(form: str) -> str:
    # Some templates (Llama 3.2) print today's date into the system turn; answers must not change
    # overnight, so all see the date that those templates use as their own fallback. Seconds since
    # 1970 are the only ones that `strftime` takes from the machine's time zone.
    fixed = re.sub(
        r"(%%)|%[-_0^#]*\d*s", lambda match: match[1] or str(int(_NOW.timestamp())), form
    )
    return _NOW.strftime(fixed)


@dataclass(frozen=True)
class ChatTemplate:
    """The template of a tokenizer with what a policy gives it; its own code runs in a sandbox."""

    tokenizer: FileTokenizer
    source: str
    chat: Chat
    model: str
    """How messages name the model."""

    @classmethod
    def of(cls, tokenizer: FileTokenizer, chat: Chat, model: str) -> ChatTemplate | None:
        """Return the template; None where the model has none. Raises ModelError.

        An argument that the template never asks for, or a system turn without a template, would
        silently change nothing: both are refused.
        """
        if not tokenizer.chat_template:
            if chat.system is not None or chat.arguments:
                raise ModelError(
                    f"{model!r} has no chat template, so `system` and `template_arguments` of the "
                    "generator would change nothing. Remove them, or put the text into `prompt`."
                )
            return None
        several = tokenizer.chat_template
        source = several if isinstance(several, str) else several.get("default")
        if source is None:
            names = harmless(str(sorted(several)[:8])[:200])
            raise ModelError(
                f"the tokenizer of {model!r} does not name the chat template to use (there are "
                f"{names}, none of them called `default`). Keep one in its tokenizer_config.json."
            )
        for name, _ in chat.arguments:
            if not re.search(rf"(?<![\w.'\"]){re.escape(name)}(?!\w)", source):
                raise ModelError(
                    f"the chat template of {model!r} never asks for {quoted(name)}, so "
                    "`template_arguments` would change nothing. Remove it, or look up in the "
                    "model's card for the name."
                )
        return cls(tokenizer=tokenizer, source=source, chat=chat, model=model)

    def render(self, text: str) -> str:
        """Return the complete prompt for one message of the user. Raises ModelError.

        The message is given as a text, and as a list of parts to templates that need one. What
        comes out must contain it: a template that drops it would ask every case the same.
        """
        for content in (text, _parts(text)):
            rendered = self._applied(content)
            # A template that prints the whole list has not understood it.
            if text.strip() in rendered and str(_parts(text)[0]) not in rendered:
                break
        else:
            raise ModelError(
                f"the chat template of {self.model!r} leaves out the message: the prompt that it "
                f"makes of {quoted(text)} is {quoted(rendered)}. Every case would be asked the "
                "same. Use the template of the original model, or remove it to send prompts as "
                "they are."
            )
        if self.chat.system is not None and self.chat.system.strip() not in rendered:
            raise ModelError(
                f"the chat template of {self.model!r} leaves out the system turn "
                f"{quoted(self.chat.system)}. Remove `system` from the generator, or put its text "
                "into `prompt`."
            )
        return rendered

    @cached_property
    def ending(self) -> str:
        """Return the template's text behind a message, where the answer begins."""
        return self.render(_PROBE).rpartition(_PROBE)[2]

    @cached_property
    def thinking(self) -> Pairs:
        """Return the template's own tags of thinking."""
        return thinking_in(self.source)

    @cached_property
    def begins_with(self) -> str:
        """Return the end of its prompts, with tags of thinking that every oracle knows."""
        return with_known_tags(self.ending, self.thinking)

    @cached_property
    def mentions_thinking(self) -> bool:
        """Return whether the template contains tags of thinking."""
        return bool(self.thinking) or has_tag(self.source)

    def _applied(self, content: object) -> str:
        system, messages = self.chat.system, [{"role": "user", "content": content}]
        if system is not None:
            own = system if isinstance(content, str) else _parts(system)
            messages.insert(0, {"role": "system", "content": own})
        try:
            return render_chat(
                self.source,
                messages=messages,
                add_generation_prompt=True,
                **{**self.tokenizer.named, **_DEFAULTS, **dict(self.chat.arguments)},
            )
        except Exception as error:  # a template can raise whatever it likes
            turns = f"{'a system turn and ' if len(messages) > 1 else ''}one user message"
            advice = " Without `system` in the generator it may." if len(messages) > 1 else ""
            raise ModelError(
                f"the chat template of {self.model!r} does not accept {turns} "
                f"({type(error).__name__}: {harmless(str(error)[:200])}).{advice} Use an "
                "instruction-tuned model, or remove its chat template to send prompts as they are."
            ) from error


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


class PromptTokenizer:
    """The tokenizer of a model folder with its chat template, read from local files only."""

    def __init__(self, folder: ModelFolder, chat: Chat = NO_CHAT) -> None:
        """Load the tokenizer; code that a folder brings along is never run. Raises ModelError."""
        self._folder = folder
        try:
            self._tokenizer = file_tokenizer(folder)
        except BaseException as error:  # neither library documents a narrower class
            if isinstance(error, ModelError) or not is_tokenizer_error(error):
                raise
            raise ModelError(
                f"the tokenizer in {str(folder.path)!r} cannot be loaded ({type(error).__name__}: "
                f"{harmless(' '.join(str(error).split())[:300])}). Copy tokenizer.json, "
                "tokenizer_config.json and config.json from the original model, or export again "
                "with `fairgate export MODEL`."
            ) from error
        self._template = ChatTemplate.of(self._tokenizer, chat, str(folder.path))
        self.has_template = self._template is not None
        """Whether prompts go through a chat template."""
        self._check_record(folder.mapping("provenance.json").get("parity"))

    def _check_record(self, parity: object) -> None:
        """Refuse tokens that are not those on which the folder's graph was compared."""
        prompts = parity.get("prompts") if isinstance(parity, dict) else None
        if not isinstance(prompts, dict):
            return
        texts = [self._defuse(text) for text in prompts]
        if self._template is not None:
            texts = [*map(replace(self._template, chat=NO_CHAT).render, texts)]
        current = [" ".join(map(str, ids)) for ids in self._encode(texts)]
        others = [text for text, ids in zip(prompts, current, strict=True) if prompts[text] != ids]
        if others:
            raise ModelError(
                f"{len(others)} of {len(prompts)} prompts on which the export of "
                f"{str(self._folder.path)!r} was compared with its original have other tokens now, "
                f"the first of them {quoted(others[0])}: its tokenizer files were changed, or are "
                "read otherwise since. What was measured then says nothing of what would be asked. "
                "Export the model again with `fairgate export MODEL`."
            )

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of complete prompts: through the chat template if there is one.

        A control token that the prompt's text spells out is broken up by a space, so that no
        corpus text can end the user's turn.
        """
        return self._encode([self._render(self._defuse(prompt)) for prompt in prompts])

    def encode_with_option(self, prompt: str, options: Sequence[str]) -> list[list[int]]:
        """Return the prompt's tokens, then those of prompt and option together, per option.

        Without a chat template a space separates prompt and option.
        """
        rendered = self._render(self._defuse(prompt))
        gap = "" if self.has_template else " "
        texts = [rendered + gap + self._defuse(option.strip()) for option in options]
        return self._encode([rendered, *texts])

    def encode_fragment(self, text: str) -> list[int]:
        """Return the tokens of a piece of an answer, without anything around it."""
        [ids] = self._tokenizer.encode([text], add_special_tokens=False)
        return ids

    def splits(self, text: str) -> frozenset[tuple[int, ...]]:
        """Return the ways in which a piece of an answer is split, by the text before it.

        Tokenizers that put a space before every text (SentencePiece's dummy prefix) never split
        a text by itself as they split it after a line end or a bracket.
        """
        ways = {tuple(self.encode_fragment(text))}
        for before in _BEFORE_A_LABEL:
            head, whole = self.encode_fragment(before), self.encode_fragment(before + text)
            if whole[: len(head)] == head:
                ways.add(tuple(whole[len(head) :]))
        return frozenset(ways)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of an answer's tokens, nothing prettified.

        Control tokens are left out, but for those that mark where the model thinks, or may do so;
        the template's own tags of thinking become tags that every oracle knows.
        """
        thinking = () if self._template is None else self._template.thinking
        return with_known_tags(self._marked(tokens), thinking)

    def _marked(self, tokens: Sequence[int]) -> str:
        if not self._marks or self._marks.keys().isdisjoint(tokens):
            return self._decode(tokens)
        pieces: list[str] = []
        start = 0
        for position, token in enumerate(tokens):
            if token in self._marks:
                pieces += [self._decode(tokens[start:position]), self._marks[token]]
                start = position + 1
        return "".join([*pieces, self._decode(tokens[start:])])

    def _decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.backend.decode(list(tokens), skip_special_tokens=True)
        return text

    def text_of(self, token: int) -> str:
        """Return how one token is written in the vocabulary."""
        return str(self._tokenizer.backend.id_to_token(token))

    def opening(self, prompt: str) -> str:
        """Return the tag with which the prompt opens the answer's thinking; "" where it does not.

        A template ends its prompts itself; without one the policy's prompt does.
        """
        return open_tag(prompt if self._template is None else self._template.begins_with)

    @cached_property
    def may_think(self) -> bool:
        """Return whether the model is one that thinks: by its template, its tokens or the prompt.

        Others get no tokens for it.
        """
        tokens = self._tokenizer.added_tokens_decoder.values()
        is_told = self._template is not None and self._template.mentions_thinking
        return is_told or any(has_tag(token.content) for token in tokens)

    @property
    def may_close(self) -> bool:
        """Return whether an answer may close a thinking part that nothing has opened.

        True for templates that mention thinking and whose prompts neither open nor close it.
        """
        template = self._template
        return (
            template is not None
            and template.mentions_thinking
            and not has_tag(template.begins_with)
        )

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """The ids that end an answer: all that any of the folder's files names.

        A model that was tuned further ends its turns with a token that often only one of them has.
        """
        own = self._tokenizer.eos_token_id
        ids = set() if own is None else {int(own)}
        for file, *path in (("generation_config.json",), *_PLACES):
            value = within(self._folder.mapping(file), *path, "eos_token_id")
            where = self._folder.path / file
            for token in value if isinstance(value, list) else [] if value is None else [value]:
                ids.add(whole_number(token, where, "eos_token_id"))
        return frozenset(ids)

    @cached_property
    def context_tokens(self) -> int | None:
        """Return how many tokens prompt and answer may have together; None where unknown."""
        number = self._folder.number
        limits = [
            number(file, *path, name)
            for file, *path in _PLACES
            for name in ("context_length", "max_position_embeddings", "n_positions")
        ]
        limits.append(number("tokenizer_config.json", "model_max_length"))
        plausible = [limit for limit in limits if limit is not None and 0 < limit < 100_000_000]
        return min(plausible, default=None)

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return self._tokenizer.encode(clean, add_special_tokens=not self.has_template)

    def _render(self, prompt: str) -> str:
        return prompt if self._template is None else self._template.render(prompt)

    @cached_property
    def _marks(self) -> Mapping[int, str]:
        """Control tokens of thinking, and of no known meaning, and how they are written.

        Of the latter those that look like one, and others that the chat template spells out.
        """
        template = self._template
        own = () if template is None else template.thinking
        source = "" if template is None else template.source
        tags = [tag for pair in (*THINKING_TAGS, *own) for tag in pair]
        marks = {}
        for number, token in self._tokenizer.added_tokens_decoder.items():
            text = token.content
            if not token.special or number in self.end_tokens or len(text) < _LEAST_TAG:
                continue
            if unknown_control(text) or any(text in tag for tag in tags):
                marks[number] = text
            elif text in source and text not in self._tokenizer.named.values():
                # `[X]` looks like other texts; so it is a control token for every oracle.
                marks[number] = f"<|{text.strip('<|/>[]')}|>"
        return marks

    @cached_property
    def _control_texts(self) -> tuple[str, ...]:
        added = self._tokenizer.added_tokens_decoder.values()
        special = {token.content for token in added if token.special or has_tag(token.content)}
        return tuple(sorted((text for text in special if len(text) > 1), key=len, reverse=True))

    def _defuse(self, text: str) -> str:
        return neutralised(text, self._control_texts)


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
        encodings = self.backend.encode_batch_fast(
            list(texts), add_special_tokens=add_special_tokens
        )
        return [encoding.ids for encoding in encodings]

    @cached_property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Return the tokens beside the vocabulary by id."""
        tokens: Mapping[int, Any] = self.backend.get_added_tokens_decoder()
        return tokens

    @property
    def eos_token_id(self) -> int | None:
        """Return the id of the token that ends a text."""
        token = self.named.get("eos_token")
        number: int | None = None if token is None else self.backend.token_to_id(token)
        return number


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
    control = _add_tokens(folder, settings, backend)
    return FileTokenizer(
        backend=backend,
        chat_template=_chat_template(folder, settings),
        named={name: token for name, token in control.items() if "[" not in name},
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
    control = {
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
    for token, row in ((row["content"], row) for row in control.values()):
        rows[token] = {**(rows.get(token) or inside.get(token) or row), "special": True}
    new = [AddedToken(**row) for token, row in rows.items() if row != inside.get(token)]
    backend.add_tokens(new)
    for number, row in wanted:
        actual = backend.token_to_id(row["content"])
        if str(actual) != number:
            raise ModelError(
                f"token {quoted(row['content'])} has the number {actual} in the tokenizer.json of "
                f"{str(folder.path)!r}, and {quoted(number)} in a file beside it. Copy all of "
                "them from the original model, or export again with `fairgate export MODEL`."
            )
    return {name: row["content"] for name, row in control.items()}


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
    usual = [f"{name}_token" for name in _NAMED]
    own = [name for name in settings if name.endswith("_token")]
    for name in dict.fromkeys([*usual, *own]):
        value = settings.get(name)
        if value is not None and (name in usual or isinstance(value, str)):
            yield name, value
    for name in ("additional_special_tokens", "extra_special_tokens"):
        value = settings.get(name) or []
        if isinstance(value, dict):
            yield from value.items()
        else:
            for position, token in enumerate(value if isinstance(value, list) else [value]):
                yield f"{name}[{position}]", token


def has_template(folder: ModelFolder) -> bool:
    """Return whether a model folder holds a chat template. Raises ModelError."""
    return bool(_chat_template(folder, folder.mapping("tokenizer_config.json")))


def _chat_template(
    folder: ModelFolder, settings: Mapping[str, Any]
) -> str | Mapping[str, str] | None:
    """Return the folder's chat template or templates: files of their own come first."""
    file = folder.path / "chat_template.jinja"
    templates = {"default": text_of(file)} if file.is_file() else {}
    for path in sorted((folder.path / "additional_chat_templates").glob("*.jinja")):
        templates[path.stem] = text_of(path)
    if templates:
        return templates["default"] if list(templates) == ["default"] else templates
    declared = settings.get("chat_template")
    if isinstance(declared, list):
        return dict(_named_template(folder, number, row) for number, row in enumerate(declared))
    return declared if declared is None or isinstance(declared, str | dict) else str(declared)


def _named_template(folder: ModelFolder, number: int, row: object) -> tuple[str, str]:
    entry = row if isinstance(row, dict) else {}
    name, template = entry.get("name"), entry.get("template")
    if isinstance(name, str) and isinstance(template, str):
        return name, template
    wrong = "template" if isinstance(name, str) else "name"
    raise ModelError(
        f"{str(folder.path / 'tokenizer_config.json')!r}: `chat_template[{number}].{wrong}` is "
        f"{quoted(repr(entry.get(wrong))[:80])}, expected a text; each entry has a `name` and a "
        "`template`. Copy the file from the original model, or export again with `fairgate export "
        "MODEL`."
    )
