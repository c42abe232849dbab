"""Training losses: the focal paper's (section 5, with baselines), and
classifier_temperature's rescaled cross-entropy.

All take logits of shape (n, classes) and integer labels of shape (n,), work in the
dtype and on the device of the logits, and return a differentiable mean over the batch,
in nats, unless said. Gradients are finite wherever the differences of the logits are.
Values (finite logits, labels in range) are checked on the CPU only: on an accelerator
each look at a value would stop the queue of the training loop.
"""

from softmax_temperature.losses.baselines import (
    brier_loss,
    label_smoothing_loss,
    mmce,
    rescaled_cross_entropy,
    weighted_mmce,
)
from softmax_temperature.losses.focal import (
    focal_loss,
    gamma_star,
    gradient_ratio,
    sample_dependent_gamma,
    scheduled_gamma,
    true_class_probs,
)
from softmax_temperature.losses.modules import OBJECTIVES, Objective, make_objective

__all__ = ["brier_loss", "label_smoothing_loss", "rescaled_cross_entropy"]
__all__ += [
    "focal_loss",
    "sample_dependent_gamma",
    "scheduled_gamma",
    "true_class_probs",
]
__all__ += ["gamma_star", "gradient_ratio", "mmce", "weighted_mmce"]
__all__ += ["OBJECTIVES", "Objective", "make_objective"]
