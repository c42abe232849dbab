"""Predictions of the cooling paper for outputs and gradients, and measurements of both.

Lemma 3.3, Proposition 3.5 and Theorem 3.7.
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

from softmax_temperature.cooling.function_scales import hold_scales
from softmax_temperature.cooling.last_layer import (
    check_not_compiled,
    hold,
    last_layer_temperature,
    set_last_layer_temperature,
)
from softmax_temperature.cooling.redistribution import (
    plan_redistribution,
    redistribute,
)

# The temperature above which the paper's periodic Cooling redistributes.
TEMPERATURE = 100.0
# Number of images that each check uses.
IMAGES = 16


def scale_equivalent(model: nn.Module, temperature: float) -> nn.Module:
    """Return a copy with `temperature` spread over its layers and undone at its output.

    The copy's layers divide its logits by `temperature`, and its last-layer temperature
    is divided by `temperature` to compensate. Definition 3.6: both networks compute the
    same function. The paper's β_i are T^-(power of layer i), and 1 for the logits.

    Raises:
        ValueError: If the network cannot be redistributed, or `temperature` is not
            finite and positive.
    """
    twin = copy.deepcopy(model)
    check_not_compiled(twin)
    plan = plan_redistribution(twin)
    hold(twin)
    hold_scales(twin, plan.functions)
    redistribute(twin, plan, temperature)
    set_last_layer_temperature(twin, last_layer_temperature(twin) / temperature)
    return twin


def predicted_output_ratios(model: nn.Module, temperature: float) -> dict[str, float]:
    """Predict the factors by which outputs change in the scale-equivalent network.

    Each factor belongs to the output of a module; the keys are the modules' paths.
    Lemma 3.3 predicts T^(-i/L) for layer i of a chain. The last layer's output is
    measured before the final division.
    """
    outputs = plan_redistribution(model).outputs
    return {path: temperature**-power for path, power in outputs.items()}


def predicted_gradient_ratios(
    model: nn.Module, temperature: float, *, relative: bool = False
) -> dict[str, float]:
    """Predict the factors by which gradients change in the scale-equivalent network.

    The keys are the names of the parameters. Theorem 3.7 predicts β_i / β_(i+1) for
    weights and 1 / β_(i+1) for biases. The predicted factor is the inverse of the
    factor by which the parameter was multiplied. With `relative`, which divides each
    gradient by its parameter, the predicted factor is the square of that inverse.
    """
    powers = plan_redistribution(model).parameters
    exponent = 2 if relative else 1
    return {
        name: temperature ** (exponent * powers.get(name, 0.0))
        for name, _ in model.named_parameters()
    }


def predicted_last_layer_gradients(
    model: nn.Module, images: Tensor, labels: Tensor
) -> dict[str, Tensor]:
    """Predict the gradient of a cooled network's mean cross-entropy for each parameter.

    Proposition 3.5, equation 3.1: `<softmax(z / T) - y, dz/dw> / T`, where z are the
    logits before the division by the temperature T, and y is one-hot.
    """
    temperature = last_layer_temperature(model)
    raw = model(images) * temperature
    probs = torch.softmax(raw.detach() / temperature, dim=1)
    residual = probs - F.one_hot(labels.long(), raw.shape[1])
    return _gradients_by_name(model, raw, residual / (temperature * len(labels)))


def measured_gradients(
    model: nn.Module, images: Tensor, labels: Tensor, *, relative: bool = False
) -> dict[str, Tensor]:
    """Compute the gradient of the mean cross-entropy for each parameter, with autograd.

    With `relative`, each gradient is divided by its parameter; entries whose parameter
    is 0 are left out.
    """
    loss = F.cross_entropy(model(images), labels.long())
    gradients = _gradients_by_name(model, loss)
    if not relative:
        return gradients
    ratios = {}
    for name, gradient in gradients.items():
        parameter = model.get_parameter(name).detach()
        ratios[name] = (gradient / parameter)[parameter != 0]
    return ratios


@torch.no_grad()
def measured_outputs(model: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Return the output of each module that has no submodules, keyed by module path."""
    outputs: dict[str, Tensor] = {}

    def recorder(path: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def record(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            # Clone the output, because the next operation may work in place.
            outputs[path] = output.clone()

        return record

    handles = []
    for path, module in model.named_modules():
        if path and not list(module.children()):
            handles.append(module.register_forward_hook(recorder(path)))
    model(images)
    for handle in handles:
        handle.remove()
    return outputs


def _gradients_by_name(
    model: nn.Module, outputs: Tensor, weights: Tensor | None = None
) -> dict[str, Tensor]:
    """Compute each parameter's gradient of `outputs`, weighted by `weights`.

    Parameters on which the outputs do not depend are absent.
    """
    trainable = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    gradients = torch.autograd.grad(
        outputs, tuple(trainable.values()), weights, allow_unused=True
    )
    return {
        name: gradient
        for name, gradient in zip(trainable, gradients, strict=True)
        if gradient is not None
    }


def theory_checks(
    networks: Mapping[str, Callable[[], nn.Module]], *, classes: int, size: int
) -> pd.DataFrame:
    """Check all `statements` on the named networks.

    Each network has random parameters in float64, is in evaluation mode, and divides
    its logits by the temperature 100. The images have shape (n, 3, `size`, `size`).

    Returns:
        One row per network and statement.
    """
    rows = []
    for name, make in networks.items():
        network, images, labels = _overheated(make, classes, size)
        checks = statements(network, images, labels, TEMPERATURE)
        for statement, predicted, measured, difference in checks:
            rows.append((statement, name, predicted, measured, difference))
    columns = [
        "statement",
        "network",
        "predicted",
        "measured",
        "largest_relative_difference",
    ]
    return pd.DataFrame(rows, columns=columns)


def statements(
    network: nn.Module, images: Tensor, labels: Tensor, temperature: float
) -> Iterator[tuple[str, float, float, float]]:
    """Yield each statement with its predicted value, measured value and difference.

    The difference is the largest relative difference between predictions and
    measurements. For Proposition 3.5, the two values are norms of the whole gradient at
    the network's own temperature. For the other statements, they are geometric means,
    over modules or parameters, of the ratio by which a tensor changes from `network` to
    the scale-equivalent network.
    """
    twin = scale_equivalent(network, temperature)
    output_ratios = predicted_output_ratios(network, temperature)
    outputs = measured_outputs(network, images)
    twin_outputs = measured_outputs(twin, images)
    yield (
        "Lemma 3.3: outputs of modules",
        *_ratios(output_ratios, outputs, twin_outputs),
    )
    yield "Proposition 3.5: gradients", *_gradient_norms(network, images, labels)
    for statement, relative in (
        ("Theorem 3.7: gradients", False),
        ("Section 3.3: relative gradients", True),
    ):
        ratios = predicted_gradient_ratios(network, temperature, relative=relative)
        gradients = measured_gradients(network, images, labels, relative=relative)
        twin_gradients = measured_gradients(twin, images, labels, relative=relative)
        for kind, suffix in (("weights", ".weight"), ("biases", ".bias")):
            before = _with_suffix(gradients, suffix)
            after = _with_suffix(twin_gradients, suffix)
            yield f"{statement} of {kind}", *_ratios(ratios, before, after)


def _gradient_norms(
    network: nn.Module, images: Tensor, labels: Tensor
) -> tuple[float, float, float]:
    """Return the predicted and the measured gradient norm, and the largest difference.

    The norms are those of the whole gradient. The difference is that between the
    predicted and the measured gradient of one parameter, relative to the norm of the
    measured one.
    """
    predicted = predicted_last_layer_gradients(network, images, labels)
    measured = measured_gradients(network, images, labels)
    differences = []
    for name, gradient in measured.items():
        error = (predicted[name] - gradient).norm() / gradient.norm()
        differences.append(error.item())
    predicted_norm = nn.utils.get_total_norm(predicted.values()).item()
    measured_norm = nn.utils.get_total_norm(measured.values()).item()
    return predicted_norm, measured_norm, max(differences)


def _with_suffix(tensors: Mapping[str, Tensor], suffix: str) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if name.endswith(suffix)}


def _ratios(
    predicted: Mapping[str, float],
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
) -> tuple[float, float, float]:
    """Return the mean predicted and measured ratios, and the largest difference.

    The means are geometric, over all tensors.

    A measured ratio is the least-squares scale that maps a tensor of the original
    network to its counterpart in the scale-equivalent one. The difference is relative,
    and includes the residual of that fit.
    """
    scales = []
    differences = []
    for path, tensor in before.items():
        old = tensor.double().flatten()
        new = after[path].double().flatten()
        scale = ((new @ old) / (old @ old)).item()
        residual = ((new - scale * old).norm() / new.norm()).item()
        scales.append(scale)
        differences.append(math.hypot(1 - predicted[path] / scale, residual))
    predicted_mean = geometric_mean(predicted[path] for path in before)
    return predicted_mean, geometric_mean(scales), max(differences)


def _overheated(
    make: Callable[[], nn.Module], classes: int, size: int
) -> tuple[nn.Module, Tensor, Tensor]:
    """Make a random network at temperature 100, and random images and labels."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make().double()
        images = torch.randn(IMAGES, 3, size, size, dtype=torch.float64)
        labels = torch.randint(classes, (IMAGES,))
        with torch.no_grad():
            # Perturb all parameters, because the shifts of a new batch normalisation
            # are 0, so a rescaling would not change them.
            for parameter in network.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
            # In training mode, this call updates the running statistics.
            network(images)
            spread = network.eval()(images).std()
            for parameter in network.get_submodule("classifier").parameters():
                parameter.mul_(2 * TEMPERATURE / spread)
    hold(network)
    set_last_layer_temperature(network, TEMPERATURE)
    return network, images, labels
