"""What the cooling paper predicts of outputs and gradients (Lemma 3.3, Proposition 3.5, Theorem 3.7)."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.cooling.last_layer import hold, last_layer_temperature, set_last_layer_temperature
from softmax_temperature.cooling.redistribution import parameter_scales, plan_redistribution, rescale_parameters
from softmax_temperature.metrics.checks import check_batch, check_positive


def scale_equivalent(model: nn.Module, temperature: float) -> nn.Module:
    """A copy with a temperature spread over its layers and taken back behind the last (Definition 3.6).

    Both networks compute the same function; the paper's β_i are T^-(power of layer i), and 1 for the logits.

    Args:
        model: Any that `plan_redistribution` takes; held or not.
        temperature: Finite and positive.

    Raises:
        ValueError: If the network cannot be redistributed, or `temperature` is not finite and positive.
    """
    twin = copy.deepcopy(model)
    rescale_parameters(parameter_scales(twin, plan_redistribution(twin), temperature))
    hold(twin)
    set_last_layer_temperature(twin, last_layer_temperature(twin) / temperature)
    return twin


def predicted_output_ratios(model: nn.Module, temperature: float) -> dict[str, float]:
    """Output of each module in `scale_equivalent(model, temperature)` over that in `model` (Lemma 3.3).

    Returns:
        A factor for every module, by path, in the order of computation: T^(-i/L) for layer i of a chain. That of the
        last layer is what it hands to the final division.

    Raises:
        ValueError: As for `scale_equivalent`.
    """
    check_positive(temperature, "temperature")
    return {path: temperature**-power for path, power in plan_redistribution(model).outputs.items()}


def predicted_gradient_ratios(model: nn.Module, temperature: float, *, relative: bool = False) -> dict[str, float]:
    """Gradient of each parameter in `scale_equivalent(model, temperature)` over that in `model` (Theorem 3.7).

    β_i / β_(i+1) for weights and 1 / β_(i+1) for biases: the inverse of what the parameter was multiplied by.

    Args:
        model: Any that `plan_redistribution` takes.
        temperature: Finite and positive.
        relative: Whether to compare gradients divided by their parameters ("Relative gradients"): the squares.

    Returns:
        A factor for every parameter, by name; 1 for those that are not scaled.

    Raises:
        ValueError: As for `scale_equivalent`.
    """
    check_positive(temperature, "temperature")
    powers = plan_redistribution(model).parameters
    times = 2 if relative else 1
    return {name: temperature ** (times * powers.get(name, 0.0)) for name, _ in model.named_parameters()}


def predicted_last_layer_gradients(model: nn.Module, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Gradients of the mean cross-entropy of a held network, from equation 3.1 (Proposition 3.5).

    <softmax(z / T) - y, dz/dw> / T, with z the logits in front of the division by its temperature T, and y one-hot.

    Args:
        model: Held by a `Cooling`; used in its present mode.
        images: A batch, shape (n, ...).
        labels: True classes, shape (n,), integers.

    Returns:
        One tensor for each parameter that has a gradient, by name.

    Raises:
        ValueError: If logits and labels do not fit.
    """
    temperature = last_layer_temperature(model)
    raw = model(images) * temperature
    check_batch(raw, labels)
    residual = torch.softmax(raw.detach() / temperature, dim=1) - F.one_hot(labels.long(), raw.shape[1])
    return gradients_by_name(model, raw, residual / (temperature * len(labels)))


def gradients_by_name(model: nn.Module, outputs: Tensor, weights: Tensor | None = None) -> dict[str, Tensor]:
    """Gradients of weighted outputs, or of a scalar, in each parameter of the network that they depend on."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(outputs, tuple(named.values()), weights, allow_unused=True)
    return {name: gradient for name, gradient in zip(named, gradients, strict=True) if gradient is not None}
