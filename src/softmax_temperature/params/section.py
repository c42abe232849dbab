"""What every section of `params.yaml` is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from softmax_temperature.runner.errors import nearest

Fraction = Annotated[float, Field(gt=0, lt=1)]
Precision = Literal["float32", "bfloat16"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class Section(BaseModel):
    """A section of `params.yaml`: no unknown keys, no silent conversion, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def some_for(rebuild: Sequence[str], key: str, trainings: Any) -> None:
    """Refuse to rebuild a paper from nothing.

    Raises:
        ValueError: it is to be rebuilt, and nothing is to be trained for it.
    """
    if rebuild and not trainings:
        raise ValueError(f"{key}: there must be one where `rebuild` names the paper")


def all_known(key: str, names: list[str], valid: Any) -> None:
    """Refuse a name that refers to nothing.

    Raises:
        ValueError: with the nearest name that does.
    """
    for name in names:
        if name not in valid:
            raise ValueError(f"{key}: unknown name {name!r}. {nearest(name, valid)}")
