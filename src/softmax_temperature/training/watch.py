"""Records of a run after its epochs: metrics of splits, norms, and the best epoch."""

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
from softmax_temperature.losses.base import Loss
from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.metrics.calibration import reliability_bins
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.trainer import (
    Callback,
    Diverged,
    Trainer,
    planned_epoch,
)

# Edges of the bins of gradient norms. The outer bins also count norms beyond the outer
# edges.
NORM_EDGES = tuple(10 ** (power / 4) for power in range(-24, 9))
RELIABILITY_BINS = 25  # The number of bins in Figure A.1.
# Samples per batch when gradient norms are computed. The batch is limited because a
# loss that couples samples compares all pairs of the batch.
_BATCH = 500


class Watch(Callback):
    """Records metrics of the splits after epochs, and details of the training samples.

    `history` has a row for each evaluated epoch and split: `epoch`, `split`, `loss`,
    `weight_norm`, `feature_norm` (the mean) and the values of `describe_logits`.
    `gradient_norms` has a row for each bin in each of `gradient_epochs` (focal paper,
    Figure 3). `reliability` has a row for each bin in each of `reliability_epochs`
    (Figure A.1), with None for the means of an empty bin.

    Epochs count from 1. The watch evaluates every `every`-th epoch, the first epoch,
    the last `final` epochs, and the epochs in `gradient_epochs` and
    `reliability_epochs`. `history` describes the logits multiplied by the loss's
    inverse temperature. Raises ValueError if samples are passed under the name of
    another split.
    """

    kept = ("history", "gradient_norms", "reliability")

    def __init__(
        self,
        splits: Mapping[SplitName, Samples],
        *,
        gradient_epochs: frozenset[int] = frozenset(),
        reliability_epochs: frozenset[int] = frozenset(),
        every: int = 1,
        final: int = 1,
    ) -> None:
        super().__init__()
        for name, samples in splits.items():
            if name != samples.split:
                raise ValueError(
                    f"splits: {samples.split} data must not be named {name!r}"
                )
        self._splits = splits
        self._every = every
        self._final = final
        self._gradient_epochs = gradient_epochs
        self._reliability_epochs = reliability_epochs
        self.gradient_norms: list[dict[str, Any]] = []
        self.reliability: list[dict[str, Any]] = []

    def after_epoch(self, trainer: Trainer) -> None:
        """Evaluate the network, if this epoch is to be evaluated.

        Raises Diverged if logits are not finite.
        """
        epoch = trainer.epochs_done
        if not self._is_evaluated(epoch, trainer.recipe.epochs):
            return
        weight_norm = trainer.network.classifier.weight.double().norm().item()
        for split, samples in self._splits.items():
            logits, feature_norms = trainer.evaluate(samples.inputs)
            tempered = trainer.objective.tempered(logits)
            row = {
                "epoch": epoch,
                "split": split,
                "loss": trainer.loss,
                "weight_norm": weight_norm,
                "feature_norm": feature_norms.mean().item(),
            }
            self.history.append({**row, **describe_logits(tempered, samples.labels)})
            if split != "train":
                continue
            if epoch in self._gradient_epochs:
                position = planned_epoch(trainer.recipe, epoch)
                norms = last_layer_gradient_norms(
                    logits, samples.labels, feature_norms, trainer.objective, position
                )
                self.gradient_norms += _norm_counts(epoch, norms)
            if epoch in self._reliability_epochs:
                self.reliability += _reliability_rows(epoch, logits, samples.labels)

    def _is_evaluated(self, epoch: int, epochs: int) -> bool:
        if epoch == 1 or epoch % self._every == 0 or epoch > epochs - self._final:
            return True
        return epoch in self._gradient_epochs or epoch in self._reliability_epochs

    def validation_row(self) -> dict[str, Any]:
        """The row of the last evaluated epoch on validation data."""
        rows = [row for row in self.history if row["split"] == "validation"]
        return rows[-1]


def scaled_epochs(
    planned: Sequence[int], epochs: int, planned_epochs: int
) -> frozenset[int]:
    """Scale the epochs of a figure in the paper to a run of a different length.

    Epochs count from 1.
    """
    scaled = [round(epoch * epochs / planned_epochs) for epoch in planned]
    return frozenset(max(1, epoch) for epoch in scaled)


class ValidationScores(Protocol):
    """Scores a network on validation data after each evaluated epoch."""

    def validation_row(self) -> dict[str, Any]:
        """The scores on validation data after the last evaluated epoch."""


class BestEpoch(Callback):
    """Keeps the weights of the first `epoch` with the highest score on validation data.

    `score` computes the score from the row of an epoch. By default, the score is the
    accuracy, as in the focal paper (appendix E).
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
        """Copy the network's weights if its score is higher than all earlier scores."""
        score = self._score(self._scores.validation_row())
        if score > self.best:
            self.best = score
            self.epoch = trainer.epochs_done
            self.weights = copy.deepcopy(trainer.network.state_dict())

    def restore(self, trainer: Trainer) -> None:
        """Load the weights of the best epoch into the network."""
        trainer.network.load_state_dict(self.weights)


class Norms(Callback):
    """Records norms of logits, weights and gradients (cooling paper, section 3.3).

    The method `after_batch` must be in `trainer.after_batch`; `TrainingRun.run` adds
    it. A row of `history` has four entries: `epoch`; `logit_norm`, the mean over
    held-out `inputs` after the epoch; `weight_norm`, the norm of all parameters after
    the epoch; and `gradient_norm`, the norm of the whole gradient that the optimizer
    used, averaged over the epoch's batches.
    """

    def __init__(self, inputs: Tensor) -> None:
        super().__init__()
        self._inputs = inputs
        self._gradients: list[Tensor] = []

    def after_batch(self, trainer: Trainer) -> None:
        """Record the gradient's norm on the device, without stalling a GPU."""
        parameters = trainer.network.parameters()
        gradients = [
            parameter.grad for parameter in parameters if parameter.grad is not None
        ]
        self._gradients.append(get_total_norm(gradients))

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row to `history`.

        Raises Diverged if logits are not finite, or a norm exceeds the range of
        float32.
        """
        logits, _ = trainer.evaluate(self._inputs)
        gradient_norm = torch.stack(self._gradients).double().mean().item()
        self._gradients.clear()
        parameters = trainer.network.parameters()
        weights = [parameter.detach() for parameter in parameters]
        weight_norm = get_total_norm(weights).item()
        if not math.isfinite(gradient_norm + weight_norm):
            raise Diverged(
                f"norms of gradients and weights are {gradient_norm} and {weight_norm} "
                f"after epoch {trainer.epochs_done}"
            )
        self.history.append(
            {
                "epoch": trainer.epochs_done,
                "logit_norm": logits.double().norm(dim=1).mean().item(),
                "weight_norm": weight_norm,
                "gradient_norm": gradient_norm,
            }
        )


def describe_logits(logits: Tensor, labels: Tensor) -> dict[str, float | None]:
    """Compute metrics of logits (n, classes) and labels (n,).

    `nll` and `entropy` are in nats, `accuracy` and `ece` (15 bins) are fractions.
    `nll_right` and `entropy_right` are means over the correctly predicted samples,
    `nll_wrong` and `entropy_wrong` over the others; a mean over no samples is None.
    """
    log_probs = torch.log_softmax(logits.double(), dim=1)
    probs = log_probs.exp()
    right = logits.argmax(1) == labels
    row: dict[str, float | None] = {}
    values = {
        "nll": -log_probs.gather(1, labels[:, None]).squeeze(1),
        "entropy": torch.special.entr(probs).sum(1),
    }
    for name, value in values.items():
        row[name] = value.mean().item()
        row[f"{name}_right"] = _mean_or_none(value[right])
        row[f"{name}_wrong"] = _mean_or_none(value[~right])
    return {
        **row,
        "accuracy": right.double().mean().item(),
        "ece": expected_calibration_error(probs, labels).item(),
    }


def _mean_or_none(values: Tensor) -> float | None:
    return values.mean().item() if len(values) else None


def last_layer_gradient_norms(
    logits: Tensor,
    labels: Tensor,
    feature_norms: Tensor,
    objective: Loss,
    position: float,
) -> Tensor:
    """Compute the norm of the last layer's weight gradient for each sample, (n,).

    Focal paper, Figure 3 b to d. A sample's gradient is the outer product of two
    vectors: the gradient with respect to the sample's logits, and the sample's
    features. Its norm is therefore the product of the norms of the two vectors. If the
    loss couples samples, a sample's gradient is the part of the gradient of its batch
    of 500 that flows through the sample's logits.
    """
    gradients: list[Tensor] = []
    for batch, truth in zip(logits.split(_BATCH), labels.split(_BATCH), strict=True):
        leaf = batch.detach().double().requires_grad_()
        total = objective(leaf, truth, position) * len(truth)
        gradients += torch.autograd.grad(total, leaf)
    norms: Tensor = torch.cat(gradients).norm(dim=1) * feature_norms.double()
    return norms


def _norm_counts(epoch: int, norms: Tensor) -> list[dict[str, Any]]:
    inside = norms.double().clamp(NORM_EDGES[0], NORM_EDGES[-1])
    edges = torch.tensor(NORM_EDGES, dtype=torch.float64)
    counts, _ = torch.histogram(inside, edges)
    rows = []
    for (low, high), count in zip(pairwise(NORM_EDGES), counts, strict=True):
        rows.append({"epoch": epoch, "low": low, "high": high, "count": int(count)})
    return rows


def _reliability_rows(
    epoch: int, logits: Tensor, labels: Tensor
) -> list[dict[str, Any]]:
    probs = torch.softmax(logits.double(), dim=1)
    bins = reliability_bins(probs, labels, bins=RELIABILITY_BINS)
    rows = []
    for number, count in enumerate(bins.counts.tolist()):
        rows.append(
            {
                "epoch": epoch,
                "low": number / RELIABILITY_BINS,
                "high": (number + 1) / RELIABILITY_BINS,
                "count": count,
                "accuracy": bins.accuracy[number].item() if count else None,
                "confidence": bins.confidence[number].item() if count else None,
            }
        )
    return rows
