"""The description of a network that is trained from scratch, in `params.yaml`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from softmax_temperature.runner.errors import nearest


def architectures() -> list[str]:
    """The networks that can be trained from scratch."""
    from softmax_temperature.networks import ARCHITECTURES  # Here, because it imports torch.

    return sorted(ARCHITECTURES)


class Network(BaseModel):
    """`architecture` names it, `arguments` go to its constructor."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    architecture: str
    arguments: dict[str, Any] = {}

    @field_validator("architecture")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in architectures():
            raise ValueError(f"unknown architecture {name!r}. {nearest(name, architectures())}")
        return name

    @property
    def module(self) -> str:
        """The module that holds it."""
        return "softmax_temperature.networks"
