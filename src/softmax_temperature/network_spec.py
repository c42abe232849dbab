"""The description of a network that is trained from scratch, in `params.yaml`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from softmax_temperature.errors import nearest

CLASSES = MappingProxyType(
    {
        "bottleneck_resnet": "BottleneckResNet",
        "cifar_resnet": "CifarResNet",
        "densenet": "DenseNet",
        "vgg": "SmallVGG",
        "wide_resnet": "WideResNet",
    }
)
"""The class of each architecture, in the module `softmax_temperature.models.<architecture>`.

Each takes `num_classes`, and is `classifier(features(images))` with images (n, 3, height, width)."""


class Network(BaseModel):
    """`architecture` names it, `arguments` go to its constructor."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    architecture: str
    arguments: dict[str, Any] = {}

    @field_validator("architecture")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in CLASSES:
            raise ValueError(f"unknown architecture {name!r}. {nearest(name, CLASSES)}")
        return name

    @property
    def module(self) -> str:
        """The module that holds it; no other network's code counts as that of a cell that trains this one."""
        return f"softmax_temperature.models.{self.architecture}"
