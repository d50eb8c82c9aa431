"""The prompts that an encoder puts before queries and documents."""

from __future__ import annotations

import re
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.folder import ModelFolder

PROMPTS_FILE = "config_sentence_transformers.json"
_FAMILIES = (
    (r"e5-(small|base|large)(-v2|-unsupervised)?", "`query: ` and `passage: `"),
    (r"e5-[\w-]*instruct", "`Instruct: …\\nQuery: ` before queries only"),
    (
        r"bge-(small|base|large)-en(-v1\.5)?",
        "`Represent this sentence for searching relevant passages: ` before queries only",
    ),
    (r"bge-(small|base|large)-zh(-v1\.5)?", "an instruction in Chinese before queries only"),
    (r"nomic-embed-text-v[\d.]+", "`search_query: ` and `search_document: `"),
    (r"uae-large-v1|mxbai-embed-\w+-v1", "an instruction before queries only"),
    (r"gte-qwen[\w.-]*|instructor-\w+|sfr-embedding-[\w.-]+", "an instruction before queries"),
)
"""Families whose prompts are in their model cards and not in their files."""


def read_prompts(
    folder: ModelFolder, config: dict[str, Any], chosen: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return the prompts of queries and of documents; `chosen` by the policy, where it says so.

    `config` is the content of `config_sentence_transformers.json`. Raises ModelError where the
    files leave open which prompt belongs to which side.
    """
    if chosen[0] is not None and chosen[1] is not None:
        return chosen[0], chosen[1]
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or any(
        not isinstance(text, str | None) for text in prompts.values()
    ):
        raise ModelError(
            f"{str(folder.path / PROMPTS_FILE)!r}: `prompts` is no mapping of names to texts. "
            "Fetch the model again."
        )
    named = {name: text for name, text in prompts.items() if text}
    default = config.get("default_prompt_name")
    reason = None
    if isinstance(default, str) and default in named:
        reason = f"its default prompt {quoted(default)} is put before every text"
    elif named and not {"query", "document"} & set(named):
        reason = f"its prompts are called {quoted(', '.join(named))}, none `query` or `document`"
    elif "document" not in named and (other := {"passage", "corpus"} & set(named)):
        reason = f"its prompt of documents is called {quoted(min(other))}, not `document`"
    elif not named:
        reason = _unsaid(folder)
    if reason is not None:
        raise ModelError(
            f"the prompts of {str(folder.path)!r} are not certain: {reason}. Set `query_prompt` "
            "and `document_prompt` of the embedder in the policy, as its model card has them; an "
            'empty text ("") puts nothing before.'
        )
    return (
        named.get("query", "") if chosen[0] is None else chosen[0],
        named.get("document", "") if chosen[1] is None else chosen[1],
    )


def _unsaid(folder: ModelFolder) -> str | None:
    """Return what the model card of the folder's family asks for; None for other families.

    The family is known by the name of the folder, of the hub's model, or of what the folder's
    `provenance.json` or `config.json` names as its source.
    """
    for name in _names(folder):
        for family, prompts in _FAMILIES:
            if re.search(rf"(^|[/_-])({family})$", name, re.IGNORECASE):
                return f"the model card of {name!r} asks for {prompts}, its files contain none"
    return None


def _names(folder: ModelFolder) -> list[str]:
    path = folder.path.absolute()
    hub = [part for part in path.parts if part.startswith("models--")]
    names = [
        folder.mapping("provenance.json").get("source"),
        folder.mapping("config.json").get("_name_or_path"),
    ]
    return [path.name, *hub, *(str(name) for name in names if name)]
