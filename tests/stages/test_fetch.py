"""The stage fetch has one cell per data set, which reruns only if its inputs change."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.data.prepared import PreparedData
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.params.shared import Data, Dataset, Fetch
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import fingerprint, run_cells
from softmax_temperature.runner.errors import CellsFailed
from softmax_temperature.runner.section import Compute
from softmax_temperature.stages.fetch import fetch

OPTIONS = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu"}
COMPUTE = Compute.model_validate(
    {**OPTIONS, "checkpoint_seconds": 0, "ray_address": None, "gpus_per_cell": 0}
)


class SomeParams:
    """The sections of params.yaml that the stage fetch reads."""

    def __init__(self, root: Path, *names: str, **limits: Any) -> None:
        self.data = Data(root=str(root), download=False)
        self.fetch = Fetch.model_validate(
            {"validation_fraction": 0.2, "image_size_limit": 512}
        )
        self.datasets = {name: Dataset(**limits) for name in names}
        self.seed = 0

    def datasets_to_prepare(self) -> dict[str, Dataset]:
        return self.datasets


def fetched(params: SomeParams) -> PreparedData:
    run_cells(fetch.cells(params), output=fetch.output, compute=COMPUTE, seed=0)  # type: ignore[arg-type]
    name = next(iter(params.datasets))
    return PreparedData(
        open_artifact(fetch.output / name, kind="prepared"), root=Path(params.data.root)
    )


def sizes(data: PreparedData) -> list[int]:
    return [len(data.labels(split)) for split in SPLITS]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The raw-data folder of a new project, with `birds.npz` and `imdb.jsonl`."""
    monkeypatch.chdir(tmp_path)
    raw = Path("räw data")
    raw.mkdir()
    write_birds(raw)
    rows = [
        {"split": split, "label": n % 2, "text": f"{split} {n}"}
        for split in ("train", "test")
        for n in range(20)
    ]
    rows.append({"split": "test", "label": 1, "text": "A last one."})
    (raw / "imdb.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return raw


def write_birds(raw: Path, first_pixel: int = 0) -> None:
    images = np.arange(20 * 48, dtype=np.uint32).astype(np.uint8).reshape(20, 4, 4, 3)
    images[0, 0, 0] = first_pixel
    labels = np.arange(20) % 4
    np.savez(
        raw / "birds.npz",
        x_train=images,
        y_train=labels,
        x_test=images[:8],
        y_test=labels[:8],
    )


def test_archives_of_one_kind_are_joined(root: Path) -> None:
    (root / "birds.npz").rename(root / "more_birds.npz")
    write_birds(root, first_pixel=1)
    images = fetched(SomeParams(root, "all_birds", source=["birds", "more_birds"]))
    assert sizes(images) == [32, 8, 16]
    first_pixels = torch.cat(
        [images.part(split).data[:, 0, 0, 0] for split in ("train", "validation")]
    )
    assert {0, 1} <= {*first_pixels.tolist()}
    assert images.card["source"]["file"] == "birds.npz, more_birds.npz"
    with pytest.raises(CellsFailed, match="data sets birds, imdb: cannot be joined"):
        fetched(SomeParams(root, "all_birds", source=["birds", "imdb"]))


def test_texts_keep_their_sources_split_or_are_pooled_and_split_again(
    root: Path,
) -> None:
    texts = fetched(SomeParams(root, "imdb", train_limit=10))
    assert sizes(texts) == [8, 2, 21]
    assert texts.texts("test").data[-1] == "A last one."
    assert texts.card["title"] == "IMDB (Large Movie Review Dataset)"
    pooled = fetched(SomeParams(root, "imdb", pool=True))
    # The classes have 20 and 21 rows. A quarter of each class goes to the test part,
    # then a fifth of the rest to the validation part.
    assert sizes(pooled) == [25, 6, 10]
    assert len({text for split in SPLITS for text in pooled.texts(split).data}) == 41
    assert {text.split()[0] for text in pooled.texts("test").data} >= {
        "train",
        "test",
    }, "the test part lacks rows of a source part"


def test_a_changed_archive_or_parameter_changes_the_cell(root: Path) -> None:
    def print_of(**limits: Any) -> str:
        [cell] = fetch.cells(SomeParams(root, "birds", **limits))  # type: ignore[arg-type]
        return fingerprint(cell, 0)

    before = print_of()
    assert before == print_of() != print_of(train_limit=8)
    write_birds(root, first_pixel=99)
    assert print_of() != before


def test_data_sets_that_are_missing_or_wrong_do_not_stop_the_others(root: Path) -> None:
    (root / "folders" / "train" / "crow").mkdir(parents=True)
    (root / "empty").mkdir()
    with pytest.raises(
        CellsFailed, match="mnist: not found in räw data, expected räw"
    ) as caught:
        fetched(
            SomeParams(root, "mnist", "folders", "empty", "digits", "birds", "phrases")
        )
    assert set(caught.value.failures) == {"mnist", "folders", "empty"}
    assert (
        "folders: holds train. Make train and test" in caught.value.failures["folders"]
    )
    assert not fetch.output.exists()
    done = Path("data/cells/prepared").glob("*/*/result/card.json")
    assert {path.parts[3] for path in done} == {"digits", "birds", "phrases"}


def break_link(root: Path) -> None:
    (root / "broken" / "all" / "crow" / "x.png").symlink_to(root / "nowhere")


def name_in_latin_1(root: Path) -> None:
    (root / "broken" / "all" / "crow" / os.fsdecode(b"K\xe4fer.png")).write_bytes(b"")


def write_half_a_character(root: Path) -> None:
    line = r'{"split": "train", "label": 0, "text": "\ud800"}'
    (root / "broken.jsonl").write_text(line)


def nest_deeply(root: Path) -> None:
    (root / "broken.jsonl").write_text(100_000 * "[")


@pytest.mark.parametrize(
    "spoil", [break_link, name_in_latin_1, write_half_a_character, nest_deeply]
)
def test_a_broken_file_stops_only_its_own_data_set(
    root: Path, spoil: Callable[[Path], None]
) -> None:
    (root / "broken" / "all" / "crow").mkdir(parents=True)
    spoil(root)
    with pytest.raises(CellsFailed) as caught:
        fetched(SomeParams(root, "broken", "birds"))
    assert set(caught.value.failures) == {"broken"}
    assert "räw data/broken" in caught.value.failures["broken"]
    assert "Traceback" not in caught.value.failures["broken"]
    done = Path("data/cells/prepared").glob("*/*/result/card.json")
    assert {path.parts[3] for path in done} == {"birds"}
