"""The section `temperature_check` of `params.yaml`."""

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

CURVES = "curves"
NORMS = "norms"
QUESTIONS = (CURVES, NORMS)
"""The questions that are studied with gradient flow."""

PLAIN = "plain"
"""The start from the network's own initial weights."""
COOLED = "cooled"
"""The same start, trained with Cooling."""
_PAIR = "pair-"
_NORM = "norm-"

Grid = Annotated[Ascending, Field(min_length=2)]
Rates = Annotated[list[PositiveFloat], Field(min_length=1)]


class Training(NamedTuple):
    """The values that identify one training run.

    `start` is "plain", "cooled", "pair-c" with the correlation c of a pair, or "norm-n"
    with the mean norm n of the tempered logits.
    """

    sweep: str
    inverse_temperature: float
    learning_rate: float
    start: str
    seed: int

    @property
    def cell(self) -> str:
        """The name of the run's cell."""
        numbers = f"{self.inverse_temperature:g}/{self.learning_rate:g}"
        return f"{self.sweep}/{numbers}/{self.start}/{self.seed}"


class Confirmation(NamedTuple):
    """The values that identify a run whose learning rate was chosen in a sweep.

    The learning rate is chosen separately for each inverse temperature.
    """

    sweep: str
    inverse_temperature: float
    start: str
    seed: int

    @property
    def cell(self) -> str:
        """The name of the run's cell."""
        return f"{self.sweep}/{self.inverse_temperature:g}/{self.start}/{self.seed}"


def number_in(start: str, kind: str) -> float | None:
    """Read the number in a `start` such as "pair-0.5".

    Returns None if `start` does not begin with the prefix `kind`, such as "pair-".
    """
    if not start.startswith(kind):
        return None
    return float(start.removeprefix(kind))


class Sweep(Section):
    """A network on a data set, trained at each inverse temperature with each rate.

    The optimizer's rate is the learning rate divided by the inverse temperature
    squared, so that equal rates mean equal early dynamics of the tempered logits.
    `learning_rates` holds one list for all inverse temperatures, or one list for each.

    With `correlations`, pairs of networks are trained instead of the network; with
    `logit_norms`, the tempered logits start with these mean norms (see
    `CorrelatedPair`). `cooled` adds runs at inverse temperature 1 with last-layer
    Cooling. For each inverse temperature and start, `confirm` further seeds are trained
    with the learning rate that has the highest mean validation accuracy; the runs with
    Cooling get no further seeds. `recipe` overrides values of the section's recipe, and
    `seeds` overrides the section's number of seeds (null keeps it).
    """

    dataset: Name
    network: Name
    inverse_temperatures: Annotated[list[PositiveFloat], Field(min_length=1)]
    learning_rates: Rates | Annotated[list[Rates], Field(min_length=1)]
    correlations: list[Annotated[float, Field(ge=0, le=1)]] = []
    logit_norms: list[NonNegativeFloat] = []
    cooled: bool = False
    confirm: NonNegativeInt = 0
    recipe: dict[str, Any] = {}
    seeds: PositiveInt | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.correlations and self.logit_norms:
            raise ValueError("logit_norms: cannot be combined with `correlations`")
        has_other_start = self.correlations or self.logit_norms
        if self.cooled and (has_other_start or 1.0 not in self.inverse_temperatures):
            raise ValueError(
                "`cooled` needs inverse temperature 1 and cannot be combined with "
                "`correlations` or `logit_norms`"
            )
        lists = len(self.learning_rates)
        places = len(self.inverse_temperatures)
        if isinstance(self.learning_rates[0], list) and lists != places:
            raise ValueError(
                f"learning_rates: {lists} lists, must be one for each of the {places} "
                "inverse_temperatures"
            )
        if "lr" in self.recipe:
            raise ValueError("recipe: lr comes from learning_rates")
        return self

    def rates(self, inverse_temperature: float) -> list[float]:
        """The learning rates that are tried at `inverse_temperature`."""
        rates: list[Any] = self.learning_rates
        if not isinstance(rates[0], list):
            return rates
        rates_here: list[float]
        rates_here = rates[self.inverse_temperatures.index(inverse_temperature)]
        return rates_here

    def starts(self) -> list[str]:
        """The starts of the runs without Cooling."""
        if self.correlations:
            return [f"{_PAIR}{correlation:g}" for correlation in self.correlations]
        if self.logit_norms:
            return [f"{_NORM}{norm:g}" for norm in self.logit_norms]
        return [PLAIN]

    def all_starts(self, inverse_temperature: float) -> list[str]:
        """The starts at `inverse_temperature`, including "cooled" at 1 if `cooled`."""
        starts = self.starts()
        if self.cooled and inverse_temperature == 1:
            starts.append(COOLED)
        return starts


class Curves(Section):
    """Settings for gradient flow from logits of exactly 0.

    A trajectory is observed at `points` times, evenly spaced on a log axis from `first`
    to `last`. The unit of time is the time in which the logits would change by 1 at
    their initial speed. The kernel is computed at every `stride`-th observation time
    and at each event.
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
    """Settings for gradient flow that starts at each logit norm in `logit_norms`.

    These are norms of the tempered logits, taken over all samples and classes. A
    trajectory ends at the latest at `horizon` times the larger of two times: the unit
    of time, and the time in which the logits would change by their own norm at their
    initial speed.
    """

    inverse_temperature: PositiveFloat
    logit_norms: Grid
    horizon: PositiveFloat


class GradientFlow(Section):
    """Settings for gradient flow on `images` training images.

    `tolerance` bounds the error of a step (see `early_learning.flows.Settings`). The
    tangent kernel is sketched with `probes` random vectors. If `probes` is null, the
    whole kernel is computed: its (images × classes)² numbers come from a Jacobian of
    images × classes × parameters numbers. The network evaluates `chunk` samples at a
    time. A trajectory takes at most about `evaluations` evaluations of the gradient.
    """

    images: Annotated[int, Field(ge=2)]
    probes: Annotated[int, Field(ge=2)] | None
    chunk: PositiveInt
    tolerance: Annotated[float, Field(gt=1e-12, lt=1)]
    evaluations: PositiveInt


class EarlyLearning(GradientFlow):
    """Settings for gradient flow of `networks`, each with its number of random draws.

    The networks must not have batch normalisation.
    """

    dataset: Name
    networks: Annotated[dict[Name, PositiveInt], Field(min_length=1)]
    curves: Curves
    norms: Norms

    def courses(self) -> list[tuple[str, str, int]]:
        """List the network, question and seed of every cell."""
        return [
            (name, question, seed)
            for name, seeds in self.networks.items()
            for question in QUESTIONS
            for seed in range(seeds)
        ]


class EvaluationSettings(Section):
    """Settings for reading texts and for evaluating during training.

    `watch_images` training images and all held-out data are evaluated every
    `watch_every` epochs, and after the first and the last epoch.
    """

    text: Text
    watch_images: PositiveInt
    watch_every: PositiveInt


class TemperatureCheck(EvaluationSettings):
    """The paper `temperature_check`: every sweep, and the theory of early learning.

    All sweeps share the recipe, except for values that a sweep overrides and for `lr`,
    which comes from the sweep's learning rates. A sweep is trained with `seeds` seeds,
    unless it sets its own number.
    """

    seeds: PositiveInt
    recipe: Recipe
    sweeps: dict[Name, Sweep]
    early_learning: EarlyLearning | None

    def recipe_of(self, sweep: str) -> Recipe:
        """The recipe of `sweep`; every run replaces the recipe's `lr` with its own."""
        return self.recipe.changed(self.sweeps[sweep].recipe, by=f"sweeps.{sweep}")

    def trainings(self) -> list[Training]:
        """List every training run, in the order of the parameters."""
        return [
            Training(name, inverse_temperature, rate, start, seed)
            for name, sweep in self.sweeps.items()
            for inverse_temperature in sweep.inverse_temperatures
            for rate in sweep.rates(inverse_temperature)
            for start in sweep.all_starts(inverse_temperature)
            for seed in range(self.seeds_of(name))
        ]

    def confirmations(self) -> list[Confirmation]:
        """List every confirmation run, in the order of the parameters.

        Confirmation runs have different seeds from the runs from which the learning
        rate is chosen.
        """
        return [
            Confirmation(name, inverse_temperature, start, self.seeds_of(name) + seed)
            for name, sweep in self.sweeps.items()
            for inverse_temperature in sweep.inverse_temperatures
            for start in sweep.starts()
            for seed in range(sweep.confirm)
        ]

    def seeds_of(self, sweep: str) -> int:
        """The number of seeds with which `sweep` is trained."""
        return self.sweeps[sweep].seeds or self.seeds

    @model_validator(mode="after")
    def _recipes_are_complete(self) -> Self:
        for name in self.sweeps:
            self.recipe_of(name)
        return self
