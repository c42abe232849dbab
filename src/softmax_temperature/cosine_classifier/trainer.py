"""Trains the cosine classifiers of all inverse temperatures and repeats together, epoch
by epoch, resumably.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.classifiers import (
    Batch,
    CosineClassifiers,
    Settings,
)
from softmax_temperature.cosine_classifier.grid import TemperatureGrid
from softmax_temperature.cosine_classifier.products import Workers
from softmax_temperature.metrics.checks import (
    check_classes,
    check_count,
    check_embeddings,
    check_positive,
)

INITIAL_WEIGHTS, BATCH_ORDER = 0, 1  # Streams of random numbers that one seed spawns.


def train_temperature_grid(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    inverse_temperatures: Sequence[float] | Tensor,
    *,
    epochs: int,
    batch_size: int,
    lr: float,
    momentum: float = 0.9,
    rescale: bool = True,
    optimizer: str = "sgd",
    repeats: int = 1,
    seed: int = 0,
    device: torch.device | str | None = None,
    precision: str = "float32",
) -> TemperatureGrid:
    """Test accuracy of a cosine classifier at each inverse temperature, all trained at
    once.

    classifier_temperature, sections 3.1 and 4.3: 1,000 epochs with batches of 2,048 for
    alpha in {1, 5, 10, ..., 250}, SGD on the rescaled loss, and the best accuracy over
    the epochs on the test set.

    Args:
        train: Embeddings, shape (n, dim), floating point, normalised here; labels,
            shape (n,), int64, from 0.
        test: The same for the samples to count accuracy on.
        inverse_temperatures: Positive numbers alpha = 1/T that multiply the cosines,
            shape (temperatures,).
        epochs: Passes over the training samples; the last batch of each may be smaller
            than `batch_size`.
        batch_size: Samples per step.
        lr: Learning rate.
        momentum: Of SGD; for Adam its first decay rate.
        rescale: Divide the loss by alpha, so that alpha does not scale the gradient
            (after Eq. 3).
        optimizer: "sgd" or "adam".
        repeats: Initialisations of each classifier; batches are the same in all.
        seed: Of initial weights and batch orders, the same on every device.
        device: Where to train; default: where the train embeddings are.
        precision: "float32", "float64", or "bfloat16", in which only matrix products of
            the training are narrow.

    Raises:
        ValueError: If an argument is out of range or a split is malformed; the message
            names it.
    """
    # Deviation: the paper states no learning rate, momentum or weight decay. The first
    # two are arguments, there is no weight decay: it would change lengths alone, to
    # which cosines are blind, and with them the learning rate.
    check_count(epochs, "epochs", least=1)
    how = Settings(
        batch_size, lr, momentum, rescale, optimizer, repeats, seed, precision
    )
    trainer = TemperatureGridTrainer(
        train, inverse_temperatures, device=device, **asdict(how)
    )
    samples = trainer.prepare_test(*test)
    curves = []
    for _ in range(epochs):
        trainer.epoch()
        curves.append(trainer.evaluate(samples))
    return TemperatureGrid(
        trainer.inverse_temperatures, torch.stack(curves, dim=2), evaluated=len(test[1])
    )


class TemperatureGridTrainer:
    """Cosine classifiers without bias at many inverse temperatures, trained together
    epoch by epoch.

    Settings and errors are those of `train_temperature_grid`. One *problem* is one
    (repeat, inverse temperature) pair. All problems see the same batches, and within a
    repeat start from the same weights: comparisons are paired. They are trained in
    blocks of at most `problems_per_block`, on which results do not depend but for
    rounding. Resuming through `state_dict` after any epoch equals uninterrupted
    training, on a CPU with the same number of threads bit for bit.
    """

    def __init__(
        self,
        train: tuple[Tensor, Tensor],
        inverse_temperatures: Sequence[float] | Tensor,
        *,
        device: torch.device | str | None = None,
        **settings: Any,
    ) -> None:
        self.settings, (embeddings, labels) = Settings(**settings), train
        self.inverse_temperatures = tuple(
            float(number) for number in inverse_temperatures
        )
        check_count(
            len(self.inverse_temperatures), "number of inverse_temperatures", least=1
        )
        for number in self.inverse_temperatures:
            check_positive(number, "inverse_temperatures")
        unit = normalise(
            embeddings.to(device, self.settings.wide_dtype), name="train embeddings"
        )
        self.classes = check_classes(labels, len(unit), "train labels") + 1
        if self.classes < 2:
            raise ValueError(
                "train labels must name at least two classes, got class 0 alone"
            )
        # Deviation: the paper states no initialisation. Cosines do not depend on the
        # length of a weight, but its gradient falls with it, so that any length but 1
        # would be a learning rate in disguise.
        streams = (
            generator(self.settings.seed, INITIAL_WEIGHTS, repeat)
            for repeat in range(self.settings.repeats)
        )
        drawn = torch.stack(
            [
                torch.randn(self.classes, unit.shape[1], generator=stream)
                for stream in streams
            ]
        )
        initial = functional.normalize(drawn, dim=2).to(unit)
        self._classifiers = CosineClassifiers(
            initial, self.inverse_temperatures, self.settings
        )
        self._embeddings, self._labels = (
            unit.to(self._classifiers.products.dtype),
            labels.to(unit.device),
        )
        self._workers = Workers(unit.device)
        weights, batch = (
            self._classifiers.weights,
            min(self.settings.batch_size, len(unit)),
        )
        at_once = self.settings.problems_per_block
        self._blocks = self._workers.blocks(
            weights, batch, self._embeddings.dtype, at_once
        )
        self.completed_epochs = 0

    def epoch(self) -> None:
        """Train every problem for one epoch; raises ValueError, naming the learning
        rate, if the weights overflow.
        """
        step = (
            self.completed_epochs * ceil(len(self._labels) / self.settings.batch_size)
            + 1
        )
        with self._workers.busy():
            batches = self._workers.map(self._prepare, self._batch_rows())

            def train(block: slice) -> bool:
                for number, batch in enumerate(batches, start=step):
                    self._classifiers.train_step(block, batch, number)
                # Where a length overflows, cosines become 0 and training stops.
                return bool(
                    torch.linalg.vector_norm(self._classifiers.weights[block], dim=2)
                    .isfinite()
                    .all()
                )

            finite = self._workers.map(train, self._blocks)
        self.completed_epochs += 1
        if not all(finite):
            raise ValueError(
                f"lr={self.settings.lr} made the weights overflow in epoch {self.completed_epochs}"
            )

    def prepare_test(
        self, embeddings: Tensor, labels: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """Samples to count accuracy on, for `evaluate`: checked and on the device; they
        need not be normalised.
        """
        embeddings = embeddings.to(self._labels.device, self.settings.wide_dtype)
        check_embeddings(embeddings, "test embeddings")
        if (dim := self._embeddings.shape[1]) != embeddings.shape[1]:
            raise ValueError(
                f"test embeddings must have dim {dim} like the training's, got {embeddings.shape[1]}"
            )
        if (
            highest := check_classes(labels, len(embeddings), "test labels")
        ) >= self.classes:
            raise ValueError(
                f"test labels must be below {self.classes}, the training classes, got {highest}"
            )
        with self._workers.busy():
            prepared = self._workers.map(
                self._classifiers.prepare_test,
                embeddings.split(self.settings.batch_size),
            )
        return list(
            zip(
                prepared,
                labels.to(embeddings.device).split(self.settings.batch_size),
                strict=True,
            )
        )

    def evaluate(self, samples: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Accuracy of every problem on what `prepare_test` returned, (repeats,
        temperatures), float64, on the CPU.

        A sample is correct when no class has a higher cosine than its own.
        """

        def count(block: slice) -> Tensor:
            return torch.stack(
                [self._classifiers.count_correct(block, *batch) for batch in samples]
            ).sum(dim=0)

        with self._workers.busy():
            correct = torch.cat(self._workers.map(count, self._blocks)).cpu()
        total = sum(len(labels) for _, labels in samples)
        return (correct.double() / total).view(self.settings.repeats, -1)

    def state_dict(self) -> dict[str, Tensor | int]:
        """A copy of all that training has changed, and of the settings that a resumed
        training must share.
        """
        return {
            "completed_epochs": self.completed_epochs,
            "seed": self.settings.seed,
            "inverse_temperatures": torch.tensor(
                self.inverse_temperatures, dtype=torch.float64
            ),
            **{
                name: tensor.clone()
                for name, tensor in self._classifiers.tensors.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, Tensor | int]) -> None:
        """Resume from the `state_dict` of a trainer with the same data and arguments;
        ValueError for any other.
        """
        own, given = (
            {name: torch.as_tensor(one) for name, one in each.items()}
            for each in (self.state_dict(), state)
        )
        if set(given) != set(own):
            raise ValueError(f"state must hold {sorted(own)}, got {sorted(given)}")
        for name, expected in own.items():
            same = name not in ("seed", "inverse_temperatures") or torch.equal(
                given[name].cpu(), expected
            )
            if given[name].shape != expected.shape or not same:
                raise ValueError(
                    f"state[{name!r}] is that of a trainer with other data or arguments"
                )
        for name, tensor in self._classifiers.tensors.items():
            tensor.copy_(given[name])
        self.completed_epochs = int(given["completed_epochs"])

    def _batch_rows(self) -> tuple[Tensor, ...]:
        """Row numbers of each batch of the next epoch."""
        stream = generator(self.settings.seed, BATCH_ORDER, self.completed_epochs)
        order = torch.randperm(len(self._labels), generator=stream).to(
            self._labels.device
        )
        return tuple(order.split(self.settings.batch_size))

    def _prepare(self, rows: Tensor) -> Batch:
        embeddings, labels = (
            tensor.index_select(0, rows) for tensor in (self._embeddings, self._labels)
        )
        return self._classifiers.prepare_batch(embeddings, labels)


def normalise(embeddings: Tensor, *, name: str = "embeddings") -> Tensor:
    """Embeddings, shape (n, dim), scaled to Euclidean length 1; ValueError if
    malformed, or a row has no direction.
    """
    # The largest entry, taken out first, keeps the squares of very small and very large
    # embeddings in range.
    return functional.normalize(embeddings / check_embeddings(embeddings, name), dim=1)


def generator(seed: int, stream: int, index: int) -> torch.Generator:
    """The random numbers of one repeat or epoch; on the CPU, so that every device draws
    the same.
    """
    state = np.random.SeedSequence([seed, stream, index]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
