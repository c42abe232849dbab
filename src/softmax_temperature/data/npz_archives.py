"""Archives of arrays: `NAME.npz` with x_train, y_train, x_test, y_test and perhaps class_names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from softmax_temperature.array_files.array_file import BadFile
from softmax_temperature.array_files.memory import too_large
from softmax_temperature.array_files.numpy_files import NpzFile
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_REQUIRED = ("x_train", "y_train", "x_test", "y_test")
_COPIES = 3
"""Of the bytes as they are: all of them, those of a split with channels first, and these as they are stored."""
_FORM = (
    "Save it with numpy.savez: x_train and x_test uint8 of shape (n, height, width) or (n, height, width, 1 or 3), "
    "y_train and y_test integers of shape (n,), class_names (optional) text of shape (classes,)."
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
        """Load and check the archive; nothing in it is unpickled.

        Labels with `class_names` number the names. Without, the distinct labels of y_train are the classes, in
        ascending order.

        Raises:
            InputError: the archive is damaged, or its arrays are not of the stated form.
        """
        arrays = self._load()
        images = {part: self._images(arrays, f"x_{part}") for part in ("train", "test")}
        if images["train"].shape[1:] != images["test"].shape[1:]:
            self._refuse(f"x_train and x_test differ in image shape: {_shapes(images['train'], images['test'])}")
        labels = {part: self._labels(arrays, f"y_{part}", len(images[part])) for part in ("train", "test")}
        names = self._class_names(arrays) or tuple(str(label) for label in np.unique(labels["train"]))
        if "class_names" not in arrays:
            labels = self._renumbered(labels)
        self._check_classes(labels, names)
        train, test = (RawPart(images[part], labels[part]) for part in ("train", "test"))
        return RawDataset(self.name, names, train, test, {"how": "archive in data.root", "file": self.path.name})

    def _load(self) -> dict[str, Any]:
        try:
            file = NpzFile(self.path, "x_train")
            wanted = [key for key in (*_REQUIRED, "class_names") if key in file.names()]
            if missing := [key for key in _REQUIRED if key not in wanted]:
                self._refuse(f"has no {', '.join(missing)} (it holds: {', '.join(file.names()) or 'nothing'})")
            if excess := too_large(sum(file.header(key).bytes for key in wanted), bytes_each=_COPIES):
                self._refuse(excess)
            return file.load(wanted)
        except (BadFile, OSError) as error:
            self._refuse(str(error))

    def _images(self, arrays: dict[str, Any], key: str) -> NDArray[np.uint8]:
        images = np.asarray(arrays[key])
        if images.dtype != np.uint8:
            has_nan = images.dtype.kind == "f" and bool(np.isnan(images).any())
            self._refuse(f"{key} is {images.dtype}{' and holds NaN' if has_nan else ''}, not uint8 from 0 to 255")
        if images.ndim == 3:
            images = images[..., None]
        if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in images.shape:
            self._refuse(f"{key} has shape {np.shape(arrays[key])}")
        return images

    def _labels(self, arrays: dict[str, Any], key: str, images: int) -> NDArray[np.int64]:
        labels = np.asarray(arrays[key])
        if labels.dtype.kind not in "iu":
            self._refuse(f"{key} is {labels.dtype}, not integers")
        if labels.shape != (images,):
            self._refuse(f"{key} has shape {labels.shape} for {images} images")
        return labels.astype(np.int64)

    def _class_names(self, arrays: dict[str, Any]) -> tuple[str, ...] | None:
        if "class_names" not in arrays:
            return None
        names = np.asarray(arrays["class_names"])
        if names.dtype.kind != "U" or names.ndim != 1:
            self._refuse(f"class_names is {names.dtype} of shape {names.shape}, not a row of text")
        if len(set(names.tolist())) < len(names):
            self._refuse("class_names has the same name twice")
        return tuple(names.tolist())

    def _renumbered(self, labels: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
        known = np.unique(labels["train"])
        if unknown := sorted(set(labels["test"].tolist()) - set(known.tolist())):
            self._refuse(f"y_test has classes that y_train has not: {_some(unknown)}")
        return {part: np.searchsorted(known, column).astype(np.int64) for part, column in labels.items()}

    def _check_classes(self, labels: dict[str, NDArray[np.int64]], names: tuple[str, ...]) -> None:
        for part, column in labels.items():
            if column.min() < 0 or column.max() >= len(names):
                found = f"labels from {column.min()} to {column.max()}"
                self._refuse(f"y_{part} has {found}, class_names has {len(names)} names")
        if len(names) < 2:
            self._refuse("all images are of one class")
        if empty := np.flatnonzero(np.bincount(labels["train"], minlength=len(names)) == 0).tolist():
            self._refuse(f"y_train has no image of {_some([names[number] for number in empty])}")

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(what, where=str(self.path), remedy=_FORM)


def _shapes(*arrays: NDArray[np.uint8]) -> str:
    return " and ".join(str(array.shape[1:]) for array in arrays)


def _some(values: list[Any]) -> str:
    return ", ".join(str(value) for value in values[:5]) + (", ..." if len(values) > 5 else "")
