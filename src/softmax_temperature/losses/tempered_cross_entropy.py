"""Cross-entropies of logits times an inverse temperature.

The temperature_check paper (abstract) uses this cross-entropy unchanged; the
classifier_temperature paper (section 3.1) divides it by the inverse temperature.
"""

from typing import ClassVar

from torch import Tensor

from softmax_temperature.losses.base import check_batch, is_soft, widened
from softmax_temperature.losses.cross_entropy import (
    CrossEntropyLoss,
    soft_cross_entropy_terms,
)
from softmax_temperature.losses.probabilities import log_prob_and_complement
from softmax_temperature.metrics.checks import check_positive


def tempered_logits(logits: Tensor, inverse_temperature: float) -> Tensor:
    """`logits` times `inverse_temperature`."""
    return inverse_temperature * logits


def rescaled_cross_entropy(
    logits: Tensor, labels: Tensor, inverse_temperature: float
) -> Tensor:
    """Cross-entropy of scaled logits, divided by the scale: CE(alpha z) / alpha.

    classifier_temperature, section 3.1: with the division, one learning rate suits
    every alpha.

    Args:
        logits: Shape (n, classes); -inf for masked classes.
        labels: Class indices (n,), or probabilities (n, classes).
        inverse_temperature: The factor alpha, finite and positive.

    Returns:
        The mean over the batch, in nats divided by alpha.

    Raises:
        ValueError: If a shape or a value is wrong, or alpha is not finite and positive.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    # Do not refuse logits that look like sigmoid outputs: section 3.1 defines the loss
    # for cosines, which may all be in [0, 1].
    check_batch(logits, labels, sigmoids=False)
    scaled = tempered_logits(widened(logits), inverse_temperature)
    if is_soft(logits, labels):
        losses = soft_cross_entropy_terms(scaled, labels.to(scaled)).sum(dim=1)
    else:
        log_true, _ = log_prob_and_complement(scaled, labels)
        losses = -log_true
    return (losses.mean() / inverse_temperature).to(logits.dtype)


class TemperedCrossEntropyLoss(CrossEntropyLoss):
    """Cross-entropy of logits times `inverse_temperature`, in nats.

    The other arguments and shapes are those of `FocalLoss`.
    """

    arguments: ClassVar[tuple[str, ...]] = ("inverse_temperature",)
    # Do not refuse logits that look like sigmoid outputs: cosines may all be in [0, 1].
    sigmoids: ClassVar[bool] = False

    def __init__(
        self,
        inverse_temperature: float,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index, reduction=reduction)
        check_positive(inverse_temperature, "inverse_temperature")
        self.inverse_temperature = inverse_temperature

    def tempered(self, logits: Tensor) -> Tensor:
        """The logits whose softmax the loss evaluates."""
        return tempered_logits(logits, self.inverse_temperature)
