"""The modules that sentence-transformers names in a folder, and how they pool token states."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted
from fairgate.onnx.folder import ModelFolder
from fairgate.onnx.pooling import POOLINGS, Pooling

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


def has_further_modules(folder: ModelFolder) -> bool:
    """Return whether the model has sentence-transformers modules that only its graph computes."""
    return not {kind for kind, _ in _read_modules(folder)} <= _COMPUTED


def read_modules(folder: ModelFolder, *, pooled_by_graph: bool) -> list[tuple[str, str]]:
    """Return kind and subfolder of each module. Raises ModelError for what is not computed."""
    modules = _read_modules(folder)
    kinds = [kind for kind, _ in modules]
    for _, place in modules:
        if PurePosixPath(place).is_absolute() or ".." in PurePosixPath(place).parts:
            raise ModelError(
                f"{str(folder.path / 'modules.json')!r} names the folder {quoted(place)}, expected "
                "one inside the model's own. Fetch the model again."
            )
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
    place = f"{modules[0][1]}/" if modules and modules[0][1] else ""
    found = next((own for name in TRANSFORMER_FILES if (own := folder.mapping(place + name))), {})
    modalities = found.get("modality_config")
    unexpected = {
        "processing_kwargs": bool(found.get("processing_kwargs")),
        "transformer_task": found.get("transformer_task", "feature-extraction")
        != "feature-extraction",
        "modality_config": isinstance(modalities, dict) and "text" not in modalities,
    }
    if any(unexpected.values()):
        name = next(key for key, is_unexpected in unexpected.items() if is_unexpected)
        raise ModelError(
            f"{str(folder.path)!r} sets {name} to {quoted(str(found[name]))}, which this engine "
            "does not follow. Choose an embedding model that reads plain text, for example "
            "all-MiniLM-L6-v2."
        )
    return found


def read_poolings(
    folder: ModelFolder,
    modules: list[tuple[str, str]],
    chosen: Pooling | None,
    *,
    pooled_by_graph: bool,
) -> tuple[tuple[Pooling, ...], bool]:
    """Return the poolings and whether they include the prompt."""
    place = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    name = f"{place}/config.json"
    settings = folder.mapping(name)
    includes_prompt = settings.get("include_prompt", True) is not False
    if pooled_by_graph:
        if chosen is not None:
            raise ModelError(
                f"the graph {str(folder.graph)!r} pools by itself, but the policy asks for the "
                f"pooling {chosen!r}. Remove `pooling` from the policy."
            )
        return (), includes_prompt
    found = _named_poolings(settings)
    file = str(folder.path / name)
    unknown = [one for one in found if one not in POOLINGS]
    if unknown:
        raise ModelError(
            f"{file!r} asks for the pooling {quoted(str(unknown[0]))}; expected "
            f"{', '.join(POOLINGS)}. Choose another embedding model."
        )
    if chosen is not None:
        if found and found != [chosen]:
            raise ModelError(
                f"{file!r} asks for the pooling {quoted(', '.join(found))}, the policy for "
                f"{chosen!r}. Remove `pooling` from the policy: the model's file decides."
            )
        return (chosen,), includes_prompt
    if not found:
        raise ModelError(
            f"nothing in {str(folder.path)!r} states how token states become one vector: there is "
            f"no pooling in {name}. Fetch the model with its sentence-transformers files, or set "
            f"`pooling` of the embedder in the policy to what its model card names "
            f"({', '.join(POOLINGS)})."
        )
    return tuple(one for one in found if one in POOLINGS), includes_prompt


def _read_modules(folder: ModelFolder) -> list[tuple[str, str]]:
    """Return kind and subfolder of each sentence-transformers module; empty without the file."""
    modules = folder.settings("modules.json") or []
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise ModelError(
            f"{str(folder.path / 'modules.json')!r} is no list of modules as "
            "sentence-transformers writes it. Fetch the model again."
        )
    return [(_kind(str(one.get("type", ""))), str(one.get("path", ""))) for one in modules]


def _kind(name: str) -> str:
    """Return a module's short name; whole where it is not one of sentence-transformers' own."""
    return name.rpartition(".")[2] if name.startswith(_OWN_MODULES) else name


def _named_poolings(settings: dict[str, Any]) -> list[Any]:
    named = settings.get("pooling_mode")
    if isinstance(named, str):
        return [named]
    if isinstance(named, list):
        return named
    known = [mode for key, mode in _LEGACY_POOLINGS.items() if settings.get(key) is True]
    return known + [
        key
        for key, on in settings.items()
        if key.startswith("pooling_mode_") and on is True and key not in _LEGACY_POOLINGS
    ]
