"""Predict the best inverse temperature of a cosine classifier from its embeddings.

classifier_temperature, sections 3.2 and 4.3. `pairs` has one row per data set and
backbone, as a DataFrame or as mappings. The columns are `dataset`, `backbone`,
`inverse_temperature` (the best of a search; it multiplies the logits) and the
statistics named in `dataset_statistics.STATISTICS`. Three columns are optional:
`plateau_low` and `plateau_high`, the ends of the range of equally good values, and
`weights`, which is "untrained" for a backbone with random weights. The results of `fit`
and `leave_one_dataset_out` do not depend on the order of the rows.

Both functions raise ValueError for a missing column, a value that is not a finite
number, a pair that occurs twice, an inverse temperature outside the searched range, a
plateau that does not enclose its optimum, or fewer than `pairs.MINIMUM_DATASETS` data
sets.
"""

from softmax_temperature.heuristic.regression import (
    Estimate,
    Heuristic,
    LeaveOneOut,
    Method,
    fit,
    leave_one_dataset_out,
    lower_bound_from_classes,
)

__all__ = [
    "Estimate",
    "Heuristic",
    "LeaveOneOut",
    "Method",
    "fit",
    "leave_one_dataset_out",
    "lower_bound_from_classes",
]
