"""The description of a network that is trained from scratch, in `params.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from softmax_temperature.runner.errors import nearest

_MODELS = Path(__file__).parents[1] / "networks"


def architectures() -> list[str]:
    """The modules of `softmax_temperature.networks` that can be trained from scratch: those that have `make`.

    `make(num_classes=..., **arguments)` gives a network of images (n, 3, height, width) or of tokens (n, length), whose
    last layer is `classifier`. They are found in the text, because importing them would make each the code of every
    training.
    """
    return sorted(path.stem for path in _MODELS.glob("*.py") if "\nmake = " in path.read_text(encoding="utf-8"))


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
        """The module that holds it; no other network's code counts as that of a cell that trains this one."""
        return f"softmax_temperature.networks.{self.architecture}"
