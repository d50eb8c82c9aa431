"""How an encoder makes vectors, by its files and the policy: modules, pooling, prompts, lengths.

The files are those of sentence-transformers, read as sentence-transformers reads them. Where they
leave open what a vector is, or ask for what this engine does not compute, the model is refused:
an assumption would give other vectors than the model's authors meant, and nobody would see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.model_folder import ModelFolder

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
Pooling = Literal["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

States = npt.NDArray[np.floating[Any]]
PROMPTS_FILE = "config_sentence_transformers.json"
# In the order in which sentence-transformers concatenates them.
_LEGACY_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_OWN_MODULES = "sentence_transformers."
_COMPUTED = frozenset({"Transformer", "Pooling", "Normalize"})
TRANSFORMER_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)


def pooled(
    states: States, poolings: Sequence[Pooling], *, start: int = 0
) -> npt.NDArray[np.float64]:
    """Return the poolings' vectors, one after the other, summed in float64.

    `states` `[tokens, d]` are those of the text's own tokens; the first `start` of them belong to
    a prompt that is left out (of all but `lasttoken`). At least one token must remain.
    """
    return np.concatenate([_one(states, pooling, start) for pooling in poolings])


def _one(states: States, pooling: Pooling, start: int) -> npt.NDArray[np.float64]:
    own = states[start:].astype(np.float64)
    match pooling:
        case "mean":
            vector = own.sum(axis=0) / len(own)
        case "mean_sqrt_len_tokens":
            vector = own.sum(axis=0) / np.sqrt(len(own))
        case "weightedmean":  # later tokens count more; the prompt's places are counted
            weights = np.arange(start + 1, len(states) + 1, dtype=np.float64)
            vector = (own * weights[:, None]).sum(axis=0) / weights.sum()
        case "cls":
            vector = own[0]
        case "max":
            vector = own.max(axis=0)
        case "lasttoken":
            vector = own[-1]
    return np.asarray(vector)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChoice:
    """The policy's settings of an encoder; None leaves it to the model's files."""

    pooling: Pooling | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    dimensions: int | None = None


NO_PROMPTS = EmbedderChoice(query_prompt="", document_prompt="")
"""Of models that read a text as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSettings:
    """How token states become the vector of a text."""

    poolings: tuple[Pooling, ...] = ()
    """Their vectors are concatenated; empty: the graph itself pools."""
    includes_prompt: bool = True
    """Whether the prompt's tokens are pooled too."""
    query_prompt: str = ""
    document_prompt: str = ""
    unit: bool = False
    """Whether vectors are scaled to length one."""
    dimensions: int | None = None
    """Vectors are cut to this many components before they are scaled."""
    max_tokens: int | None
    """Longer texts are cut after this many tokens, special tokens included; None: never."""
    cut_on_the_left: bool
    lower: bool = False

    def facts(self) -> tuple[object, ...]:
        """Return the settings in the fingerprint beside the files, but not the prompts."""
        return (self.poolings, self.includes_prompt, self.unit, self.dimensions, self.max_tokens)


def read_prompts(
    folder: ModelFolder, config: dict[str, Any], chosen: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return the prompts of queries and of documents; `chosen` by the policy, where it says so.

    `config` is the content of `config_sentence_transformers.json`. Files that list no prompts say
    nothing: those of E5 and BGE list none either, although their vectors are wrong without. Raises
    ModelError where the files leave open which prompt belongs to which side.
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
    stored = {name: text for name, text in prompts.items() if text}
    default = config.get("default_prompt_name")
    others = sorted(stored.keys() - {"query", "document"})
    reason = None
    is_name = isinstance(default, str)
    if default is not None and (not is_name or default not in prompts or default in stored):
        reason = f"its default prompt is {quoted(str(default))}"
    elif others and not {"query", "document"} <= stored.keys():
        reason = f"it has prompts for {quoted(', '.join(stored))}"
    elif not stored and not {"query", "document"} <= prompts.keys():
        reason = "its files list none, as is common for models that need them, too"
    if reason is not None:
        raise ModelError(
            f"the prompts of {str(folder.path)!r} are not certain: {reason}. Set `query_prompt` "
            "and `document_prompt` of the embedder in the policy, as its model card has them, or "
            '`""` where the card has none.'
        )
    return (
        stored.get("query", "") if chosen[0] is None else chosen[0],
        stored.get("document", "") if chosen[1] is None else chosen[1],
    )


def has_further_modules(folder: ModelFolder) -> bool:
    """Return whether the model has sentence-transformers modules that only its graph computes."""
    return not {kind for kind, _ in _read_modules(folder)} <= _COMPUTED


def read_modules(folder: ModelFolder, *, pooled_by_graph: bool) -> list[tuple[str, str]]:
    """Return kind and subfolder of each module. Raises ModelError for what is not computed."""
    modules = _read_modules(folder)
    kinds = [kind for kind, _ in modules]
    in_order = kinds in ([], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
    own = kinds[:1] == ["Transformer"] and not any("." in kind for kind in kinds)
    if not (in_order or (pooled_by_graph and own)):
        raise ModelError(
            f"{str(folder.path)!r} is made of the sentence-transformers modules "
            f"{quoted(', '.join(kinds))}; this engine computes Transformer, Pooling and maybe "
            "Normalize, in this order, or a graph with the output sentence_embedding. Export it "
            "with `fairgate export MODEL --task feature-extraction`, or choose another model, for "
            "example all-MiniLM-L6-v2."
        )
    return modules


def transformer_settings(folder: ModelFolder, modules: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the first of the files in which sentence-transformers keeps lengths and case."""
    subfolder = f"{modules[0][1]}/" if modules and modules[0][1] else ""
    settings = next(
        (own for name in TRANSFORMER_FILES if (own := folder.mapping(subfolder + name))), {}
    )
    modalities, usual = settings.get("modality_config"), "feature-extraction"
    for name, is_unexpected in (
        ("processing_kwargs", bool(settings.get("processing_kwargs"))),
        ("transformer_task", settings.get("transformer_task", usual) != usual),
        ("modality_config", isinstance(modalities, dict) and "text" not in modalities),
    ):
        if not is_unexpected:
            continue
        raise ModelError(
            f"{str(folder.path)!r} sets {name} to {quoted(str(settings[name]))}, which this engine "
            "does not follow. Choose an embedding model that reads plain text, for example "
            "all-MiniLM-L6-v2."
        )
    return settings


def read_poolings(
    folder: ModelFolder,
    modules: list[tuple[str, str]],
    chosen: Pooling | None,
    *,
    pooled_by_graph: bool,
) -> tuple[tuple[Pooling, ...], bool]:
    """Return the poolings and whether they include the prompt."""
    name = _pooling_file(modules)
    settings = folder.mapping(name)
    includes_prompt = settings.get("include_prompt", True) is not False
    if pooled_by_graph:
        if chosen is not None:
            raise ModelError(
                f"the graph {str(folder.graph)!r} pools by itself, but the policy asks for the "
                f"pooling {chosen!r}. Remove `pooling` from the policy."
            )
        return (), includes_prompt
    modes = settings.get("pooling_mode")
    poolings: list[Any] = modes if isinstance(modes, list) else [modes]
    if not isinstance(modes, str | list):
        on = [key for key in settings if settings[key] is True and key.startswith("pooling_mode_")]
        poolings = [mode for key, mode in _LEGACY_POOLINGS.items() if key in on]
        poolings += [key for key in on if key not in _LEGACY_POOLINGS]
    file = str(folder.path / name)
    if unknown := [pooling for pooling in poolings if pooling not in POOLINGS]:
        raise ModelError(
            f"{file!r} asks for the pooling {quoted(str(unknown[0]))}; expected "
            f"{', '.join(POOLINGS)}. Choose another embedding model."
        )
    if chosen is not None:
        if poolings and poolings != [chosen]:
            raise ModelError(
                f"{file!r} asks for the pooling {quoted(', '.join(poolings))}, the policy for "
                f"{chosen!r}. Remove `pooling` from the policy: the model's file decides."
            )
        return (chosen,), includes_prompt
    if not poolings:
        raise ModelError(
            f"nothing in {str(folder.path)!r} states how token states become one vector: there is "
            f"no pooling in {name}. Fetch the model with its sentence-transformers files, or set "
            f"`pooling` of the embedder in the policy to what its model card names "
            f"({', '.join(POOLINGS)})."
        )
    return tuple(pooling for pooling in poolings if pooling in POOLINGS), includes_prompt


def _pooling_file(modules: list[tuple[str, str]]) -> str:
    subfolder = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    return f"{subfolder}/config.json"


def _read_modules(folder: ModelFolder) -> list[tuple[str, str]]:
    """Return kind and subfolder of each sentence-transformers module; empty without the file."""
    modules = folder.settings("modules.json") or []
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise ModelError(
            f"{str(folder.path / 'modules.json')!r} is no list of modules as "
            "sentence-transformers writes it. Fetch the model again."
        )
    entries = [(str(module.get("type", "")), str(module.get("path", ""))) for module in modules]
    for _, path in entries:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ModelError(
                f"{str(folder.path / 'modules.json')!r} names the folder {quoted(path)}, expected "
                "one inside the model's own. Fetch the model again."
            )
    # Short names for sentence-transformers' own.
    return [
        (kind.rpartition(".")[2] if kind.startswith(_OWN_MODULES) else kind, path)
        for kind, path in entries
    ]


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
    _check_similarity(folder, config, loses_lengths=unit and "Normalize" not in kinds)
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
        max_tokens=_max_tokens(folder, {}, tokenizer),
        cut_on_the_left=tokenizer.get("truncation_side") == "left",
    )


def _check_similarity(folder: ModelFolder, config: dict[str, Any], *, loses_lengths: bool) -> None:
    """Refuse a model that is not made to be compared by cosine, where lengths are lost."""
    kind = config.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise ModelError(
            f"{str(folder.path)!r} is a {quoted(str(kind))}, expected a SentenceTransformer: its "
            "output is no vector to compare texts by. Choose an embedding model."
        )
    similarity = config.get("similarity_fn_name") or "cosine"
    if similarity != "cosine" and loses_lengths:
        raise ModelError(
            f"{str(folder.path)!r} is made to be compared by {quoted(str(similarity))} of vectors "
            "of any length, but this retriever compares vectors of length one. Choose a model for "
            "cosine; a `bbq` suite compares by inner product with `contriever:MODEL`."
        )


def _max_tokens(folder: ModelFolder, own: dict[str, Any], tokenizer: dict[str, Any]) -> int | None:
    """Return the limit that sentence-transformers applies, never beyond a table of positions."""
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
