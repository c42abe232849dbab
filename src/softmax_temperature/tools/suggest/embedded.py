"""A user's labelled embeddings: rows to describe and train on, and perhaps others to test on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.array_files import read_arrays
from softmax_temperature.data.sampling import generator_for, stratified_holdout
from softmax_temperature.runner.artifacts import atomic_file
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from softmax_temperature.cosine_classifier import TemperatureGridTrainer

HELD_OUT = 0.25  # of every class, to measure accuracy on where there are no test rows; as for data sets without a split
_FORM = "Embeddings are floating point of shape (n, dim), labels integers of shape (n,)."


@dataclass(frozen=True)
class EmbeddingFiles:
    """The files that a user names.

    Attributes:
        embeddings: with `embeddings` and `labels`, perhaps `test_embeddings` and `test_labels`.
        labels: the file with the labels, if they lie apart.
        test: a second file of embeddings and labels, to test on.
        test_labels: the file with its labels, likewise.
    """

    embeddings: Path
    labels: Path | None = None
    test: Path | None = None
    test_labels: Path | None = None


@dataclass(frozen=True)
class Embedded:
    """Checked embeddings.

    Attributes:
        train: embeddings, shape (n, dim), float32, none of them zero; classes, shape (n,), int64, from 0.
        test: the same for the rows to test on, of the same classes; None if there are none.
    """

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor] | None

    @property
    def described(self) -> tuple[Tensor, Tensor]:
        """The rows that statistics are computed of."""
        return self.train

    @property
    def train_rows(self) -> int:
        """How many rows there are to train on."""
        return len(self.train[1])

    @property
    def test_rows(self) -> int:
        """How many rows there are to test on."""
        return len(self.test[1]) if self.test else 0

    def accuracy_of(self, trainer: TemperatureGridTrainer) -> Callable[[], Tensor]:
        """What says how good the trainer's classifiers are now, on the rows to test on."""
        assert self.test is not None
        test = trainer.checked_test(*self.test)
        return lambda: trainer.evaluate(*test)

    def with_test(self, seed: int) -> tuple[Embedded, bool]:
        """The same with test rows, and whether they had to be held out of the rows to train on.

        Raises:
            InputError: no class has a row to spare.
        """
        if self.test is not None:
            return self, False
        embeddings, classes = self.train
        chosen = stratified_holdout(classes.numpy(), HELD_OUT, generator_for(seed, "suggest", "held out"))
        if not chosen.any():
            what = "no class has a second row to measure accuracy on"
            raise InputError(what, where="--verify", remedy="Give more rows of each class, or test rows.")
        mask = torch.from_numpy(chosen)
        return Embedded((embeddings[~mask], classes[~mask]), (embeddings[mask], classes[mask])), True


def read_embedded(files: EmbeddingFiles) -> Embedded:
    """Read the files and check what they hold; classes are numbered from 0 in the order of their labels.

    Raises:
        InputError: a file or an array is not as it should be.
    """
    if files.test_labels and not files.test:
        raise InputError("is given without --test", where="--test-labels", remedy="Give both.")
    train = _arrays(files.embeddings, files.labels, optional=("test_embeddings", "test_labels"))
    if files.test:
        if own := [key for key in train if key.startswith("test_")]:
            what = f"is given, and {files.embeddings} holds {own[0]} of its own"
            raise InputError(what, where="--test", remedy="Leave it out.")
        test, where = _arrays(files.test, files.test_labels), files.test
    else:
        test = {key.removeprefix("test_"): train.pop(key) for key in list(train) if key.startswith("test_")}
        where = files.embeddings
        if len(test) == 1:
            _refuse(where, f"has test_{next(iter(test))} alone, of test_embeddings and test_labels")
    return embedded(train, test or None, (files.embeddings, where))


def embedded(
    train: dict[str, NDArray[Any]], test: dict[str, NDArray[Any]] | None, places: tuple[Path, Path]
) -> Embedded:
    """Check arrays `embeddings` and `labels`.

    Args:
        train: of the rows to describe and train on.
        test: of the rows to test on.
        places: where each came from, for the error.

    Raises:
        InputError: an array is not as it should be.
    """
    names = np.unique(_labels(train, places[0], "labels"))
    if not 2 <= len(names) < len(train["labels"]):
        what = f"labels hold {len(names)} classes in {len(train['labels'])} rows"
        _refuse(places[0], what, "There must be two classes at least, and a class with two rows.")
    checked = _checked(train, names, places[0], "")
    if test is None:
        return Embedded(checked, None)
    unknown = np.setdiff1d(_labels(test, places[1], "test_labels"), names)
    if len(unknown):
        _refuse(places[1], f"test_labels hold {unknown[0]}, a class that the training rows do not have")
    of_test = _checked(test, names, places[1], "test_")
    if checked[0].shape[1] != of_test[0].shape[1]:
        _refuse(places[1], f"test_embeddings have length {of_test[0].shape[1]}, embeddings {checked[0].shape[1]}")
    return Embedded(checked, of_test)


def save_embedded(data: Embedded, path: Path) -> None:
    """Write embeddings as an npz file that `read_embedded` reads."""
    arrays = {"embeddings": data.train[0].numpy(), "labels": data.train[1].numpy()}
    if data.test is not None:
        arrays |= {"test_embeddings": data.test[0].numpy(), "test_labels": data.test[1].numpy()}
    with atomic_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # the stubs take them for options


def _arrays(path: Path, labels: Path | None, *, optional: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    required = ("embeddings",) if labels else ("embeddings", "labels")
    arrays = read_arrays(path, "embeddings", required=required, optional=optional)
    if labels is None:
        return arrays
    rows = arrays["embeddings"].shape[:1]
    return arrays | read_arrays(labels, "embeddings", required=("labels",), rows=rows[0] if rows else None)


def _labels(arrays: dict[str, NDArray[Any]], path: Path, key: str) -> NDArray[Any]:
    labels = arrays["labels"]
    if labels.dtype.kind not in "iu":
        _refuse(path, f"{key} is {labels.dtype}, not integers")
    if labels.ndim != 1 or len(labels) != len(arrays["embeddings"]):
        _refuse(path, f"{key} has shape {labels.shape} for {len(arrays['embeddings'])} rows of embeddings")
    if len(labels) and labels.min() < 0:
        _refuse(path, f"{key} must not be negative, got {labels.min()}", "Leave out rows without a class.")
    return labels


def _checked(arrays: dict[str, NDArray[Any]], names: NDArray[Any], path: Path, prefix: str) -> tuple[Tensor, Tensor]:
    """Embeddings as float32 and classes from 0."""
    found = arrays["embeddings"]
    key = f"{prefix}embeddings"
    if found.dtype.kind != "f" or found.ndim != 2 or 0 in found.shape:
        _refuse(path, f"{key} is {found.dtype} of shape {found.shape}, not floating point of shape (n, dim)")
    # What is beyond float32 becomes infinite, what is no number stays so, and both are refused below.
    with np.errstate(over="ignore", invalid="ignore"):
        embeddings = torch.from_numpy(np.ascontiguousarray(found, dtype=np.float32))
    for fault, rows in (("not finite", ~embeddings.isfinite().all(1)), ("all zero", ~embeddings.any(1))):
        if rows.any():
            what = f"row {int(rows.int().argmax())} of {key} is {fault}, counted from 0"
            _refuse(path, what, "A cosine needs a direction: look at what wrote it.")
    return embeddings, torch.from_numpy(np.searchsorted(names, arrays["labels"]))


def _refuse(path: Path, what: str, remedy: str = _FORM) -> NoReturn:
    raise InputError(what, where=str(path), remedy=remedy)
