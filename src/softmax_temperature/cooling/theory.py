"""What the cooling paper predicts of outputs and gradients (Lemma 3.3, Proposition 3.5,
Theorem 3.7), and measures.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from statistics import geometric_mean
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.cooling.last_layer import (
    hold,
    last_layer_temperature,
    set_last_layer_temperature,
)
from softmax_temperature.cooling.redistribution import (
    parameter_scales,
    plan_redistribution,
    rescale_parameters,
)

TEMPERATURE, IMAGES = (
    100.0,
    16,
)  # Above which the paper's periodic Cooling redistributes; of each check.


def scale_equivalent(model: nn.Module, temperature: float) -> nn.Module:
    """A copy with a temperature spread over its layers and taken back behind the last
    (Definition 3.6).

    Both compute the same function; the paper's β_i are T^-(power of layer i), and 1 for
    the logits. Raises ValueError if the network cannot be redistributed, or
    `temperature` is not finite and positive.
    """
    twin = copy.deepcopy(model)
    rescale_parameters(parameter_scales(twin, plan_redistribution(twin), temperature))
    hold(twin)
    set_last_layer_temperature(twin, last_layer_temperature(twin) / temperature)
    return twin


def predicted_output_ratios(model: nn.Module, temperature: float) -> dict[str, float]:
    """Output of each module, by path, in `scale_equivalent(model, temperature)` over
    that in `model` (Lemma 3.3).

    T^(-i/L) for layer i of a chain; that of the last layer is what it hands to the
    final division.
    """
    return {
        path: temperature**-power
        for path, power in plan_redistribution(model).outputs.items()
    }


def predicted_gradient_ratios(
    model: nn.Module, temperature: float, *, relative: bool = False
) -> dict[str, float]:
    """Gradient of each parameter in `scale_equivalent(model, temperature)` over that in
    `model` (Theorem 3.7).

    β_i / β_(i+1) for weights and 1 / β_(i+1) for biases: the inverse of what the
    parameter was multiplied by, or its square for gradients divided by their parameters
    (`relative`).
    """
    powers, times = plan_redistribution(model).parameters, 2 if relative else 1
    return {
        name: temperature ** (times * powers.get(name, 0.0))
        for name, _ in model.named_parameters()
    }


def predicted_last_layer_gradients(
    model: nn.Module, images: Tensor, labels: Tensor
) -> dict[str, Tensor]:
    """Gradients of the mean cross-entropy of a held network, by name, from equation 3.1
    (Proposition 3.5).

    <softmax(z / T) - y, dz/dw> / T, with z the logits in front of the division by its
    temperature T, and y one-hot.
    """
    temperature = last_layer_temperature(model)
    raw = model(images) * temperature
    residual = torch.softmax(raw.detach() / temperature, dim=1) - F.one_hot(
        labels.long(), raw.shape[1]
    )
    return _gradients_by_name(model, raw, residual / (temperature * len(labels)))


def measured_gradients(
    model: nn.Module, images: Tensor, labels: Tensor, *, relative: bool = False
) -> dict[str, Tensor]:
    """Gradients of the mean cross-entropy by autograd, by name; `relative` ones over
    their parameter, where not 0.
    """
    gradients = _gradients_by_name(model, F.cross_entropy(model(images), labels.long()))
    if not relative:
        return gradients
    parameters = {
        name: parameter.detach() for name, parameter in model.named_parameters()
    }
    return {
        name: (each / parameters[name])[parameters[name] != 0]
        for name, each in gradients.items()
    }


@torch.no_grad()
def measured_outputs(model: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Output of each module without submodules, by path; cloned, as the next operation
    may be in place.
    """
    found: dict[str, Tensor] = {}
    handles = [
        module.register_forward_hook(
            lambda _module, _inputs, output, path=path: found.update(
                {path: output.clone()}
            )
        )
        for path, module in model.named_modules()
        if path and not [*module.children()]
    ]
    model(images)
    for handle in handles:
        handle.remove()
    return found


def _gradients_by_name(
    model: nn.Module, outputs: Tensor, weights: Tensor | None = None
) -> dict[str, Tensor]:
    """Gradients of weighted outputs, or of a scalar, in each parameter of the network
    that they depend on.
    """
    named = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    gradients = torch.autograd.grad(
        outputs, tuple(named.values()), weights, allow_unused=True
    )
    return {
        name: gradient
        for name, gradient in zip(named, gradients, strict=True)
        if gradient is not None
    }


def theory_checks(
    networks: Mapping[str, Callable[[], nn.Module]], *, classes: int, size: int
) -> pd.DataFrame:
    """Every one of `statements` on networks by name: random ones, in float64 and
    evaluation mode, hot by 100.

    They classify images (n, 3, `size`, `size`). The table has a row for each statement
    and network.
    """
    rows = [
        (statement, name, *numbers)
        for name, make in networks.items()
        for statement, *numbers in statements(
            *_overheated(make, classes, size), TEMPERATURE
        )
    ]
    return pd.DataFrame(
        rows,
        columns=[
            "statement",
            "network",
            "predicted",
            "measured",
            "largest_relative_difference",
        ],
    )


def statements(
    network: nn.Module, images: Tensor, labels: Tensor, temperature: float
) -> Iterator[tuple[str, float, float, float]]:
    """Each statement with what it predicts, what is measured, and the largest relative
    difference.

    Proposition 3.5: norms of the whole gradient of a network held at `temperature` in
    its last layer. The others: geometric means over modules or parameters of the ratios
    to it of the network with this temperature in its layers.
    """
    twin = scale_equivalent(network, temperature)
    before, after = (measured_outputs(each, images) for each in (network, twin))
    ratios = predicted_output_ratios(network, temperature)
    yield "Lemma 3.3: outputs of modules", *_ratios(ratios, before, after)
    gradients = predicted_last_layer_gradients(network, images, labels)
    found = measured_gradients(network, images, labels)
    errors = [
        ((gradients[path] - each).norm() / each.norm()).item()
        for path, each in found.items()
    ]
    norms = [
        nn.utils.get_total_norm(each.values()).item() for each in (gradients, found)
    ]
    yield "Proposition 3.5: gradients", norms[0], norms[1], max(errors)
    for statement, relative in (
        ("Theorem 3.7: gradients", False),
        ("Section 3.3: relative gradients", True),
    ):
        predicted = predicted_gradient_ratios(network, temperature, relative=relative)
        both = [
            measured_gradients(each, images, labels, relative=relative)
            for each in (network, twin)
        ]
        for kind, ending in (("weights", ".weight"), ("biases", ".bias")):
            before, after = (
                {path: one for path, one in each.items() if path.endswith(ending)}
                for each in both
            )
            yield f"{statement} of {kind}", *_ratios(predicted, before, after)


def _ratios(
    predicted: Mapping[str, float],
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
) -> Any:
    """Of tensors after to those before: the factor of least squares, and what is off,
    the remainder included.
    """
    found, errors = [], []
    for path, old in before.items():
        above, below = after[path].double().flatten(), old.double().flatten()
        value = ((above @ below) / (below @ below)).item()
        remainder = ((above - value * below).norm() / above.norm()).item()
        found.append(value)
        errors.append(math.hypot(1 - predicted[path] / value, remainder))
    return (
        geometric_mean(predicted[path] for path in before),
        geometric_mean(found),
        max(errors),
    )


def _overheated(
    make: Callable[[], nn.Module], classes: int, size: int
) -> tuple[nn.Module, Tensor, Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make().double()
        images = torch.randn(IMAGES, 3, size, size, dtype=torch.float64)
        labels = torch.randint(classes, (IMAGES,))
        with torch.no_grad():
            for (
                parameter
            ) in network.parameters():  # Shifts of batch normalisation are 0 at first.
                parameter.add_(0.1 * torch.randn_like(parameter))
            network(images)  # In training mode: running statistics.
            spread = network.eval()(images).std()
            for parameter in network.get_submodule("classifier").parameters():
                parameter.mul_(2 * TEMPERATURE / spread)
    hold(network)
    set_last_layer_temperature(network, TEMPERATURE)
    return network, images, labels
