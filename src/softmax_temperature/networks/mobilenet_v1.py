"""MobileNetV1 of any width."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from timm.models.efficientnet import _gen_mobilenet_v1

if TYPE_CHECKING:
    from torch import nn


def mobilenet_v1(width: float = 1.0, num_classes: int = 1000, **arguments: Any) -> nn.Module:
    """MobileNetV1 (Howard et al. 2017) with `width` times the channels.

    timm has the network, but names only widths 1 and 1.25; its generator for the others is not public.

    Args:
        width: the paper's width multiplier.
        num_classes: outputs of the linear layer.
        arguments: passed on, for instance `pad_type="same"` for weights that come from TensorFlow.
    """
    build: Callable[..., nn.Module] = _gen_mobilenet_v1
    return build("mobilenetv1_100", width, num_classes=num_classes, **arguments)
