"""The section of the paper `classifier_temperature`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from softmax_temperature.params.section import Fraction, Name, Precision, Section


class Search(Section):
    """The grid of inverse temperatures (paper section 4.1 and 4.3)."""

    inverse_temperatures: list[PositiveFloat]
    epochs: PositiveInt
    batch_size: PositiveInt
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    repeats: PositiveInt
    select_on: Literal["test", "validation"]
    precision: Precision


class Rescaling(Section):
    """Figure 2: plain against rescaled cross-entropy, SGD against Adam, on one embedded data set."""

    dataset: Name
    backbone: Name
    epochs: PositiveInt
    batch_size: PositiveInt
    sgd_lr: PositiveFloat
    adam_lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    repeats: PositiveInt
    precision: Precision


class HeuristicSection(Section):
    """The regression: `selected` statistics in its middle row, pairs with plateaus above `max_plateau` set apart."""

    selected: PositiveInt
    max_plateau: Fraction


class ClassifierTemperature(Section):
    """The paper `classifier_temperature`: every data set with every backbone.

    `rebuild` names the notebook to execute; an empty list, with no data sets and backbones, leaves the paper out.
    """

    rebuild: list[Literal["classifier_temperature"]]
    datasets: list[Name]
    backbones: list[Name]
    search: Search
    rescaling: Rescaling
    heuristic: HeuristicSection
