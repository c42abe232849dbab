"""The base class of all sections of `params.yaml`, and the section `compute`."""

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
    """Immutable parameters; unknown keys, wrong types and infinity are refused."""

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
        """The classes that the section names, as "package.module:Class".

        The code of these classes counts as code of the cells that receive the section.
        """
        return ()


class Compute(Section):
    """Settings for running cells; they are not part of the cells' fingerprints.

    Engine and workers do not change results; threads and device may change the last
    bits. If `ray_address` is null, Ray uses the cluster at RAY_ADDRESS if that variable
    is set, and otherwise this machine. If `deterministic` is null, deterministic
    algorithms are requested only on a CPU. `gpu_hours` holds an estimate for all cells
    of each named stage; `plan` shows the estimate if no run of the stage is recorded.
    """

    engine: Literal["serial", "processes", "ray"]
    workers: PositiveInt  # Cells that run at the same time.
    threads_per_cell: PositiveInt
    device: Literal["auto", "cpu", "cuda"]  # "auto" is a GPU if there is one.
    checkpoint_seconds: NonNegativeFloat
    ray_address: str | None
    gpus_per_cell: NonNegativeFloat  # Used with Ray only; may be a fraction.
    cuda_graphs: bool = True  # Whether to capture training steps of constant shape.
    deterministic: bool | None = None
    gpu_hours: dict[str, PositiveFloat] = {}


def all_known(
    key: str, names: Iterable[str], valid: Collection[str], kind: str = "name"
) -> None:
    """Raise ValueError if one of `names` is not in `valid`; suggest a similar name."""
    for name in names:
        if name not in valid:
            where = f"{key}: " if key else ""
            remedy = nearest(name, valid)
            raise ValueError(f"{where}unknown {kind} {name!r}. {remedy}")
