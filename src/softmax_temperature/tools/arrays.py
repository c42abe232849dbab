"""The arrays in a user's file, whatever its type; nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from softmax_temperature.runner.errors import InputError

Arrays = dict[str, NDArray[Any]]

LABELS = "labels"
OTHER_NAMES = {
    "logits": ("outputs", "preds", "predictions", "y_pred", "scores"),
    "embeddings": ("features", "x"),
    LABELS: ("label", "targets", "target", "y_true", "y"),
}
"""What else people call the arrays that the commands ask for."""

_UNREADABLE = (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, SafetensorError, UnpicklingError)


def read_arrays(path: Path, matrix: str, *, required: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """Read named arrays.

    Args:
        path: An npz, npy, safetensors, pt, csv or parquet file. A table has a column `label` or `labels`; its other
            columns are the matrix. A file of one unnamed array holds the matrix, or the labels where only they are
            required.
        matrix: What to call the matrix: "logits" or "embeddings".
        required: Names that must be there.
        optional: Names that are read too if they are there.

    Raises:
        InputError: The file is missing, of another type, unreadable, or lacks an array.
    """
    if path.suffix.lower() not in _READERS:
        known = ", ".join(ending.removeprefix(".") for ending in _READERS)
        raise InputError(f"unknown file type {path.suffix!r}", where=str(path), remedy=f"Give one of {known}.")
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy="Give the path of a file that is there.")
    unnamed = required[0] if len(required) == 1 else matrix
    try:
        found = _READERS[path.suffix.lower()](path, matrix, unnamed)
    except InputError:
        raise
    except (OSError, *_UNREADABLE) as error:
        what = f"cannot be read ({' '.join(str(error).split())[:200]})"
        raise InputError(what, where=str(path), remedy="Save it again.") from error
    for name, others in OTHER_NAMES.items():
        if name not in found and (other := next((other for other in others if other in found), None)):
            found[name] = found.pop(other)
    if absent := [name for name in required if name not in found]:
        what = f"has no {' and no '.join(absent)} (it holds: {', '.join(found) or 'nothing'})"
        raise InputError(what, where=str(path), remedy=f"Save {' and '.join(required)} under these names.")
    return {name: found[name] for name in (*required, *optional) if name in found}


def _npz(path: Path, _matrix: str, _unnamed: str) -> Arrays:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def _npy(path: Path, _matrix: str, unnamed: str) -> Arrays:
    return {unnamed: np.load(path, allow_pickle=False)}


def _safetensors(path: Path, _matrix: str, _unnamed: str) -> Arrays:
    return dict(load_file(path))


def _pt(path: Path, _matrix: str, unnamed: str) -> Arrays:
    held = torch.load(path, map_location="cpu", weights_only=True)
    tensors = held if isinstance(held, dict) else {unnamed: held}
    return {str(name): _numpy(value) for name, value in tensors.items() if isinstance(value, torch.Tensor)}


def _numpy(value: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = (value.float() if value.dtype in (torch.bfloat16, torch.float16) else value).numpy()
    return array


def _csv(path: Path, matrix: str, unnamed: str) -> Arrays:
    table = pd.read_csv(path)
    if all(str(name).replace(".", "", 1).lstrip("-").isdigit() for name in table.columns):
        table = pd.read_csv(path, header=None)
    return _columns(path, table, matrix, unnamed)


def _parquet(path: Path, matrix: str, unnamed: str) -> Arrays:
    return _columns(path, pd.read_parquet(path), matrix, unnamed)


def _columns(path: Path, table: pd.DataFrame, matrix: str, unnamed: str) -> Arrays:
    names = [str(name) for name in table.columns]
    if index := [name for name in names if name.startswith("Unnamed:") or name in ("index", "__index_level_0__")]:
        what = f"has a column {index[0]!r}, which looks like the index of a data frame"
        raise InputError(what, where=str(path), remedy="Write the table with index=False.")
    table.columns = pd.Index(names)
    if text := [name for name, kind in table.dtypes.items() if kind.kind not in "iufb"]:
        raise InputError(f"column {text[0]!r} is not numeric", where=str(path), remedy="Leave it out.")
    labels = [name for name in names if name.strip().lower() in (LABELS, *OTHER_NAMES[LABELS])]
    if len(labels) > 1:
        raise InputError(f"has columns {' and '.join(labels)}", where=str(path), remedy="Leave one.")
    if len(names) == 1:
        return {unnamed: table[names[0]].to_numpy()}
    found = {matrix: table.drop(columns=labels).to_numpy(np.float64)}
    return found | ({LABELS: table[labels[0]].to_numpy()} if labels else {})


_READERS: dict[str, Callable[[Path, str, str], Arrays]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".pt": _pt,
    ".pth": _pt,
    ".csv": _csv,
    ".parquet": _parquet,
}
