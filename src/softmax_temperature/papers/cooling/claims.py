"""What the paper says, as criteria that were fixed before the runs.

Section 4.2 with Tables 1 and 2 and Figures 1 and 2 speaks of image classification, section 4.4 of segmentation, section
3.1 of cost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from softmax_temperature.papers.cooling import judges
from softmax_temperature.papers.cooling.selection import (
    COOLED,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    PERIODIC,
    PIECEWISE,
    SIMPLEST,
)
from softmax_temperature.papers.shared.claims import Claim

if TYPE_CHECKING:
    from softmax_temperature.papers.cooling.records import Records

_ACCURACY = "Test accuracy (of a training that diverged or got stuck: that of guessing) of"
_INTERVAL = "the 90 % interval of the mean over seeds (a single seed: its value)"
_ABOVE = f"holds if {_INTERVAL} lies above 0."
_GAIN = _ACCURACY + " {} minus that without Cooling, {}: {}"
_PRINTED = {"distributed": (0.029, 0.011), PERIODIC: (0.045, 0.011), SIMPLEST: (0.045, 0.012)}  # None, Piecewise Const.


def _of_mode(mode: str) -> tuple[Claim[Records], ...]:
    name, slug = f"{MODES[mode]} Cooling", mode.replace("_", "-")
    return (
        Claim(
            f"{slug}-helps-without-schedule",
            "section 4.2, Table 1",
            f"{name} improves a network that is trained without a learning-rate schedule.",
            _GAIN.format(name, "no schedule", _ABOVE) + " Printed: the difference of the means in Table 1.",
            partial(judges.raises_accuracy, mode=mode, schedule=NO_SCHEDULE),
            published=_PRINTED[mode][0],
        ),
        Claim(
            f"{slug}-helps-with-piecewise-schedule",
            "section 4.2, Table 1",
            f"{name} improves a network that is trained with a piecewise constant schedule.",
            _GAIN.format(name, "piecewise constant schedule", _ABOVE) + " Printed: likewise.",
            partial(judges.raises_accuracy, mode=mode, schedule=PIECEWISE),
            published=_PRINTED[mode][1],
        ),
        Claim(
            f"{slug}-gains-nothing-with-smooth-schedule",
            "section 4.2, Table 1",
            f"Networks that are trained with a smooth schedule hardly benefit from {name}.",
            _GAIN.format(name, "cosine, exponential and linear schedules", f"holds if {_INTERVAL}, and the mean of ")
            + "each schedule, lie below 0.01, one point.",
            partial(judges.smooth_schedules_gain_nothing, mode=mode),
        ),
    )


CLAIMS: tuple[Claim[Records], ...] = (
    *(claim for mode in COOLED for claim in _of_mode(mode)),
    Claim(
        "no-schedule-is-needed",
        "section 4.2, Table 1",
        "With Cooling and without a schedule a network is as good as with the best schedule and without Cooling.",
        f"{_ACCURACY} Last layer Cooling without a schedule minus that without Cooling with the schedule of the "
        f"best mean on test images: holds if {_INTERVAL} lies above -0.01, one point. Printed: the difference of the "
        "means in Table 1, best schedule Linear.",
        judges.no_schedule_is_needed,
        published=0.005,
    ),
    Claim(
        "last-layer-is-best",
        "abstract, Tables 1 and 2",
        "Last layer Cooling, the simplest variant, is the best-performing one.",
        f"{_ACCURACY} Last layer Cooling minus that of each other variant, each seed's mean over all schedules and "
        f"activations: holds if for both {_INTERVAL} lies above 0. A periodically redistributed training that never "
        "was is last layer Cooling, and left out. The value is that of the closer one. Printed: the "
        "difference of the means in Tables 1 and 2 to the closer one, periodically redistributed; it is below 0, so "
        "that the paper's own numbers do not meet this criterion.",
        judges.last_layer_is_best,
        published=-0.0006,
    ),
    Claim(
        "factors-up-to-1-help",
        "sections 4.2 and 4.3, Figure 1",
        "All Cooling factors up to 1 outperform the network without Cooling.",
        f"{_ACCURACY} Last layer Cooling minus that without Cooling, no schedule: holds if for every factor up to 1 "
        f"that was trained, on every data set, {_INTERVAL} lies above 0. The value is that of the worst.",
        judges.every_factor_helps,
    ),
    Claim(
        "factors-above-1-diverge",
        "sections 4.2 and 4.3, Figure 1",
        "Cooling factors above 1 make the training diverge.",
        "Last layer Cooling, no schedule: holds if every training with a factor above 1 diverges: something is no "
        "longer finite, or the network ends at guessing although it was better once. One that never was is stuck, and "
        "did not diverge.",
        judges.large_factors_diverge,
    ),
    Claim(
        "crelu-diverges-without-cooling",
        "section 4.2, Table 2",
        "Without Cooling and without a schedule, a network with CReLU diverges.",
        "Holds if every training without Cooling diverges, as above.",
        partial(judges.crelu, modes=(NO_COOLING,), trains=False),
    ),
    Claim(
        "crelu-trains-with-cooling",
        "section 4.2, Table 2",
        "With Cooling and without a schedule, a network with CReLU trains.",
        "Holds if no training of any mode of Cooling diverges or is stuck, as above.",
        partial(judges.crelu, modes=COOLED, trains=True),
    ),
    Claim(
        "larger-factors-heat-faster",
        "section 4.2, Figure 2",
        "A larger Cooling factor makes the temperature grow faster.",
        "Epoch after which the last-layer temperature first exceeds the maximal one (the paper's: 100), with factor 1 "
        f"(periodically redistributed) minus that with factor 0.75 (last layer), no schedule; where one of the two "
        f"never does, the epoch after its last stands for it: holds if {_INTERVAL} lies below 0. Printed: epochs 9 and "
        "19.",
        judges.larger_factors_heat_faster,
        published=-10,
    ),
    Claim(
        "segmentation-iou",
        "section 4.4",
        "Last layer Cooling improves segmentation: the mean intersection over union.",
        "Mean intersection over union on test images after the last epoch, Last layer Cooling minus no Cooling, paired "
        f"by seed, of a network that diverged 0: holds if {_INTERVAL} lies above {judges.LEAST:g}. Printed: on ADE20K.",
        partial(judges.segmentation, metric="mean_iou"),
        published=0.011,
    ),
    Claim(
        "segmentation-accuracy",
        "section 4.4",
        "Last layer Cooling improves segmentation: the accuracy of pixels.",
        "The same with the pixel accuracy, of a network that diverged that of guessing. Printed: on ADE20K.",
        partial(judges.segmentation, metric="pixel_accuracy"),
        published=0.01,
    ),
    Claim(
        "cooling-is-cheap",
        "section 3.1",
        "Cooling takes about 1.9 % of the time of one training epoch.",
        "Seconds of one Cooling over seconds of one epoch, the largest over modes and devices: holds if at most "
        f"{judges.CHEAP:g}.",
        judges.cost,
        published=judges.CHEAP,
    ),
)
