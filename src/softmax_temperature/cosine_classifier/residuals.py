"""The residual p - q that every gradient of cross-entropy starts from."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def logit_unit(device: torch.device) -> float:
    """What logits are multiplied by before `softmax_residual`: it reads them in bits on a CPU, in nats elsewhere.

    On the CPU exp2 is three times as fast as exp (0.09 against 0.30 ns an element on two Zen 5 cores, where exp goes
    through MKL), and the factor costs nothing inside the scale of the weights. A GPU has a fused softmax instead.
    """
    return math.log2(math.e) if device.type == "cpu" else 1.0


def softmax_residual(logits: Tensor, labels: Tensor) -> Tensor:
    """p(c | x, alpha) - q(c | x) of Eq. (3); overwrites `logits`.

    Args:
        logits: Inverse temperature times cosine in units of `logit_unit`, shape (problems, classes, batch). Samples
            are contiguous, so that the softmax runs along vectors of samples even for ten classes.
        labels: Shape (batch,), int64.

    Returns:
        Shape (problems, classes, batch).
    """
    probs = torch.softmax(logits, dim=1) if logits.is_cuda else _softmax_in_bits(logits)
    index = labels.expand(len(probs), 1, -1)
    return probs.scatter_add_(1, index, probs.new_full((), -1.0).expand(index.shape))


def _softmax_in_bits(logits: Tensor) -> Tensor:
    powers = logits.sub_(logits.amax(dim=1, keepdim=True)).exp2_()
    return powers.mul_(powers.sum(dim=1, keepdim=True).reciprocal_())
