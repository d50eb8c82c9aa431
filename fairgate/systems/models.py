"""Models by the names that policies give them: which one embeds, and whether its files are there.

What is said of files can be seen without loading or fetching anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field, Tag

from fairgate.domain.errors import DataError, ModelError, UsageError
from fairgate.domain.outcomes import short
from fairgate.domain.ports import Embedder, Runtime
from fairgate.domain.schema import ByShape, Names, Role, Strict, Text
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.named_files import bundled_path, find

if TYPE_CHECKING:
    from fairgate.onnx.encoder_settings import EmbedderChoice

DEFAULT_EMBEDDER = "minilm"
TOKENIZER = "tokenizer.json"
_PROBLEMS = (DataError, ModelError, UsageError)
_PRECISION = re.compile(r"[a-z0-9-]{1,20}")


GraphFile = Annotated[str, Field(pattern=r"^(onnx/)?[\w.-]+\.onnx$")]
WHICH_GRAPH = (
    "Which ONNX file, such as `onnx/model_q4.onnx`; default: `model.onnx`, or the only one."
)


class NamedModel(Protocol):
    """A model as policies name it."""

    @property
    def model(self) -> str:
        """The bundled name, folder or id."""

    @property
    def revision(self) -> str | None:
        """The commit of a Hugging Face model."""

    @property
    def file(self) -> str | None:
        """The graph among several."""


class EmbedderPolicy(Strict):
    """An encoder, with what its own files leave open."""

    model: Annotated[Text, Names(Role.EMBEDDER)] = Field(
        default=DEFAULT_EMBEDDER,
        description="Bundled name, folder of an ONNX encoder, or Hugging Face id.",
    )
    revision: str | None = Field(default=None, description="Commit of a Hugging Face model.")
    file: GraphFile | None = Field(default=None, description=WHICH_GRAPH)
    pooling: (
        Literal["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"] | None
    ) = Field(
        default=None,
        description="How token states become one vector; needed where the model's files "
        "do not define it.",
    )
    query_prompt: str | None = Field(
        default=None, description='Text before every query; `""` for none.'
    )
    document_prompt: str | None = Field(
        default=None, description='Text before every document; `""` for none.'
    )
    dimensions: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Keep the first N components of each vector; default: `truncate_dim`.",
    )

    @property
    def choice(self) -> EmbedderChoice:
        """The settings that are not left to the model's files; bundled models have no prompts."""
        from fairgate.onnx.encoder_settings import EmbedderChoice

        choice = EmbedderChoice(**self.model_dump(exclude={"model", "revision", "file"}))
        if bundled_path("models", self.model) is None:
            return choice
        return replace(
            choice,
            query_prompt=self.query_prompt or "",
            document_prompt=self.document_prompt or "",
        )


EMBEDS_DOCUMENTS = (
    "Embeds documents: bundled name, folder of an ONNX encoder, Hugging Face id, or a mapping."
)
EMBEDS_REPLIES = "Embeds documents for RRS, and the collections of `bbq` suites; default `minilm`."
EmbedderField = Annotated[
    Annotated[Text, Tag("<scalar>")] | Annotated[EmbedderPolicy, Tag("<mapping>")], ByShape
]


def long_embedder(embedder: str | EmbedderPolicy | None) -> EmbedderPolicy:
    """Return the mapping that a name alone, or nothing, stands for."""
    if isinstance(embedder, EmbedderPolicy):
        return embedder
    return EmbedderPolicy(model=embedder or DEFAULT_EMBEDDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """The two sides of one model: they differ where it needs another prompt before queries."""

    documents: Embedder
    queries: Embedder
    prompts: tuple[str, str] = ("", "")
    """The texts put before every query and before every document."""

    def under_test(self, name: str) -> dict[str, str]:
        """Return the model's fingerprint beside its `name`, and its prompts where it has any."""
        both = "\0".join(dict.fromkeys((self.documents.fingerprint, self.queries.fingerprint)))
        facts = {"embedder": f"{name} {short(both)}"}
        if any(self.prompts):
            query, document = map(quoted, self.prompts)
            facts["embedder prompts"] = f"queries {query}, documents {document}"
        return facts


def embedder_problem(chosen: EmbedderPolicy, runtime: Runtime) -> str:
    """Return the problem of an embedder's folder and settings.

    Empty where nothing is, or only the hub knows.
    """
    try:
        if (path := _path_of(chosen, runtime)) is not None:
            from fairgate.onnx.encoder import OnnxEncoder
            from fairgate.onnx.model_folder import ModelFolder

            ModelFolder.find(path).file(TOKENIZER, "splits texts into tokens")
            OnnxEncoder(path, choice=chosen.choice)
    except _PROBLEMS as error:
        return str(error)
    return ""


def decoder_problem(chosen: NamedModel, runtime: Runtime) -> str:
    """Return the problem of a generator's folder; empty where nothing is, or only the hub knows."""
    from fairgate.onnx.model_folder import ModelFolder

    try:
        if (path := _path_of(chosen, runtime)) is None:
            return ""
        folder = ModelFolder.find(path)
        folder.file(TOKENIZER, "splits prompts into tokens")
        folder.file("config.json", "states how far back the model attends")
        from fairgate.onnx.prompts import PromptTokenizer

        PromptTokenizer(folder)
    except _PROBLEMS as error:
        return str(error)
    return ""


def lacks_template(chosen: NamedModel, runtime: Runtime) -> bool:
    """Return whether a generator is here and its folder has no chat template, as base models."""
    from fairgate.onnx.model_folder import ModelFolder
    from fairgate.onnx.prompts import has_template

    try:
        path = _path_of(chosen, runtime)
        return path is not None and not has_template(ModelFolder.find(path))
    except _PROBLEMS:  # answers of an earlier run, whose model is not here any more
        return False


def unfetched(chosen: NamedModel, runtime: Runtime) -> str:
    """Return a sentence where a model is to be fetched from the hub; empty where it is here."""
    if bundled_path("models", chosen.model) is not None or _path_of(chosen, runtime) is not None:
        return ""
    return (
        f"{quoted(chosen.model)} is no folder here: a run takes it from the Hugging Face hub's "
        "cache, or fetches it; whether it can answer is known then (`fairgate doctor` tries it)"
    )


def unproved_here(chosen: NamedModel, runtime: Runtime) -> str:
    """Return the sentence of `unproved` for a local model; empty where only the hub has it."""
    path = _path_of(chosen, runtime)
    return "" if path is None else unproved(chosen.model, path)


def unproved(name: str, path: Path) -> str:
    """Return a sentence where nothing shows that a model's graph is its original; else empty.

    What shows it is the record that `fairgate export` leaves, of these very files. Bundled models
    have theirs in the tests. `path` is a folder, or a graph in it.
    """
    if bundled_path("models", name) is not None:
        return ""
    from fairgate.io.tables import file_sha256
    from fairgate.onnx.model_folder import ModelFolder, content_files

    try:
        folder = ModelFolder.find(path)
        record = folder.mapping("provenance.json")
    except ModelError:
        return ""  # whoever opens the model says what is wrong with it
    parity, files = record.get("parity"), record.get("files")
    if not isinstance(parity, dict) or not parity.get("checked"):
        why = "its folder has no record of a comparison with its original"
    elif not isinstance(files, dict) or any(
        files.get(file.relative_to(folder.path).as_posix()) != file_sha256(str(file))
        for file in content_files(folder.path, folder.graph)
    ):
        why = "the record beside it is of other files"
    elif parity.get("within_limits") is not True:
        why = "its record says that it is not within the limits of its precision"
    else:
        return ""
    return (
        f"whether {quoted(name)} answers as its original does is not known: {why}. "
        "`fairgate export MODEL` compares them and leaves a record"
    )


def recorded_precision(chosen: NamedModel, runtime: Runtime) -> str:
    """Return the precision in which a local model was exported; empty where no record says it."""
    from fairgate.onnx.model_folder import ModelFolder

    path = _path_of(chosen, runtime)
    try:
        record = {} if path is None else ModelFolder.find(path).mapping("provenance.json")
    except ModelError:
        return ""
    precision = record.get("precision")
    is_name = isinstance(precision, str) and _PRECISION.fullmatch(precision) is not None
    return str(precision) if is_name else ""


def _path_of(chosen: NamedModel, runtime: Runtime) -> Path | None:
    """Return the user's folder or the export of a model, or the graph that the policy chose in it.

    None: bundled, or to be fetched.
    """
    folder = local_folder(chosen.model, chosen.revision, runtime)
    if bundled_path("models", chosen.model) is not None:
        return None
    from fairgate.onnx.model_folder import exported_folder

    exported = exported_folder(chosen.model, runtime.cache / "models", chosen.revision)
    folder = exported if folder is None and exported.is_dir() else folder
    return None if folder is None else folder / (chosen.file or "")


def local_folder(name: str, revision: str | None, runtime: Runtime) -> Path | None:
    """Return the folder of a model, bundled or the user's; None for an id of the hub.

    Raises DataError where the name means a folder and there is none, or could mean both: nobody
    who puts a folder into a checkout decides which model is taken.
    """
    from fairgate.onnx.model_folder import is_hub_id

    root = runtime.root
    if bundled_path("models", name) is None and is_hub_id(name):
        if revision is not None:
            return None
        if (root / name).exists() or (root / name).is_symlink():
            raise DataError(
                f"{quoted(name)} is a folder here and could be a model of the Hugging Face hub "
                f"too; write {quoted(f'./{name}')} for the folder, or give the `revision` of the "
                "model"
            )
        # `models/my-model` has the form of an id too: a folder beside it makes it a slip.
        parent = root / name.split("/", 1)[0]
        if parent.is_dir():
            inside = [
                f"./{parent.name}/{child.name}" for child in parent.iterdir() if child.is_dir()
            ]
            raise DataError(
                f"there is no folder {quoted(name)}; {suggestion(name, sorted(inside))}. Expected "
                "a folder with an ONNX graph and a tokenizer; make one with `fairgate export MODEL`"
            )
        return None
    if revision is not None:
        raise UsageError(
            f"`revision` {quoted(revision)} belongs to a model of the Hugging Face hub, but "
            f"{quoted(name)} is a folder: what is in it decides. Remove `revision`"
        )
    return find("models", name, root, confined=runtime.confined)
