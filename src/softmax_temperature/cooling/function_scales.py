"""Activations and normalisations that know the scale of their input.

Definition 3.2 (3) of the cooling paper replaces an activation f, whose input is
multiplied by β, by β f(x / β). For ReLU this is ReLU again; for tanh and GELU it is
not. Their modules therefore hold β in a buffer `cooling_scale`, divide their input by
it, and multiply their output by it.

Layer normalisation removes β from its input, except that epsilon then weighs 1 / β² as
much. Its module therefore divides by β too, but does not multiply: its output has the
scale of its own weight and bias.
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
# Normalisations of each sample by itself, without running statistics.
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
    """Register a scale of 1 in each of these modules, in place.

    Modules that already have a scale keep it.
    """
    for path in paths:
        module = model.get_submodule(path)
        if BUFFER in dict(module.named_buffers(recurse=False)):
            continue
        module.register_buffer(BUFFER, scalar_buffer(model))
        # Plain functions of the module, so that copies read their own buffers.
        module.register_forward_pre_hook(unscale_input)
        if type(module) in RESCALED_FUNCTIONS:
            module.register_forward_hook(multiply_output)


@torch.no_grad()
def multiply_scales(model: nn.Module, factors: Mapping[str, float]) -> None:
    """Multiply the scales of held modules, by path.

    In place, so that compiled and captured networks see it.
    """
    for path, factor in factors.items():
        model.get_submodule(path).get_buffer(BUFFER).mul_(factor)


def unscale_input(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The forward pre-hook of a held module: x / β."""
    scaled, *others = inputs
    return (scaled / module.get_buffer(BUFFER), *others)


def multiply_output(module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
    """The forward hook of a held activation: β f(x / β)."""
    return output * module.get_buffer(BUFFER)
