"""The Cooling paper's statements, formulated as testable claims.

In comparisons of accuracy, a run that diverged or got stuck is counted with the
accuracy of guessing. Runs are compared in pairs that share a data set, a network and a
seed, and start from the same weights. The runs of a pair also share the schedule,
unless schedules are compared.
"""

import pandas as pd

from softmax_temperature.papers.cooling.heating import EpochsApart
from softmax_temperature.papers.cooling.study import (
    ABLATIONS,
    ACCURACY,
    CHANGES,
    COOLING_AS_PRINTED,
    COOLING_MODES,
    CRELU,
    DISTRIBUTED,
    DIVERGED,
    EACH_BATCH,
    ECE,
    FACTOR_ABOVE_1,
    FACTOR_BELOW_1,
    FACTOR_UP_TO_1,
    FIGURE_1,
    FIGURE_1_RUNS,
    FIGURE_2_RUNS,
    FINITE,
    LAST_ACCURACY,
    LAST_LAYER,
    MEAN_IOU,
    NO_COOLING,
    NO_SCHEDULE,
    NOT_REDISTRIBUTED,
    ON_CIFAR100,
    OVERFLOWED,
    PERIODIC,
    PERIODS,
    PIECEWISE,
    PIXEL_ACCURACY,
    RELU,
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
    not_higher,
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
"""A difference in accuracy below one point counts as no difference."""
LEAST = 0.001
"""A gain in segmentation counts only if it is larger than this, a tenth of a point,
because a few seeds may agree on a gain near 0.
"""
CHEAP = 0.019
"""The printed time of one Cooling step divided by that of an epoch (section 3.1)."""

_TABLE_1 = "section 4.2, Table 1"
_ACCURACY = (
    "Test accuracy, mean over the last ten epochs (of a training that diverged or got "
    "stuck: that of guessing), of"
)
_DIVERGENCE = (
    "A training diverges if something is no longer finite, if its last accuracy on "
    "training images is under half of its peak, or if its test NLL ends within 2 % of "
    "that of guessing."
)
_PRINTED_MEANS = "Printed: the difference of the means in Table 1."
_OVER_SCHEDULES = ("dataset", "network", "schedule")
_STUDY = "cooling_full"
"""The study with the paper's network, data, and numbers of epochs and seeds."""
_ABLATIONS = "cooling_ablations"
"""The study of single changes, with the network and data of `cooling_cifar10`."""
_WHOLE_PAPER = "paper"
"""The only profile with ResNet-50 on CIFAR-100."""
_SMALL = "cooling_cifar10"
"""The study with a network of half the paper's width, and 10,000 training images."""
_N = {_STUDY: 3}
"""Maps studies to the planned number of seeds, which is also the paper's number."""
_LOOKS_AT_CAMVID = {_SMALL: 3}
"""There were three looks: segmentation had two seeds at the first look, four at the
second, and ten at the third.
"""
_LOOKS_AT_SCHEDULES = {_SMALL: 2}
"""The first look covered runs without a schedule and runs with the piecewise and cosine
schedules; the second look added three schedules.
"""
_LOOKS_AT_DISTRIBUTED = {_SMALL: 3}
"""The third look added two seeds with the cosine schedule, for distributed Cooling
alone.
"""
_MODES_ARE_NO_SEEDS = "modes of one benchmark on two CPU cores, not seeds"
_STAND_IN = {_SMALL: "CamVid in place of ADE20K"}


def _gain(mode: str, *, among: Where) -> Difference:
    """The accuracy with Cooling in `mode` minus the accuracy without Cooling."""
    return Difference(
        of=ACCURACY,
        first=COOLING_MODES[mode],
        second=NO_COOLING,
        among=TABLE_1 & among,
        tasks=_OVER_SCHEDULES,
        note_metrics={"last epoch alone": LAST_ACCURACY},
        lost_as="guessing",
    )


def _accuracy(first: Where, second: Where, among: Where) -> Difference:
    """The accuracy of `first` minus that of `second`, over runs in `among`.

    The two runs of a pair share the schedule.
    """
    return Difference(
        of=ACCURACY,
        first=first,
        second=second,
        among=among,
        tasks=_OVER_SCHEDULES,
        lost_as="guessing",
    )


def gain_on_each_schedule(mode: str) -> Parts:
    """The gain of Cooling in `mode`, with one part per schedule."""
    return Parts(
        {
            display.SCHEDULES[name]: _gain(mode, among=where(schedule=name))
            for name in SCHEDULES
        },
        whole=True,
        absent="not trained",
    )


def _of_mode(mode: str, without: float, piecewise: float) -> list[Claim]:
    """The claims from Table 1 about Cooling in `mode`.

    Args:
        mode: The mode, as in `COOLING_MODES`.
        without: The printed gain without a schedule.
        piecewise: The printed gain with the piecewise constant schedule.
    """
    name = f"{display.MODES[mode]} Cooling"
    slug = mode.replace("_", "-")
    looks = _LOOKS_AT_SCHEDULES
    if mode == "distributed":
        looks = _LOOKS_AT_DISTRIBUTED
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
            looks=looks,
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
            looks=looks,
        ),
    ]


def _calibration(mode: str) -> Difference:
    """The ECE with Cooling in `mode` minus the ECE without Cooling."""
    return Difference(
        of=ECE,
        first=COOLING_MODES[mode],
        second=NO_COOLING,
        among=TABLES_1_AND_2,
        tasks=_OVER_SCHEDULES,
    )


def _against_schedule(schedule: str) -> Difference:
    """The accuracy with last-layer Cooling alone minus that with `schedule` alone."""
    return Difference(
        of=ACCURACY,
        first=LAST_LAYER & NO_SCHEDULE,
        second=NO_COOLING & where(schedule=schedule),
        among=TABLE_1,
        lost_as="guessing",
    )


def _against_schedules() -> Parts:
    """Compare last-layer Cooling alone with each schedule alone."""
    return Parts(
        {
            f"against {display.SCHEDULES[name]}": _against_schedule(name)
            for name in SCHEDULES
            if name != "none"
        },
        whole=True,
        absent="not trained",
    )


def _against_other_modes() -> Parts:
    """Compare last-layer Cooling with each other mode on each schedule."""
    other_modes = {"distributed": DISTRIBUTED, "periodic": PERIODIC}
    return Parts(
        {
            f"against {display.MODES[mode]}, {display.SCHEDULES[name]}": _accuracy(
                LAST_LAYER, with_mode, TABLE_1 & where(schedule=name)
            )
            for mode, with_mode in other_modes.items()
            for name in SCHEDULES
        },
        whole=True,
        absent="not trained",
        note=_equal_trainings,
    )


def _equal_trainings(_: Runs, chosen: pd.DataFrame) -> str:
    """A note on the periodic runs that never redistributed, if there are any."""
    equal = NOT_REDISTRIBUTED.mask(chosen).sum()
    if not equal:
        return ""
    total = (chosen["mode"] == "periodic").sum()
    return (
        f"{equal} of {total} trainings with Periodically redistributed Cooling never "
        "redistributed, and equal those with Last layer Cooling"
    )


def _better_than_distributed(among: Where) -> Parts:
    """Compare each of the other modes with distributed Cooling."""
    return Parts(
        {
            "Last layer": _accuracy(LAST_LAYER, DISTRIBUTED, among),
            "Periodically redistributed": _accuracy(PERIODIC, DISTRIBUTED, among),
        },
        absent="not trained",
    )


def _helps_with_factors(among: Where) -> Difference:
    """The gain of last-layer Cooling, with one part per Cooling factor up to 1."""
    return Difference(
        of=ACCURACY,
        first=FACTOR_UP_TO_1,
        second=NO_COOLING,
        among=among,
        split_by="factor",
        lost_as="guessing",
    )


def _diverges_with_factors(among: Where) -> Proportion:
    """The share of seeds for which training diverges at every factor above 1.

    There is one part per data set.
    """
    return Proportion(
        of=Having("diverged", DIVERGED),
        among=among & FACTOR_ABOVE_1,
        split_by="dataset",
        note=_idle,
    )


def _only(name: str) -> Where:
    """The runs of the ablations with the change `name` and no other change."""
    chosen = ABLATIONS & CHANGES[name]
    for change_name, change in CHANGES.items():
        if change_name != name:
            chosen &= ~change
    return chosen.called(f"the ablations, {name}")


def _under_each_change() -> Parts:
    """The gain of last-layer Cooling under each change to the recipe or to Cooling."""
    contrasts = {
        name: _accuracy(LAST_LAYER, NO_COOLING, _only(name)) for name in CHANGES
    }
    contrasts["Cooling after each batch"] = _accuracy(EACH_BATCH, NO_COOLING, PERIODS)
    return Parts(contrasts, whole=True, absent="not trained")


def _overflows(runs: Runs, chosen: pd.DataFrame) -> str:
    """A note on the number of runs with last-layer Cooling that overflowed."""
    rows = (TABLES_1_AND_2 & LAST_LAYER).select(runs.table)
    rows = rows[rows["dataset"].isin(chosen["dataset"])]
    if rows.empty:
        return ""
    return f"Last layer {rows[OVERFLOWED].sum()} of {len(rows)} trainings overflowed"


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
    """The time of one Cooling step divided by that of an epoch, for each device."""
    cost = runs.tables["cost"]
    if cost.empty:
        return not_tested(
            "benchmarks/results.json has no times of Cooling; "
            "`make bench` measures them"
        )
    parts = {}
    for device, shares in cost.groupby("device", sort=False)["share"]:
        task = Task(str(device), tuple(shares))
        parts[str(device)] = OverTasks((task,), counted="modes")
    note = "measured by `make bench`, whatever the profile"
    return Measurement(parts, "of an epoch", note, qualifier=_MODES_ARE_NO_SEEDS)


def _idle(runs: Runs, chosen: pd.DataFrame) -> str:
    """A note on the Cooling steps that found no best temperature, if there are any."""
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
        compares="Test ECE, mean over the last ten epochs, of each mode of Cooling "
        "minus that without, over the data sets, networks and schedules that were run, "
        "paired by seed.",
        contrast=Parts(
            {display.MODES[mode]: _calibration(mode) for mode in COOLING_MODES},
            required=False,
            averaged={"schedule": SCHEDULES, "activation": ("relu", "crelu")},
        ),
        criterion=below(),
        primary=_STUDY,
        n=_N,
        looks=_LOOKS_AT_SCHEDULES,
    ),
    Claim(
        id="no-schedule-is-needed",
        where=_TABLE_1,
        statement="With Cooling and without a schedule a network is as good as with "
        "the best schedule and without Cooling.",
        compares=f"{_ACCURACY} Last layer Cooling without a schedule minus that "
        "without Cooling with each schedule: choosing the best on the same data would "
        "flatter it. Printed: the difference of the means in Table 1, best schedule "
        "Linear.",
        contrast=_against_schedules(),
        criterion=not_worse(NEGLIGIBLE),
        published=0.005,
        primary=_STUDY,
        n=_N,
        looks=_LOOKS_AT_SCHEDULES,
    ),
    Claim(
        id="last-layer-is-best",
        where="abstract, Tables 1 and 2",
        statement="Last layer Cooling, the simplest variant, is the best-performing "
        "one: within a point of each other variant on every schedule.",
        compares=f"{_ACCURACY} Last layer Cooling minus that of each other variant, "
        "each schedule by itself, paired by seed. Non-inferiority, since the printed "
        "means do not show more: without a schedule, last layer minus periodically "
        "redistributed is 0.0, and with a fast exponential one -0.5 points. It does "
        "not say that last layer Cooling is better: another variant may be within a "
        "point of all, too.",
        contrast=_against_other_modes(),
        criterion=not_worse(NEGLIGIBLE),
        primary=_STUDY,
        n=_N,
        looks=_LOOKS_AT_SCHEDULES,
    ),
    Claim(
        id="distributed-is-outperformed",
        where="section 4.2, Table 2",
        statement="Without a schedule, last layer and periodically redistributed "
        "Cooling outperform distributed Cooling.",
        compares=f"{_ACCURACY} either minus that of Distributed Cooling, ReLU, no "
        "schedule, paired by seed. Printed: the difference of the means in Table 2, "
        "ReLU.",
        contrast=_better_than_distributed(TABLE_2 & RELU),
        criterion=above(),
        published=0.016,
        primary=_STUDY,
        n=_N,
        looks={_SMALL: 2},
    ),
    Claim(
        id="distributed-is-outperformed-with-crelu",
        where="section 4.2, Table 2",
        statement="With CReLU and without a schedule, last layer and periodically "
        "redistributed Cooling outperform distributed Cooling.",
        compares=f"{_ACCURACY} either minus that of Distributed Cooling, CReLU, no "
        "schedule, paired by seed. Printed: the smaller of the two differences of "
        "means in Table 2, that of Periodically redistributed.",
        contrast=_better_than_distributed(TABLE_2 & CRELU),
        criterion=above(),
        published=0.045,
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="factors-up-to-1-help",
        where="section 4.2, Figure 1 (left)",
        statement="All Cooling factors up to 1 outperform the network without Cooling.",
        compares=f"{_ACCURACY} Last layer Cooling minus that without Cooling, no "
        "schedule, each factor up to 1 by itself. CIFAR-100 has a claim of its own.",
        contrast=_helps_with_factors(FIGURE_1 & ~ON_CIFAR100),
        criterion=above(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="factors-up-to-1-help-on-cifar100",
        where="section 4.3, Figure 1 (right)",
        statement="On CIFAR-100 all Cooling factors up to 1 outperform the network "
        "without Cooling.",
        compares=f"{_ACCURACY} Last layer Cooling minus that without Cooling, "
        "ResNet-50, no schedule, each factor up to 1 by itself.",
        contrast=_helps_with_factors(FIGURE_1 & ON_CIFAR100),
        criterion=above(),
        primary=_WHOLE_PAPER,
        n={_WHOLE_PAPER: 3},
    ),
    Claim(
        id="factors-up-to-1-matter-little",
        where="section 4.2, Figure 1 (left)",
        statement="Last layer Cooling shows little sensitivity to the Cooling factor, "
        "as long as it is at most 1.",
        compares=f"{_ACCURACY} Last layer Cooling with a factor below 1 minus that "
        "with factor 1, no schedule, each factor by itself, paired by seed. Little is "
        "less than a point, since the paper calls gains of 1.1 points noticeable.",
        contrast=Difference(
            of=ACCURACY,
            first=FACTOR_BELOW_1,
            second=LAST_LAYER,
            among=FIGURE_1 & ~ON_CIFAR100,
            split_by="factor",
            lost_as="guessing",
        ),
        criterion=equivalent(NEGLIGIBLE),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="factors-above-1-diverge",
        where="section 4.2, Figure 1 (left)",
        statement="Cooling factors above 1 make the training diverge.",
        compares="Last layer Cooling, no schedule: share of seeds with which every "
        f"factor above 1 diverges. {_DIVERGENCE} CIFAR-100 has a claim of its own.",
        contrast=_diverges_with_factors(FIGURE_1_RUNS & ~ON_CIFAR100),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="factors-above-1-diverge-on-cifar100",
        where="section 4.3, Figure 1 (right)",
        statement="On CIFAR-100 Cooling factors above 1 make the training diverge.",
        compares="Last layer Cooling, ResNet-50, no schedule: share of seeds with "
        "which every factor above 1 diverges, as above.",
        contrast=_diverges_with_factors(FIGURE_1_RUNS & ON_CIFAR100),
        criterion=most(),
        primary=_WHOLE_PAPER,
        n={_WHOLE_PAPER: 3},
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
            split_by="mode",
        ),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="crelu-trains-with-cooling",
        where="section 4.2, Table 2",
        statement="With Cooling and without a schedule, a network with CReLU trains.",
        compares="Share of seeds with which it neither diverges nor is stuck, each "
        "mode of Cooling by itself.",
        contrast=Proportion(
            of=Having("trained", TRAINED),
            among=TABLE_2 & CRELU & (DISTRIBUTED | PERIODIC | LAST_LAYER),
            split_by="mode",
        ),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="larger-factors-heat-faster",
        where="section 4.2, Figure 2",
        statement="A larger Cooling factor makes the temperature grow faster.",
        compares="Epoch after which the last-layer temperature first exceeds the "
        "maximal one (the paper's: 100), with factor 1 (periodically redistributed) "
        "minus that with factor 0.75 (last layer), no schedule; where one of the two "
        "never does, the epoch after its last. Printed: epochs 9 and 19.",
        contrast=EpochsApart(first=PERIODIC, second=SLOW, among=FIGURE_2_RUNS),
        criterion=below(),
        published=-10,
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="redistribution-prevents-overflow",
        where="section 3.2",
        statement="Last layer Cooling eventually overflows; periodically redistributed "
        "Cooling does not.",
        compares="Share of seeds with which every training with Periodically "
        "redistributed Cooling stays finite, Tables 1 and 2. The paper does not say "
        "after how many epochs last layer Cooling overflows: its trainings stand "
        "beside.",
        contrast=Proportion(
            of=Having("stayed finite", FINITE),
            among=TABLES_1_AND_2 & PERIODIC,
            note=_overflows,
        ),
        criterion=most(),
        primary=_STUDY,
        n=_N,
    ),
    Claim(
        id="cooling-each-batch-brings-nothing",
        where="section 3.1",
        statement="A Cooling after each batch brings no benefit over one after each "
        "epoch.",
        compares=f"{_ACCURACY} Last layer Cooling after each batch minus that after "
        "each epoch, no schedule, paired by seed.",
        contrast=_accuracy(EACH_BATCH, LAST_LAYER & COOLING_AS_PRINTED, PERIODS),
        criterion=not_higher(NEGLIGIBLE),
        primary=_ABLATIONS,
        n={_ABLATIONS: 3},
    ),
    Claim(
        id="last-layer-helps-under-each-change",
        where="section 1, Appendix B",
        statement="Last layer Cooling improves a network that is trained without a "
        "schedule also with Adam, a warm-up, weight decay, augmentation, and when it "
        "follows each batch.",
        compares=f"{_ACCURACY} Last layer Cooling minus that without Cooling, each "
        "change by itself, paired by seed. Our copy of the paper lacks Appendix B, so "
        "the sentence is ours.",
        contrast=_under_each_change(),
        criterion=above(),
        primary=_ABLATIONS,
        n={_ABLATIONS: 3},
        derived=True,
    ),
    Claim(
        id="segmentation-iou",
        where="section 4.4",
        statement="Last layer Cooling improves segmentation: the mean intersection "
        "over union.",
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
        statement="Cooling takes at most the printed 1.9 % of the time of one training "
        "epoch.",
        compares="Seconds of one Cooling over seconds of one epoch, over the three "
        "modes, each device by itself. The paper says about 1.9 %; that it takes less "
        "is no objection. The values are the modes of one benchmark, not seeds.",
        contrast=Computed(_cost),
        criterion=below(CHEAP),
        published=CHEAP,
        primary=_STUDY,
        # The times were measured twice, which makes two looks.
        looks={_STUDY: 2},
        same_everywhere=True,
    ),
)
