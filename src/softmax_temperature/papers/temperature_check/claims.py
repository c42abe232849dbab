"""The abstract's statements and the theory's predictions, as testable claims.

We have only the paper's abstract. Each of its sentences about generalisation is a
claim, and none of these sentences gives a number. Networks are compared only on the
same data. If accuracies at chosen inverse temperatures are compared, the inverse
temperatures are chosen on the validation data of the other seeds, so that the choice
does not bias the result.
"""

import pandas as pd

from softmax_temperature.papers.shared.claims import Claim, above, below, equivalent
from softmax_temperature.papers.shared.factors import ALL, Where
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.sweeps import (
    BEST,
    WORST,
    Argmax,
    Choice,
    ChosenDifference,
    MeanOverSweeps,
    SlopeOfSpread,
)
from softmax_temperature.papers.temperature_check.early_learning import (
    COLLAPSE,
    FIT_LARGE,
    FIT_SMALL,
    KERNEL_DRIFT,
    TENTH_LARGE,
    UNIT_SMALL,
    Prediction,
    slopes_of,
)
from softmax_temperature.papers.temperature_check.logit_norms import MinusHalf, OfNorm
from softmax_temperature.papers.temperature_check.study import (
    ACCURACY,
    ACCURACY_OF_FINISHED,
    AT_1,
    BELOW_1,
    FROM_1,
    INSIDE,
    KINKED,
    NLL_SCALED,
    NORMS,
    NORMS_AFTER_50,
    SMOOTH,
    TEMPERATURES,
    TEMPERATURES_FROM_ONE_START,
    VALIDATION_ACCURACY,
)

STRONG = 0.02
"""A difference in accuracy above two points counts as strong."""
NEGLIGIBLE = 0.01
"""A difference in accuracy below one point counts as no difference."""
MARGIN = 0.1
"""A slope counts as predicted if it is within this margin of the prediction.

Predictions hold in a limit that no measurement reaches.
"""

_CHOSEN = (
    "chosen on the validation data of the other seeds among those whose learning rate "
    "is inside its grid, each sweep by itself, paired by seed; of fresh seeds where a "
    "sweep has them; Student's interval, widened after Nadeau and Bengio for choices "
    "that share seeds."
)
_BEST_OVER_WORST = (
    "Test accuracy at the best minus that at the worst inverse temperature, both "
    f"{_CHOSEN}"
)
_SLOPE = (
    "Slope of the logarithms, fitted seed by seed, minus the predicted one, each "
    "network by itself; where a point misses its line by a factor above 1.5, the slope "
    "alone does not show the power law."
)
_THEORY = "theory behind the abstract, derived again"
_STUDY = "temperature_check"
_LOOKS_AT_STARTS = 2
"""There were two looks: gradient flow of the network with ReLU had three seeds at the
first look, and six at the second.
"""
_LOOKS_AT_SWEEPS = {_STUDY: 3}
"""There were three looks: the sweep of the GRU had ten judged seeds at the first look,
twenty at the second, and thirty at the third.

The sweep of the VGG had ten seeds at each look.
"""


def _accuracy(first: Choice, second: Choice, among: Where) -> ChosenDifference:
    """The difference in accuracy between two chosen inverse temperatures."""
    return ChosenDifference(
        of=ACCURACY,
        over="inverse_temperature",
        first=first,
        second=second,
        chosen_by=VALIDATION_ACCURACY,
        among=among,
        compared=INSIDE,
        tasks=("network_and_data",),
        split_by="network_and_data",
    )


EFFECT_OF_TEMPERATURE = _accuracy(BEST, WORST, TEMPERATURES)
EFFECT_FROM_ONE_START = _accuracy(BEST, WORST, TEMPERATURES_FROM_ONE_START)
EFFECT_ON_SCALED_NLL = ChosenDifference(
    of=NLL_SCALED,
    over="inverse_temperature",
    first=WORST,
    second=BEST,
    chosen_by=VALIDATION_ACCURACY,
    among=TEMPERATURES,
    compared=INSIDE,
    tasks=("network_and_data",),
    split_by="network_and_data",
)
EFFECT_OF_NORM = MinusHalf(
    of=ACCURACY,
    over="start_value",
    first=BEST,
    second=WORST,
    chosen_by=VALIDATION_ACCURACY,
    among=NORMS,
    tasks=("network_and_data",),
    split_by="network_and_data",
    effect=EFFECT_OF_TEMPERATURE,
)
EFFECT_OF_NORM_AFTER_50 = OfNorm(
    of=ACCURACY,
    chosen_by=VALIDATION_ACCURACY,
    among=NORMS_AFTER_50,
    compared=INSIDE,
    tasks=("network_and_data",),
    split_by="network_and_data",
)
GAIN_OVER_1 = _accuracy(BEST, Choice(among=AT_1), TEMPERATURES)
GAIN_BELOW_1 = _accuracy(Choice(among=BELOW_1), Choice(among=FROM_1), TEMPERATURES)


def _best_temperatures(runs: Runs, _: pd.DataFrame) -> str:
    """A note on each network's best inverse temperature on the test data of a data set.

    If a network has no best inverse temperature on a data set, the note gives the
    reason.
    """
    best = PLACE_OF_THE_BEST.best_values(runs)
    reasons = PLACE_OF_THE_BEST.without_best(runs)
    places = ", ".join(f"{name}: {value:g}" for name, value in best.items())
    left_out = [f"{name} left out: {reason}" for name, reason in reasons.items()]
    return "; ".join([places, *left_out])


PLACE_OF_THE_BEST = Argmax(
    of=ACCURACY,
    over="inverse_temperature",
    groups="network_and_data",
    among=TEMPERATURES,
    compared=INSIDE,
    sharing=("dataset",),
    note=_best_temperatures,
)


SPREAD_OVER_SEEDS = SlopeOfSpread(
    of=ACCURACY_OF_FINISHED,
    over="inverse_temperature",
    among=TEMPERATURES,
    compared=INSIDE,
    tasks=("network_and_data",),
    split_by="network_and_data",
)


def _theory(
    name: str,
    statement: str,
    *predictions: Prediction,
    among: Where = ALL,
    looks: int = 1,
) -> Claim:
    """A claim about the slopes in `predictions`, all of which we derived ourselves."""
    return Claim(
        id=name,
        where=_THEORY,
        statement=statement,
        compares=_SLOPE,
        contrast=slopes_of(predictions, among),
        criterion=equivalent(MARGIN),
        primary=_STUDY,
        looks={_STUDY: looks},
        derived=True,
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="accuracy-depends-on-temperature",
        where="abstract",
        statement="Generalisation depends strongly on the inverse temperature.",
        compares=_BEST_OVER_WORST,
        contrast=EFFECT_OF_TEMPERATURE,
        criterion=above(STRONG),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    Claim(
        id="accuracy-depends-weakly-on-logit-norm",
        where="abstract",
        statement="Generalisation depends only weakly on the size of the logits at "
        "initialisation.",
        compares="Test accuracy at one inverse temperature, best minus worst logit "
        "norm, chosen as above, minus half of what the inverse temperature changes in "
        "the same network, by Welch's t with both variances widened after Nadeau and "
        "Bengio; norms must range from below 1 to above 10.",
        contrast=EFFECT_OF_NORM,
        criterion=below(),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    Claim(
        id="accuracy-depends-weakly-on-logit-norm-after-50-epochs",
        where="abstract",
        statement="Generalisation depends only weakly on the size of the logits at "
        "initialisation, after ten times as many epochs.",
        compares="Test accuracy at one inverse temperature, best minus worst logit "
        "norm, chosen as above, after 50 epochs; norms must range from below 1 to "
        "above 10.",
        contrast=EFFECT_OF_NORM_AFTER_50,
        criterion=below(STRONG),
        primary=_STUDY,
        n={_STUDY: 5},
    ),
    Claim(
        id="not-a-matter-of-confidence",
        where="abstract",
        statement="The dependence of generalisation on the inverse temperature is not "
        "due to changes in confidence.",
        compares="Test NLL after post-hoc temperature scaling, at the worst minus at "
        f"the best inverse temperature, both {_CHOSEN} Were it confidence alone, "
        "scaling would remove it.",
        contrast=EFFECT_ON_SCALED_NLL,
        criterion=above(),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    Claim(
        id="not-a-matter-of-confidence-at-the-start",
        where="abstract",
        statement="Nor is it due to the confidence that networks start with.",
        compares=f"{_BEST_OVER_WORST} Logits are rescaled at the start: all networks "
        "of one seed begin as the same function, equally sure.",
        contrast=EFFECT_FROM_ONE_START,
        criterion=above(STRONG),
        primary=_STUDY,
    ),
    Claim(
        id="tuning-helps-every-architecture",
        where="abstract",
        statement="Tuning the inverse temperature between 0.01 and 10 improves all "
        "architectures.",
        compares=f"Test accuracy at the best inverse temperature, {_CHOSEN} minus that "
        "at 1, whose rate must be inside, too.",
        contrast=GAIN_OVER_1,
        criterion=above(),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    Claim(
        id="tuning-is-key",
        where="abstract",
        statement="The inverse temperature as a hyperparameter to be tuned is key to "
        "maximising performance.",
        compares="The same difference, mean over the networks.",
        contrast=MeanOverSweeps(GAIN_OVER_1),
        criterion=above(NEGLIGIBLE),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    Claim(
        id="best-depends-on-architecture",
        where="abstract",
        statement="The optimal inverse temperature is sensitive to the architecture.",
        compares="Decades between the inverse temperatures of highest mean test "
        "accuracy of two architectures on the same data, with a bootstrap of the "
        "argmax; those at an end of their grid are left out.",
        contrast=PLACE_OF_THE_BEST,
        criterion=above(some=True),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
        n={_STUDY: 10},
    ),
    Claim(
        id="small-peaks-higher",
        where="abstract",
        statement="Smaller inverse temperatures may lead to better peak performance.",
        compares="Test accuracy at the best inverse temperature below 1 minus that at "
        f"the best of 1 and above, {_CHOSEN}",
        contrast=GAIN_BELOW_1,
        criterion=above(some=True),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    Claim(
        id="small-spreads-more",
        where="abstract",
        statement="Smaller inverse temperatures cost stability.",
        compares="Slope of the logarithm of the standard deviation of test accuracy "
        "over seeds in that of the inverse temperature, each sweep by itself; without "
        "trainings that diverged.",
        contrast=SPREAD_OVER_SEEDS,
        criterion=below(),
        primary=_STUDY,
        looks=_LOOKS_AT_SWEEPS,
    ),
    _theory(
        "early-collapse",
        "While the kernel keeps still, learning depends on the inverse temperature "
        "through rescaled time alone: the time in which the tempered logits change by "
        "1 has slope 0 in it.",
        COLLAPSE,
        looks=_LOOKS_AT_STARTS,
    ),
    _theory(
        "early-small-logits",
        "Small logits at the start make no difference: the times to change by 1 and to "
        "fit have slope 0 in their norm.",
        UNIT_SMALL,
        FIT_SMALL,
        looks=_LOOKS_AT_STARTS,
    ),
    _theory(
        "early-large-logits",
        "Large logits at the start slow learning in proportion: the times to change by "
        "a tenth of the norm and to fit have slope 1 in it.",
        TENTH_LARGE,
        FIT_LARGE,
        looks=_LOOKS_AT_STARTS,
    ),
    _theory(
        "early-drift",
        "For the same change of the tempered logits, the kernel of a smooth network "
        "drifts in inverse proportion to the inverse temperature: slope -1.",
        KERNEL_DRIFT,
        among=SMOOTH,
    ),
    _theory(
        "early-drift-kinks",
        "So does the kernel of a network with ReLU, which the theory does not see as "
        "different: slope -1.",
        KERNEL_DRIFT,
        among=KINKED,
        looks=_LOOKS_AT_STARTS,
    ),
)
