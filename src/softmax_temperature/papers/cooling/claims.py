"""The sentences of the Cooling paper, as claims.

A run that diverged or got stuck counts as guessing. Runs are compared in pairs that
share data set, network, schedule and seed, and start from the same weights.
"""

import pandas as pd

from softmax_temperature.papers.cooling.heating import EpochsApart
from softmax_temperature.papers.cooling.study import (
    ACCURACY,
    COOLING_AS_PRINTED,
    CRELU,
    DISTRIBUTED,
    DIVERGED,
    ECE,
    EVERY_MAIN_RUN,
    FACTOR_ABOVE_1,
    FACTOR_UP_TO_1,
    FIGURE_1,
    FIGURE_1_RUNS,
    FIGURE_2_RUNS,
    LAST_ACCURACY,
    LAST_LAYER,
    MEAN_IOU,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    NOT_REDISTRIBUTED,
    PERIODIC,
    PIECEWISE,
    PIXEL_ACCURACY,
    SCHEDULES,
    SEGMENTATION,
    SLOW,
    SMOOTH,
    TABLE_1,
    TABLE_2,
    TABLES_1_AND_2,
    TRAINED,
)
from softmax_temperature.papers.shared import display
from softmax_temperature.papers.shared.claims import (
    Claim,
    above,
    below,
    equivalent,
    most,
    not_worse,
)
from softmax_temperature.papers.shared.contrasts import (
    Computed,
    Difference,
    Having,
    Measurement,
    Parts,
    Proportion,
    not_tested,
)
from softmax_temperature.papers.shared.factors import Where, where
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Task

NEGLIGIBLE = 0.01
"""A difference of accuracy below one point is none."""
LEAST = 0.001
"""The least gain of segmentation: two seeds may agree in a gain of nothing."""
CHEAP = 0.019
"""Section 3.1: the time of a Cooling over that of an epoch."""

_TABLE_1 = "section 4.2, Table 1"
_ACCURACY = (
    "Test accuracy, mean over the last ten epochs (of a training that diverged or got "
    "stuck: that of guessing), of"
)
_PRINTED_MEANS = "Printed: the difference of the means in Table 1."
_OVER_SCHEDULES = ("dataset", "network", "schedule")
_STUDY = "cooling_full"
"""The paper's network, data and number of epochs and seeds."""
_SMALL = "cooling_cifar10"
"""Half the width, a fifth of the training images."""
_N = {_STUDY: 3}
"""Seeds, as many as the paper's."""
_LOOKS_AT_CAMVID = {_SMALL: 3}
"""Two seeds, then four, then ten."""
_STAND_IN = {_SMALL: "CamVid in place of ADE20K"}


def _gain(mode: str, *, among: Where) -> Difference:
    """The accuracy with a mode of Cooling minus that without."""
    return Difference(
        of=ACCURACY,
        first=MODES[mode],
        second=NO_COOLING,
        among=TABLE_1 & among,
        tasks=_OVER_SCHEDULES,
        beside={"last epoch alone": LAST_ACCURACY},
        lost_as="guessing",
    )


def _accuracy(first: Where, second: Where, among: Where) -> Difference:
    """The accuracy of some runs minus that of others, over all schedules."""
    return Difference(
        of=ACCURACY,
        first=first,
        second=second,
        among=among,
        tasks=_OVER_SCHEDULES,
        lost_as="guessing",
    )


def gain_on_each_schedule(mode: str) -> Parts:
    """The gain of a mode of Cooling on each schedule by itself."""
    return Parts(
        {
            display.SCHEDULES[name]: _gain(mode, among=where(schedule=name))
            for name in SCHEDULES
        },
        absent="not trained",
    )


def _of_mode(mode: str, without: float, piecewise: float) -> list[Claim]:
    """The claims of Table 1 on one mode of Cooling.

    Args:
        mode: The mode.
        without: The printed gain without a schedule.
        piecewise: The printed gain with the piecewise constant schedule.
    """
    name = f"{display.MODES[mode]} Cooling"
    slug = mode.replace("_", "-")
    compares = f"{_ACCURACY} {name} minus that without Cooling"
    return [
        Claim(
            id=f"{slug}-helps-without-schedule",
            where=_TABLE_1,
            statement=f"{name} improves a network that is trained without a "
            "learning-rate schedule.",
            compares=f"{compares}, no schedule, paired by seed. {_PRINTED_MEANS}",
            contrast=_gain(mode, among=NO_SCHEDULE),
            criterion=above(),
            published=without,
            primary=_STUDY,
            n=_N,
        ),
        Claim(
            id=f"{slug}-helps-with-piecewise-schedule",
            where=_TABLE_1,
            statement=f"{name} improves a network that is trained with a piecewise "
            "constant schedule.",
            compares=f"{compares}, piecewise constant schedule, paired by seed. "
            f"{_PRINTED_MEANS}",
            contrast=_gain(mode, among=PIECEWISE),
            criterion=above(),
            published=piecewise,
            primary=_STUDY,
            n=_N,
        ),
        Claim(
            id=f"{slug}-gains-nothing-with-smooth-schedule",
            where=_TABLE_1,
            statement="Networks that are trained with a smooth schedule hardly benefit "
            f"from {name}.",
            compares=f"{compares}, mean over the cosine, exponential and linear "
            "schedules, paired by seed.",
            contrast=_gain(mode, among=SMOOTH),
            criterion=equivalent(NEGLIGIBLE),
            primary=_STUDY,
            n=_N,
        ),
        Claim(
            id=f"{slug}-is-on-par-on-all-schedules",
            where="section 4.2, caption of Table 1",
            statement=f"{name} performs at least on par with no Cooling on all "
            "schedules.",
            compares=f"{compares}, each schedule by itself, paired by seed.",
            contrast=gain_on_each_schedule(mode),
            criterion=not_worse(NEGLIGIBLE),
            primary=_STUDY,
            n=_N,
            # Only distributed Cooling got more seeds, with the cosine schedule.
            looks={_SMALL: 2} if mode == "distributed" else {},
        ),
    ]


def _calibration(mode: str) -> Difference:
    """The calibration error with a mode of Cooling minus that without."""
    return Difference(
        of=ECE,
        first=MODES[mode],
        second=NO_COOLING,
        among=TABLES_1_AND_2,
        tasks=_OVER_SCHEDULES,
    )


def _against_schedule(schedule: str) -> Difference:
    """Last layer Cooling without a schedule minus no Cooling with a schedule."""
    return Difference(
        of=ACCURACY,
        first=LAST_LAYER & NO_SCHEDULE,
        second=NO_COOLING & where(schedule=schedule),
        among=TABLE_1,
        lost_as="guessing",
    )


def _against_schedules() -> Parts:
    """Last layer Cooling without a schedule against each schedule without Cooling."""
    return Parts(
        {
            f"against {display.SCHEDULES[name]}": _against_schedule(name)
            for name in SCHEDULES
            if name != "none"
        },
        absent="not trained",
    )


def _segmentation(metric: str) -> Difference:
    measures = {"mean_iou": MEAN_IOU, "pixel_accuracy": PIXEL_ACCURACY}
    counted = {"mean_iou": "0", "pixel_accuracy": "guessing"}
    return Difference(
        of=measures[metric],
        first=LAST_LAYER,
        second=NO_COOLING,
        among=SEGMENTATION & COOLING_AS_PRINTED,
        tasks=("dataset",),
        lost_as=counted[metric],
    )


def _cost(runs: Runs) -> Measurement:
    """The time of a Cooling over that of an epoch, on each device; modes are values."""
    cost = runs.tables["cost"]
    if cost.empty:
        return not_tested(
            "`make bench` measures it, and has not: see benchmarks/results.json"
        )
    parts = {}
    for device, shares in cost.groupby("device", sort=False)["share"]:
        task = Task(str(device), tuple(shares))
        parts[str(device)] = OverTasks((task,), each="modes")
    note = "measured by `make bench`, whatever the profile"
    return Measurement(parts, "of an epoch", note)


def _idle(runs: Runs, chosen: pd.DataFrame) -> str:
    """How often Cooling found no best temperature and did nothing."""
    rows = runs.measured("at_bound", split="validation")
    at_bound = rows[rows["run"].isin(chosen.index)]["value"]
    if not at_bound.any():
        return ""
    return (
        "Cooling did nothing, for want of a best temperature, "
        f"{at_bound.sum():.0f} of {len(at_bound)} times"
    )


CLAIMS: tuple[Claim, ...] = (
    *_of_mode("distributed", without=0.029, piecewise=0.011),
    *_of_mode("periodic", without=0.045, piecewise=0.011),
    *_of_mode("last_layer", without=0.045, piecewise=0.012),
    Claim(
        id="cooling-calibrates",
        where="sections 1 and 3",
        statement="Networks that are trained with Cooling are better calibrated than "
        "those trained without.",
        compares="Test ECE, mean over the last ten epochs, of each mode of Cooling minus "
        "that without, over data sets, networks and schedules, paired by seed.",
        contrast=Parts(
            {display.MODES[mode]: _calibration(mode) for mode in MODES},
            required=False,
        ),
        criterion=below(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="no-schedule-is-needed",
        where=_TABLE_1,
        statement="With Cooling and without a schedule a network is as good as with the "
        "best schedule and without Cooling.",
        compares=f"{_ACCURACY} Last layer Cooling without a schedule minus that without "
        "Cooling with each schedule: choosing the best on the same data would flatter "
        "it. Printed: the difference of the means in Table 1, best schedule Linear.",
        contrast=_against_schedules(),
        criterion=not_worse(NEGLIGIBLE),
        published=0.005,
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="last-layer-is-best",
        where="abstract, Tables 1 and 2",
        statement="Last layer Cooling, the simplest variant, is the best-performing "
        "one.",
        compares=f"{_ACCURACY} Last layer Cooling minus that of each other variant, over "
        "schedules and activations, paired by seed. Non-inferiority, since the printed "
        "means do not show more: last layer minus periodically redistributed is "
        "-0.0006. A periodically redistributed training that never was is last layer "
        "Cooling, and left out.",
        contrast=Parts(
            {
                "Last layer against Distributed": _accuracy(
                    LAST_LAYER, DISTRIBUTED, EVERY_MAIN_RUN
                ),
                "Last layer against Periodically redistributed": _accuracy(
                    LAST_LAYER, PERIODIC, EVERY_MAIN_RUN & ~NOT_REDISTRIBUTED
                ),
            },
            absent="no pair that differs",
        ),
        criterion=not_worse(NEGLIGIBLE),
        published=-0.0006,
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="distributed-is-outperformed",
        where="section 4.2, Table 2",
        statement="Without a schedule, last layer and periodically redistributed Cooling "
        "outperform distributed Cooling.",
        compares=f"{_ACCURACY} either minus that of Distributed Cooling, no schedule, "
        "paired by seed. Printed: the difference of the means in Table 2, ReLU.",
        contrast=Parts(
            {
                "Last layer": _accuracy(LAST_LAYER, DISTRIBUTED, TABLE_2),
                "Periodically redistributed": _accuracy(PERIODIC, DISTRIBUTED, TABLE_2),
            },
            absent="not trained",
        ),
        criterion=above(),
        published=0.016,
        primary=_STUDY,
        n=_N,
        looks={_SMALL: 2},
    ),
    Claim(
        id="factors-up-to-1-help",
        where="sections 4.2 and 4.3, Figure 1",
        statement="All Cooling factors up to 1 outperform the network without Cooling.",
        compares=f"{_ACCURACY} Last layer Cooling minus that without Cooling, no "
        "schedule, each factor up to 1 by itself.",
        contrast=Difference(
            of=ACCURACY,
            first=FACTOR_UP_TO_1,
            second=NO_COOLING,
            among=FIGURE_1,
            each="factor",
            lost_as="guessing",
        ),
        criterion=above(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="factors-above-1-diverge",
        where="sections 4.2 and 4.3, Figure 1",
        statement="Cooling factors above 1 make the training diverge.",
        compares="Last layer Cooling, no schedule: share of seeds with which every "
        "factor above 1 diverges, that is, something is no longer finite, or the network "
        "ends at guessing although it was better once.",
        contrast=Proportion(
            of=Having("diverged", DIVERGED),
            among=FIGURE_1_RUNS & FACTOR_ABOVE_1,
            each="dataset",
            note=_idle,
        ),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="crelu-diverges-without-cooling",
        where="section 4.2, Table 2",
        statement="Without Cooling and without a schedule, a network with CReLU "
        "diverges.",
        compares="Share of seeds with which it diverges, as above.",
        contrast=Proportion(
            of=Having("diverged", DIVERGED),
            among=TABLE_2 & CRELU & NO_COOLING,
            each="mode",
        ),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="crelu-trains-with-cooling",
        where="section 4.2, Table 2",
        statement="With Cooling and without a schedule, a network with CReLU trains.",
        compares="Share of seeds with which it neither diverges nor is stuck, each mode "
        "of Cooling by itself.",
        contrast=Proportion(
            of=Having("trained", TRAINED),
            among=TABLE_2 & CRELU & (DISTRIBUTED | PERIODIC | LAST_LAYER),
            each="mode",
        ),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="larger-factors-heat-faster",
        where="section 4.2, Figure 2",
        statement="A larger Cooling factor makes the temperature grow faster.",
        compares="Epoch after which the last-layer temperature first exceeds the maximal "
        "one (the paper's: 100), with factor 1 (periodically redistributed) minus that "
        "with factor 0.75 (last layer), no schedule; where one of the two never does, "
        "the epoch after its last. Printed: epochs 9 and 19.",
        contrast=EpochsApart(first=PERIODIC, second=SLOW, among=FIGURE_2_RUNS),
        criterion=below(),
        published=-10,
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="segmentation-iou",
        where="section 4.4",
        statement="Last layer Cooling improves segmentation: the mean intersection over "
        "union.",
        compares="Mean intersection over union on test images, mean over the last ten "
        "epochs (or the last fifth of a shorter training), Last layer Cooling minus no "
        "Cooling, paired by seed, of a network that diverged 0. Printed: on ADE20K.",
        contrast=_segmentation("mean_iou"),
        criterion=above(LEAST),
        published=0.011,
        primary=_SMALL,
        looks=_LOOKS_AT_CAMVID,
        stand_in=_STAND_IN,
    ),
    Claim(
        id="segmentation-accuracy",
        where="section 4.4",
        statement="Last layer Cooling improves segmentation: the accuracy of pixels.",
        compares="The same with the pixel accuracy, of a network that diverged that of "
        "guessing. Printed: on ADE20K.",
        contrast=_segmentation("pixel_accuracy"),
        criterion=above(LEAST),
        published=0.01,
        primary=_SMALL,
        looks=_LOOKS_AT_CAMVID,
        stand_in=_STAND_IN,
    ),
    Claim(
        id="cooling-is-cheap",
        where="section 3.1",
        statement="Cooling takes about 1.9 % of the time of one training epoch.",
        compares="Seconds of one Cooling over seconds of one epoch, over the modes, each "
        "device by itself: at most as printed.",
        contrast=Computed(_cost),
        criterion=below(CHEAP),
        published=CHEAP,
        primary=_STUDY,
        same_everywhere=True,
    ),
)
