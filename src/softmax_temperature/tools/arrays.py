"""Reading and checking users' arrays; nothing is ever unpickled."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from softmax_temperature.data.splits import stratified_holdout
from softmax_temperature.metrics.checks import check_labels, check_logits
from softmax_temperature.runner.errors import InputError

Arrays = dict[str, NDArray[Any]]
Rows = tuple[Tensor, Tensor]
SAMPLE = Path(__file__).with_name("sample_logits.npz")
OTHER_NAMES = {  # What else people call the arrays that the commands ask for.
    "logits": ("outputs", "preds", "predictions", "y_pred", "scores"),
    "embeddings": ("features", "x"),
    "labels": ("label", "targets", "target", "y_true", "y"),
}
SUM_TOLERANCE = (
    1e-2  # Probabilities that were rounded to three digits miss a sum of one by less.
)
_DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    BadZipFile,
    SafetensorError,
    UnpicklingError,
)
_UNREADABLE = (*_DAMAGED, ImportError)  # Parquet needs pyarrow, which is optional.


def sample_logits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits (1500, 10) and labels (1500,) of an overconfident classifier of
    handwritten digits, to try tools on.

    A logistic regression, hardly regularised, of the first 297 of scikit-learn's
    digits; the other 1,500 are here.

    Examples:
        >>> logits, labels = sample_logits()
        >>> round(float((logits.argmax(axis=1) == labels).mean()), 3)
        0.851
    """
    arrays = read_arrays(SAMPLE, "logits", required=("logits", "labels"))
    return arrays["logits"].astype(np.float64), arrays["labels"].astype(np.int64)


@contextmanager
def user_data(where: object, remedy: str) -> Iterator[None]:
    """Report what the library refuses about a user's data as an InputError, which names
    the file.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(str(error)[:300], where=str(where), remedy=remedy) from error


def read_rows(
    matrix: str,
    path: Path,
    labels: Path | None,
    other: str,
    other_path: Path | None,
    other_labels: Path | None,
) -> tuple[Arrays, Arrays | None]:
    """The matrix ("logits" or "embeddings") and the labels of a user's rows; and the
    same for other rows, or None.

    Labels are in the file of the matrix, or apart. Other rows ("validation" or "test")
    are in files of their own, or else in the first file under names such as
    `test_embeddings` and `test_labels`. What is missing or unreadable, and other rows
    in part, raise InputError.
    """
    within = (f"{other}_{matrix}", f"{other}_labels")
    arrays = _read_pair(matrix, path, labels, within)
    own = {
        name.removeprefix(f"{other}_"): arrays.pop(name)
        for name in within
        if name in arrays
    }
    if other_path:
        return arrays, _read_pair(matrix, other_path, other_labels)
    if len(own) == 1 or other_labels:
        what = f"{other} rows lack their {'labels' if matrix in own else matrix}"
        raise InputError(what, where=str(path), remedy=f"Give {' and '.join(within)}.")
    return arrays, own or None


def _read_pair(
    matrix: str, path: Path, labels: Path | None, optional: Sequence[str] = ()
) -> Arrays:
    arrays = read_arrays(
        path,
        matrix,
        required=(matrix,) if labels else (matrix, "labels"),
        optional=optional,
    )
    return arrays | (
        read_arrays(labels, matrix, required=("labels",)) if labels else {}
    )


def read_arrays(
    path: Path, matrix: str, *, required: Sequence[str], optional: Sequence[str] = ()
) -> Arrays:
    """The arrays of a file by name; a table has a column `label`, and its other columns
    are the matrix.

    A file of one unnamed array holds what is required alone, otherwise the matrix.
    """
    if (read := _READERS.get(path.suffix.lower())) is None:
        known = ", ".join(ending.removeprefix(".") for ending in _READERS)
        raise InputError(
            f"unknown file type {path.suffix!r}",
            where=str(path),
            remedy=f"Give one of {known}.",
        )
    try:
        held = read(path)
    except _UNREADABLE as error:
        what = f"cannot be read ({' '.join(str(error).split())[:200]})"
        raise InputError(
            what, where=str(path), remedy="Give a file that is there, or save it again."
        ) from error
    if isinstance(held, pd.DataFrame):
        held = _columns(path, held, matrix)
    if not isinstance(held, dict):
        held = {required[0] if len(required) == 1 else matrix: held}
    found = {
        str(name): as_numpy(value)
        for name, value in held.items()
        if isinstance(value, Tensor | np.ndarray)
    }
    for name, others in OTHER_NAMES.items():
        if name not in found and (
            other := next((other for other in others if other in found), None)
        ):
            found[name] = found.pop(other)
    if absent := [name for name in required if name not in found]:
        what = f"has no {' and no '.join(absent)} (it holds: {', '.join(found) or 'nothing'})"
        apart = (
            " Or give the labels in a file of their own: --labels."
            if "labels" in absent
            else ""
        )
        raise InputError(
            what,
            where=str(path),
            remedy=f"Save {' and '.join(required)} under these names.{apart}",
        )
    return {name: found[name] for name in (*required, *optional) if name in found}


def as_numpy(value: Any) -> NDArray[Any]:
    """A tensor or anything like an array; halves are widened, because numpy has no
    bfloat16.
    """
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = (
            value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
        )
    return np.asarray(value)


def _npz(path: Path) -> Arrays:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def _csv(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path)
    unnamed = all(
        str(name).replace(".", "", 1).lstrip("-").isdigit() for name in table.columns
    )
    return pd.read_csv(path, header=None) if unnamed else table


def _columns(path: Path, table: pd.DataFrame, matrix: str) -> Any:
    """The matrix and the labels of a table; or its only column."""
    first, *_ = names = [str(name) for name in table.columns]
    table = table.set_axis(names, axis=1)
    labels = [
        name
        for name in names
        if name.strip().lower() in ("labels", *OTHER_NAMES["labels"])
    ]
    if text := [
        name
        for name, kind in zip(names, table.dtypes, strict=True)
        if kind.kind not in "iufb"
    ]:
        remedy = "Number the classes from 0." if text[0] in labels else "Leave it out."
        raise InputError(
            f"column {text[0]!r} is not numeric", where=str(path), remedy=remedy
        )
    numbers = (
        len(table) > 2
        and first not in labels
        and (table[first] == np.arange(len(table))).all()
    )
    if numbers or first.startswith("Unnamed:"):
        what = f"has a column {first!r}, which looks like the index of a data frame"
        raise InputError(
            what, where=str(path), remedy="Write the table with index=False."
        )
    if len(labels) > 1:
        raise InputError(
            f"has columns {' and '.join(labels)}", where=str(path), remedy="Leave one."
        )
    if table.shape[1] == 1:
        return table[first].to_numpy()
    found = {matrix: table.drop(columns=labels).to_numpy(np.float64)}
    return found | ({"labels": table[labels[0]].to_numpy()} if labels else {})


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npz": _npz,
    ".npy": lambda path: np.load(path, allow_pickle=False),
    ".safetensors": load_file,
    ".pt": lambda path: torch.load(path, map_location="cpu", weights_only=True),
    ".pth": lambda path: torch.load(path, map_location="cpu", weights_only=True),
    ".csv": _csv,
    ".parquet": pd.read_parquet,
}


def checked_logits(
    logits: Any, labels: Any, kind: str = "logits", *, name: str = ""
) -> Rows:
    """Logits, shape (n, classes), float64, and classes, shape (n,), int64, of what a
    user calls so.
    """
    values, classes = as_numpy(logits), as_numpy(labels)
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2) or not len(values):
        raise ValueError(
            f"{name}logits must be numbers of shape (n, classes), got {values.dtype} {values.shape}"
        )
    # A probability of 0 is one too small for its own dtype, no smaller.
    floating = values.dtype if values.dtype.kind == "f" else np.float64
    least = float(np.finfo(floating).smallest_subnormal)
    values = values.reshape(len(values), -1).astype(np.float64)
    values = _as_logits(values, kind, name, least=least)
    check_logits(table := torch.from_numpy(values), name=f"{name}logits")
    if classes.shape == values.shape and ((classes == 0) | (classes == 1)).all():
        classes = classes.argmax(axis=1)
    numbers = whole_numbers(
        classes.reshape(-1) if classes.shape == (len(values), 1) else classes,
        f"{name}labels",
    )
    check_labels(numbers, table, name=f"{name}labels")
    return table, numbers


def whole_numbers(values: NDArray[Any], name: str) -> Tensor:
    """Labels as int64; ValueError if they are none."""
    if values.dtype.kind not in "fiub" or not (values == np.floor(values)).all():
        raise ValueError(f"{name} must be whole numbers, got {values.dtype}")
    return torch.from_numpy(values.astype(np.int64))


def split_rows(
    rows: Rows, fraction: float, generator: np.random.Generator
) -> tuple[Rows, Rows]:
    """The rows without a random fraction of every class, and that fraction."""
    held_out = torch.from_numpy(
        stratified_holdout(rows[1].numpy(), fraction, generator)
    )
    return (rows[0][~held_out], rows[1][~held_out]), (
        rows[0][held_out],
        rows[1][held_out],
    )


def _as_logits(
    values: NDArray[np.float64], kind: str, name: str, *, least: float
) -> NDArray[np.float64]:
    if values.shape[1] == 1:  # Of class 1 of two.
        values = np.hstack(
            [1 - values if kind == "probs" else np.zeros_like(values), values]
        )
    are_probs = (
        values.min() >= 0 and np.abs(values.sum(axis=1) - 1).max() <= SUM_TOLERANCE
    )
    if kind != "probs" and are_probs:
        raise ValueError(
            f"{name}logits are probabilities (rows sum to one): say so (kind='probs', --probs)"
        )
    if kind == "probs" and not are_probs:
        raise ValueError(
            f"{name}probs must be rows of numbers in [0, 1] that sum to one"
        )
    return np.log(np.clip(values, least, None)) if kind == "probs" else values
