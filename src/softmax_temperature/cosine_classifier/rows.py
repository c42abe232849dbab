"""Rows to train on: held in memory, or brought there a portion at a time by whoever has more of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

from softmax_temperature.cosine_classifier.draws import BATCH_ORDER, generator
from softmax_temperature.cosine_classifier.inputs import check_class_labels, normalise
from softmax_temperature.cosine_classifier.products import choose_products

if TYPE_CHECKING:
    from softmax_temperature.cosine_classifier.settings import Settings


class Portion(NamedTuple):
    """Rows that are in memory together, and the batches that are made of them.

    Attributes:
        embeddings: of length 1, shape (n, dim), in the dtype of the settings' matrix products.
        labels: shape (n,), int64.
        batches: row numbers of each batch, in the order of training.
    """

    embeddings: Tensor
    labels: Tensor
    batches: tuple[Tensor, ...]


class PreparedRows(Protocol):
    """Rows as a trainer takes them, on its device.

    Attributes:
        count: how many there are.
        dim: length of an embedding.
        classes: highest label plus one.
        device: where portions are.
    """

    count: int
    dim: int
    classes: int
    device: torch.device

    def portions(self, epoch: int) -> Iterator[Portion]:
        """All rows once, in an order that the settings' seed and the number of the epoch decide.

        Together they make ceil(count / batch_size) batches, of which the last alone may be smaller.
        """


class RowSource(Protocol):
    """Rows that need not fit in memory."""

    def prepared(self, settings: Settings, device: torch.device | str | None) -> PreparedRows:
        """The rows for a training with these settings on a device; by default on the CPU."""


class RowsInMemory:
    """Rows as two tensors, in one portion.

    Args:
        embeddings: shape (n, dim), floating point; normalised here.
        labels: shape (n,), int64, from 0.
        settings: of the training.
        device: where to train; default: where the embeddings are.

    Raises:
        ValueError: an embedding is not finite or all zeros, or the labels do not fit the embeddings.
    """

    def __init__(
        self, embeddings: Tensor, labels: Tensor, settings: Settings, device: torch.device | str | None
    ) -> None:
        unit = normalise(embeddings.to(device, settings.wide_dtype), name="train embeddings")
        self.classes = check_class_labels(labels, len(unit), "train labels") + 1
        self.count, self.dim = unit.shape
        self.device = unit.device
        self._embeddings = unit.to(choose_products(settings.precision, unit.device).dtype)
        self._labels = labels.to(unit.device)
        self._settings = settings

    def portions(self, epoch: int) -> Iterator[Portion]:
        """One, with all rows."""
        order = torch.randperm(self.count, generator=generator(self._settings.seed, BATCH_ORDER, epoch))
        batches = order.to(self.device).split(self._settings.batch_size)
        yield Portion(self._embeddings, self._labels, batches)
