"""The logits that a user saved, in one file or in several, each refused by name where it is not what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.array_files import read_arrays
from softmax_temperature.runner.errors import InputError, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIT_ON = ("validation", "half", "all")
SUM_TOLERANCE = 1e-2  # Probabilities that were rounded to three digits miss a sum of one by less.
VALIDATION = ("validation_logits", "validation_labels")
_FORM = (
    "Logits are floating point of shape (n, classes), or (networks, n, classes) with names; labels are integers of "
    "shape (n,)."
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
class LogitsFiles:
    """The files that a user names.

    Attributes:
        logits: with the logits to report on.
        labels: with their labels, if those lie in a file of their own.
        validation: with the logits, and labels, to fit the temperature on, if those lie in a file of their own.
        validation_labels: with the labels of `validation`, likewise.
    """

    logits: Path
    labels: Path | None = None
    validation: Path | None = None
    validation_labels: Path | None = None

    def all(self) -> dict[str, Path]:
        """By role, the files there are."""
        return {role: path for role, path in vars(self).items() if path is not None}


@dataclass(frozen=True)
class LogitsArchive:
    """The arrays of a user's files: `logits`, `labels`, and perhaps `names` and those of VALIDATION.

    Attributes:
        files: by array, the file that it came from; errors name it.
        arrays: as they lie there.
    """

    files: dict[str, Path]
    arrays: dict[str, Any]

    @classmethod
    def open(cls, files: LogitsFiles) -> LogitsArchive:
        """Read the arrays; nothing is unpickled.

        Raises:
            InputError: a file is absent, damaged, of another type, too large, or lacks an array.
        """
        if files.validation_labels and not files.validation:
            raise InputError("is given without --validation", where="--validation-labels", remedy="Give both.")
        arrays, origin = _pair(files.logits, files.labels, optional=("names", *VALIDATION))
        if files.validation:
            if own := [key for key in VALIDATION if key in arrays]:
                what = f"is given, and {files.logits} holds {own[0]} of its own"
                raise InputError(what, where="--validation", remedy="Leave it out.")
            more, where = _pair(files.validation, files.validation_labels)
            arrays |= {f"validation_{key}": array for key, array in more.items()}
            origin |= {f"validation_{key}": path for key, path in where.items()}
        return cls(origin, arrays)

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
        given = [key for key in VALIDATION if key in self.arrays]
        if len(given) == 1:
            self.refuse(f"has {given[0]} alone, of {' and '.join(VALIDATION)}", key=given[0])
        if wish is None:
            return "validation" if given else "half"
        if wish not in FIT_ON:
            raise InputError(f"unknown choice {wish!r}", where="--fit-on", remedy=nearest(wish, FIT_ON))
        if wish == "validation" and not given:
            self.refuse(
                "has no validation_logits to fit on", "Add them, name a file with --validation, or use --fit-on half."
            )
        return wish

    def predictions(self, network: str | None, prefix: str = "") -> Predictions:
        """One network's logits and their labels, from the arrays whose keys begin with the prefix."""
        key = f"{prefix}logits"
        logits = np.asarray(self.arrays[key])
        if logits.dtype.kind != "f":
            self.refuse(f"{key} is {logits.dtype}, not floating point", key=key)
        if network is not None:
            logits = logits[self._names().index(network)]
        if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
            self.refuse(f"{key} has shape {np.shape(self.arrays[key])}, not rows of at least two classes", key=key)
        self._check_values(key, logits)
        labels = self._labels(f"{prefix}labels", *logits.shape)
        return Predictions(torch.from_numpy(logits.astype(np.float64)), torch.from_numpy(labels))

    def refuse(self, what: str, remedy: str = _FORM, *, key: str = "logits") -> NoReturn:
        """Say what is wrong with an array, and the file that it came from."""
        raise InputError(what, where=str(self.files[key]), remedy=remedy)

    def _names(self) -> list[str]:
        names = np.asarray(self.arrays.get("names", ()))
        if names.dtype.kind != "U" or names.ndim != 1 or not 0 < len(set(names.tolist())) == len(names):
            self.refuse("logits of shape (networks, n, classes) need names, a row of distinct texts")
        for key in ("logits", "validation_logits"):
            if key in self.arrays and np.shape(self.arrays[key])[:1] != names.shape:
                self.refuse(f"{key} has shape {np.shape(self.arrays[key])} for {len(names)} names", key=key)
        return [str(name) for name in names]

    def _check_values(self, key: str, logits: NDArray[Any]) -> None:
        # Far beyond float32 the search would overflow; no network gives such logits.
        sound = np.abs(logits) <= np.finfo(np.float32).max
        if not sound.all():
            row, column = np.argwhere(~sound)[0].tolist()
            place = f"{logits[row, column]} in row {row}, class {column}, counted from 0"
            self.refuse(
                f"{key} must be finite, and in the range of float32, got {place}", "Look at what wrote it.", key=key
            )
        if logits.min() >= 0 and np.abs(logits.sum(axis=1, dtype=np.float64) - 1).max() <= SUM_TOLERANCE:
            self.refuse(
                f"{key} holds probabilities: no value is negative and every row sums to one",
                "Save the logits, or numpy.log of the probabilities, which scales the same.",
                key=key,
            )

    def _labels(self, key: str, rows: int, classes: int) -> NDArray[np.int64]:
        labels = np.asarray(self.arrays[key])
        if labels.dtype.kind not in "iu":
            self.refuse(f"{key} is {labels.dtype}, not integers", key=key)
        if labels.shape != (rows,):
            self.refuse(f"{key} has shape {labels.shape} for {rows} rows of logits", key=key)
        low, high = labels.min(), labels.max()
        if low < 0 or high >= classes:
            self.refuse(f"{key} must be in [0, {classes}), got {low if low < 0 else high}", key=key)
        if low == high:
            self.refuse(f"{key} are all of one class, {low}", "Add rows of other classes.", key=key)
        return labels.astype(np.int64)


def _pair(
    path: Path, labels: Path | None, *, optional: tuple[str, ...] = ()
) -> tuple[dict[str, NDArray[Any]], dict[str, Path]]:
    """Logits and labels from one file or two, what else the first holds, and the file that each came from."""
    required = ("logits",) if labels else ("logits", "labels")
    arrays = read_arrays(path, "logits", required=required, optional=optional)
    origin = dict.fromkeys(arrays, path)
    if labels:
        rows = arrays["logits"].shape[-2:-1]
        arrays |= read_arrays(labels, "logits", required=("labels",), rows=rows[0] if rows else None)
        origin["labels"] = labels
    return arrays, origin
