"""Recipes: the settings in `params.yaml` for training a network."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from softmax_temperature.params.shared import Momentum, Precision, fault
from softmax_temperature.runner.section import Section


class Schedule(Section):
    """The learning rate over `planned_epochs`, as a multiple of `lr`.

    - "steps" multiplies the rate by `factor` at each of the `milestones`.
    - "linear" and "cosine" fall to 0.
    - "exponential" falls exponentially to `factor`.
    - "inverse_square_root" falls from 1 in proportion to the inverse square root of the
      epochs, beginning at the end of the warm-up. It requires a warm-up.

    Every schedule can have a warm-up: during the first `warmup` epochs the learning
    rate is also multiplied by a factor that rises linearly from 0 to 1.
    """

    name: Literal[
        "constant", "steps", "linear", "exponential", "cosine", "inverse_square_root"
    ]
    milestones: list[PositiveFloat] = []
    factor: PositiveFloat = 0.1
    warmup: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _warms_up(self) -> Self:
        if self.name == "inverse_square_root" and not self.warmup:
            raise ValueError("warmup: 0, must be positive with inverse_square_root")
        return self


class Recipe(Section):
    """Settings for training a network on images, texts or pairs of sentences.

    All epochs in the parameters (of milestones, the warm-up, a loss that changes during
    training, and figures) refer to a run of `planned_epochs`. If `epochs` differs from
    `planned_epochs`, all these epochs are scaled in proportion.

    For Adam, `momentum` is the first beta and `beta2` the second. `reduction` combines
    the losses of a batch; `clip_norm` bounds the norm of the whole gradient. Images are
    padded with `crop_padding` zeros on each side and cropped at random, mirrored with
    probability 1/2 if `flip` is true, and normalised by each channel's `mean` and `std`
    on the scale 0 to 1. For texts and sentences, `crop_padding` must be 0, `flip` must
    be false, and `mean` and `std` must be null.
    """

    epochs: PositiveInt
    planned_epochs: PositiveInt
    batch_size: PositiveInt
    optimizer: Literal["sgd", "adam", "adagrad"]
    lr: PositiveFloat
    momentum: Momentum
    beta2: Momentum = 0.999
    weight_decay: NonNegativeFloat
    epsilon: PositiveFloat
    schedule: Schedule
    reduction: Literal["sum", "mean"]
    clip_norm: PositiveFloat | None
    crop_padding: NonNegativeInt
    flip: bool
    mean: Annotated[list[float], Field(min_length=3, max_length=3)] | None
    std: Annotated[list[PositiveFloat], Field(min_length=3, max_length=3)] | None
    precision: Precision

    def changed(self, *changes: dict[str, Any], by: str = "change") -> Self:
        """Return this recipe with the values in `changes`; a later change wins.

        `by` is the section that the changes come from; errors name it.
        """
        values = self.model_dump()
        for change in changes:
            values |= change
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            key, message = fault(error)
            where = f"{by}, recipe: {key}" if key else f"{by}, recipe"
            raise ValueError(f"{where}: {message}") from error
