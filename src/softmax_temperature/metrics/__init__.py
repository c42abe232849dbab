"""Calibration and accuracy of a classifier's predictions (focal paper, section 2), with
intervals; all in float64.

Everything that takes `probs` refuses rows that do not sum to one; nothing guesses
whether it was given logits. Values are fractions or nats. Bins of equal width are
closed on the right, (a, b], and the first also holds 0; an empty bin contributes
nothing; every sample is in exactly one bin.
"""

from softmax_temperature.metrics.calibration import (
    ReliabilityBins,
    adaptive_calibration_error,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    noise_floor,
    reliability_bins,
)
from softmax_temperature.metrics.out_of_distribution import (
    out_of_distribution_auroc,
    out_of_distribution_curve,
    out_of_distribution_interval,
)
from softmax_temperature.metrics.report import (
    Difference,
    calibration_report,
    confident_report,
    expected_calibration_error_change,
    paired_difference,
)
from softmax_temperature.metrics.scores import (
    brier_score,
    negative_log_likelihood,
    top_accuracy,
)

__all__ = [
    "ReliabilityBins",
    "adaptive_calibration_error",
    "classwise_calibration_error",
    "debiased_calibration_error",
]
__all__ += [
    "expected_calibration_error",
    "maximum_calibration_error",
    "noise_floor",
    "reliability_bins",
]
__all__ += [
    "out_of_distribution_auroc",
    "out_of_distribution_curve",
    "out_of_distribution_interval",
]
__all__ += ["Difference", "calibration_report", "confident_report", "paired_difference"]
__all__ += ["expected_calibration_error_change"]
__all__ += ["brier_score", "negative_log_likelihood", "top_accuracy"]
