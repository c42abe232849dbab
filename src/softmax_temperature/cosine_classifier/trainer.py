"""Trains the cosine classifiers of all inverse temperatures and repeats together, epoch by epoch, resumably."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.blocks import Workers, problem_blocks
from softmax_temperature.cosine_classifier.classifiers import CosineClassifiers
from softmax_temperature.cosine_classifier.draws import INITIAL_WEIGHTS, generator
from softmax_temperature.cosine_classifier.inputs import check_class_labels, largest_entries
from softmax_temperature.cosine_classifier.rows import RowsInMemory
from softmax_temperature.cosine_classifier.settings import Settings, checked_inverse_temperatures

if TYPE_CHECKING:
    from softmax_temperature.cosine_classifier.classifiers import Batch
    from softmax_temperature.cosine_classifier.rows import Portion, RowSource


class TemperatureGridTrainer:
    """Cosine classifiers without bias at many inverse temperatures, trained together epoch by epoch.

    classifier_temperature, section 3.1: logits are alpha * cos(w_c, x), the loss is their cross-entropy, divided by
    alpha if `rescale`. One *problem* is one (repeat, inverse temperature) pair. All problems see the same batches, so
    that a batch meets the weights of many of them in one matrix product, and within a repeat all inverse temperatures
    start from the same weights: comparisons between temperatures are paired, and repeats differ by their initial
    weights alone. Problems are trained in blocks, so that the logits of all of them never exist at once; but for
    rounding, a problem's result does not depend on the blocks.

    Training that is interrupted after any epoch and resumed through `state_dict` equals uninterrupted training, on a
    CPU with the same number of threads bit for bit.

    Args:
        train: embeddings, shape (n, dim), floating point, normalised here; labels, shape (n,), int64, from 0. Or a
            source that brings them to memory a portion at a time, as `softmax_temperature.shards` has one.
        inverse_temperatures: positive numbers alpha = 1/T that multiply the cosines, shape (temperatures,).
        batch_size: samples per step; the last batch of an epoch may be smaller.
        lr: learning rate.
        momentum: of SGD; for Adam its first decay rate.
        rescale: divide the loss by alpha, so that alpha does not scale the gradient (after Eq. 3).
        optimizer: "sgd" or "adam".
        repeats: initialisations of each classifier.
        seed: spawns the initial weights of each repeat and the batch order of each epoch, the same on every device.
        device: where to train; default: where the embeddings are.
        precision: "float32"; "bfloat16", matrix products of the training in bfloat16, the rest in float32; "float64".
        problems_per_block: the most problems in a block; default: what suits the CPU, or half the free GPU memory.

    Attributes:
        inverse_temperatures: as given.
        classes: highest training label plus one.
        completed_epochs: how often all training samples have been seen.

    Raises:
        ValueError: an argument is out of range, an embedding is not finite or all zeros, or there is one class only.
    """

    def __init__(
        self,
        train: tuple[Tensor, Tensor] | RowSource,
        inverse_temperatures: Sequence[float] | Tensor,
        *,
        batch_size: int,
        lr: float,
        momentum: float = 0.9,
        rescale: bool = True,
        optimizer: str = "sgd",
        repeats: int = 1,
        seed: int = 0,
        device: torch.device | str | None = None,
        precision: str = "float32",
        problems_per_block: int | None = None,
    ) -> None:
        self.settings = Settings(
            batch_size, lr, momentum, rescale, optimizer, repeats, seed, precision, problems_per_block
        )
        self.inverse_temperatures = checked_inverse_temperatures(inverse_temperatures)
        self._rows = (
            RowsInMemory(*train, self.settings, device)
            if isinstance(train, tuple)
            else train.prepared(self.settings, device)
        )
        self.classes = self._rows.classes
        if self.classes < 2:
            raise ValueError("train labels must name at least two classes, got class 0 alone")
        initial = _initial_weights(self.settings, self.classes, self._rows.dim)
        initial = initial.to(self._rows.device, self.settings.wide_dtype)
        self._classifiers = CosineClassifiers(initial, self.inverse_temperatures, self.settings)
        self._workers = Workers(self._rows.device)
        blocks = problem_blocks(
            self._classifiers.weights,
            min(batch_size, self._rows.count),
            self._classifiers.products.dtype,
            at_once=problems_per_block,
            workers=self._workers.count,
        )
        self._blocks = list(blocks)
        self.completed_epochs = 0

    def epoch(self) -> None:
        """Train every problem for one epoch.

        Raises:
            ValueError: the weights overflow; the message names the learning rate.
        """
        step = self.completed_epochs * ceil(self._rows.count / self.settings.batch_size) + 1
        with self._workers.busy():
            for portion in self._rows.portions(self.completed_epochs):
                self._train(portion, step)
                step += len(portion.batches)
            finite = self._workers.map(self._classifiers.is_finite, self._blocks)
        self.completed_epochs += 1
        if not all(finite):
            raise ValueError(f"lr={self.settings.lr} made the weights overflow in epoch {self.completed_epochs}")

    def evaluate(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Accuracy of every problem; a sample is correct when no class has a higher cosine than its own.

        Args:
            embeddings: shape (n, dim); of any length, since that scales the cosines of all classes alike.
            labels: shape (n,), int64, below the number of training classes.

        Returns:
            Shape (repeats, temperatures), float64, fractions, on the CPU.

        Raises:
            ValueError: as `checked_test`.
        """
        with self._workers.busy():
            embeddings, labels = self.checked_test(embeddings, labels)
            prepared = self._workers.map(self._classifiers.prepare_test, embeddings.split(self.settings.batch_size))
            batches = list(zip(prepared, labels.split(self.settings.batch_size), strict=True))

            def count(block: slice) -> Tensor:
                return torch.stack([self._classifiers.count_correct(block, *batch) for batch in batches]).sum(dim=0)

            correct = torch.cat(self._workers.map(count, self._blocks))
        return (correct.double() / len(labels)).view(self.settings.repeats, -1).cpu()

    def checked_test(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The same, in the dtype and on the device that `evaluate` works in.

        Raises:
            ValueError: the shapes disagree, a label is beyond the training classes, or an embedding is not finite or
                all zeros.
        """
        device, dim = self._rows.device, self._rows.dim
        embeddings = embeddings.to(device, self.settings.wide_dtype)
        largest_entries(embeddings, "test embeddings")
        if embeddings.shape[1] != dim:
            raise ValueError(
                f"test embeddings must have dim {dim} like the train embeddings, got {embeddings.shape[1]}"
            )
        if (highest := check_class_labels(labels, len(embeddings), "test labels")) >= self.classes:
            raise ValueError(f"test labels must be below {self.classes}, the training classes, got {highest}")
        return embeddings, labels.to(device)

    def state_dict(self) -> dict[str, Tensor | int]:
        """A copy of all that training has changed, and of what it can be resumed with alone."""
        return {
            "completed_epochs": self.completed_epochs,
            "seed": self.settings.seed,
            "inverse_temperatures": torch.tensor(self.inverse_temperatures, dtype=torch.float64),
            **{name: tensor.clone() for name, tensor in self._classifiers.tensors.items()},
        }

    def load_state_dict(self, state: Mapping[str, Tensor | int]) -> None:
        """Take up the `state_dict` of a trainer with the same data and arguments.

        Raises:
            ValueError: names, shapes, seed or inverse temperatures are not those of this trainer.
        """
        own = self.state_dict()
        if set(state) != set(own):
            raise ValueError(f"state must hold {sorted(own)}, got {sorted(state)}")
        given = {name: torch.as_tensor(value) for name, value in state.items()}
        for name, value in own.items():
            _check_state_entry(name, given[name], torch.as_tensor(value))
        for name, tensor in self._classifiers.tensors.items():
            tensor.copy_(given[name])
        self.completed_epochs = int(given["completed_epochs"])

    def _train(self, portion: Portion, first_step: int) -> None:
        """One step on each batch of a portion, for the problems of every block."""

        def prepare(rows: Tensor) -> Batch:
            embeddings, labels = (tensor.index_select(0, rows) for tensor in (portion.embeddings, portion.labels))
            return self._classifiers.prepare_batch(embeddings, labels)

        batches = self._workers.map(prepare, portion.batches)

        def train(block: slice) -> None:
            for step, batch in enumerate(batches, start=first_step):
                self._classifiers.train_step(block, batch, step)

        self._workers.map(train, self._blocks)


def _initial_weights(settings: Settings, classes: int, dim: int) -> Tensor:
    """Unit vectors of uniform direction, shape (repeats, classes, dim)."""
    # Deviation: the paper states no initialisation. Cosines do not depend on the length of a weight, but its gradient
    # falls with it, so that any length but 1 would be a learning rate in disguise.
    streams = (generator(settings.seed, INITIAL_WEIGHTS, repeat) for repeat in range(settings.repeats))
    drawn = torch.stack([torch.randn(classes, dim, generator=stream) for stream in streams])
    return functional.normalize(drawn, dim=2)


def _check_state_entry(name: str, given: Tensor, own: Tensor) -> None:
    if given.shape != own.shape:
        raise ValueError(f"state[{name!r}] must have shape {tuple(own.shape)}, got {tuple(given.shape)}")
    if name in ("seed", "inverse_temperatures") and not torch.equal(given.cpu(), own.cpu()):
        raise ValueError(f"state[{name!r}] must be {own.tolist()}, got {given.tolist()}")
