"""The section of the paper `temperature_check`."""

from typing import Annotated, Any, NamedTuple, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.shared import Ascending, Name, Text
from softmax_temperature.runner.section import Section

QUESTIONS = CURVES, NORMS = "curves", "norms"
PLAIN, COOLED, CONFIRMED = "plain", "cooled", "confirmed-"
Grid = Annotated[Ascending, Field(min_length=2)]
Rates = Annotated[list[PositiveFloat], Field(min_length=1)]


class Training(NamedTuple):
    """The names of one training.

    `start` is "plain", "cooled", "pair-c" with the correlation c of a pair, or "norm-n"
    with the mean norm n of the tempered logits; that of a confirmation has "confirmed-"
    before it.
    """

    sweep: str
    inverse_temperature: float
    learning_rate: float
    start: str
    seed: int

    @property
    def cell(self) -> str:
        """The name of its cell."""
        return f"{self.sweep}/{self.inverse_temperature:g}/{self.learning_rate:g}/{self.start}/{self.seed}"


class Confirmation(NamedTuple):
    """The names of a training with the learning rate that the trainings of a sweep at
    one inverse temperature chose.
    """

    sweep: str
    inverse_temperature: float
    start: str
    seed: int

    @property
    def cell(self) -> str:
        """The name of its cell."""
        return f"{self.sweep}/{self.inverse_temperature:g}/{self.start}/{self.seed}"


def number_in(start: str, kind: str) -> float | None:
    """The number in a `start` of the kind "pair-" or "norm-"; None in others."""
    return float(start.removeprefix(kind)) if start.startswith(kind) else None


class Sweep(Section):
    """A network on a data set, trained at each of `inverse_temperatures` with each of
    `learning_rates`.

    The optimizer's rate is the rate over the inverse temperature squared, so that equal
    rates mean equal early dynamics of the tempered logits. They are the same at all
    inverse temperatures, or a list for each. `correlations` are those of pairs of
    networks that are trained in its place, `logit_norms` mean norms of the tempered
    logits at the start (see `CorrelatedPair`). `cooled` adds trainings at inverse
    temperature 1 with last-layer Cooling. `confirm` fresh seeds are trained with the
    rate that is best on validation data. `architecture` is what a reader calls the
    network.
    """

    dataset: Name
    network: Name
    architecture: str
    inverse_temperatures: Annotated[list[PositiveFloat], Field(min_length=1)]
    learning_rates: Rates | Annotated[list[Rates], Field(min_length=1)]
    correlations: list[Annotated[float, Field(ge=0, le=1)]] = []
    logit_norms: list[NonNegativeFloat] = []
    cooled: bool = False
    confirm: NonNegativeInt = 0
    recipe: dict[str, Any] = {}  # In place of values of the section's.
    seeds: PositiveInt | None = None  # Null: those of the section.

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.correlations and self.logit_norms:
            raise ValueError(
                "logit_norms: must be left out where there are correlations"
            )
        if self.cooled and (
            self.correlations
            or self.logit_norms
            or 1.0 not in self.inverse_temperatures
        ):
            raise ValueError(
                "cooled: needs inverse temperature 1, and neither correlations nor logit_norms, beside it"
            )
        own, places = self.learning_rates, len(self.inverse_temperatures)
        if isinstance(own[0], list) and len(own) != places:
            raise ValueError(
                f"learning_rates: {len(own)} lists, must be one for each of {places} inverse_temperatures"
            )
        if "lr" in self.recipe:
            raise ValueError("recipe: lr comes from learning_rates")
        return self

    def rates(self, inverse_temperature: float) -> list[float]:
        """The learning rates at an inverse temperature."""
        rates: list[Any] = self.learning_rates
        return (
            rates[self.inverse_temperatures.index(inverse_temperature)]
            if isinstance(rates[0], list)
            else rates
        )

    def starts(self) -> list[str]:
        """How the networks start, without Cooling."""
        pairs = [f"pair-{correlation:g}" for correlation in self.correlations]
        return pairs + [f"norm-{norm:g}" for norm in self.logit_norms] or [PLAIN]


class Curves(Section):
    """Learning from logits of exactly 0.

    A course is observed at `points` times, evenly spaced on a log axis from `first` to
    `last`, in units in which the logits would change by 1 at their first speed; the
    kernel is computed at every `stride`-th.
    """

    inverse_temperatures: Grid
    first: PositiveFloat
    last: PositiveFloat
    points: Annotated[int, Field(ge=2)]
    stride: PositiveInt

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if not self.first < self.last:
            raise ValueError(f"last: {self.last}, must be above first, {self.first}")
        return self


class Norms(Section):
    """Learning from tempered logits with each of `logit_norms`, over all samples and
    classes.

    A course ends at the latest after `horizon` times the larger of the unit of time and
    of the time in which the logits would change by their own norm at their first speed.
    """

    inverse_temperature: PositiveFloat
    logit_norms: Grid
    horizon: PositiveFloat


class GradientFlow(Section):
    """Gradient flow on `images` training images, with relative errors of at most
    `tolerance` per step.

    The tangent kernel is seen through `probes` random vectors, or whole (null): (images
    × classes)² numbers, made from images × classes × parameters. Samples pass `chunk`
    at a time. A course takes about `evaluations` at most.
    """

    images: Annotated[int, Field(ge=2)]
    probes: Annotated[int, Field(ge=2)] | None
    chunk: PositiveInt
    tolerance: Annotated[float, Field(gt=1e-12, lt=1)]
    evaluations: PositiveInt


class EarlyLearning(GradientFlow):
    """Gradient flow of `networks`, none with batch normalisation; the number is how
    often each is drawn anew.
    """

    dataset: Name
    networks: Annotated[dict[Name, PositiveInt], Field(min_length=1)]
    curves: Curves
    norms: Norms

    def courses(self) -> list[tuple[str, str, int]]:
        """Network, question and seed of every cell."""
        networks = self.networks.items()
        return [
            (name, question, seed)
            for name, seeds in networks
            for question in QUESTIONS
            for seed in range(seeds)
        ]


class Looks(Section):
    """Texts are read as `text` says; `watch_images` training images are looked at after
    every `watch_every` epochs.

    So are all held-out data.
    """

    text: Text
    watch_images: PositiveInt
    watch_every: PositiveInt


class TemperatureCheck(Looks):
    """The paper `temperature_check`: every sweep, `seeds` times, with its own rates,
    and the theory of early learning.

    The recipe is that of all trainings but for its `lr`, which each one has its own of.
    """

    seeds: PositiveInt
    recipe: Recipe
    sweeps: dict[Name, Sweep]
    early_learning: EarlyLearning | None

    def recipe_of(self, sweep: str) -> Recipe:
        """The recipe of a sweep, but for its `lr`, which each training has its own of."""
        return self.recipe.changed(self.sweeps[sweep].recipe, by=f"sweeps.{sweep}")

    def trainings(self) -> list[Training]:
        """Every training, in the order of the parameters."""
        return [
            Training(name, inverse_temperature, rate, start, seed)
            for name, sweep in self.sweeps.items()
            for inverse_temperature in sweep.inverse_temperatures
            for rate in sweep.rates(inverse_temperature)
            for start in [
                *sweep.starts(),
                *[COOLED] * (sweep.cooled and inverse_temperature == 1),
            ]
            for seed in range(self.seeds_of(name))
        ]

    def confirmations(self) -> list[Confirmation]:
        """Every confirmation, in the order of the parameters; on no seed that the rate
        is chosen on.
        """
        return [
            Confirmation(name, inverse_temperature, start, self.seeds_of(name) + seed)
            for name, sweep in self.sweeps.items()
            for inverse_temperature in sweep.inverse_temperatures
            for start in sweep.starts()
            for seed in range(sweep.confirm)
        ]

    def seeds_of(self, sweep: str) -> int:
        """The number of seeds of each training of a sweep."""
        return self.sweeps[sweep].seeds or self.seeds

    @model_validator(mode="after")
    def _recipes_are_complete(self) -> Self:
        for name in self.sweeps:
            self.recipe_of(name)
        return self
