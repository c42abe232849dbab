"""What the cooling paper predicts of outputs and gradients (Lemma 3.3, Proposition 3.5, Theorem 3.7), and measures."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.cooling.last_layer import hold, last_layer_temperature, set_last_layer_temperature
from softmax_temperature.cooling.redistribution import parameter_scales, plan_redistribution, rescale_parameters


def scale_equivalent(model: nn.Module, temperature: float) -> nn.Module:
    """A copy with a temperature spread over its layers and taken back behind the last (Definition 3.6).

    Both compute the same function; the paper's β_i are T^-(power of layer i), and 1 for the logits. Raises ValueError
    if the network cannot be redistributed, or `temperature` is not finite and positive.
    """
    twin = copy.deepcopy(model)
    rescale_parameters(parameter_scales(twin, plan_redistribution(twin), temperature))
    hold(twin)
    set_last_layer_temperature(twin, last_layer_temperature(twin) / temperature)
    return twin


def predicted_output_ratios(model: nn.Module, temperature: float) -> dict[str, float]:
    """Output of each module, by path, in `scale_equivalent(model, temperature)` over that in `model` (Lemma 3.3).

    T^(-i/L) for layer i of a chain; that of the last layer is what it hands to the final division.
    """
    return {path: temperature**-power for path, power in plan_redistribution(model).outputs.items()}


def predicted_gradient_ratios(model: nn.Module, temperature: float, *, relative: bool = False) -> dict[str, float]:
    """Gradient of each parameter in `scale_equivalent(model, temperature)` over that in `model` (Theorem 3.7).

    β_i / β_(i+1) for weights and 1 / β_(i+1) for biases: the inverse of what the parameter was multiplied by, or its
    square for gradients divided by their parameters (`relative`).
    """
    powers, times = plan_redistribution(model).parameters, 2 if relative else 1
    return {name: temperature ** (times * powers.get(name, 0.0)) for name, _ in model.named_parameters()}


def predicted_last_layer_gradients(model: nn.Module, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Gradients of the mean cross-entropy of a held network, by name, from equation 3.1 (Proposition 3.5).

    <softmax(z / T) - y, dz/dw> / T, with z the logits in front of the division by its temperature T, and y one-hot.
    """
    temperature = last_layer_temperature(model)
    raw = model(images) * temperature
    residual = torch.softmax(raw.detach() / temperature, dim=1) - F.one_hot(labels.long(), raw.shape[1])
    return _gradients_by_name(model, raw, residual / (temperature * len(labels)))


def measured_gradients(
    model: nn.Module, images: Tensor, labels: Tensor, *, relative: bool = False
) -> dict[str, Tensor]:
    """Gradients of the mean cross-entropy by autograd, by name; `relative` ones over their parameter, where not 0."""
    gradients = _gradients_by_name(model, F.cross_entropy(model(images), labels.long()))
    if not relative:
        return gradients
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return {name: (each / parameters[name])[parameters[name] != 0] for name, each in gradients.items()}


@torch.no_grad()
def measured_outputs(model: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Output of each module without submodules, by path; cloned, as the next operation may be in place."""
    found: dict[str, Tensor] = {}
    handles = [
        module.register_forward_hook(lambda _module, _inputs, output, path=path: found.update({path: output.clone()}))
        for path, module in model.named_modules()
        if path and not [*module.children()]
    ]
    model(images)
    for handle in handles:
        handle.remove()
    return found


def _gradients_by_name(model: nn.Module, outputs: Tensor, weights: Tensor | None = None) -> dict[str, Tensor]:
    """Gradients of weighted outputs, or of a scalar, in each parameter of the network that they depend on."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(outputs, tuple(named.values()), weights, allow_unused=True)
    return {name: gradient for name, gradient in zip(named, gradients, strict=True) if gradient is not None}
