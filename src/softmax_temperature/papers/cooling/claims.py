"""What the paper says, as claims with criteria that were fixed before the runs."""

from functools import partial

from softmax_temperature.papers.cooling import measures
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import COOLED, MODES, NO_COOLING, NO_SCHEDULE, SCHEDULES
from softmax_temperature.papers.shared.claims import Claim, above, below, equivalent, most, not_worse

NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none.
LEAST = 0.001  # What segmentation gains at least: two seeds may agree in a gain of nothing to many digits.
CHEAP = 0.019  # Section 3.1: a Cooling over an epoch.
_ACCURACY = (
    "Test accuracy, mean over the last ten epochs (of a training that diverged or got stuck: that of guessing), of"
)


def _of_mode(mode: str, without: float, piecewise: float) -> list[Claim[Records]]:
    name, slug, gain = f"{MODES[mode]} Cooling", mode.replace("_", "-"), partial(measures.gain, mode=mode)
    compares = f"{_ACCURACY} {name} minus that without Cooling, {{}}, paired by seed."
    helps = (
        ("without", "without a learning-rate", "no", NO_SCHEDULE, without),
        ("with-piecewise", "with a piecewise constant", "piecewise constant", "piecewise", piecewise),
    )
    return [
        *(
            Claim(
                f"{slug}-helps-{ending}-schedule",
                "section 4.2, Table 1",
                f"{name} improves a network that is trained {how} schedule.",
                f"{compares.format(f'{which} schedule')} Printed: the difference of the means in Table 1.",
                above(),
                partial(gain, schedules=[schedule]),
                printed,
            )
            for ending, how, which, schedule, printed in helps
        ),
        Claim(
            f"{slug}-gains-nothing-with-smooth-schedule",
            "section 4.2, Table 1",
            f"Networks that are trained with a smooth schedule hardly benefit from {name}.",
            compares.format("mean over the cosine, exponential and linear schedules"),
            equivalent(NEGLIGIBLE),
            partial(gain, schedules=[name for name in SCHEDULES if name not in (NO_SCHEDULE, "piecewise")]),
        ),
        Claim(
            f"{slug}-is-on-par-on-all-schedules",
            "section 4.2, caption of Table 1",
            f"{name} performs at least on par with no Cooling on all schedules.",
            compares.format("each schedule by itself"),
            not_worse(NEGLIGIBLE),
            partial(gain, schedules=list(SCHEDULES), each=True),
        ),
    ]


CLAIMS: tuple[Claim[Records], ...] = (
    *_of_mode("distributed", 0.029, 0.011),
    *_of_mode("periodic", 0.045, 0.011),
    *_of_mode("last_layer", 0.045, 0.012),
    Claim(
        "cooling-calibrates",
        "sections 1 and 3",
        "Networks that are trained with Cooling are better calibrated than those trained without.",
        "Test ECE, mean over the last ten epochs, of each mode of Cooling minus that without, over data sets, networks "
        "and schedules, paired by seed.",
        below(),
        measures.calibration,
    ),
    Claim(
        "no-schedule-is-needed",
        "section 4.2, Table 1",
        "With Cooling and without a schedule a network is as good as with the best schedule and without Cooling.",
        f"{_ACCURACY} Last layer Cooling without a schedule minus that without Cooling with each schedule: choosing "
        "the best on the same data would flatter it. Printed: the difference of the means in Table 1, best schedule "
        "Linear.",
        not_worse(NEGLIGIBLE),
        measures.against_every_schedule,
        0.005,
    ),
    Claim(
        "last-layer-is-best",
        "abstract, Tables 1 and 2",
        "Last layer Cooling, the simplest variant, is the best-performing one.",
        f"{_ACCURACY} Last layer Cooling minus that of each other variant, over schedules and activations, paired by "
        "seed. Non-inferiority, since the printed means do not show more: last layer minus periodically redistributed "
        "is -0.0006. A periodically redistributed training that never was is last layer Cooling, and left out.",
        not_worse(NEGLIGIBLE),
        measures.against_modes,
        -0.0006,
    ),
    Claim(
        "distributed-is-outperformed",
        "section 4.2, Table 2",
        "Without a schedule, last layer and periodically redistributed Cooling outperform distributed Cooling.",
        f"{_ACCURACY} either minus that of Distributed Cooling, no schedule, paired by seed. Printed: the difference "
        "of the means in Table 2, ReLU.",
        above(),
        measures.over_distributed,
        0.016,
    ),
    Claim(
        "factors-up-to-1-help",
        "sections 4.2 and 4.3, Figure 1",
        "All Cooling factors up to 1 outperform the network without Cooling.",
        f"{_ACCURACY} Last layer Cooling minus that without Cooling, no schedule, each factor up to 1 by itself.",
        above(),
        measures.every_factor,
    ),
    Claim(
        "factors-above-1-diverge",
        "sections 4.2 and 4.3, Figure 1",
        "Cooling factors above 1 make the training diverge.",
        "Last layer Cooling, no schedule: share of seeds with which every factor above 1 diverges, that is, something "
        "is no longer finite, or the network ends at guessing although it was better once.",
        most(),
        measures.large_factors,
    ),
    Claim(
        "crelu-diverges-without-cooling",
        "section 4.2, Table 2",
        "Without Cooling and without a schedule, a network with CReLU diverges.",
        "Share of seeds with which it diverges, as above.",
        most(),
        partial(measures.crelu, modes=(NO_COOLING,), became="diverged"),
    ),
    Claim(
        "crelu-trains-with-cooling",
        "section 4.2, Table 2",
        "With Cooling and without a schedule, a network with CReLU trains.",
        "Share of seeds with which it neither diverges nor is stuck, each mode of Cooling by itself.",
        most(),
        partial(measures.crelu, modes=COOLED, became="trained"),
    ),
    Claim(
        "larger-factors-heat-faster",
        "section 4.2, Figure 2",
        "A larger Cooling factor makes the temperature grow faster.",
        "Epoch after which the last-layer temperature first exceeds the maximal one (the paper's: 100), with factor 1 "
        "(periodically redistributed) minus that with factor 0.75 (last layer), no schedule; where one of the two "
        "never does, the epoch after its last. Printed: epochs 9 and 19.",
        below(),
        measures.heating,
        -10,
    ),
    Claim(
        "segmentation-iou",
        "section 4.4",
        "Last layer Cooling improves segmentation: the mean intersection over union.",
        "Mean intersection over union on test images, mean over the last ten epochs (or the last fifth of a shorter "
        "training), Last layer Cooling minus no Cooling, paired by seed, of a network that diverged 0. Printed: on "
        "ADE20K.",
        above(LEAST),
        partial(measures.segmentation, metric="mean_iou", unit="mean IoU"),
        0.011,
    ),
    Claim(
        "segmentation-accuracy",
        "section 4.4",
        "Last layer Cooling improves segmentation: the accuracy of pixels.",
        "The same with the pixel accuracy, of a network that diverged that of guessing. Printed: on ADE20K.",
        above(LEAST),
        partial(measures.segmentation, metric="pixel_accuracy", unit="pixel accuracy"),
        0.01,
    ),
    Claim(
        "cooling-is-cheap",
        "section 3.1",
        "Cooling takes about 1.9 % of the time of one training epoch.",
        "Seconds of one Cooling over seconds of one epoch, over the modes, each device by itself: at most as printed.",
        below(CHEAP),
        measures.cost,
        CHEAP,
    ),
)
