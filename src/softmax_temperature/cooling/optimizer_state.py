"""Adaptation of an optimizer's state to rescaled parameters."""

from collections.abc import Mapping

import torch
from torch import nn, optim

from softmax_temperature.metrics.checks import ArgumentError

POLICIES = ("keep", "rescale")

_ADAM = {"exp_avg": 1, "exp_avg_sq": 2, "max_exp_avg_sq": 2}
_SGD = {"momentum_buffer": 1}
# The power of the gradient to which each entry of the state is proportional.
GRADIENT_POWERS: dict[type[optim.Optimizer], dict[str, int]] = {
    optim.SGD: _SGD,
    optim.Adam: _ADAM,
    optim.AdamW: _ADAM,
}


def rescale_optimizer_state(
    optimizer: optim.Optimizer,
    scales: Mapping[nn.Parameter, float],
    policy: str = "keep",
) -> None:
    """Adapt an optimizer's state to a rescaling of its parameters, in place.

    If w' = a w in scale-equivalent networks, then dC/dw' = (1/a) dC/dw (Theorem 3.7).
    So "rescale" divides momentum buffers and Adam's first moments by a, and second
    moments by a². The next step is then the same as if the optimizer had used the new
    parameters from the start. With L2 weight decay, this is true only of the gradient's
    part of the state: the decay's part scales with a, not 1/a. "keep" leaves the state
    as it is. Neither policy corrects for the effect of a new temperature on the
    gradients (Proposition 3.5), which no single factor describes.

    Args:
        optimizer: The optimizer whose state is adapted.
        scales: The factor by which each parameter is multiplied.
        policy: "keep" or "rescale".

    Raises:
        ValueError: If `policy` is unknown, or "rescale" does not support the optimizer.
            The state is then unchanged.
    """
    # Deviation: by default ("keep") the state does not change, as if the optimizer were
    # unaware of the rescaling; "rescale" exists for comparison. The paper does not say
    # what happens to momentum buffers and moments when weights are redistributed.
    check_policy(optimizer, policy)
    if policy == "keep":
        return
    powers = GRADIENT_POWERS[type(optimizer)]
    with torch.no_grad():
        for parameter, scale in scales.items():
            state = optimizer.state.get(parameter, {})
            for name in powers.keys() & state.keys():
                state[name].mul_(scale ** -powers[name])


def check_policy(optimizer: optim.Optimizer | None, policy: str) -> None:
    """Raise ValueError if `policy` is unknown or does not support `optimizer`."""
    if policy not in POLICIES:
        raise ArgumentError(
            f"policy must be 'keep' or 'rescale', got {policy!r}",
            "Give one of the two.",
        )
    if policy == "keep":
        return
    if optimizer is None:
        raise ArgumentError(
            "optimizer must be given for policy 'rescale', got None",
            "Pass the optimizer whose state is to be rescaled.",
        )
    if type(optimizer) not in GRADIENT_POWERS:
        supported = ", ".join(kind.__name__ for kind in GRADIENT_POWERS)
        raise ArgumentError(
            f"optimizer must be one of {supported} for policy 'rescale', got "
            f"{type(optimizer).__name__}",
            "Use one of them, or policy 'keep'.",
        )
