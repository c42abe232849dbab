"""The part of the paper `focal` that translates (appendix K)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.section import Name, Section


class Transformer(Section):
    """Sizes of encoder and decoder: `inner` units in their feed-forward layers, `layers` in each of the two."""

    width: Annotated[int, Field(gt=0, multiple_of=2)]
    heads: PositiveInt
    layers: PositiveInt
    inner: PositiveInt
    dropout: Annotated[float, Field(ge=0, lt=1)]

    @model_validator(mode="after")
    def _divides(self) -> Transformer:
        if self.width % self.heads:
            raise ValueError(f"width: {self.width}, must be divisible by heads, {self.heads}")
        return self


class BeamSearch(Section):
    """How test sentences are translated, `sentences` at a time.

    A translation has at most `extra_length` tokens more than its source; `length_penalty` is the exponent by which long
    ones are favoured.
    """

    beam: PositiveInt
    length_penalty: NonNegativeFloat
    extra_length: NonNegativeInt
    sentences: PositiveInt


class Translation(Section):
    """A Transformer trained with cross-entropy, label smoothing and focal loss, `seeds` times each.

    `dataset` is "farm" or a folder below `data.root`, `source` and `target` are the endings of its files. At most
    `train_limit`, `validation_limit` and `test_limit` pairs are used (null: all), and none to train on that is longer
    than `longest` tokens. Both languages share a vocabulary of `vocabulary` pieces of words. `recipe.batch_size` counts
    tokens of each language, padding included, and the recipe neither augments nor normalises. `temperatures` are those
    of Figure K.1, at which test sentences are translated; they are also translated at 1 and at the temperature that
    validation data choose.
    """

    dataset: Name
    source: Name
    target: Name
    train_limit: PositiveInt | None
    validation_limit: PositiveInt | None
    test_limit: PositiveInt | None
    vocabulary: Annotated[int, Field(ge=5)]
    longest: PositiveInt
    network: Transformer
    recipe: Recipe
    smoothing: Annotated[float, Field(gt=0, lt=1)]
    gamma: PositiveFloat
    temperatures: Annotated[list[PositiveFloat], Field(min_length=1)]
    search: BeamSearch
    seeds: PositiveInt

    @model_validator(mode="after")
    def _fits_together(self) -> Translation:
        if self.source == self.target:
            raise ValueError(f"target: {self.target}, must be another language than source")
        if self.temperatures != sorted(set(self.temperatures)):
            raise ValueError(f"temperatures: {self.temperatures}, must ascend")
        if self.recipe.crop_padding or self.recipe.flip or self.recipe.mean or self.recipe.std:
            raise ValueError("recipe: crop_padding must be 0, flip false, mean and std null: they are for images")
        return self
