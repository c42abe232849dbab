"""What is recorded of a training after its epochs: metrics of its splits, norms, and
the best epoch.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from softmax_temperature.data.splits import SplitName
from softmax_temperature.losses import Objective
from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.metrics.calibration import reliability_bins
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.trainer import (
    Callback,
    Diverged,
    Trainer,
    planned_epoch,
)

NORM_EDGES = tuple(
    10 ** (power / 4) for power in range(-24, 9)
)  # Of gradient norms; the ends hold those beyond.
RELIABILITY_BINS = 25  # Figure A.1.
_BATCH = 500  # A loss that couples samples looks at all pairs of a batch.


class Watch(Callback):
    """Metrics of the splits after epochs; after some, the gradient norms and the
    reliability of the training samples.

    `history` has a row for each evaluated epoch and split: `epoch`, `split`, `loss`,
    `weight_norm`, `feature_norm` (its mean) and what `describe_logits` returns;
    `gradient_norms` one for each of `gradient_epochs` and bin (focal paper, Figure 3);
    `reliability` one for each of `reliability_epochs` and bin (Figure A.1; None where
    it is empty). Epochs count from 1; evaluated are every `every`-th, the first, the
    `final` last ones and those two sets. `inverse_temperature` multiplies the logits
    that `history` describes.
    """

    kept = ("history", "gradient_norms", "reliability")

    def __init__(
        self,
        splits: Mapping[SplitName, Samples],
        *,
        gradient_epochs: frozenset[int] = frozenset(),
        reliability_epochs: frozenset[int] = frozenset(),
        inverse_temperature: float = 1.0,
        every: int = 1,
        final: int = 1,
    ) -> None:
        super().__init__()
        for name, samples in splits.items():
            if name != samples.split:
                raise ValueError(f"splits must not name {samples.split} data {name!r}")
        self._splits = splits
        self._inverse_temperature = inverse_temperature
        self._every = every
        self._final = final
        self._gradient_epochs = gradient_epochs
        self._reliability_epochs = reliability_epochs
        self.gradient_norms: list[dict[str, Any]] = []
        self.reliability: list[dict[str, Any]] = []

    def after_epoch(self, trainer: Trainer) -> None:
        """Evaluate the network, if the epoch is one to evaluate; raises Diverged if
        logits are not finite.
        """
        epoch = trainer.epochs_done
        always = self._gradient_epochs | self._reliability_epochs | {1}
        if (
            epoch % self._every
            and epoch not in always
            and epoch <= trainer.recipe.epochs - self._final
        ):
            return
        weight_norm = trainer.network.classifier.weight.double().norm().item()
        for name, split in self._splits.items():
            logits, feature_norms = trainer.evaluate(split.inputs)
            about = {
                "epoch": epoch,
                "split": name,
                "loss": trainer.loss,
                "weight_norm": weight_norm,
            }
            described = describe_logits(
                self._inverse_temperature * logits, split.labels
            )
            self.history.append(
                {**about, "feature_norm": feature_norms.mean().item(), **described}
            )
            if name == "train" and epoch in self._gradient_epochs:
                position = planned_epoch(trainer.recipe, epoch)
                norms = last_layer_gradient_norms(
                    logits, split.labels, feature_norms, trainer.objective, position
                )
                self.gradient_norms += _norm_counts(epoch, norms)
            if name == "train" and epoch in self._reliability_epochs:
                self.reliability += _reliability_rows(epoch, logits, split.labels)

    def validation_row(self) -> dict[str, Any]:
        """The row of the last evaluated epoch on validation data."""
        rows = [row for row in self.history if row["split"] == "validation"]
        return rows[-1]


def scaled_epochs(
    planned: Sequence[int], epochs: int, planned_epochs: int
) -> frozenset[int]:
    """Epochs of a figure of the paper, moved to a training of another length; counted
    from 1.
    """
    return frozenset(
        max(1, round(epoch * epochs / planned_epochs)) for epoch in planned
    )


class ValidationScores(Protocol):
    """Scores a network on validation data after each epoch."""

    def validation_row(self) -> dict[str, Any]:
        """The scores after the last epoch."""


class BestEpoch(Callback):
    """Keeps the weights of the first `epoch` with the best `score` on validation data.

    The score of the focal paper is the accuracy (appendix E).
    """

    kept = ("epoch", "best", "weights")

    def __init__(
        self,
        scores: ValidationScores,
        score: Callable[[dict[str, Any]], float] = itemgetter("accuracy"),
    ) -> None:
        self.epoch = 0
        self.best = -math.inf
        self.weights: dict[str, Tensor] = {}
        self._scores = scores
        self._score = score

    def after_epoch(self, trainer: Trainer) -> None:
        """Keep the network if it is better than all before."""
        score = self._score(self._scores.validation_row())
        if score > self.best:
            self.epoch, self.best = trainer.epochs_done, score
            self.weights = copy.deepcopy(trainer.network.state_dict())

    def restore(self, trainer: Trainer) -> None:
        """Give the network the weights of the best epoch."""
        trainer.network.load_state_dict(self.weights)


class Norms(Callback):
    """Norms of logits, weights and gradients (cooling paper, section 3.3);
    `after_batch` belongs among the trainer's.

    A row of `history`: `epoch`, and after it `logit_norm` (mean over held-out `inputs`)
    and `weight_norm` (of all parameters together); and `gradient_norm` (likewise, mean
    over the epoch's batches, as the optimizer used them).
    """

    def __init__(self, inputs: Tensor) -> None:
        super().__init__()
        self._inputs = inputs
        self._gradients: list[Tensor] = []

    def after_batch(self, trainer: Trainer) -> None:
        """Note the norm of the gradient, on the device, so that a GPU's queue does not
        stall.
        """
        gradients = [
            each.grad for each in trainer.network.parameters() if each.grad is not None
        ]
        self._gradients.append(get_total_norm(gradients))

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row; raises Diverged if logits are not finite, or a norm is
        beyond float32.
        """
        logits, _ = trainer.evaluate(self._inputs)
        gradients = torch.stack(self._gradients).double().mean().item()
        weights = get_total_norm(
            [each.detach() for each in trainer.network.parameters()]
        ).item()
        self._gradients.clear()
        if not math.isfinite(gradients + weights):
            what = f"norms of gradients and weights are {gradients} and {weights}"
            raise Diverged(f"{what} after epoch {trainer.epochs_done}")
        row = {
            "epoch": trainer.epochs_done,
            "logit_norm": logits.double().norm(dim=1).mean().item(),
        }
        self.history.append({**row, "weight_norm": weights, "gradient_norm": gradients})


def describe_logits(logits: Tensor, labels: Tensor) -> dict[str, float | None]:
    """What logits (n, classes) say of labels (n,): `nll`, `entropy` (nats), `accuracy`
    and `ece` (15 bins, a fraction).

    `nll_right`, `nll_wrong`, `entropy_right`, `entropy_wrong` are means over the
    samples predicted so; None without.
    """
    log_probs = torch.log_softmax(logits.double(), dim=1)
    probs = log_probs.exp()
    right = logits.argmax(1) == labels
    row: dict[str, float | None] = {}
    values = {
        "nll": -log_probs.gather(1, labels[:, None]).squeeze(1),
        "entropy": torch.special.entr(probs).sum(1),
    }
    for name, each in values.items():
        row[name] = each.mean().item()
        for suffix, some in (("right", each[right]), ("wrong", each[~right])):
            row[f"{name}_{suffix}"] = some.mean().item() if len(some) else None
    return {
        **row,
        "accuracy": right.double().mean().item(),
        "ece": expected_calibration_error(probs, labels).item(),
    }


def last_layer_gradient_norms(
    logits: Tensor,
    labels: Tensor,
    feature_norms: Tensor,
    objective: Objective,
    position: float,
) -> Tensor:
    """Norm of each sample's gradient with respect to the last layer's weights (focal
    paper, Figure 3 b to d): (n,).

    The gradient is the outer product of that with respect to the logits (n, classes)
    and the features, so its norm is the product of theirs. Where a loss couples
    samples, a sample's gradient is its share in that of its batch of 500.
    """
    gradients = []
    for some, truth in zip(logits.split(_BATCH), labels.split(_BATCH), strict=True):
        leaf = some.detach().double().requires_grad_()
        gradients += torch.autograd.grad(
            objective(leaf, truth, position) * len(truth), leaf
        )
    norms: Tensor = torch.cat(gradients).norm(dim=1) * feature_norms.double()
    return norms


def _norm_counts(epoch: int, norms: Tensor) -> list[dict[str, Any]]:
    inside = norms.double().clamp(NORM_EDGES[0], NORM_EDGES[-1])
    counts, _ = torch.histogram(inside, torch.tensor(NORM_EDGES, dtype=torch.float64))
    bins = zip(pairwise(NORM_EDGES), counts, strict=True)
    return [
        {"epoch": epoch, "low": low, "high": high, "count": int(count)}
        for (low, high), count in bins
    ]


def _reliability_rows(
    epoch: int, logits: Tensor, labels: Tensor
) -> list[dict[str, Any]]:
    bins = reliability_bins(
        torch.softmax(logits.double(), dim=1), labels, bins=RELIABILITY_BINS
    )
    rows = []
    for number, count in enumerate(bins.counts.tolist()):
        means = {
            name: getattr(bins, name)[number].item() if count else None
            for name in ("accuracy", "confidence")
        }
        low, high = (edge / RELIABILITY_BINS for edge in (number, number + 1))
        rows.append({"epoch": epoch, "low": low, "high": high, "count": count, **means})
    return rows
