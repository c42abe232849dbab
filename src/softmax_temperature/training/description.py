"""What one split says about a network at one epoch (focal paper, section 3, Figures 1 to 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from softmax_temperature.metrics.calibration import expected_calibration_error

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective

_BATCH = 500  # A loss that couples samples looks at all pairs of a batch.


def describe_logits(logits: Tensor, labels: Tensor) -> dict[str, float | None]:
    """Negative log-likelihood and entropy of all, right and wrong samples, accuracy and calibration error.

    Args:
        logits: (n, classes).
        labels: (n,).

    Returns:
        `nll`, `nll_right`, `nll_wrong`, `entropy`, `entropy_right`, `entropy_wrong` (nats, means; None where there is
        no such sample), `accuracy` and `ece` (15 bins), fractions.
    """
    log_probs = torch.log_softmax(logits.double(), dim=1)
    probs = log_probs.exp()
    entropies = torch.special.entr(probs).sum(1)
    losses = -log_probs.gather(1, labels[:, None]).squeeze(1)
    right = logits.argmax(1) == labels
    row: dict[str, float | None] = {}
    for name, values in (("nll", losses), ("entropy", entropies)):
        row |= {name: _mean(values), f"{name}_right": _mean(values[right]), f"{name}_wrong": _mean(values[~right])}
    return {
        **row,
        "accuracy": right.double().mean().item(),
        "ece": expected_calibration_error(probs, labels).item(),
    }


def last_layer_gradient_norms(
    logits: Tensor, labels: Tensor, feature_norms: Tensor, objective: Objective, position: float
) -> Tensor:
    """Norm of each sample's gradient with respect to the last layer's weights (focal paper, Figure 3 b to d).

    The gradient is the outer product of that with respect to the logits and the features, so its norm is the product
    of theirs. The bias is left out.

    Args:
        logits: (n, classes).
        labels: (n,).
        feature_norms: (n,), of the last layer's inputs.
        objective: a mean over samples. Where a loss couples them, as MMCE does, a sample's gradient is its share in
            that of its batch: at most 500 samples, in the order given.
        position: in the written recipe, epochs.

    Returns:
        (n,) float64.
    """
    gradients = []
    for some, truth in zip(logits.split(_BATCH), labels.split(_BATCH), strict=True):
        leaf = some.detach().double().requires_grad_()
        gradients += torch.autograd.grad(objective(leaf, truth, position) * len(truth), leaf)
    norms: Tensor = torch.cat(gradients).norm(dim=1) * feature_norms.double()
    return norms


def _mean(values: Tensor) -> float | None:
    return values.mean().item() if len(values) else None
