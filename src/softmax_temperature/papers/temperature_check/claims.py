"""What the abstract says, as claims with criteria that were fixed before the runs; the
theory's as predicted slopes.

Only the abstract is at hand: each of its sentences about generalisation is a claim, and
    none has a printed number.
"""

from functools import partial

from softmax_temperature.papers.shared.claims import (
    Claim,
    above,
    below,
    claim,
    equivalent,
)
from softmax_temperature.papers.temperature_check import early_learning as theory
from softmax_temperature.papers.temperature_check import measures
from softmax_temperature.papers.temperature_check.records import SAME_START

STRONG = 0.02  # Two points of accuracy.
MARGIN = 0.1  # Of a slope: the predictions are limits, and what is measured is finite.
_CHOSEN = (
    "chosen on the validation data of the other seeds among those whose learning rate is inside its grid, each sweep "
    "by itself, paired by seed; of fresh seeds where a sweep has them."
)
_BEST_OVER_WORST = f"Test accuracy at the best minus that at the worst inverse temperature, both {_CHOSEN}"
_SLOPE = (
    "Slope of the logarithms, fitted seed by seed, minus the predicted one, each network by itself; where a "
    "point is off its line by a factor above 1.5, the slope alone does not show the power law."
)


_same_start = partial(measures.gap, kind=SAME_START)
_scaled = partial(
    measures.gap, one=measures.WORST, other=measures.BEST, metric="scaled_nll"
)
_over_1 = partial(measures.gap, other=measures.AT_1)
_small = partial(measures.gap, one=measures.BEST_BELOW_1, other=measures.BEST_FROM_1)


def _theory(
    name: str,
    statement: str,
    *predictions: theory.Prediction,
    smooth: bool | None = None,
) -> Claim:
    measure = partial(measures.early, predictions=predictions, smooth=smooth)
    return claim(
        name, "theory behind the abstract, derived again", equivalent(MARGIN), measure
    )(statement, _SLOPE)


CLAIMS: tuple[Claim, ...] = (
    claim("accuracy-depends-on-temperature", "abstract", above(STRONG), measures.gap)(
        "Generalisation depends strongly on the inverse temperature.",
        _BEST_OVER_WORST,
    ),
    claim(
        "accuracy-depends-weakly-on-logit-norm",
        "abstract",
        below(),
        measures.norm_against_temperature,
    )(
        "Generalisation depends only weakly on the size of the logits at initialisation.",
        "Test accuracy at one inverse temperature, best minus worst logit norm, chosen as above, minus half of what "
        "the inverse temperature changes in the same network, by Welch's t; norms must range from below 1 to above 10.",
    ),
    claim("not-a-matter-of-confidence", "abstract", above(), _scaled)(
        "The dependence of generalisation on the inverse temperature is not due to changes in confidence.",
        "Test NLL after post-hoc temperature scaling, at the worst minus at the best inverse temperature, both "
        f"{_CHOSEN} Were it confidence alone, scaling would remove it.",
    ),
    claim(
        "not-a-matter-of-confidence-at-the-start",
        "abstract",
        above(STRONG),
        _same_start,
    )(
        "Nor is it due to the confidence that networks start with.",
        f"{_BEST_OVER_WORST} Logits are rescaled at the start: all networks of one seed begin as the same function, "
        "equally sure.",
    ),
    claim("tuning-helps-every-architecture", "abstract", above(), _over_1)(
        "Tuning the inverse temperature between 0.01 and 10 improves all architectures.",
        f"Test accuracy at the best inverse temperature, {_CHOSEN} minus that at 1, whose rate must be inside, too.",
    ),
    claim(
        "best-depends-on-architecture",
        "abstract",
        above(some=True),
        measures.places_of_the_best,
    )(
        "The optimal inverse temperature is sensitive to the architecture.",
        "Decades between the inverse temperatures of highest mean test accuracy of two architectures, with a bootstrap "
        "of the argmax; those at an end of their grid are left out.",
    ),
    claim("small-peaks-higher", "abstract", above(some=True), _small)(
        "Smaller inverse temperatures may lead to better peak performance.",
        f"Test accuracy at the best inverse temperature below 1 minus that at the best of 1 and above, {_CHOSEN}",
    ),
    claim("small-spreads-more", "abstract", below(), measures.stability)(
        "Smaller inverse temperatures cost stability.",
        "Slope of the logarithm of the standard deviation of test accuracy over seeds in that of the inverse "
        "temperature, one regression over all sweeps with an intercept for each; without trainings that diverged.",
    ),
    _theory(
        "early-collapse",
        "While the kernel keeps still, learning depends on the inverse temperature through rescaled time alone: that "
        "in which the tempered logits change by 1 has slope 0 in it.",
        theory.COLLAPSE,
    ),
    _theory(
        "early-small-logits",
        "Small logits at the start make no difference: the times to change by 1 and to fit have slope 0 in their norm.",
        *(theory.UNIT_SMALL, theory.FIT_SMALL),
    ),
    _theory(
        "early-large-logits",
        "Large logits at the start slow learning in proportion: the times to change by a tenth of the norm and to fit "
        "have slope 1 in it.",
        *(theory.TENTH_LARGE, theory.FIT_LARGE),
    ),
    _theory(
        "early-drift",
        "For the same change of the tempered logits, the kernel of a smooth network drifts in inverse proportion to "
        "the inverse temperature: slope -1.",
        theory.DRIFT,
        smooth=True,
    ),
    _theory(
        "early-drift-kinks",
        "So does the kernel of a network with ReLU, which the theory does not see as different: slope -1.",
        theory.DRIFT,
        smooth=False,
    ),
)
