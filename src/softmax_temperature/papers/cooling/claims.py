"""What the paper says, as claims with criteria that were fixed before the runs."""

from functools import partial

from softmax_temperature.papers.cooling import measures
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import (
    COOLED,
    MODES,
    NO_SCHEDULE,
    SCHEDULES,
)
from softmax_temperature.papers.shared.claims import (
    Claim,
    above,
    below,
    claim,
    equivalent,
    most,
    not_worse,
)
from softmax_temperature.params.cooling import NO_COOLING

NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none.
# What segmentation gains at least: two seeds may agree in a gain of nothing to many
# digits.
LEAST = 0.001
CHEAP = 0.019  # Section 3.1: a Cooling over an epoch.
_TABLE_1 = "section 4.2, Table 1"
_GUESSING = "of a training that diverged or got stuck: that of guessing"
_ACCURACY = f"Test accuracy, mean over the last ten epochs ({_GUESSING}), of"
_SMOOTH = [name for name in SCHEDULES if name not in (NO_SCHEDULE, "piecewise")]
_diverged_without = partial(measures.crelu, modes=(NO_COOLING,), became="diverged")
_trained_with = partial(measures.crelu, modes=COOLED, became="trained")
_iou, _pixels = (
    partial(measures.segmentation, metric=metric)
    for metric in ("mean_iou", "pixel_accuracy")
)


def _of_mode(mode: str, without: float, piecewise: float) -> list[Claim[Records]]:
    name, slug, gain = (
        f"{MODES[mode]} Cooling",
        mode.replace("_", "-"),
        partial(measures.gain, mode=mode),
    )
    compares = f"{_ACCURACY} {name} minus that without Cooling, {{}}, paired by seed."
    printed = "Printed: the difference of the means in Table 1."
    alone, steps, smooth = (
        partial(gain, schedules=some)
        for some in ([NO_SCHEDULE], ["piecewise"], _SMOOTH)
    )
    each = partial(gain, schedules=list(SCHEDULES), each=True)
    return [
        claim(f"{slug}-helps-without-schedule", _TABLE_1, above(), alone, without)(
            f"{name} improves a network that is trained without a learning-rate schedule.",
            f"{compares.format('no schedule')} {printed}",
        ),
        claim(
            f"{slug}-helps-with-piecewise-schedule", _TABLE_1, above(), steps, piecewise
        )(
            f"{name} improves a network that is trained with a piecewise constant schedule.",
            f"{compares.format('piecewise constant schedule')} {printed}",
        ),
        claim(
            f"{slug}-gains-nothing-with-smooth-schedule",
            _TABLE_1,
            equivalent(NEGLIGIBLE),
            smooth,
        )(
            f"Networks that are trained with a smooth schedule hardly benefit from {name}.",
            compares.format("mean over the cosine, exponential and linear schedules"),
        ),
        claim(
            f"{slug}-is-on-par-on-all-schedules",
            "section 4.2, caption of Table 1",
            not_worse(NEGLIGIBLE),
            each,
        )(
            f"{name} performs at least on par with no Cooling on all schedules.",
            compares.format("each schedule by itself"),
        ),
    ]


CLAIMS: tuple[Claim[Records], ...] = (
    *_of_mode("distributed", 0.029, 0.011),
    *_of_mode("periodic", 0.045, 0.011),
    *_of_mode("last_layer", 0.045, 0.012),
    claim("cooling-calibrates", "sections 1 and 3", below(), measures.calibration)(
        "Networks that are trained with Cooling are better calibrated than those trained without.",
        "Test ECE, mean over the last ten epochs, of each mode of Cooling minus that without, over data sets, networks "
        "and schedules, paired by seed.",
    ),
    claim(
        "no-schedule-is-needed",
        _TABLE_1,
        not_worse(NEGLIGIBLE),
        measures.against_every_schedule,
        0.005,
    )(
        "With Cooling and without a schedule a network is as good as with the best schedule and without Cooling.",
        f"{_ACCURACY} Last layer Cooling without a schedule minus that without Cooling with each schedule: choosing "
        "the best on the same data would flatter it. Printed: the difference of the means in Table 1, best schedule "
        "Linear.",
    ),
    claim(
        "last-layer-is-best",
        "abstract, Tables 1 and 2",
        not_worse(NEGLIGIBLE),
        measures.against_modes,
        -0.0006,
    )(
        "Last layer Cooling, the simplest variant, is the best-performing one.",
        f"{_ACCURACY} Last layer Cooling minus that of each other variant, over schedules and activations, paired by "
        "seed. Non-inferiority, since the printed means do not show more: last layer minus periodically redistributed "
        "is -0.0006. A periodically redistributed training that never was is last layer Cooling, and left out.",
    ),
    claim(
        "distributed-is-outperformed",
        "section 4.2, Table 2",
        above(),
        measures.over_distributed,
        0.016,
    )(
        "Without a schedule, last layer and periodically redistributed Cooling outperform distributed Cooling.",
        f"{_ACCURACY} either minus that of Distributed Cooling, no schedule, paired by seed. Printed: the difference "
        "of the means in Table 2, ReLU.",
    ),
    claim(
        "factors-up-to-1-help",
        "sections 4.2 and 4.3, Figure 1",
        above(),
        measures.every_factor,
    )(
        "All Cooling factors up to 1 outperform the network without Cooling.",
        f"{_ACCURACY} Last layer Cooling minus that without Cooling, no schedule, each factor up to 1 by itself.",
    ),
    claim(
        "factors-above-1-diverge",
        "sections 4.2 and 4.3, Figure 1",
        most(),
        measures.large_factors,
    )(
        "Cooling factors above 1 make the training diverge.",
        "Last layer Cooling, no schedule: share of seeds with which every factor above 1 diverges, that is, something "
        "is no longer finite, or the network ends at guessing although it was better once.",
    ),
    claim(
        "crelu-diverges-without-cooling",
        "section 4.2, Table 2",
        most(),
        _diverged_without,
    )(
        "Without Cooling and without a schedule, a network with CReLU diverges.",
        "Share of seeds with which it diverges, as above.",
    ),
    claim("crelu-trains-with-cooling", "section 4.2, Table 2", most(), _trained_with)(
        "With Cooling and without a schedule, a network with CReLU trains.",
        "Share of seeds with which it neither diverges nor is stuck, each mode of Cooling by itself.",
    ),
    claim(
        "larger-factors-heat-faster",
        "section 4.2, Figure 2",
        below(),
        measures.heating,
        -10,
    )(
        "A larger Cooling factor makes the temperature grow faster.",
        "Epoch after which the last-layer temperature first exceeds the maximal one (the paper's: 100), with factor 1 "
        "(periodically redistributed) minus that with factor 0.75 (last layer), no schedule; where one of the two "
        "never does, the epoch after its last. Printed: epochs 9 and 19.",
    ),
    claim("segmentation-iou", "section 4.4", above(LEAST), _iou, 0.011)(
        "Last layer Cooling improves segmentation: the mean intersection over union.",
        "Mean intersection over union on test images, mean over the last ten epochs (or the last fifth of a shorter "
        "training), Last layer Cooling minus no Cooling, paired by seed, of a network that diverged 0. Printed: on "
        "ADE20K.",
    ),
    claim("segmentation-accuracy", "section 4.4", above(LEAST), _pixels, 0.01)(
        "Last layer Cooling improves segmentation: the accuracy of pixels.",
        "The same with the pixel accuracy, of a network that diverged that of guessing. Printed: on ADE20K.",
    ),
    claim("cooling-is-cheap", "section 3.1", below(CHEAP), measures.cost, CHEAP)(
        "Cooling takes about 1.9 % of the time of one training epoch.",
        "Seconds of one Cooling over seconds of one epoch, over the modes, each device by itself: at most as printed.",
    ),
)
