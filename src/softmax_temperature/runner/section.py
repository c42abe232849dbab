"""Typed values: the base of all sections of `params.yaml`, and the section compute."""

from collections.abc import Collection, Iterable
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from softmax_temperature.runner.errors import nearest


class Section(BaseModel):
    """No unknown keys, no conversion, no infinite numbers, no change after reading."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _keys_exist(cls, values: Any) -> Any:
        if isinstance(values, dict):
            all_known("", map(str, values), cls.model_fields, "parameter")
        return values

    def implementations(self) -> tuple[str, ...]:
        """Classes that the section names, as "package.module:Class".

        They count as code of the cells that get the section.
        """
        return ()


class Compute(Section):
    """The way cells run; not a part of their fingerprints.

    Engine and workers change no result; threads and device change its last bits.
    `ray_address` null: a running cluster's in RAY_ADDRESS, or this machine.
    `deterministic` null: algorithms give the same bits on a CPU alone. `gpu_hours` are
    estimates for all cells of a stage, which `plan` shows where no run is recorded.
    """

    engine: Literal["serial", "processes", "ray"]
    workers: PositiveInt  # Cells at a time.
    threads_per_cell: PositiveInt
    device: Literal["auto", "cpu", "cuda"]  # "auto": a GPU when there is one.
    checkpoint_seconds: NonNegativeFloat
    ray_address: str | None
    gpus_per_cell: NonNegativeFloat  # May be a fraction of one.
    cuda_graphs: bool = True  # Capture training steps of one shape.
    deterministic: bool | None = None
    gpu_hours: dict[str, PositiveFloat] = {}


def all_known(
    key: str, names: Iterable[str], valid: Collection[str], kind: str = "name"
) -> None:
    """Refuse a name that refers to nothing, with the nearest one that exists."""
    for name in names:
        if name not in valid:
            where = f"{key}: " if key else ""
            remedy = nearest(name, valid)
            raise ValueError(f"{where}unknown {kind} {name!r}. {remedy}")
