"""The logits that a user saved: arrays of an npz file, each refused by name where it is not what it should be."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.errors import InputError, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIT_ON = ("validation", "half", "all")
SUM_TOLERANCE = 1e-2  # Probabilities that were rounded to three digits miss a sum of one by less.
_ARRAYS = ("logits", "labels", "names", "validation_logits", "validation_labels")
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)
_FORM = (
    "Save it with numpy.savez: logits floating point of shape (n, classes), or (networks, n, classes) with names; "
    "labels integers of shape (n,); validation_logits and validation_labels (optional) likewise."
)


@dataclass(frozen=True)
class Predictions:
    """Checked logits of shape (n, classes), float64, and the true classes, shape (n,), int64."""

    logits: Tensor
    labels: Tensor

    def where(self, mask: NDArray[np.bool_]) -> Predictions:
        """The rows where the mask, shape (n,), is true."""
        chosen = torch.from_numpy(mask)
        return Predictions(self.logits[chosen], self.labels[chosen])


@dataclass(frozen=True)
class LogitsArchive:
    """The arrays of a user's file, each refused by name where it is not what it should be."""

    path: Path
    arrays: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> LogitsArchive:
        """Read the arrays; nothing is unpickled."""
        archive = cls(path, {})
        try:
            if not path.is_file():
                archive.refuse("no such file", "Give the path of an npz archive.")
            if not zipfile.is_zipfile(path):
                archive.refuse("is not an npz archive, or cut short")
            with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
                if missing := [key for key in ("logits", "labels") if key not in found.files]:
                    there = ", ".join(found.files) or "nothing"
                    archive.refuse(f"has no {' and no '.join(missing)} (it holds: {there})")
                for key in _ARRAYS:
                    if key in found.files:
                        archive._read(key, found)
        except _UNREADABLE as error:
            archive.refuse(f"cannot be read ({one_line(error)})")
        return archive

    def network(self, name: str | None) -> str | None:
        """The network to report on; None where the file holds a single, unnamed one."""
        if np.ndim(self.arrays["logits"]) != 3:
            if name is not None:
                self.refuse(f"holds one network, without a name, not {name!r}", "Leave out --name.")
            return None
        names = self._names()
        if name is None and len(names) > 1:
            self.refuse(f"holds {len(names)} networks", f"Choose one with --name: {', '.join(names)}.")
        if name is not None and name not in names:
            self.refuse(f"has no network {name!r}", nearest(name, names))
        return name or names[0]

    def fit_on(self, wish: str | None) -> str:
        """Which rows the temperature is fitted on: one of FIT_ON."""
        given = [key for key in ("validation_logits", "validation_labels") if key in self.arrays]
        if len(given) == 1:
            self.refuse(f"has {given[0]} alone, of validation_logits and validation_labels")
        if wish is None:
            return "validation" if given else "half"
        if wish not in FIT_ON:
            raise InputError(f"unknown choice {wish!r}", where="--fit-on", remedy=nearest(wish, FIT_ON))
        if wish == "validation" and not given:
            self.refuse("has no validation_logits to fit the temperature on", "Add them, or use --fit-on half.")
        return wish

    def predictions(self, network: str | None, prefix: str = "") -> Predictions:
        """One network's logits and their labels, from the arrays whose keys begin with the prefix."""
        key = f"{prefix}logits"
        logits = np.asarray(self.arrays[key])
        if logits.dtype.kind != "f":
            self.refuse(f"{key} is {logits.dtype}, not floating point")
        if network is not None:
            logits = logits[self._names().index(network)]
        if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
            self.refuse(f"{key} has shape {np.shape(self.arrays[key])}, not rows of at least two classes")
        self._check_values(key, logits)
        labels = self._labels(f"{prefix}labels", *logits.shape)
        return Predictions(torch.from_numpy(logits.astype(np.float64)), torch.from_numpy(labels))

    def refuse(self, what: str, remedy: str = _FORM) -> NoReturn:
        """Say what is wrong with the file."""
        raise InputError(what, where=str(self.path), remedy=remedy)

    def _read(self, key: str, found: Any) -> None:
        try:
            self.arrays[key] = found[key]
        except _UNREADABLE as error:
            self.refuse(f"{key} is damaged, or not a plain array ({one_line(error)})")

    def _names(self) -> list[str]:
        names = np.asarray(self.arrays.get("names", ()))
        if names.dtype.kind != "U" or names.ndim != 1 or not 0 < len(set(names.tolist())) == len(names):
            self.refuse("logits of shape (networks, n, classes) need names, a row of distinct texts")
        for key in ("logits", "validation_logits"):
            if key in self.arrays and np.shape(self.arrays[key])[:1] != names.shape:
                self.refuse(f"{key} has shape {np.shape(self.arrays[key])} for {len(names)} names")
        return [str(name) for name in names]

    def _check_values(self, key: str, logits: NDArray[Any]) -> None:
        # Far beyond float32 the search would overflow; no network gives such logits.
        sound = np.abs(logits) <= np.finfo(np.float32).max
        if not sound.all():
            row, column = np.argwhere(~sound)[0].tolist()
            place = f"{logits[row, column]} in row {row}, class {column}"
            self.refuse(f"{key} must be finite, and in the range of float32, got {place}", "Look at what wrote it.")
        if logits.min() >= 0 and np.abs(logits.sum(axis=1, dtype=np.float64) - 1).max() <= SUM_TOLERANCE:
            self.refuse(
                f"{key} holds probabilities: no value is negative and every row sums to one",
                "Save the logits, or numpy.log of the probabilities, which scales the same.",
            )

    def _labels(self, key: str, rows: int, classes: int) -> NDArray[np.int64]:
        labels = np.asarray(self.arrays[key])
        if labels.dtype.kind not in "iu":
            self.refuse(f"{key} is {labels.dtype}, not integers")
        if labels.shape != (rows,):
            self.refuse(f"{key} has shape {labels.shape} for {rows} rows of logits")
        low, high = labels.min(), labels.max()
        if low < 0 or high >= classes:
            self.refuse(f"{key} must be in [0, {classes}), got {low if low < 0 else high}")
        if low == high:
            self.refuse(f"{key} are all of one class, {low}", "Add rows of other classes.")
        return labels.astype(np.int64)


def one_line(error: BaseException) -> str:
    """What an error says, without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
