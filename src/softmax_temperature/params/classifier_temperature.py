"""The section `classifier_temperature` of `params.yaml`."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from softmax_temperature.params.shared import Fraction, Momentum, Name, Precision
from softmax_temperature.runner.section import Section


class Share(Section):
    """A batch size: `share` of the training rows, rounded up, but at least `least`."""

    share: Fraction
    least: PositiveInt


class GridTraining(Section):
    """Settings for training cosine classifiers at several inverse temperatures."""

    inverse_temperatures: list[PositiveFloat]
    epochs: PositiveInt
    batch_size: PositiveInt | Share
    lr: PositiveFloat
    momentum: Momentum
    repeats: PositiveInt
    precision: Precision


class Search(GridTraining):
    """Settings for section 4's searches.

    The best inverse temperature is the one with the highest accuracy on the split
    `select_on`.
    """

    select_on: Literal["test", "validation"]


class Rescaling(Section):
    """Settings for Figure 2: plain and rescaled cross-entropy, with SGD and Adam.

    The inverse temperatures are those of `search`.
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
    """Settings for the regression of the best inverse temperature on statistics.

    The regression in the middle row of Table 1 uses `selected` statistics. The plateau
    of a pair is the range of about equally good inverse temperatures around the best
    one. A pair whose plateau contains more than the fraction `max_plateau` of the
    searched inverse temperatures does not count among the identified pairs.
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
