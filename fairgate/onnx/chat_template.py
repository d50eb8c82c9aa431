"""A model's chat template: what it makes of a message, and whether it did so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat
from fairgate.domain.wording import harmless, quoted
from fairgate.onnx.chat_environment import render_chat
from fairgate.onnx.tokenizer_file import FileTokenizer
from fairgate.relations.oracles.thinking import has_tag

_DEFAULTS = {"enable_thinking": False}
"""The answer is asked for at once; thinking is switched on in the policy."""
_PROBE = "FairGate asks"


@dataclass(frozen=True)
class ChatTemplate:
    """The template of a tokenizer with what a policy gives it; its own code is sandboxed."""

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
        source = _source(tokenizer, model)
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
        """Return what the template puts behind a message, where the answer begins."""
        return self.render(_PROBE).rpartition(_PROBE)[2]

    @cached_property
    def mentions_thinking(self) -> bool:
        """Return whether the template contains tags of thinking."""
        return has_tag(self.source)

    def _applied(self, content: object) -> str:
        system = (
            []
            if self.chat.system is None
            else [{"role": "system", "content": _like(content, self.chat.system)}]
        )
        try:
            text = render_chat(
                self.source,
                messages=[*system, {"role": "user", "content": content}],
                add_generation_prompt=True,
                **{**self.tokenizer.named, **_DEFAULTS, **dict(self.chat.arguments)},
            )
        except Exception as error:  # a template can raise whatever it likes
            turns = "one user message" if not system else "a system turn and one user message"
            advice = "" if not system else " Without `system` in the generator it may."
            raise ModelError(
                f"the chat template of {self.model!r} does not accept {turns} "
                f"({type(error).__name__}: {harmless(str(error)[:200])}).{advice} Use an "
                "instruction-tuned model, or remove its chat template to send prompts as they are."
            ) from error
        return text


def _like(content: object, text: str) -> object:
    return text if isinstance(content, str) else _parts(text)


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _source(tokenizer: FileTokenizer, model: str) -> str:
    try:
        source: str = tokenizer.get_chat_template()
    except Exception as error:  # several templates, none of them the default one
        raise ModelError(
            f"the tokenizer of {model!r} does not name the chat template to use "
            f"({harmless(str(error)[:200])}). Keep one in its tokenizer_config.json."
        ) from error
    return source
