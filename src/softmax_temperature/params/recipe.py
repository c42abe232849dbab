"""How a network is trained, as `params.yaml` describes it.

It stands apart from `params` because training reads it: a new parameter of another paper must not make a trained
network stale.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)


class _Described(BaseModel):
    """No unknown keys, no silent conversion, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Schedule(_Described):
    """The learning rate as a factor of `lr`, over the epochs of the written recipe (`planned_epochs`).

    "steps" multiplies by `factor` at each of the `milestones`; "linear" and "cosine" fall to 0; "exponential" falls by
    `factor` in all; "inverse_square_root" falls as one over the root of the epochs, from 1 at the end of the warm-up,
    which it needs. A warm-up rises linearly from 0 during the first `warmup` epochs, whatever follows.
    """

    name: Literal["constant", "steps", "linear", "exponential", "cosine", "inverse_square_root"]
    milestones: list[PositiveFloat] = []
    factor: PositiveFloat = 0.1
    warmup: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _warms_up(self) -> Schedule:
        if self.name == "inverse_square_root" and not self.warmup:
            raise ValueError("warmup: 0, must be positive for inverse_square_root")
        return self


class Recipe(_Described):
    """A training of a network on images or texts.

    `planned_epochs` is the length that everything with an epoch in it is written for: milestones, warm-up, a loss that
    changes on the way, epochs that a figure shows. A shorter or longer training (`epochs`) stretches all of it.

    Of Adam, `momentum` is the first beta and `beta2` the second.
    `reduction` is over the batch, "sum" or "mean"; `clip_norm` bounds the norm of the whole gradient (null: no bound).
    Images are padded by `crop_padding` zeros and cropped at random, and mirrored with probability one half if `flip`.
    `mean` and `std` normalise pixels on the scale 0 to 1, one number a channel. Texts have none of these: 0, false and
    null.
    """

    epochs: PositiveInt
    planned_epochs: PositiveInt
    batch_size: PositiveInt
    optimizer: Literal["sgd", "adam", "adagrad"]
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    weight_decay: NonNegativeFloat
    epsilon: PositiveFloat
    schedule: Schedule
    reduction: Literal["sum", "mean"]
    clip_norm: PositiveFloat | None
    crop_padding: NonNegativeInt
    flip: bool
    mean: Annotated[list[float], Field(min_length=3, max_length=3)] | None
    std: Annotated[list[PositiveFloat], Field(min_length=3, max_length=3)] | None
    precision: Literal["float32", "bfloat16"]

    def position(self, epochs_done: float) -> float:
        """Where in the written recipe a training stands, in its epochs."""
        return epochs_done * self.planned_epochs / self.epochs

    def changed(self, *changes: dict[str, Any]) -> Recipe:
        """This recipe with some values replaced, the last word winning.

        Raises:
            ValidationError: a key is unknown or a value of the wrong type.
        """
        values = self.model_dump()
        for change in changes:
            values |= change
        return Recipe.model_validate(values)
