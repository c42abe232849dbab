"""Small data sets in three formats that users may have: npz, folders and jsonl."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from softmax_temperature.data.division import Rules
from softmax_temperature.data.prepare import prepare
from softmax_temperature.data.prepared import PreparedData
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.runner.artifacts import new_artifact, open_artifact

Write = Callable[..., Path]
PIXELS = np.random.default_rng(0).integers(0, 256, (18, 12, 12, 3), dtype=np.uint8)


@pytest.fixture
def write_npz(tmp_path: Path) -> Write:
    """A function that writes `birds.npz`: 12 training and 6 test images of 3 classes.

    Its keyword arguments replace arrays; None omits an array.
    """

    def write(name: str = "birds", **replaced: Any) -> Path:
        images = {"x_train": PIXELS[:12, :5, :4], "x_test": PIXELS[12:, :5, :4]}
        arrays = {
            **images,
            "y_train": np.arange(12) % 3,
            "y_test": np.arange(6) % 3,
            **replaced,
        }
        path = tmp_path / f"{name}.npz"
        np.savez(
            path, **{key: value for key, value in arrays.items() if value is not None}
        )
        return path

    return write


@pytest.fixture
def write_folders(tmp_path: Path) -> Write:
    """A function that writes `birds/PART/CLASS/N.png` and returns the folder `birds`.

    The RGB images have several sizes. For each part, a keyword argument gives the
    number of images of each class.
    """

    def write(name: str = "birds", **parts: dict[str, int]) -> Path:
        for part, classes in (
            parts or {"train": {"crow": 4, "wren": 3}, "test": {"crow": 2, "wren": 1}}
        ).items():
            for label, count in classes.items():
                (tmp_path / name / part / label).mkdir(parents=True)
                for number in range(count):
                    image = Image.fromarray(PIXELS[number, : 6 + number, : 11 - number])
                    image.save(tmp_path / name / part / label / f"{number}.png")
        return tmp_path / name

    return write


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Write:
    """A function that writes rows to `talk.jsonl`: objects as JSON, bytes unchanged."""

    def write(*rows: Any, name: str = "talk") -> Path:
        path = tmp_path / f"{name}.jsonl"
        lines = [
            row
            if isinstance(row, bytes)
            else json.dumps(row, ensure_ascii=False).encode()
            for row in rows
        ]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return write


@pytest.fixture
def prepare_data(tmp_path: Path) -> Callable[..., PreparedData]:
    """A function that prepares raw data below the test's folder and opens the result.

    Its keyword arguments limit the numbers of samples.
    """

    def prepare_and_open(
        raw: RawDataset, name: str | None = None, **limits: Any
    ) -> PreparedData:
        none = {
            "train_limit": None,
            "test_limit": None,
            "class_limit": None,
            "image_size_limit": None,
        }
        rules = Rules(**{**none, "validation_fraction": 0.25, "seed": 0, **limits})
        place = tmp_path / "prepared" / (name or raw.name)
        with new_artifact(place, kind="prepared", about={}) as output:
            prepare(raw, rules, root=tmp_path, output=output, name=name)
        return PreparedData(open_artifact(place, kind="prepared"), root=tmp_path)

    return prepare_and_open
