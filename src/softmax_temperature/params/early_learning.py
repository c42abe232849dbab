"""The part of the paper `temperature_check` that measures its theory."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from softmax_temperature.params.section import Name, Section

Grid = Annotated[list[PositiveFloat], Field(min_length=2)]


def _ascends(values: list[float]) -> list[float]:
    if not all(low < high for low, high in pairwise(values)) or not all(map(math.isfinite, values)):
        raise ValueError("must be finite and ascend")
    return values


class Curves(Section):
    """Learning from logits of exactly 0, a course for each of `inverse_temperatures`.

    Time is counted in units in which the logits would change by 1 at their first speed. A course is seen at `points`
    times, evenly spaced on a log axis from `first` to `last`; the kernel is computed at every `stride`-th of them.
    """

    inverse_temperatures: Grid
    first: PositiveFloat
    last: PositiveFloat
    points: Annotated[int, Field(ge=2)]
    stride: PositiveInt

    _ascending = field_validator("inverse_temperatures")(_ascends)

    @model_validator(mode="after")
    def _fits_together(self) -> Curves:
        if not self.first < self.last:
            raise ValueError(f"last: {self.last}, must be above first, {self.first}")
        return self

    @property
    def times(self) -> list[float]:
        """In units."""
        step = math.log(self.last / self.first) / (self.points - 1)
        return [self.first * math.exp(step * number) for number in range(self.points)]


class Norms(Section):
    """Learning at one `inverse_temperature`, from tempered logits with each of `logit_norms`.

    The norm is that over all samples and classes. A course ends at the latest after `horizon` times the larger of the
    unit of time and of the time in which the logits would change by their own norm at their first speed.
    """

    inverse_temperature: PositiveFloat
    logit_norms: Grid
    horizon: PositiveFloat

    _ascending = field_validator("logit_norms")(_ascends)


class EarlyLearning(Section):
    """Gradient flow of `networks` on `images` training images of `dataset`.

    Behind the name of each network stands how often it and the images are drawn anew; none has batch normalisation. The
    tangent kernel is seen through `probes` random vectors, or whole (null): then (images × classes)² numbers, and while
    they are computed images × classes × parameters. Samples pass through the network `chunk` at a time. A step of the
    integrator errs by at most `tolerance`, relative; a course takes about `evaluations` of the gradient at most.
    """

    dataset: Name
    images: Annotated[int, Field(ge=2)]
    networks: Annotated[dict[Name, PositiveInt], Field(min_length=1)]
    probes: Annotated[int, Field(ge=2)] | None
    chunk: PositiveInt
    tolerance: Annotated[float, Field(gt=1e-12, lt=1)]
    evaluations: PositiveInt
    curves: Curves
    norms: Norms
