from pathlib import Path

import pytest

from fairgate.domain.errors import DataError
from fairgate.domain.ports import Runtime
from fairgate.systems.corpora import find_table, named_on_hub, token_counter


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Return the folder that stands for the hub, with a folder for each of its datasets."""

    def download(name, *, repo_type, allow_patterns):
        folder = tmp_path / "hub" / name
        if not folder.is_dir() or repo_type != "dataset":
            raise OSError("offline")
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return tmp_path / "hub"


def dataset(root: Path, name: str, *files: str) -> Path:
    for file in files:
        path = root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\nA text.\n")
    return root / name


def test_the_only_table_of_a_dataset_is_taken_and_one_of_several_has_to_be_named(hub, tmp_path):
    runtime = Runtime(root=tmp_path)
    folder = dataset(hub, "org/toxic", "data/train.csv")
    assert find_table("corpora", "org/toxic", runtime) == folder / "data/train.csv"
    folder = dataset(hub, "org/others", "train.csv", "test.csv")
    with pytest.raises(DataError, match=r"2 tables \(test.csv, train.csv\)"):
        find_table("corpora", "org/others", runtime)
    assert find_table("corpora", "org/others/test.csv", runtime) == folder / "test.csv"
    with pytest.raises(DataError, match="offline"):
        find_table("sources", "org/nothing", runtime)


@pytest.mark.parametrize(
    "name", ["demo", "missing.csv", "data/missing.csv", "../up/x.csv", "/abs/x"]
)
def test_paths_and_embedded_names_are_never_looked_up_on_the_hub(name, tmp_path):
    (tmp_path / "data").mkdir()
    assert named_on_hub(name, Runtime(root=tmp_path)) is None


def test_a_tokenizer_outside_a_confined_root_is_refused(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="leads out of"):
        token_counter("../tokenizer.json", Runtime(root=root, confined=True))
    assert token_counter("../tokenizer.json", Runtime(root=root)).name == "../tokenizer.json"
