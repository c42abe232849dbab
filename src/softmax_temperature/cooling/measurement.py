"""The counterparts of the theory: the same ratios, measured on two networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.cooling.theory import gradients_by_name
from softmax_temperature.metrics.checks import check_batch


@dataclass(frozen=True)
class MeasuredRatio:
    """How one tensor relates to another of its shape.

    Attributes:
        value: The factor that brings the second nearest to the first (least squares); NaN if the second is zero.
        deviation: Norm of what the factor leaves, over the norm of the first: 0 where they are proportional.
    """

    value: float
    deviation: float


def measured_output_ratios(model: nn.Module, other: nn.Module, images: Tensor) -> dict[str, MeasuredRatio]:
    """Output of each module of `other` over that of the same module of `model`, on the same images.

    Args:
        model: Used in its present mode, without gradients.
        other: A copy of `model` with other weights.
        images: A batch, shape (n, ...).

    Returns:
        By path, for every module without submodules that returns one tensor; of several calls the last.
    """
    before, after = (_outputs(network, images) for network in (model, other))
    return {path: _ratio(after[path], output) for path, output in before.items()}


def measured_gradient_ratios(
    model: nn.Module, other: nn.Module, images: Tensor, labels: Tensor, *, relative: bool = False
) -> dict[str, MeasuredRatio]:
    """Gradient of the mean cross-entropy in each parameter of `other` over that in the same one of `model`.

    Args:
        model: Used in its present mode.
        other: A copy of `model` with other weights.
        images: A batch, shape (n, ...).
        labels: True classes, shape (n,), integers.
        relative: Whether to divide each gradient by its parameter first; parameters that are 0 are left out.

    Returns:
        By name, for every parameter that has a gradient.

    Raises:
        ValueError: If logits and labels do not fit.
    """
    before, after = (_gradients(network, images, labels, relative=relative) for network in (model, other))
    return {name: _ratio(after[name], gradient) for name, gradient in before.items()}


def measured_gradients(model: nn.Module, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Gradients of the mean cross-entropy of a network by autograd, by name; arguments as above."""
    logits = model(images)
    check_batch(logits, labels)
    return gradients_by_name(model, F.cross_entropy(logits, labels.long()))


def _gradients(model: nn.Module, images: Tensor, labels: Tensor, *, relative: bool) -> dict[str, Tensor]:
    gradients = measured_gradients(model, images, labels)
    if not relative:
        return gradients
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    present = {name: parameters[name] != 0 for name in gradients}
    return {name: gradients[name][mask] / parameters[name][mask] for name, mask in present.items()}


@torch.no_grad()
def _outputs(model: nn.Module, images: Tensor) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}

    def keep(path: str, output: object) -> None:
        if isinstance(output, Tensor):
            found[path] = output.clone()  # The next operation may be in place.

    handles = [
        module.register_forward_hook(lambda _module, _inputs, output, path=path: keep(path, output))
        for path, module in model.named_modules()
        if path and not any(True for _ in module.children())
    ]
    try:
        model(images)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _ratio(numerator: Tensor, denominator: Tensor) -> MeasuredRatio:
    above, below = numerator.double().flatten(), denominator.double().flatten()
    value = (above @ below) / (below @ below)
    return MeasuredRatio(value.item(), ((above - value * below).norm() / above.norm()).item())
