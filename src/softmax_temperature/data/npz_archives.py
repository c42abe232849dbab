"""Archives of arrays: `NAME.npz` with x_train, y_train, x_test, y_test and perhaps class_names."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

_REQUIRED = ("x_train", "y_train", "x_test", "y_test")
_FORM = (
    "Save it with numpy.savez: x_train and x_test uint8 of shape (n, height, width) or (n, height, width, 1 or 3), "
    "y_train and y_test integers of shape (n,), class_names (optional) text of shape (classes,). Without training "
    "images (n = 0) it can be an out-of-distribution set and nothing else."
)


@dataclass(frozen=True)
class NpzArchive:
    """One `NAME.npz` below data.root."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The archive file."""
        return self.root / f"{self.name}.npz"

    def digest(self) -> str:
        """The sha256 of the archive file."""
        return digest_of_file(self.path)

    def read(self) -> RawDataset:
        """Load and check the archive.

        Labels with `class_names` number the names. Without, the distinct labels of y_train are the classes, in
        ascending order; those of y_test when there are no training images.

        Raises:
            InputError: the archive is damaged, or its arrays are not of the stated form.
        """
        arrays = self._load()
        images = {part: self._images(arrays, f"x_{part}") for part in ("train", "test")}
        if images["train"].shape[1:] != images["test"].shape[1:]:
            shapes = " and ".join(str(array.shape[1:]) for array in images.values())
            self._refuse(f"x_train and x_test differ in image shape: {shapes}")
        labels = {part: self._labels(arrays, f"y_{part}", len(images[part])) for part in ("train", "test")}
        first = "train" if len(images["train"]) else "test"
        if "class_names" in arrays:
            names = tuple(str(name) for name in arrays["class_names"])
        else:
            known = np.unique(labels[first])
            names = tuple(str(label) for label in known)
            if unknown := sorted({*labels["test"].tolist()} - {*known.tolist()}):
                self._refuse(f"y_test has classes that y_train has not: {_some(unknown)}")
            labels = {part: np.searchsorted(known, column) for part, column in labels.items()}
        self._check_classes(labels, names, first)
        train, test = (RawPart(images[part], labels[part]) for part in ("train", "test"))
        return RawDataset(self.name, names, train, test, {"how": "archive in data.root", "file": self.path.name})

    def _load(self) -> dict[str, NDArray[Any]]:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                if missing := [key for key in _REQUIRED if key not in file.files]:
                    self._refuse(f"has no {', '.join(missing)} (it holds: {', '.join(file.files) or 'nothing'})")
                return {key: file[key] for key in (*_REQUIRED, "class_names") if key in file.files}
        except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            self._refuse(f"not readable as an npz archive ({error})")

    def _images(self, arrays: dict[str, NDArray[Any]], key: str) -> NDArray[np.uint8]:
        images = arrays[key]
        if images.dtype != np.uint8:
            self._refuse(f"{key} is {images.dtype}, not uint8 from 0 to 255")
        if images.ndim == 3:
            images = images[..., None]
        empty = images.shape[int(key == "x_train") :]  # Training images may be missing.
        if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in empty:
            self._refuse(f"{key} has shape {arrays[key].shape}")
        return images

    def _labels(self, arrays: dict[str, NDArray[Any]], key: str, images: int) -> NDArray[np.int64]:
        labels = arrays[key]
        if labels.shape != (images,):
            self._refuse(f"{key} has shape {labels.shape} for {images} images")
        if labels.dtype.kind not in "iu" and images:
            self._refuse(f"{key} is {labels.dtype}, not integers")
        return labels.astype(np.int64)

    def _check_classes(self, labels: dict[str, NDArray[np.int64]], names: tuple[str, ...], first: str) -> None:
        if len(set(names)) < len(names):
            self._refuse("class_names has the same name twice")
        for part, column in labels.items():
            if len(column) and (column.min() < 0 or column.max() >= len(names)):
                found = f"labels from {column.min()} to {column.max()}"
                self._refuse(f"y_{part} has {found}, class_names has {len(names)} names")
        if len(names) < 2:
            self._refuse("all images are of one class")
        counts = np.bincount(labels["train"], minlength=len(names))
        if first == "train" and not counts.all():
            self._refuse(f"y_train has no image of {_some([names[number] for number in np.flatnonzero(counts == 0)])}")

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(what, where=str(self.path), remedy=_FORM)


def _some(values: list[Any]) -> str:
    return ", ".join(str(value) for value in values[:5]) + (", ..." if len(values) > 5 else "")
