"""The fetch stage: one cell a data set, run again exactly when something that matters has changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softmax_temperature.data.prepared import PreparedData, open_data
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.params import Compute, Data, Dataset, Fetch
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import Cell, fingerprint, run_cells
from softmax_temperature.runner.errors import CellsFailed, InputError
from softmax_temperature.stages import fetch

OUTPUT = Path("data/prepared")


class SomeParams:
    """The sections that the stage reads."""

    def __init__(self, root: Path, **limits: Any) -> None:
        self.data = Data(root=str(root), download=False)
        self.fetch = Fetch.model_validate({"validation_fraction": 0.2, "image_size_limit": 512})
        self.datasets = {
            name: Dataset(**limits) for name in ("digits", "glyphs-5", "birds", "mnist", "cifar10", "phrases", "imdb")
        }
        self.seed = 0


def only_cell(params: SomeParams, name: str) -> Cell:
    [cell] = fetch.cells(params, name)  # type: ignore[arg-type]
    return cell


def fetched(params: SomeParams, name: str) -> PreparedData:
    options = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu"}
    compute = Compute.model_validate({**options, "checkpoint_seconds": 0, "ray_address": None, "gpus_per_cell": 0})
    run_cells([only_cell(params, name)], output=OUTPUT / name, compute=compute, seed=params.seed)
    return open_data(open_artifact(OUTPUT / name, kind="fetch"), root=Path(params.data.root))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with raw data: `birds.npz`."""
    monkeypatch.chdir(tmp_path)
    write_birds(tmp_path / "räw data")
    return Path("räw data")


def write_birds(raw: Path, first_pixel: int = 0) -> None:
    raw.mkdir(exist_ok=True)
    images = np.arange(20 * 48, dtype=np.uint32).astype(np.uint8).reshape(20, 4, 4, 3)
    images[0, 0, 0] = first_pixel
    labels = np.arange(20) % 4
    np.savez(raw / "birds.npz", x_train=images, y_train=labels, x_test=images[:8], y_test=labels[:8])


def test_a_data_set_goes_from_archive_to_reader(root: Path) -> None:
    images = fetched(SomeParams(root), "birds")
    assert [images.size(split) for split in images.splits] == [16, 4, 8]
    assert images.card["source"]["sha256"] == only_cell(SomeParams(root), "birds").parameters["archive"]


@pytest.mark.parametrize("name", ["digits", "glyphs-5", "phrases"])
def test_built_in_data_need_no_root(root: Path, name: str) -> None:
    assert fetched(SomeParams(root / "absent"), name).card["source"]["sha256"] is None


def write_reviews(raw: Path, last: str = '"A last one."') -> None:
    rows = [
        f'{{"split": "{split}", "label": {n % 2}, "text": "{split} {n}"}}'
        for split in ("train", "test")
        for n in range(20)
    ]
    (raw / "imdb.jsonl").write_text("\n".join([*rows, f'{{"split": "test", "label": 1, "text": {last}}}']))


def test_texts_go_from_archive_to_reader(root: Path) -> None:
    write_reviews(root)
    texts = fetched(SomeParams(root, train_limit=10), "imdb")
    assert [len(texts.texts(split).labels) for split in texts.splits] == [8, 2, 21]
    assert list(texts.texts("test").texts)[-1] == "A last one."
    assert texts.card["source"]["sha256"] == only_cell(SomeParams(root), "imdb").parameters["archive"]
    assert texts.card["title"] == "IMDB (Large Movie Review Dataset)"


def test_pooled_texts_are_divided_anew(root: Path) -> None:
    write_reviews(root)
    kept = fetched(SomeParams(root), "imdb")
    everything = sorted(text for split in SPLITS for text in kept.texts(split).texts)
    pooled = fetched(SomeParams(root, pool=True), "imdb")
    parts = {split: pooled.texts(split).texts for split in SPLITS}
    # Of 20 and 21: a quarter of each class for test, and a fifth of the rest for validation.
    assert {split: len(some) for split, some in parts.items()} == {"train": 25, "validation": 6, "test": 10}
    assert sorted(text for some in parts.values() for text in some) == everything
    assert {text.split()[0] for text in parts["test"]} >= {"train", "test"}, "of both parts of the source"
    assert pooled.card["split_rule"].startswith("25% of each class drawn for test")


def test_images_are_not_pooled(root: Path) -> None:
    with pytest.raises(CellsFailed, match=r"datasets\.digits\.pool: is for texts: images keep"):
        fetched(SomeParams(root, pool=True), "digits")


def test_a_changed_archive_changes_the_cell(root: Path) -> None:
    before = fetched(SomeParams(root), "birds").artifact.digest
    write_birds(root, first_pixel=99)
    assert fetched(SomeParams(root), "birds").artifact.digest != before


def test_a_parameter_changes_the_fingerprint(root: Path) -> None:
    cell = only_cell(SomeParams(root), "digits")
    other = only_cell(SomeParams(root, train_limit=100), "digits")
    assert fingerprint(cell, 0) == fingerprint(only_cell(SomeParams(root), "digits"), 0)
    assert fingerprint(cell, 0) != fingerprint(other, 0)
    json.dumps(dict(cell.parameters))


def test_a_missing_data_set_fails_with_instructions_and_publishes_nothing(root: Path) -> None:
    with pytest.raises(CellsFailed, match=r"mnist: not found in räw data.*räw data/mnist.npz.*data.download: true"):
        fetched(SomeParams(root), "mnist")
    assert not (OUTPUT / "mnist").exists()


@pytest.mark.parametrize(("name", "remedy"), [("glyphs-6", "glyphs-5"), ("bird", "birds")])
def test_a_name_without_parameters_is_refused(root: Path, name: str, remedy: str) -> None:
    (root / "bird.npz").write_bytes(b"")
    with pytest.raises(InputError, match=f"Did you mean '{remedy}'"):
        fetch.cells(SomeParams(root), name)  # type: ignore[arg-type]


REAL = {
    "mnist": (10, 1, True),
    "cifar10": (10, 3, True),
    "omniglot": (1623, 1, True),
    "orl_faces": (38, 1, True),
    "devanagari": (104, 1, True),
    "caltech101": (101, 3, False),
    "dtd10": (10, 3, False),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.real_data(name)) for name in REAL])
def test_real_archives_are_read(project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    params = SomeParams(project_root / "data" / "raw", train_limit=3500, test_limit=100)
    params.datasets = {name: Dataset(train_limit=3500, test_limit=100)}
    images = fetched(params, name)
    assert (images.classes, images.channels, images.one_size) == REAL[name]
    assert images.size("test") == min(100, images.size("test"))
    batch = next(images.batches("test", 8))
    assert len({image.float().std().item() for image in batch}) == 8


REAL_TEXTS = {"imdb": (2, False, 0), "sst2": (2, True, 0), "newsgroups20": (20, False, 34)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.real_data(name)) for name in REAL_TEXTS])
def test_real_texts_are_read(project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    params = SomeParams(project_root / "data" / "raw")
    params.datasets = {name: Dataset(train_limit=400, test_limit=100)}
    texts = fetched(params, name)
    classes, own_validation, empty = REAL_TEXTS[name]
    assert texts.classes == classes
    assert (texts.card["validation_fraction"] is None) == own_validation
    assert texts.card["source"]["empty_texts_left_out"] == empty
    sizes = [len(texts.texts(split).labels) for split in texts.splits]
    assert sizes == ([400, 872, 100] if own_validation else [320, 80, 100])
    assert len({text for split in texts.splits for text in texts.texts(split).texts}) > 0.99 * sum(sizes)


@pytest.mark.real_data("sst_trees")
def test_the_treebank_has_the_sizes_of_the_paper(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    params = SomeParams(project_root / "data" / "raw")
    params.datasets = {"sst_trees": Dataset()}
    texts = fetched(params, "sst_trees")
    assert texts.form == "trees"
    assert [len(texts.texts(split).labels) for split in SPLITS] == [6920, 872, 1821]
    assert texts.card["source"]["neutral_sentences_left_out"] == 1624 + 229 + 389
