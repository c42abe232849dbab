"""What each operation of a network does to the scale of the tensors that it reads."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

# Types are compared exactly: a subclass may do anything to its weights, standardise them for instance.
LINEAR_LAYERS: frozenset[type[nn.Module]] = frozenset(
    {
        nn.Linear,
        *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
        *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    }
)
BATCH_NORMS: frozenset[type[nn.Module]] = frozenset({nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm})

# f(c x) = c f(x) for every c > 0.
HOMOGENEOUS_MODULES: frozenset[type[nn.Module]] = frozenset(
    {
        *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.Identity),
        *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
        *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
        *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
        *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
        *(nn.Flatten, nn.Unflatten, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle),
        *(nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d),
        *(nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d, nn.ReflectionPad2d, nn.ReplicationPad2d),
    }
)

# Functions and methods by name. A homogeneous one reads one tensor, and any numbers.
HOMOGENEOUS = frozenset(
    {
        *("relu", "relu_", "leaky_relu", "neg", "abs"),
        *("dropout", "dropout1d", "dropout2d", "dropout3d"),
        *("clone", "detach", "contiguous", "float", "double", "to"),
        *("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"),
        *("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        *("mean", "sum", "amax", "amin"),
        *("flatten", "unflatten", "view", "reshape", "squeeze", "unsqueeze"),
        *("permute", "transpose", "movedim", "expand", "getitem", "chunk", "split", "narrow"),
        *("interpolate", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
    }
)
JOINS = frozenset({"cat", "concat", "concatenate", "stack", "maximum", "minimum"})
SUMS = frozenset({"add", "add_", "sub", "sub_"})
PRODUCTS = frozenset({"mul", "mul_"})
QUOTIENTS = frozenset({"truediv", "div", "div_"})
SIZES = frozenset({"size", "dim"})
SIZE_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "device"})

_SPACES = (operator, torch, F, builtins)


def is_norm_with_activation(module: nn.Module) -> bool:
    """Whether this is timm's batch normalisation with dropout and activation inside; by name, as timm may be absent."""
    return f"{type(module).__module__}.{type(module).__name__}" == "timm.layers.norm_act.BatchNormAct2d"


def operation_name(target: Callable[..., object] | str) -> str | None:
    """The name of a method or of a function of torch or of Python's operators; None for any other function."""
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", "")
    return name if any(getattr(space, name, None) is target for space in _SPACES) else None
