"""Activations and normalisations that store the scale of their input.

Definition 3.2 (3) of the cooling paper replaces an activation f, whose input is
multiplied by β, with β f(x / β). For ReLU, β f(x / β) is ReLU again; for tanh and GELU
it is another function. A tanh or GELU module therefore holds β in a buffer
`cooling_scale`, divides its input by β, and multiplies its output by β.

Layer normalisation removes the factor β from its input, but relative to the variance of
the input, its epsilon is then 1 / β² times as large. A layer normalisation therefore
also divides its input by β. It does not multiply its output by β, because its weight
and bias set the scale of its output.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.cooling.last_layer import scalar_buffer

BUFFER = "cooling_scale"
# Functions of one tensor that are not homogeneous. Types are compared exactly.
RESCALED_FUNCTIONS = frozenset(
    {
        nn.CELU,
        nn.ELU,
        nn.GELU,
        nn.GLU,
        nn.Hardshrink,
        nn.Hardsigmoid,
        nn.Hardswish,
        nn.Hardtanh,
        nn.LogSigmoid,
        nn.Mish,
        nn.ReLU6,
        nn.SELU,
        nn.SiLU,
        nn.Sigmoid,
        nn.Softplus,
        nn.Softshrink,
        nn.Softsign,
        nn.Tanh,
        nn.Tanhshrink,
        nn.Threshold,
    }
)
# Modules that normalise each sample separately. `scale_graph` refuses an instance
# normalisation that keeps running statistics.
SAMPLE_NORMS = frozenset(
    {
        nn.LayerNorm,
        nn.GroupNorm,
        nn.RMSNorm,
        nn.InstanceNorm1d,
        nn.InstanceNorm2d,
        nn.InstanceNorm3d,
    }
)


def hold_scales(model: nn.Module, paths: Iterable[str]) -> None:
    """Register a scale of 1 in each module at the given paths, in place.

    Modules that already have a scale keep it.
    """
    for path in paths:
        module = model.get_submodule(path)
        if BUFFER in dict(module.named_buffers(recurse=False)):
            continue
        module.register_buffer(BUFFER, scalar_buffer(model))
        # The hooks are plain functions that receive the module, so that a copy of the
        # module reads its own buffer.
        module.register_forward_pre_hook(unscale_input)
        if type(module) in RESCALED_FUNCTIONS:
            module.register_forward_hook(multiply_output)


@torch.no_grad()
def multiply_scales(model: nn.Module, factors: Mapping[str, float]) -> None:
    """Multiply the scales of the modules at the given paths.

    The scales change in place, so that compiled and captured networks use the new
    scales.
    """
    for path, factor in factors.items():
        model.get_submodule(path).get_buffer(BUFFER).mul_(factor)


def unscale_input(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return x / β, as the forward pre-hook of a module that holds a scale β."""
    scaled, *others = inputs
    return (scaled / module.get_buffer(BUFFER), *others)


def multiply_output(module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
    """Return β f(x / β), as the forward hook of an activation f with a scale β."""
    return output * module.get_buffer(BUFFER)
