"""The model that is exported: a folder or a Hugging Face id, its small files and its size."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import concealed, harmless
from fairgate.onnx.encoder_settings import TRANSFORMER_FILES

_WEIGHT_BYTES = {"float16": 2, "bfloat16": 2, "float64": 8}
_ALWAYS = ("LICENSE", "modules.json", "config_sentence_transformers.json", "1_Pooling/config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """Where the original is. Files of a hub's model are fetched one by one, when asked for."""

    name: str
    revision: str | None = None

    def pinned(self) -> ExportSource:
        """Return the source at one commit, so that all its files belong together.

        Without a network the local cache decides. Raises whatever the hub raises for a name that
        it does not know.
        """
        if self.is_folder:
            return self
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        try:
            commit = HfApi().model_info(self.name, revision=self.revision).sha
        except HfHubHTTPError:
            raise
        except Exception:  # noqa: BLE001 no network; the hub's HTTP library differs by its version
            return self
        return replace(self, revision=commit)

    @property
    def is_folder(self) -> bool:
        """Return whether the model is a local folder."""
        return Path(self.name).is_dir()

    @property
    def shown(self) -> str:
        """Return what provenance calls the source: a folder's own name, or the hub's."""
        return Path(self.name).resolve().name if self.is_folder else self.name

    def file(self, name: str) -> Path | None:
        """Return a small file of the model; None where the model has none of that name.

        Raises whatever the hub raises where it cannot be asked.
        """
        if self.is_folder:
            found = Path(self.name) / name
            return found if found.is_file() else None
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        known = try_to_load_from_cache(self.name, name, revision=self.revision)
        if known is not None:  # a path, or the mark that there is no such file
            return Path(known) if isinstance(known, str) else None
        try:
            return Path(hf_hub_download(self.name, name, revision=self.revision))
        except LocalEntryNotFoundError:  # not asked, so unknown
            raise
        except EntryNotFoundError:
            return None

    def mapping(self, name: str) -> Any:
        """Return a small JSON file's content; None where the model has none of that name."""
        file = self.file(name)
        return None if file is None else json.loads(file.read_text(encoding="utf-8"))

    def modules(self) -> list[dict[str, Any]]:
        """Return the sentence-transformers modules; empty for a plain transformers model."""
        found = self.mapping("modules.json") or []
        return [one for one in found if isinstance(one, dict)]

    @property
    def subfolder(self) -> str:
        """Return where in the model its transformer is: old sentence-transformers use a folder."""
        modules = self.modules()
        return str(modules[0].get("path", "")) if modules else ""

    def extras(self) -> Iterator[str]:
        """Yield the small files that belong to an export where the model has them."""
        yield from _ALWAYS
        place = f"{self.subfolder}/" if self.subfolder else ""
        yield from (place + name for name in TRANSFORMER_FILES)
        for module in self.modules()[1:]:
            if module.get("path") not in (None, "", "1_Pooling"):
                yield f"{module['path']}/config.json"

    def fp32_bytes(self) -> int | None:
        """Return how many bytes the weights take in fp32; None where it is not known."""
        try:
            return self._folder_bytes() if self.is_folder else self._hub_bytes()
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _folder_bytes(self) -> int | None:
        folder = Path(self.name) / self.subfolder
        files = sorted(folder.glob("*.safetensors"))
        if files:
            return 4 * sum(_elements(file) for file in files)
        kind = (self.mapping("config.json") or {}).get("torch_dtype")
        size = sum(file.stat().st_size for file in folder.glob("pytorch_model*.bin"))
        return size * 4 // _WEIGHT_BYTES.get(str(kind), 4) or None

    def _hub_bytes(self) -> int | None:
        from huggingface_hub import get_safetensors_metadata
        from huggingface_hub.errors import HfHubHTTPError, NotASafetensorsRepoError

        try:
            found = get_safetensors_metadata(self.name, revision=self.revision)
        except (HfHubHTTPError, NotASafetensorsRepoError):
            return None
        return 4 * int(sum(found.parameter_count.values()))


def memory_line(source: ExportSource) -> str:
    """Return how much memory the export needs and how much there is, as one sentence."""
    weights = source.fp32_bytes()
    there = available_memory()
    if weights is None:
        return "the export needs about 4 times the memory of the weights in fp32"
    line = (
        f"the export needs about {_gigabytes(4 * weights)} of memory, 4 times the weights in fp32 "
        f"({_gigabytes(weights)})"
    )
    if there is None:
        return line
    if there < 4 * weights:
        return f"{line}; only {_gigabytes(there)} are available: it may be killed half-way"
    return f"{line}; {_gigabytes(there)} are available"


def available_memory() -> int | None:
    """Return the bytes of memory that this process may still take; None where it is not known."""
    limits = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    except (OSError, ValueError):
        pass
    try:
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text(encoding="ascii"))
        limits.append(most - int((group / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        pass  # no limit, or another system
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def checked_source(source: ExportSource, *, decoder: bool) -> ExportSource:
    """Return the source at one commit, after checking that it is one that can be exported.

    Raises ModelError with advice for what is wrong: name, network, licence, own code, age,
    adapter, architecture.
    """
    from transformers import AutoConfig

    if source.is_folder and source.file(f"{source.subfolder}/config.json".lstrip("/")) is None:
        raise ModelError(
            f"{source.name!r} is a folder without a config.json, expected a transformers model "
            "with config.json, tokenizer and weights. Check the name."
        )
    try:
        source = source.pinned()
        adapter = source.file("adapter_config.json")
        config = AutoConfig.from_pretrained(
            source.name,
            revision=source.revision or "main",
            subfolder=source.subfolder,
            trust_remote_code=False,
        )
    except Exception as error:  # noqa: BLE001 transformers and the hub document no common class
        raise ModelError(
            f"{source.name!r} cannot be exported ({reason_of(error)}). {_advice(error)}"
        ) from None
    if adapter is not None:
        raise ModelError(
            f"{source.name!r} has an adapter (adapter_config.json), which the graph would not "
            "contain. Merge it into the model first (`merge_and_unload` of peft) and export that."
        )
    if decoder and getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{source.name!r} is a {config.model_type} model of encoder and decoder; the gate runs "
            "decoders alone. Choose a decoder, for example a model of the Llama or Qwen families; "
            "an embedding model is exported with `--task feature-extraction`."
        )
    return source


def reason_of(error: Exception) -> str:
    """Return a library's message, in one line, without the hub's token."""
    from huggingface_hub import get_token

    message = concealed(" ".join(str(error).split()), [get_token() or ""])
    return f"{type(error).__name__}: {harmless(message[:400])}"


def _advice(error: Exception) -> str:
    message = f"{type(error).__name__} {error}".lower()
    for signs, step in (
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
    ):
        if any(sign in message for sign in signs):
            return step
    return "Check that the folder holds a transformers model with its config.json and tokenizer."


def _elements(file: Path) -> int:
    """Return how many numbers a safetensors file holds."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as weights:
            shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    return sum(math.prod(shape) for shape in shapes)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"
