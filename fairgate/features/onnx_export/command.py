"""`fairgate export`: a Hugging Face model as ONNX for this gate, proved to be the same.

Runs in the export environment (torch, optimum-onnx); the gate itself needs neither.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import importlib.util
import json
import logging
import shlex
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import click

from fairgate.domain.errors import ExitCode, ModelError, UsageError
from fairgate.domain.wording import concealed, harmless
from fairgate.features.onnx_export.agreement import (
    answered_labels,
    compare_decoder,
    compare_embedder,
    explain,
)
from fairgate.features.onnx_export.int8_rows import Terms
from fairgate.features.onnx_export.precision import Precision, change_precision
from fairgate.io.git import writable
from fairgate.io.installation import requirement
from fairgate.io.tables import file_sha256
from fairgate.onnx.encoder_settings import TRANSFORMER_FILES, has_further_modules
from fairgate.onnx.model_folder import ModelFolder
from fairgate.terminal.options import cache_option, runtime_of

ExportTask = Literal["text-generation", "feature-extraction"]


def one_liner() -> str:
    """Return how an environment for exports is made and used."""
    return (
        "python -m venv .venv-export && "
        f".venv-export/bin/pip install {shlex.quote(requirement('export'))} && "
        ".venv-export/bin/fairgate export MODEL"
    )


_TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja",
)  # fmt: skip
_NEEDED = ("torch", "optimum", "onnx", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportChoice:
    """What is exported, and how."""

    task: ExportTask = "text-generation"
    precision: Precision = "fp32"
    revision: str | None = None
    """Commit, tag or branch of a Hugging Face model."""
    keep_anyway: bool = False
    """Keep an export that is not within its limits; its record says so."""


_PLAIN = ExportChoice()


def export_model(
    model: str, output: Path, choice: ExportChoice = _PLAIN, *, say: Callable[[str], object] = str
) -> dict[str, Any]:
    """Export `model` (Hugging Face id, local folder or GGUF file) into the new folder `output`.

    Returns what is also written to `output/provenance.json`: source, revision, versions,
    precision, the parity with the original and the sha256 of every file. Nothing is left behind
    where the export is not within the limits of its precision, unless the choice keeps it; then
    `say` receives how far it is beyond them. Raises UsageError (environment, arguments) or
    ModelError (download, conversion, parity).
    """
    _check_environment(choice)
    if writable(output, "--output").exists():
        raise UsageError(f"{str(output)!r} exists already. Choose another --output, or remove it.")
    output.parent.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-")
    with _quiet(), scratch as folder:
        decoder = choice.task == "text-generation"
        source = ExportSource(name=model, revision=choice.revision)
        source = without_gguf(source, Path(folder) / "original", decoder=decoder)
        source = checked_source(source, decoder=decoder)
        record = _export(source, Path(folder) / "model", choice)
        (Path(folder) / "model").rename(output)
    if not record["parity"].get("within_limits", True):
        say(f"kept all the same: {explain(model, choice.precision, record['parity'])}")
    return record


def _export(source: ExportSource, folder: Path, choice: ExportChoice) -> dict[str, Any]:
    """Write the folder and return its record."""
    _convert(source, folder, choice.task)
    _release_memory()
    if choice.precision == "int8-rows":
        parity = _in_integers(source, folder)
    else:
        change_precision(folder / "model.onnx", choice.precision)
        _release_memory()
        compare = compare_decoder if choice.task == "text-generation" else compare_embedder
        parity = compare(source.name, source.revision, ModelFolder.find(folder), choice.precision)
    if not parity.get("within_limits", True) and not choice.keep_anyway:
        raise ModelError(
            f"{explain(source.asked, choice.precision, parity)}; or add --keep-anyway to keep "
            "it as it is. Nothing was kept."
        )
    record = {
        "schema_version": 3,
        "source": source.shown,
        "revision": source.revision,
        "task": choice.task,
        "precision": choice.precision,
        "versions": {name: _version(name) for name in (*_NEEDED, "onnxruntime")},
        "parity": parity,
        "files": {
            file.relative_to(folder).as_posix(): file_sha256(str(file))
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        },
    }
    if source.gguf is not None:
        record["weights_from"] = f"GGUF ({weights_of(source.gguf)})"
    text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False)
    (folder / "provenance.json").write_text(text + "\n", encoding="utf-8")
    return record


def _in_integers(source: ExportSource, folder: Path) -> dict[str, Any]:
    """Store a decoder in `int8-rows` and return its parity.

    Activations get one term, which takes half of the products, where that is within the limits;
    else two.
    """
    answered = answered_labels(ModelFolder.find(folder))

    def parity(place: Path, terms: Terms) -> dict[str, Any]:
        change_precision(place / "model.onnx", "int8-rows", terms=terms)
        _release_memory()
        exported = ModelFolder.find(place)
        record = compare_decoder(source.name, source.revision, exported, "int8-rows", answered)
        return record | {"activation_terms": terms}

    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        trial = Path(shutil.copytree(folder, Path(scratch) / "trial"))
        record = parity(trial, 1)
        if record["within_limits"]:
            shutil.rmtree(folder)
            trial.rename(folder)
            return record
    return parity(folder, 2)


def _check_environment(choice: ExportChoice) -> None:
    if choice.precision == "int8-rows" and choice.task != "text-generation":
        raise UsageError(
            "--precision int8-rows is for decoders (--task text-generation): choose another "
            "precision for an encoder."
        )
    needed = [*_NEEDED]
    needed += ["onnx_ir"] if choice.precision in {"int8", "int4"} else []
    needed += ["sentence_transformers"] if choice.task == "feature-extraction" else []
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"exporting a model needs {', '.join(missing)}, which the gate's own environment does "
            f"not have on purpose. Export in an environment of its own:\n  {one_liner()}"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warnings of torch, optimum and the quantiser."""
    silenced = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(silenced)


def _convert(source: ExportSource, folder: Path, task: ExportTask) -> None:
    """Write the fp32 graph, tokenizer and settings of the model into `folder`."""
    from optimum.exporters.onnx import main_export

    let_graphs_take_positions()
    try:
        for name in source.extras():
            _copy(source.file(name), folder / name)
        main_export(
            source.name,
            output=folder,
            task="text-generation-with-past" if task == "text-generation" else task,
            library_name=_library(source, folder, task),
            revision=source.revision or "main",
            subfolder=source.subfolder,
            trust_remote_code=False,
            do_validation=False,
        )
        if task == "text-generation" and source.file("tokenizer.json") is not None:
            for name in _TOKENIZER:  # transformers writes its own reading of them
                _copy(source.file(name), folder / name)
    except ModelError:
        raise
    except Exception as error:  # noqa: BLE001 optimum, torch and transformers: no common class
        raise ModelError(
            f"{source.asked!r} cannot be converted ({reason_of(error)}). "
            + _advice(
                error,
                _CONVERTING,
                "The exporter cannot handle this model: choose another, "
                "or a repository that ships ONNX files.",
            )
        ) from None
    if not (folder / "model.onnx").is_file():
        names = ", ".join(sorted(file.name for file in folder.glob("*.onnx"))) or "no graph"
        raise ModelError(
            f"the export of {source.asked!r} gave {names} instead of one model.onnx. Models of "
            "more than one part (encoder and decoder) are not supported: choose another model."
        )


def let_graphs_take_positions() -> None:
    """Export Gemma and its kin (Gemma 2 and 3, GPT-OSS, Nemotron) with the input `position_ids`.

    Without it their graphs count the slots of the cache, padding included, so that prompts can
    neither be padded nor share what they begin with (optimum-onnx 0.1).
    """
    from optimum.exporters.onnx.model_configs import GemmaOnnxConfig

    before = super(GemmaOnnxConfig, GemmaOnnxConfig).inputs.fget
    sizes = {0: "batch_size", 1: "sequence_length"}
    GemmaOnnxConfig.inputs = property(lambda self: {**before(self), "position_ids": sizes})


def _library(source: ExportSource, folder: Path, task: ExportTask) -> str:
    """Return which library's model is traced: with all modules where the engine lacks some."""
    if task == "text-generation" or source.modules() == []:
        return "transformers"
    kind = (source.mapping(f"{source.subfolder}/config.json".lstrip("/")) or {}).get("model_type")
    with_decoder = kind in {"t5", "mt5", "umt5", "longt5"}
    unfinished = ModelFolder(path=folder, graph=folder / "model.onnx")
    traced = has_further_modules(unfinished) or with_decoder
    return "sentence_transformers" if traced else "transformers"


def _copy(file: Path | None, target: Path) -> None:
    if file is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _release_memory() -> None:
    """Free the memory of the last step: the next one needs as much again."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl has not
        if trim is not None:
            trim(0)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


_ORIGINAL = "original model, by its Hugging Face id."
_SMALL = ["*.json", "*.jinja", "*LICENSE"]
"""Names of what belongs to an export beside its weights; `*` stands for folders, too."""
_ALWAYS = ("LICENSE", "modules.json", "config_sentence_transformers.json", "1_Pooling/config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """Where the original is."""

    name: str
    revision: str | None = None
    gguf: Path | None = None
    """The file that the folder `name` was written from."""
    small_files: Path | None = None
    """Folder with the small files of a hub's model, once they are fetched."""

    def pinned(self) -> ExportSource:
        """Return the source at one commit, with its small files.

        Without a network the local cache decides. Raises what the hub raises for a name that it
        does not know.
        """
        if self.is_folder:
            return self
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(self.name, revision=self.revision, allow_patterns=_SMALL))
        return replace(self, revision=folder.name, small_files=folder)

    @property
    def is_folder(self) -> bool:
        """Return whether the model is a local folder."""
        return Path(self.name).is_dir()

    @property
    def asked(self) -> str:
        """Return the source's name in messages, as the user gave it."""
        return str(self.gguf or self.name)

    @property
    def shown(self) -> str:
        """Return the source's name in provenance: a folder's own, or the hub's."""
        return Path(self.asked).resolve().name if self.is_folder else self.name

    def file(self, name: str) -> Path | None:
        """Return a small file of the model; None where the model has none of that name."""
        path = (self.small_files or Path(self.name)) / name
        return path if path.is_file() else None

    def mapping(self, name: str) -> Any:
        """Return a small JSON file's content; None where the model has none of that name."""
        file = self.file(name)
        return None if file is None else json.loads(file.read_text(encoding="utf-8"))

    def modules(self) -> list[dict[str, Any]]:
        """Return the sentence-transformers modules; empty for a plain transformers model."""
        return [module for module in self.mapping("modules.json") or [] if isinstance(module, dict)]

    @property
    def subfolder(self) -> str:
        """Return where in the model its transformer is: old sentence-transformers use a folder."""
        modules = self.modules()
        return str(modules[0].get("path", "")) if modules else ""

    def extras(self) -> Iterator[str]:
        """Yield the small files that belong to an export where the model has them."""
        yield from _ALWAYS
        prefix = f"{self.subfolder}/" if self.subfolder else ""
        yield from (prefix + name for name in TRANSFORMER_FILES)
        for module in self.modules()[1:]:
            if module.get("path") not in (None, "", "1_Pooling"):
                yield f"{module['path']}/config.json"


def without_gguf(source: ExportSource, folder: Path, *, decoder: bool) -> ExportSource:
    """Return the source; of a GGUF file, or a folder with one, the model in fp32, in `folder`.

    transformers reads it: weights, tokenizer and chat template. Raises ModelError with its reason
    where it cannot.
    """
    path = Path(source.name)
    files = [path] if path.is_file() else sorted(path.glob("*.gguf"))
    files = [] if (path / "config.json").is_file() else [f for f in files if f.suffix == ".gguf"]
    if not files:
        return source
    if not decoder:
        raise ModelError(
            f"{str(files[0])!r} is a GGUF file, of which decoders are exported only. Export the "
            f"{_ORIGINAL}"
        )
    if len(files) > 1:
        names = ", ".join(file.name for file in files)[:300]
        raise ModelError(
            f"{source.name!r} has several GGUF files ({names}). Name the one to export; a model in "
            "several parts is exported from its original."
        )
    [file] = files
    try:
        import torch
        from gguf import GGUFReader
        from transformers import AutoModelForCausalLM, AutoTokenizer

        fields = GGUFReader(file).fields
        if "tokenizer.ggml.tokens" not in fields:
            raise LookupError("no tokenizer.ggml.tokens")  # noqa: TRY301 - told below
        location = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
        (tokenizer := AutoTokenizer.from_pretrained(**location)).save_pretrained(folder)
        split_by = type(tokenizer.backend_tokenizer.model).__name__
        if (fields["tokenizer.ggml.model"].contents(), split_by) == ("llama", "Unigram"):
            raise ValueError("transformers would split texts into other tokens")  # noqa: TRY301
        model: Any = AutoModelForCausalLM.from_pretrained(**location, dtype=torch.float32)
        model.save_pretrained(folder)
    except Exception as error:  # noqa: BLE001 transformers and gguf document no common class
        raise ModelError(
            f"{str(file)!r} cannot be read as a whole decoder with its tokenizer "
            f"({reason_of(error)}). Fetch it again, or export the {_ORIGINAL}"
        ) from None
    return ExportSource(name=str(folder), gguf=file)


def weights_of(file: Path) -> str:
    """Return the formats of a GGUF file's numbers, that of most of them first."""
    from gguf import GGUFReader

    numbers = Counter[str]()
    for tensor in GGUFReader(file).tensors:
        numbers[tensor.tensor_type.name] += int(tensor.n_elements)
    return ", ".join(name for name, _ in numbers.most_common())


def checked_source(source: ExportSource, *, decoder: bool) -> ExportSource:
    """Return the source at one commit, after checking that it is one that can be exported.

    Raises ModelError with advice for what is wrong: name, network, licence, own code, age,
    adapter, architecture.
    """
    from transformers import AutoConfig

    config_file = source.is_folder and source.file(f"{source.subfolder}/config.json".lstrip("/"))
    if not config_file and (source.is_folder or source.name[:1] in "./~" or ".gguf" in source.name):
        raise ModelError(
            f"{source.asked!r} is no folder with a config.json and no GGUF file. Check the name; a "
            "model of the Hugging Face hub is named by its id, such as org/model."
        )
    try:
        source = source.pinned()
        adapter = source.file("adapter_config.json")
        config = AutoConfig.from_pretrained(
            source.name, revision=source.revision or "main", subfolder=source.subfolder,
            trust_remote_code=False,
        )  # fmt: skip
    except Exception as error:  # noqa: BLE001 transformers and the hub document no common class
        raise ModelError(
            f"{source.asked!r} cannot be exported ({reason_of(error)}). "
            + _advice(
                error,
                _ASKING,
                "Check that the folder holds a transformers model: config.json and tokenizer.",
            )
        ) from None
    if adapter is not None:
        raise ModelError(
            f"{source.asked!r} has an adapter (adapter_config.json), which the graph would not "
            "contain. Merge it into the model first (`merge_and_unload` of peft) and export that."
        )
    if decoder and getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{source.asked!r} is a {config.model_type} model of encoder and decoder; the gate "
            "runs decoders alone. Choose a decoder, for example one of the Llama or Qwen families; "
            "an embedding model is exported with `--task feature-extraction`."
        )
    return source


def reason_of(error: Exception) -> str:
    """Return a library's message, in one line, without the hub's token."""
    from huggingface_hub import get_token

    message = concealed(" ".join(str(error).split()), [get_token() or ""])
    return f"{type(error).__name__}: {harmless(message[:400])}"


_CONVERTING = (
    (
        ("memory", "allocate"),
        "Not enough memory: an export takes about four times the weights in fp32.",
    ),
    (("no space left",), "The disk is full: the export takes about twice the weights in fp32."),
)
_ASKING = (
    (("gated", "401", "403"), "Accept the licence on the model's page and set HF_TOKEN."),
    (
        ("trust_remote_code", "custom code"),
        "The model needs its own code, which is never run here: choose another model.",
    ),
    (
        ("does not recognize this architecture", "unrecognized model"),
        "The transformers that exports (below 4.58) does not know this model: choose another.",
    ),
    (
        ("repositorynotfound", "not a valid model identifier", "404", "revisionnotfound"),
        "Check the name and the revision; a private model needs HF_TOKEN.",
    ),
    (("connect", "offline", "localentrynotfound", "timed out"), "Check the network."),
)
"""What a message contains, in lower case, and the next step that follows from it; first wins."""


def _advice(error: Exception, advice: tuple[tuple[tuple[str, ...], str], ...], default: str) -> str:
    message = f"{type(error).__name__} {error}".lower()
    return next((step for signs, step in advice if any(sign in message for sign in signs)), default)


@click.command(short_help="Turn a Hugging Face model into ONNX.")
@click.argument("model")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write (default: where policies find the model by its id).",
)  # fmt: skip
@click.option(
    "--task", type=click.Choice(get_args(ExportTask)),
    default="text-generation", show_default=True, help="Decoder or encoder.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(get_args(Precision)), default="fp32",
    show_default=True,
    help="int8, int4: weights in blocks, computed in float32; int8-rows: "
"multiplied in 8-bit integers.",
)  # fmt: skip
@click.option("--revision", help="Commit, tag or branch of a Hugging Face model.")
@click.option(
    "--keep-anyway", is_flag=True,
    help="Keep an export beyond its precision's limits.",
)  # fmt: skip
@cache_option
def export(model: str, output: Path | None, **options: Any) -> int:
    """Turn MODEL (a Hugging Face id, a folder or a GGUF file) into ONNX and compare both.

    An export is kept only if it begins with the same labels as the original and finds real prompts
    as likely, within the limits of its precision (docs/how-to/own-model.md). Takes about four times
    the memory of the weights in fp32.

    Needs torch and optimum in a separate environment: without them it prints how to make one.
    """
    from fairgate.onnx.model_folder import exported_folder

    runtime = runtime_of(options)
    choice = ExportChoice(**{name: options[name] for name in ExportChoice.__slots__})
    folder = output or exported_folder(model, runtime.cache / "models", choice.revision)
    record = export_model(model, folder, choice, say=click.echo)
    for name, figure in record["parity"].items():
        if name != "prompts":
            click.echo(f"  {name.replace('_', ' ')}: {figure}")
    click.echo(f"{folder}: name it, or {model!r}, as `model` or `embedder` in a policy")
    return ExitCode.PASS
