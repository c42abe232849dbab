"""The fetch stage: one cell per data set, run again exactly when something that matters has changed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.data.prepared import PreparedData, open_data
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.params import Compute, Data, Dataset, Fetch
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import Cell, fingerprint, run_cells
from softmax_temperature.runner.errors import CellsFailed, InputError
from softmax_temperature.stages import fetch

OPTIONS = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu"}
COMPUTE = Compute.model_validate({**OPTIONS, "checkpoint_seconds": 0, "ray_address": None, "gpus_per_cell": 0})


class SomeParams:
    """The sections that the stage reads."""

    def __init__(self, root: Path, *names: str, **limits: Any) -> None:
        self.data = Data(root=str(root), download=False)
        self.fetch = Fetch.model_validate({"validation_fraction": 0.2, "image_size_limit": 512})
        self.datasets = {name: Dataset(**limits) for name in names}
        self.seed = 0


def only_cell(params: SomeParams) -> Cell:
    [cell] = fetch.cells(params)  # type: ignore[arg-type]
    return cell


def fetched(params: SomeParams) -> PreparedData:
    run_cells(fetch.cells(params), output=fetch.OUTPUT, compute=COMPUTE, seed=0)  # type: ignore[arg-type]
    name = next(iter(params.datasets))
    return open_data(open_artifact(fetch.OUTPUT / name, kind="fetch"), root=Path(params.data.root))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with raw data: `birds.npz` and `imdb.jsonl`."""
    monkeypatch.chdir(tmp_path)
    raw = Path("räw data")
    raw.mkdir()
    write_birds(raw)
    lines = [
        f'{{"split": "{split}", "label": {n % 2}, "text": "{split} {n}"}}\n'
        for split in ("train", "test")
        for n in range(20)
    ]
    (raw / "imdb.jsonl").write_text("".join([*lines, '{"split": "test", "label": 1, "text": "A last one."}']))
    return raw


def write_birds(raw: Path, first_pixel: int = 0) -> None:
    images = np.arange(20 * 48, dtype=np.uint32).astype(np.uint8).reshape(20, 4, 4, 3)
    images[0, 0, 0] = first_pixel
    labels = np.arange(20) % 4
    np.savez(raw / "birds.npz", x_train=images, y_train=labels, x_test=images[:8], y_test=labels[:8])


def test_archives_of_one_kind_are_joined(root: Path) -> None:
    (root / "birds.npz").rename(root / "more_birds.npz")
    write_birds(root, first_pixel=1)
    images = fetched(SomeParams(root, "all_birds", source=["birds", "more_birds"]))
    assert [images.size(split) for split in SPLITS] == [32, 8, 16]
    first_pixels = torch.cat([images.part(split).data[:, 0, 0, 0] for split in ("train", "validation")])
    assert {0, 1} <= {*first_pixels.tolist()}
    assert images.card["source"]["file"] == "birds.npz, more_birds.npz"
    with pytest.raises(CellsFailed, match="data sets birds, imdb: cannot be joined"):
        fetched(SomeParams(root, "all_birds", source=["birds", "imdb"]))


def test_texts_go_from_archive_to_reader(root: Path) -> None:
    texts = fetched(SomeParams(root, "imdb", train_limit=10))
    assert [texts.size(split) for split in SPLITS] == [8, 2, 21]
    assert texts.texts("test").data[-1] == "A last one."
    assert texts.card["title"] == "IMDB (Large Movie Review Dataset)"


def test_pooled_texts_are_divided_anew(root: Path) -> None:
    pooled = fetched(SomeParams(root, "imdb", pool=True))
    # Of 20 and 21: a quarter of each class for test, and a fifth of the rest for validation.
    assert [pooled.size(split) for split in SPLITS] == [25, 6, 10]
    assert len({text for split in SPLITS for text in pooled.texts(split).data}) == 41
    assert {text.split()[0] for text in pooled.texts("test").data} >= {"train", "test"}, "of both parts of the source"
    assert pooled.card["split_rule"].startswith("25% of each class drawn for test")


def test_a_changed_archive_or_parameter_changes_the_cell(root: Path) -> None:
    before = only_cell(SomeParams(root, "birds"))
    other = only_cell(SomeParams(root, "birds", train_limit=8))
    assert fingerprint(before, 0) == fingerprint(only_cell(SomeParams(root, "birds")), 0) != fingerprint(other, 0)
    write_birds(root, first_pixel=99)
    assert fingerprint(before, 0) != fingerprint(only_cell(SomeParams(root, "birds")), 0)


def test_data_sets_that_are_missing_or_wrong_do_not_stop_the_others(root: Path) -> None:
    (root / "folders" / "train" / "crow").mkdir(parents=True)
    (root / "empty").mkdir()
    params = SomeParams(root, "mnist", "folders", "empty", "digits", "birds", "phrases")
    with pytest.raises(CellsFailed, match="mnist: not found in räw data, expected räw") as caught:
        fetched(params)
    assert set(caught.value.failures) == {"mnist", "folders", "empty"}
    assert "folders: holds train. Make train and test" in caught.value.failures["folders"]
    assert "data set empty: not found in räw data" in caught.value.failures["empty"]
    assert not fetch.OUTPUT.exists()
    done = Path("data/work/prepared").glob("*/*/result/card.json")
    assert {path.parts[3] for path in done} == {"digits", "birds", "phrases"}


def test_an_unknown_name_is_refused_before_any_cell_runs(root: Path) -> None:
    with pytest.raises(InputError, match=r"unknown data set 'bird'\. Did you mean 'birds'"):
        fetch.cells(SomeParams(root, "digits", "bird"))  # type: ignore[arg-type]
