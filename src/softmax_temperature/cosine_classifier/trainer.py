"""Joint training of the cosine classifiers of all inverse temperatures and repeats."""

from collections.abc import Mapping, Sequence
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

# Numbers that identify the random streams derived from one seed.
INITIAL_WEIGHTS = 0
BATCH_ORDER = 1

# A trainer resumes only from a state in which these entries equal its own.
SHARED_STATE = ("seed", "inverse_temperatures")


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
    """Train cosine classifiers at all inverse temperatures at the same time.

    There is one classifier for each repeat and inverse temperature.

    The paper (classifier_temperature, sections 3.1 and 4.3) trains for 1,000 epochs
    with batches of 2,048, for alpha in {1, 5, 10, ..., 250}, by SGD on the rescaled
    loss. It reports the best accuracy over the epochs on the test set.

    Args:
        train: Embeddings and labels. The embeddings are floating point, have shape (n,
            dim), and are normalised by this function. The labels are int64, have shape
            (n,), and count from 0.
        test: Embeddings and labels, as in `train`, of the samples on which accuracy is
            measured.
        inverse_temperatures: Positive factors alpha = 1/T of the cosines, shape
            (temperatures,).
        epochs: Number of passes over the training samples; the last batch of each pass
            may be smaller than `batch_size`.
        batch_size: Samples per step.
        lr: Learning rate.
        momentum: Momentum of SGD, or Adam's first decay rate.
        rescale: Whether to divide the loss by alpha, so that alpha does not scale the
            gradient (after Eq. 3).
        optimizer: "sgd" or "adam".
        repeats: Number of initialisations of each classifier; all of them are trained
            on the same batches.
        seed: Seed of initial weights and batch orders; they are the same on every
            device.
        device: Device to train on; by default the device of the train embeddings.
        precision: "float32", "float64" or "bfloat16". "bfloat16" affects only the
            matrix products during training.

    Returns:
        The accuracy on `test` of every classifier after each epoch.

    Raises:
        ValueError: If an argument is out of range or a split is malformed; the message
            names the argument or the split.
    """
    # Deviation: learning rate and momentum are arguments, and there is no weight decay;
    # the paper states none of the three. Weight decay would shorten the weights, on
    # whose length no cosine depends, and thereby change the effective learning rate.
    check_count(epochs, "epochs", least=1)
    trainer = TemperatureGridTrainer(
        train,
        inverse_temperatures,
        device=device,
        batch_size=batch_size,
        lr=lr,
        momentum=momentum,
        rescale=rescale,
        optimizer=optimizer,
        repeats=repeats,
        seed=seed,
        precision=precision,
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
    """Trains cosine classifiers at many inverse temperatures, epoch by epoch.

    The classifiers have no bias. Settings and errors are those of
    `train_temperature_grid`. One *problem* is one (repeat, inverse temperature) pair.
    All problems see the same batches, and the problems of a repeat start from the same
    weights, so that comparisons are paired. The problems are trained in blocks of at
    most `problems_per_block`; results do not depend on the blocks, up to rounding.
    Training that resumes from a `state_dict` after any epoch equals uninterrupted
    training, bit for bit on a CPU with the same number of threads.
    """

    def __init__(
        self,
        train: tuple[Tensor, Tensor],
        inverse_temperatures: Sequence[float] | Tensor,
        *,
        device: torch.device | str | None = None,
        **settings: Any,
    ) -> None:
        self.settings = Settings(**settings)
        self.inverse_temperatures = tuple(
            float(number) for number in inverse_temperatures
        )
        count = len(self.inverse_temperatures)
        check_count(count, "number of inverse_temperatures", least=1)
        for number in self.inverse_temperatures:
            check_positive(number, "inverse_temperatures")
        embeddings, labels = train
        unit = normalise(
            embeddings.to(device, self.settings.wide_dtype), name="train embeddings"
        )
        self.classes = check_classes(labels, len(unit), "train labels") + 1
        if self.classes < 2:
            raise ValueError(
                "train labels must name at least two classes, got only class 0"
            )
        initial = self._initial_weights(unit.shape[1]).to(unit)
        self._classifiers = CosineClassifiers(
            initial, self.inverse_temperatures, self.settings
        )
        self._embeddings = unit.to(self._classifiers.products.dtype)
        self._labels = labels.to(unit.device)
        self._workers = Workers(unit.device)
        self._blocks = self._workers.blocks(
            self._classifiers.weights,
            batch=min(self.settings.batch_size, len(unit)),
            scores=self._embeddings.dtype,
            problems_per_block=self.settings.problems_per_block,
        )
        self.completed_epochs = 0

    def _initial_weights(self, dim: int) -> Tensor:
        """Draw random directions of length 1, shape (repeats, classes, dim)."""
        # Deviation: all initial weights have length 1; the paper states no
        # initialisation. Cosines do not depend on the length of a weight vector, but
        # its gradient is inversely proportional to that length, so a different length
        # would act like a different learning rate.
        drawn = []
        for repeat in range(self.settings.repeats):
            stream = generator(self.settings.seed, INITIAL_WEIGHTS, repeat)
            drawn.append(torch.randn(self.classes, dim, generator=stream))
        return functional.normalize(torch.stack(drawn), dim=2)

    def epoch(self) -> None:
        """Train every problem for one epoch.

        Raises:
            ValueError: If the weights overflow; the message names the learning rate.
        """
        steps_per_epoch = ceil(len(self._labels) / self.settings.batch_size)
        first_step = self.completed_epochs * steps_per_epoch + 1
        with self._workers.busy():
            batches = self._workers.map(self._prepare, self._batch_rows())

            def train(block: slice) -> bool:
                for step, batch in enumerate(batches, start=first_step):
                    self._classifiers.train_step(block, batch, step)
                # If a length overflows, all cosines become 0 and training makes no
                # progress.
                weights = self._classifiers.weights[block]
                lengths = torch.linalg.vector_norm(weights, dim=2)
                return bool(lengths.isfinite().all())

            finite = self._workers.map(train, self._blocks)
        self.completed_epochs += 1
        if not all(finite):
            raise ValueError(
                f"lr={self.settings.lr} made the weights overflow in epoch "
                f"{self.completed_epochs}"
            )

    def prepare_test(
        self, embeddings: Tensor, labels: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """Check test samples, and move them to the device in batches for `evaluate`.

        The embeddings need not be normalised.
        """
        embeddings = embeddings.to(self._labels.device, self.settings.wide_dtype)
        check_embeddings(embeddings, "test embeddings")
        dim = self._embeddings.shape[1]
        if embeddings.shape[1] != dim:
            raise ValueError(
                f"test embeddings must have dim {dim} like the train embeddings, got "
                f"{embeddings.shape[1]}"
            )
        highest = check_classes(labels, len(embeddings), "test labels")
        if highest >= self.classes:
            raise ValueError(
                f"test labels must be below {self.classes}, the number of training "
                f"classes, got {highest}"
            )
        batch_size = self.settings.batch_size
        with self._workers.busy():
            prepared = self._workers.map(
                self._classifiers.prepare_test, embeddings.split(batch_size)
            )
        label_batches = labels.to(embeddings.device).split(batch_size)
        return list(zip(prepared, label_batches, strict=True))

    def evaluate(self, samples: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Return the accuracy of every problem.

        The result is a float64 tensor of shape (repeats, temperatures).

        A sample is correct if no class has a higher cosine than its true class.

        Args:
            samples: The batches that `prepare_test` returned.
        """

        def count(block: slice) -> Tensor:
            counts = [
                self._classifiers.count_correct(block, embeddings, labels)
                for embeddings, labels in samples
            ]
            return torch.stack(counts).sum(dim=0)

        with self._workers.busy():
            correct = torch.cat(self._workers.map(count, self._blocks)).cpu()
        total = sum(len(labels) for _, labels in samples)
        return (correct.double() / total).view(self.settings.repeats, -1)

    def state_dict(self) -> dict[str, Tensor | int]:
        """Copy the training state, together with the settings named in SHARED_STATE."""
        state: dict[str, Tensor | int] = {
            "completed_epochs": self.completed_epochs,
            "seed": self.settings.seed,
            "inverse_temperatures": torch.tensor(
                self.inverse_temperatures, dtype=torch.float64
            ),
        }
        for name, tensor in self._classifiers.tensors.items():
            state[name] = tensor.clone()
        return state

    def load_state_dict(self, state: Mapping[str, Tensor | int]) -> None:
        """Resume from the `state_dict` of a trainer with the same data and arguments.

        Raises:
            ValueError: If an entry is missing or has a different shape, or one of
                `SHARED_STATE` has a different value. Other differences in data or
                arguments are not detected.
        """
        expected = _as_tensors(self.state_dict())
        loaded = _as_tensors(state)
        if set(loaded) != set(expected):
            raise ValueError(
                f"state must hold {sorted(expected)}, got {sorted(loaded)}"
            )
        for name, tensor in expected.items():
            same = loaded[name].shape == tensor.shape
            if same and name in SHARED_STATE:
                same = torch.equal(loaded[name].cpu(), tensor)
            if not same:
                raise ValueError(
                    f"state[{name!r}] comes from a trainer with other data or arguments"
                )
        for name, tensor in self._classifiers.tensors.items():
            tensor.copy_(loaded[name])
        self.completed_epochs = int(loaded["completed_epochs"])

    def _batch_rows(self) -> tuple[Tensor, ...]:
        """Draw the row indices of each batch of the next epoch."""
        stream = generator(self.settings.seed, BATCH_ORDER, self.completed_epochs)
        order = torch.randperm(len(self._labels), generator=stream)
        return tuple(order.to(self._labels.device).split(self.settings.batch_size))

    def _prepare(self, rows: Tensor) -> Batch:
        embeddings = self._embeddings.index_select(0, rows)
        labels = self._labels.index_select(0, rows)
        return self._classifiers.prepare_batch(embeddings, labels)


def _as_tensors(state: Mapping[str, Tensor | int]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in state.items()}


def normalise(embeddings: Tensor, *, name: str = "embeddings") -> Tensor:
    """Return `embeddings`, shape (n, dim), scaled to Euclidean length 1.

    Raises:
        ValueError: If the embeddings are malformed or a row has no direction.
    """
    # Division by the largest entry first keeps the squares of very small and very large
    # embeddings in range.
    largest = check_embeddings(embeddings, name)
    return functional.normalize(embeddings / largest, dim=1)


def generator(seed: int, stream: int, index: int) -> torch.Generator:
    """Return the random number generator of one repeat or epoch.

    The generator is on the CPU, so that all devices draw the same numbers.
    """
    state = np.random.SeedSequence([seed, stream, index]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
