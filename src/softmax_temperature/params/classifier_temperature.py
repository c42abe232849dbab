"""The section of the paper `classifier_temperature`."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from softmax_temperature.params.shared import Fraction, Momentum, Name, Precision
from softmax_temperature.runner.section import Section


class Share(Section):
    """A batch of this `share` of the training rows, rounded up, and of `least` rows at
    the least.
    """

    share: Fraction
    least: PositiveInt


class GridTraining(Section):
    """The training of a cosine classifier with each inverse temperature of a grid."""

    inverse_temperatures: list[PositiveFloat]
    epochs: PositiveInt
    batch_size: PositiveInt | Share
    lr: PositiveFloat
    momentum: Momentum
    repeats: PositiveInt
    precision: Precision


class Search(GridTraining):
    """The grid of sections 4.1 and 4.3; `select_on` is the split on which the optimum
    is read.
    """

    select_on: Literal["test", "validation"]


class Rescaling(Section):
    """Figure 2: plain against rescaled cross-entropy, SGD against Adam, on one embedded
    data set.
    """

    dataset: Name
    backbone: Name
    epochs: PositiveInt
    batch_size: PositiveInt
    sgd_lr: PositiveFloat
    adam_lr: PositiveFloat
    momentum: Momentum
    repeats: PositiveInt
    precision: Precision


class HeuristicSection(Section):
    """The regression: `selected` statistics in its middle row, pairs with plateaus
    above `max_plateau` set apart.
    """

    selected: PositiveInt
    max_plateau: Fraction


class ClassifierTemperature(Section):
    """The paper `classifier_temperature`: every data set with every backbone."""

    datasets: list[Name]
    backbones: list[Name]
    search: Search
    rescaling: Rescaling
    heuristic: HeuristicSection
