"""Training losses of the focal paper (section 5, baselines included) and the rescaled cross-entropy of the others.

All work in the dtype and on the device of the logits, are differentiable in them, and have finite gradients wherever
the differences of the logits are finite. Losses are means over the batch, in nats, unless a `reduction` says otherwise.

Values (finite logits, labels in range) are checked on the CPU only: on an accelerator each look at a value would stop
the queue of the training loop. Shapes, dtypes and numbers are checked everywhere.
"""

from softmax_temperature.losses.baselines import brier_loss, label_smoothing_loss, rescaled_cross_entropy
from softmax_temperature.losses.focal import focal_loss, sample_dependent_gamma, scheduled_gamma, true_class_probs
from softmax_temperature.losses.focal_theory import gamma_star, gradient_ratio
from softmax_temperature.losses.mmce import mmce, weighted_mmce

__all__ = [
    "brier_loss",
    "focal_loss",
    "gamma_star",
    "gradient_ratio",
    "label_smoothing_loss",
    "mmce",
    "rescaled_cross_entropy",
    "sample_dependent_gamma",
    "scheduled_gamma",
    "true_class_probs",
    "weighted_mmce",
]
