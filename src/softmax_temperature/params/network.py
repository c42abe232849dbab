"""The description of a network that is trained from scratch, in `params.yaml`."""

from typing import Annotated, Any

from pydantic import Field, field_validator

from softmax_temperature.params.section import Section
from softmax_temperature.runner.errors import nearest

# The names of `networks.architectures`, which would import torch.
ARCHITECTURES = (
    *("bottleneck_resnet", "cifar_resnet", "convnet", "densenet", "gru"),
    *("mlp", "text_cnn", "tree_lstm", "vgg", "wide_resnet"),
)


class Network(Section):
    """`architecture` names it, `arguments` go to its constructor.

    `gpu_share` is the part of a GPU that its training fills, as 1 for a large network; null for one of `workers` parts.
    It changes no result, and is no part of a cell's fingerprint.
    """

    architecture: str
    arguments: dict[str, Any] = {}
    gpu_share: Annotated[float, Field(gt=0, le=1)] | None = Field(None, exclude=True)

    @field_validator("architecture")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in ARCHITECTURES:
            raise ValueError(f"unknown architecture {name!r}. {nearest(name, ARCHITECTURES)}")
        return name
