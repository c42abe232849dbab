"""Embeddings whose classes lie in different directions, and folders of small images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

Arrays = dict[str, NDArray[Any]]


def clusters(rows: int = 60, dim: int = 8, classes: int = 3, seed: int = 0) -> Arrays:
    """Rows around a centre for each class."""
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    generator = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    return {"embeddings": centres[labels] + generator.normal(size=(rows, dim)), "labels": labels}


@pytest.fixture
def image_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes class folders of images of different sizes, dark ones and bright ones."""

    def write(name: str = "images", parts: tuple[str, ...] = ("",), images: int = 6) -> Path:
        generator = np.random.default_rng(0)
        for part in parts:
            for number, kind in enumerate(("bright", "dark")):
                folder = tmp_path / name / part / kind
                folder.mkdir(parents=True)
                for image in range(images):
                    pixels = generator.integers(100 * (1 - number), 156 + 100 * (1 - number), (20 + image, 24, 3))
                    Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{image}.png")
        return tmp_path / name

    return write
