"""Which numbers are shares: fractions in the files, percent for a reader, and differences of them in points."""

UNITS = {unit: f"points of {unit}" for unit in ("accuracy", "pixel accuracy", "mean IoU", "ECE", "AUROC")}
_WHOLES = ("the mistakes", "the trainings", "the seeds diverged", "the seeds trained", "an epoch")
UNITS |= {"share of predictions": "% of predictions", **{f"of {whole}": f"% of {whole}" for whole in _WHOLES}}
"""The units of claims that are shares, with the words for a reader. What follows a comma says of which part."""
METRICS = {"accuracy", "error", "top1", "top5", "pixel_accuracy", "mean_iou", "auroc", "s99_share", "s99_accuracy"}
METRICS |= {"ece", "mce", "adaptive_ece", "classwise_ece"}
"""The metrics of tables that are shares; what ends their names says when they were measured."""


def is_share(metric: str) -> bool:
    """Whether a metric is a share; one that the authors' notebooks print in percent says so itself."""
    return metric.removesuffix("_after_scaling").removesuffix("_last_epoch") in METRICS or "%" in metric


def in_points(unit: str) -> str | None:
    """The unit of a share as a reader sees it; None where it is that of another number."""
    name, comma, part = unit.partition(",")
    return UNITS[name] + comma + part if name in UNITS else None
