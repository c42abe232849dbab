"""Watching a training: what the splits say after its epochs, and closer looks at chosen ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from softmax_temperature.metrics.calibration import reliability_bins
from softmax_temperature.metrics.checks import check_count
from softmax_temperature.training.description import describe_logits, last_layer_gradient_norms

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.samples import Samples
    from softmax_temperature.training.trainer import Trainer

NORM_EDGES = tuple(10 ** (power / 4) for power in range(-24, 9))
"""Bins of gradient norms, four to a decade from 1e-6 to 100; norms beyond are counted in the first or last."""

RELIABILITY_BINS = 25  # Figure A.1.


@dataclass(frozen=True)
class ClosePlaces:
    """Epochs, counted from 1, after which the training samples are looked at closely.

    Attributes:
        gradients: for histograms of gradient norms (focal paper, Figure 3).
        reliability: for reliability plots (Figure A.1).
    """

    gradients: frozenset[int] = frozenset()
    reliability: frozenset[int] = frozenset()


class Watch:
    """Rows that grow with each epoch; plain JSON, so that a checkpoint can hold them.

    Attributes:
        history: a row for each epoch that was looked at and each split: `epoch`, `split`, `loss`, `weight_norm`,
            `feature_norm` (mean over the split), and what `describe_logits` returns.
        gradient_norms: a row for each close epoch and bin: `epoch`, `low`, `high`, `count`.
        reliability: a row for each close epoch and bin: `epoch`, `low`, `high`, `count`, `accuracy`, `confidence`
            (None where the bin is empty).

    Args:
        splits: samples to look at, by name, in evaluation mode, not augmented; "train" is for the close looks.
        close: when.
        inverse_temperature: multiplies the logits that `history` describes.
        every: look after every so many epochs; after the first, the last and the close ones always.
    """

    def __init__(
        self, splits: Mapping[str, Samples], close: ClosePlaces, *, inverse_temperature: float = 1.0, every: int = 1
    ) -> None:
        check_count(every, "every", least=1)
        self._splits, self._close, self._inverse_temperature, self._every = splits, close, inverse_temperature, every
        self.history: list[dict[str, Any]] = []
        self.gradient_norms: list[dict[str, Any]] = []
        self.reliability: list[dict[str, Any]] = []

    def after_epoch(self, trainer: Trainer) -> None:
        """Look at the network after an epoch, if it is one to look at.

        Raises:
            Diverged: logits are not finite.
        """
        epoch = trainer.epochs_done
        if epoch % self._every and epoch not in self._always(trainer.recipe.epochs):
            return
        weight_norm = trainer.network.classifier.weight.double().norm().item()
        for name, split in self._splits.items():
            logits, feature_norms = trainer.evaluate(split.inputs)
            about = {"epoch": epoch, "split": name, "loss": trainer.loss, "weight_norm": weight_norm}
            seen = describe_logits(self._inverse_temperature * logits, split.labels)
            self.history.append({**about, "feature_norm": feature_norms.mean().item(), **seen})
            if name == "train":
                self._look_closely(trainer, logits, split.labels, feature_norms)

    def state_dict(self) -> dict[str, Any]:
        """All rows so far."""
        rows = {"history": self.history, "gradient_norms": self.gradient_norms, "reliability": self.reliability}
        return {name: list(each) for name, each in rows.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        self.history = list(state["history"])
        self.gradient_norms = list(state["gradient_norms"])
        self.reliability = list(state["reliability"])

    def _always(self, epochs: int) -> frozenset[int]:
        return frozenset({1, epochs}) | self._close.gradients | self._close.reliability

    def _look_closely(self, trainer: Trainer, logits: Tensor, labels: Tensor, feature_norms: Tensor) -> None:
        epoch = trainer.epochs_done
        if epoch in self._close.gradients:
            position = trainer.recipe.position(epoch)
            norms = last_layer_gradient_norms(logits, labels, feature_norms, trainer.objective, position)
            self.gradient_norms += [{"epoch": epoch, **row} for row in _norm_counts(norms)]
        if epoch in self._close.reliability:
            probs = torch.softmax(logits.double(), dim=1)
            self.reliability += [{"epoch": epoch, **row} for row in _reliability_rows(probs, labels)]


def close_epochs(planned: Sequence[int], epochs: int, planned_epochs: int) -> frozenset[int]:
    """Epochs of a figure of the paper, moved to a training of another length; counted from 1."""
    return frozenset(max(1, round(epoch * epochs / planned_epochs)) for epoch in planned)


def _norm_counts(norms: Tensor) -> list[dict[str, Any]]:
    inside = norms.clamp(NORM_EDGES[0], NORM_EDGES[-1])
    counts, _ = torch.histogram(inside.double(), torch.tensor(NORM_EDGES, dtype=torch.float64))
    bins = zip(pairwise(NORM_EDGES), counts, strict=True)
    return [{"low": low, "high": high, "count": int(count)} for (low, high), count in bins]


def _reliability_rows(probs: Tensor, labels: Tensor) -> list[dict[str, Any]]:
    bins = reliability_bins(probs, labels, bins=RELIABILITY_BINS)
    return [
        {
            "low": number / RELIABILITY_BINS,
            "high": (number + 1) / RELIABILITY_BINS,
            "count": int(count),
            "accuracy": accuracy if count else None,
            "confidence": confidence if count else None,
        }
        for number, (count, accuracy, confidence) in enumerate(
            zip(bins.counts.tolist(), bins.accuracy.tolist(), bins.confidence.tolist(), strict=True)
        )
    ]
