"""The base of all sections of `params.yaml`, and the types and checks that they share."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from softmax_temperature.runner.errors import nearest

Fraction = Annotated[float, Field(gt=0, lt=1)]
Momentum = Annotated[float, Field(ge=0, lt=1)]
Precision = Literal["float32", "bfloat16", "auto"]
"""What networks multiply in; "auto" is bfloat16 where the processor or GPU multiplies it, and float32 elsewhere."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
UNKNOWN = "unknown"
"""The type of pydantic's error for a key that does not exist."""


class Section(BaseModel):
    """A section of `params.yaml`: no unknown keys, no conversion, no infinite numbers, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _keys_exist(cls, values: Any) -> Any:
        for key in values if isinstance(values, dict) else ():
            if key not in cls.model_fields:
                context = {"key": str(key), "remedy": nearest(str(key), cls.model_fields)}
                raise PydanticCustomError(UNKNOWN, "unknown parameter {key}", context)
        return values


def key_and_remedy(error: ErrorDetails) -> tuple[str, str | None]:
    """The dotted key at fault, and for one that does not exist the remedy."""
    context = error["ctx"] if error["type"] == UNKNOWN else {}
    return ".".join(map(str, [*error["loc"], *[context.get("key")] * bool(context)])), context.get("remedy")


def all_known(key: str, names: Iterable[str | None], valid: Any) -> None:
    """Refuse a name that refers to nothing, with the nearest one that exists; None is no name."""
    for name in names:
        if name is not None and name not in valid:
            raise ValueError(f"{key}: unknown name {name!r}. {nearest(name, valid)}")
