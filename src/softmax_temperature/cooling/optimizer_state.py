"""What an optimizer remembers of gradients, when the parameters they belong to are
rescaled.
"""

from collections.abc import Mapping

import torch
from torch import nn, optim

from softmax_temperature.metrics.checks import ArgumentError

POLICIES = ("keep", "rescale")

_ADAM = {"exp_avg": 1, "exp_avg_sq": 2, "max_exp_avg_sq": 2}
_SGD = {"momentum_buffer": 1}
GRADIENT_POWERS: dict[type[optim.Optimizer], dict[str, int]] = {
    optim.SGD: _SGD,
    optim.Adam: _ADAM,
    optim.AdamW: _ADAM,
}
"""The power of the gradient that each entry of the state is in."""


def rescale_optimizer_state(
    optimizer: optim.Optimizer,
    scales: Mapping[nn.Parameter, float],
    policy: str = "keep",
) -> None:
    """Carry an optimizer over a rescaling of its parameters, in place; `scales` is what
    each is multiplied by.

    When w' = a w in scale-equivalent networks, dC/dw' = (1/a) dC/dw (Theorem 3.7):
    "rescale" divides momentum buffers and Adam's first moments by a, second moments by
    a². The next step is then that of an optimizer that has seen the new parameters all
    along (with L2 weight decay, for the gradients only). "keep" leaves the state as it
    is. Both leave the change of the function by the temperature (Proposition 3.5),
    which has no single factor.

    Raises ValueError if `policy` is unknown, or "rescale" does not know the optimizer;
    nothing has changed then.
    """
    # Deviation: the paper says nothing about momentum buffers and moments when weights
    # are redistributed. "keep" is the default, as what happens when nothing is done
    # about it; "rescale" is there to be compared with it.
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
    """Refuse an unknown policy, and "rescale" for an optimizer whose state it does not
    know.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy must be 'keep' or 'rescale', got {policy!r}")
    if policy == "rescale" and optimizer is None:
        raise ArgumentError(
            "optimizer must be given for policy 'rescale', got None",
            "Give the one whose state is to be carried over.",
        )
    if policy == "rescale" and type(optimizer) not in GRADIENT_POWERS:
        known = ", ".join(each.__name__ for each in GRADIENT_POWERS)
        raise ValueError(
            f"optimizer must be one of {known} for policy 'rescale', got {type(optimizer).__name__}"
        )
