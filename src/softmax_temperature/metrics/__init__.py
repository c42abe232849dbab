"""Calibration and accuracy of a classifier's predictions, in float64.

The calibration errors are defined in the focal paper, section 2, except for the
debiased error. Functions with the argument `probs` refuse rows that do not sum to one.
Functions with the argument `logits` refuse probabilities, except `top_accuracy`, for
which only the order of the classes matters. All metrics are fractions, except the Brier
score and the likelihood, which is in nats. Bins of equal width are closed on the right,
(a, b], and the first also includes 0, so that every sample is in exactly one bin. An
empty bin contributes nothing to an error.
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
    "Difference",
    "ReliabilityBins",
    "adaptive_calibration_error",
    "brier_score",
    "calibration_report",
    "classwise_calibration_error",
    "confident_report",
    "debiased_calibration_error",
    "expected_calibration_error",
    "expected_calibration_error_change",
    "maximum_calibration_error",
    "negative_log_likelihood",
    "noise_floor",
    "out_of_distribution_auroc",
    "out_of_distribution_curve",
    "out_of_distribution_interval",
    "paired_difference",
    "reliability_bins",
    "top_accuracy",
]
