"""An encoder's settings from files and policy: pooling, prompts, lengths, size.

The files are those of sentence-transformers, read as sentence-transformers reads them. Where they
leave open what a vector is, or ask for what this engine does not compute, the model is refused:
an assumption would give other vectors than the model's authors meant, and nobody would see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.encoder_modules import read_modules, read_poolings, transformer_settings
from fairgate.onnx.encoder_prompts import PROMPTS_FILE, read_prompts
from fairgate.onnx.folder import ModelFolder
from fairgate.onnx.pooling import Pooling

_OFFSET_POSITIONS = frozenset(
    {"camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta"}
    | {"roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"}
)
"""Model types whose first position is the one after the padding token's id."""
_N_POSITIONS = frozenset({"codegen", "gpt2", "gpt_bigcode", "gptj", "openai-gpt"})
"""Model types whose configuration calls the number of positions `n_positions`."""
_TABLE_POSITIONS = (
    _OFFSET_POSITIONS
    | {"albert", "bert", "convbert", "distilbert", "electra", "mobilebert", "nystromformer"}
    | {"squeezebert", "gpt2", "gpt_bigcode", "openai-gpt", "gpt_neo", "opt"}
)
"""Model types with a table of positions: a longer text is an error, whatever a file allows."""
_UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChoice:
    """The policy's settings of an encoder; None leaves it to the model's files."""

    pooling: Pooling | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSettings:
    """How token states become the vector of a text."""

    poolings: tuple[Pooling, ...]
    """Their vectors are concatenated; empty: the graph itself pools."""
    includes_prompt: bool
    """Whether the prompt's tokens are pooled too."""
    query_prompt: str
    document_prompt: str
    unit: bool
    """Whether vectors are scaled to length one."""
    dimensions: int | None
    """Vectors are cut to so many components before they are scaled."""
    max_tokens: int | None
    """Longer texts are cut after this many tokens, special tokens included; None: never."""
    cut_on_the_left: bool
    lower: bool

    def facts(self) -> tuple[object, ...]:
        """Return what belongs to the fingerprint beside the files, but not the prompts."""
        return (self.poolings, self.includes_prompt, self.unit, self.dimensions, self.max_tokens)


def read_settings(
    folder: ModelFolder, choice: EmbedderChoice, *, unit: bool, pooled_by_graph: bool
) -> EncoderSettings:
    """Return the settings of the folder's encoder. Raises ModelError where they are unknown.

    `unit` False leaves lengths to the model's own modules. `pooled_by_graph` means that the graph
    has no token states but the vectors of whole texts.
    """
    modules = read_modules(folder, pooled_by_graph=pooled_by_graph)
    kinds = [kind for kind, _ in modules]
    own = transformer_settings(folder, modules)
    poolings, includes_prompt = read_poolings(
        folder, modules, choice.pooling, pooled_by_graph=pooled_by_graph
    )
    config = folder.mapping(PROMPTS_FILE)
    unit = unit or "Normalize" in kinds
    _check_similarity(folder, config, normalized="Normalize" in kinds, unit=unit)
    query, document = read_prompts(folder, config, (choice.query_prompt, choice.document_prompt))
    if pooled_by_graph and not includes_prompt and (query or document):
        raise ModelError(
            f"{str(folder.path)!r} leaves its prompt out of the pooling, but its graph pools by "
            "itself, prompt included. Export it with `fairgate export MODEL --task "
            "feature-extraction`, which keeps the token states."
        )
    tokenizer = folder.mapping("tokenizer_config.json")
    return EncoderSettings(
        poolings=poolings,
        includes_prompt=includes_prompt,
        query_prompt=query,
        document_prompt=document,
        unit=unit,
        dimensions=choice.dimensions or _whole(config.get("truncate_dim")),
        max_tokens=_max_tokens(folder, own, tokenizer),
        cut_on_the_left=tokenizer.get("truncation_side") == "left",
        lower=own.get("do_lower_case") is True,
    )


def classifier_settings(folder: ModelFolder) -> EncoderSettings:
    """Return how a sequence classifier's texts are cut: by its tokenizer and positions."""
    tokenizer = folder.mapping("tokenizer_config.json")
    return EncoderSettings(
        poolings=(),
        includes_prompt=True,
        query_prompt="",
        document_prompt="",
        unit=False,
        dimensions=None,
        max_tokens=_max_tokens(folder, {}, tokenizer),
        cut_on_the_left=tokenizer.get("truncation_side") == "left",
        lower=False,
    )


def _check_similarity(
    folder: ModelFolder, config: dict[str, Any], *, normalized: bool, unit: bool
) -> None:
    """Refuse a model that is not made to be compared by cosine, where lengths are lost."""
    kind = config.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise ModelError(
            f"{str(folder.path)!r} is a {quoted(str(kind))}, expected a SentenceTransformer: its "
            "output is no vector to compare texts by. Choose an embedding model."
        )
    meant = config.get("similarity_fn_name") or "cosine"
    if meant != "cosine" and unit and not normalized:
        raise ModelError(
            f"{str(folder.path)!r} is made to be compared by {quoted(str(meant))} of vectors of "
            "any length, but this retriever compares vectors of length one. Choose a model for "
            "cosine; a `bbq` suite compares by inner product with `contriever:MODEL`."
        )


def _max_tokens(folder: ModelFolder, own: dict[str, Any], tokenizer: dict[str, Any]) -> int | None:
    """Return the limit that sentence-transformers applies, at most what the positions allow."""
    config = folder.mapping("config.json")
    kind = str(config.get("model_type"))
    name = "n_positions" if kind in _N_POSITIONS else "max_position_embeddings"
    positions = _whole(config.get(name))
    if positions is not None and kind in _OFFSET_POSITIONS:
        padding = config.get("pad_token_id", 1)
        positions -= 1 + (padding if isinstance(padding, int) else 1)
    own_limit = _whole(own.get("max_seq_length"))
    if own_limit is not None and kind not in _TABLE_POSITIONS:
        return own_limit
    declared = own_limit or _whole(tokenizer.get("model_max_length"))
    return min((limit for limit in (declared, positions) if limit is not None), default=None)


def _whole(value: object) -> int | None:
    """Return a limit that means something: a whole number from 1 to under a million."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and 0 < value < _UNLIMITED else None  # type: ignore[operator,return-value]
