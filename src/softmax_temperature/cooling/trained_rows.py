"""Finds held-out rows that a network is trained on.

Rows are compared by identity, not by value. The search is silent about whatever it
cannot judge with certainty.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

from softmax_temperature.metrics.checks import ArgumentError

Rows = npt.NDArray[np.int64]
# Limits that keep the search short.
MOST_LOADERS = 100
MOST_PAIRS = 10_000
GIVE_OTHERS = (
    "Give rows that the network is not trained on, such as one part of "
    "torch.utils.data.random_split, and train on the other part."
)


@dataclass(frozen=True)
class _Part:
    """Rows of one source of data.

    Attributes:
        source: A data set, or a list of samples or batches.
        rows: Indices of the rows, in the source.
    """

    source: Any
    rows: Rows


def check_untrained(held_out: Any, training: Any) -> None:
    """Refuse held-out batches with rows that the network is trained on.

    Args:
        held_out: The held-out batches.
        training: The trainer's loader, or a list or dictionary of loaders; None if it
            is unknown.
    """
    loaders = list(_loaders(training))
    if any(held_out is loader for loader in loaders):
        raise ArgumentError(
            f"held_out is the {type(held_out).__name__} that the network is trained on",
            GIVE_OTHERS,
        )
    held_parts = list(_parts_of_loader(held_out))
    parts = [part for loader in loaders for part in _parts_of_loader(loader)]
    if len(held_parts) * len(parts) > MOST_PAIRS:
        return
    for held, trained in product(held_parts, parts):
        common = _common(held, trained)
        if common:
            source = type(held.source).__name__
            # The items of a list may be samples or batches.
            noun = "items" if isinstance(held.source, list | tuple) else "rows"
            raise ArgumentError(
                f"held_out has {noun} that the network is trained on: {common} of the "
                f"{len(held.rows)} {noun} that it reads from a {source}",
                GIVE_OTHERS,
            )


def _loaders(training: Any) -> Iterator[Any]:
    """The loaders in `training`, which Lightning lets users nest."""
    yield training
    inner = getattr(training, "iterables", training)  # of Lightning's CombinedLoader
    values = list(inner.values()) if isinstance(inner, Mapping) else inner
    # A longer list is one of batches.
    if isinstance(values, list | tuple) and len(values) <= MOST_LOADERS:
        for value in values:
            if hasattr(value, "dataset") or isinstance(value, Mapping | list | tuple):
                yield from _loaders(value)


def _parts_of_loader(loader: Any) -> Iterator[_Part]:
    """The rows that `loader` reads, as far as they are certain."""
    if isinstance(loader, list | tuple):
        yield _Part(loader, np.arange(len(loader)))
        return
    data = getattr(loader, "dataset", None)
    if data is None or isinstance(data, IterableDataset):
        return
    size = _size(data)
    rows = None if size is None else _sampled(loader, size)
    if rows is not None:
        yield from _parts(data, rows)


def _sampled(loader: Any, size: int) -> Rows | None:
    """The rows that the loader's sampler draws, or None if they are uncertain."""
    sampler: Any = getattr(loader, "batch_sampler", None)
    if sampler is None:  # The loader does not make batches.
        sampler = getattr(loader, "sampler", None)
    # Accelerate distributes the batches of an inner sampler over several processes.
    while isinstance(sampler, BatchSampler):
        known = type(sampler) is BatchSampler or hasattr(sampler, "batch_sampler")
        if not known:
            return None
        sampler = getattr(sampler, "batch_sampler", None) or sampler.sampler
    if type(sampler) is SubsetRandomSampler:
        return _indices(sampler.indices, size)
    # These read every row sooner or later. Another subclass may leave out rows.
    kind = type(sampler)
    if kind in {RandomSampler, SequentialSampler} or (
        isinstance(sampler, RandomSampler) and kind.__module__.startswith("accelerate.")
    ):
        drawn = _size(sampler.data_source)
    else:
        drawn = _size(sampler.dataset) if kind is DistributedSampler else None
    return np.arange(size) if drawn == size else None


def _parts(data: Any, rows: Rows) -> Iterator[_Part]:
    """The rows of `data`, as rows of the data sets that it was made from."""
    if isinstance(data, Subset):
        size = _size(data.dataset)
        indices = None if size is None else _indices(data.indices, size)
        if indices is not None:
            yield from _parts(data.dataset, indices[rows])
    elif isinstance(data, ConcatDataset):
        start = 0
        for inner, end in zip(data.datasets, data.cumulative_sizes, strict=True):
            inside = (rows >= start) & (rows < end)
            yield from _parts(inner, rows[inside] - start)
            start = end
    else:
        yield _Part(data, rows)


def _size(data: Any) -> int | None:
    try:
        return len(data)
    except (TypeError, NotImplementedError):
        return None


def _indices(indices: Any, size: int) -> Rows | None:
    """Indices from 0, or None if they are not indices of `size` rows."""
    if isinstance(indices, Tensor):
        indices = indices.detach().cpu()
    try:
        rows = np.asarray(indices)
    except (TypeError, ValueError):
        return None
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        return None
    rows = rows.astype(np.int64)
    if not ((rows >= -size) & (rows < size)).all():
        return None
    return np.where(rows < 0, rows + size, rows)


def _common(held: _Part, trained: _Part) -> int:
    """How many rows of `held` are certainly rows of `trained`."""
    if _is_same(held.source, trained.source):
        return int(np.isin(held.rows, trained.rows).sum())
    if isinstance(held.source, TensorDataset) and isinstance(
        trained.source, TensorDataset
    ):
        shift = _shift(held.source.tensors, trained.source.tensors)
        if shift is None:
            return 0
        return int(np.isin(held.rows + shift, trained.rows).sum())
    if isinstance(held.source, list | tuple) and isinstance(
        trained.source, list | tuple
    ):
        known = {_identity(trained.source[row]) for row in trained.rows} - {None}
        return sum(_identity(held.source[row]) in known for row in held.rows)
    return 0


def _is_same(held: Any, trained: Any) -> bool:
    """Whether two data sets are one object, or one table of Hugging Face's datasets."""
    if held is trained:
        return True
    known = getattr(held, "_fingerprint", None)
    return isinstance(known, str) and known == getattr(trained, "_fingerprint", None)


def _shift(held: Sequence[Tensor], trained: Sequence[Tensor]) -> int | None:
    """The number of rows between two groups of views of the same tensors, or None.

    Row i of `held` then lies in the memory of row i + shift of `trained`. All tensors
    must agree, because inputs may share their labels with other versions of themselves.
    """
    if len(held) != len(trained):
        return None
    shifts = {
        _shift_of(ours, theirs) for ours, theirs in zip(held, trained, strict=True)
    }
    return shifts.pop() if len(shifts) == 1 else None


def _shift_of(held: Tensor, trained: Tensor) -> int | None:
    try:
        storages = {each.untyped_storage().data_ptr() for each in (held, trained)}
        strides = {each.stride() for each in (held, trained)}
        offset = held.data_ptr() - trained.data_ptr()
    except (NotImplementedError, RuntimeError):
        return None  # One has no memory, such as a sparse tensor.
    kinds = {(each.dtype, each.device, each.shape[1:]) for each in (held, trained)}
    if 0 in storages or any(len(each) > 1 for each in (storages, strides, kinds)):
        return None
    step = held.stride(0) * held.element_size()
    # An expanded tensor has the same memory in all rows.
    if step == 0 or offset % step:
        return None
    return offset // step


def _identity(sample: Any) -> Any:
    """A key that no other sample or batch has, or None.

    Python may share constants, such as equal numbers or tuples of them.
    """
    if isinstance(sample, tuple | list) and sample:
        if all(isinstance(each, Tensor) for each in sample):
            return tuple(map(id, sample))
        return id(sample) if isinstance(sample, list) else None
    return id(sample) if isinstance(sample, Mapping | Tensor) else None
