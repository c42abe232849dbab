"""The content of each table of the paper: its methods, its numbers and where the records hold them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from softmax_temperature.papers.focal.selection import FOCAL_ARMS, MAIN_ARMS, REFERENCE, SCALED


@dataclass(frozen=True)
class Metric:
    """A number of a table: its name in `data/published/focal.csv` and where the records hold it."""

    name: str
    column: str
    scaling: str = "none"
    complement: bool = False  # One minus the column: an error from an accuracy.


@dataclass(frozen=True)
class Spec:
    """A table of the paper; methods and metrics are in its order.

    Attributes:
        source: the table of the records.
        condition: a column of the source that names a row beside data set and network.
        printed: whether `data/published/focal.csv` has its numbers.
        printed_only: leave out what has no printed counterpart.
        classes: the least number that a task must have.
    """

    title: str
    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    source: str = "runs"
    condition: str | None = None
    printed: bool = False
    printed_only: bool = False
    classes: int = 2


def _before_and_after(name: str, column: str) -> tuple[Metric, Metric]:
    return Metric(name, column), Metric(f"{name}_after_scaling", column, SCALED)


_ECE, _ECE_AFTER = _before_and_after("ece", "expected_calibration_error")
_ADAPTIVE = _before_and_after("adaptive_ece", "adaptive_calibration_error")
_CLASSWISE = _before_and_after("classwise_ece", "classwise_calibration_error")
_NLL, _NLL_AFTER = _before_and_after("nll", "negative_log_likelihood")
_MCE, _MCE_AFTER = _before_and_after("mce", "maximum_calibration_error")
_AUROC = _before_and_after("auroc", "auroc")
_T = Metric("temperature", "temperature", SCALED)
_ERROR = Metric("error", "accuracy", complement=True)
_TOP = (Metric("top1", "accuracy"), Metric("top5", "top5_accuracy"))
_CONFIDENT = tuple(
    Metric(f"s99_{name}{after}", f"confident_{name}", scaling)
    for after, scaling in (("", "none"), ("_after_scaling", SCALED))
    for name in ("share", "accuracy")
)
_RELEASED = (
    Metric("test error %", "accuracy", complement=True),
    Metric("ECE% pre T (15 bins)", "expected_calibration_error"),
    Metric("ECE% post T=2.5", "expected_calibration_error", SCALED),
    Metric("MCE% pre T", "maximum_calibration_error"),
    Metric("MCE% post T=2.5", "maximum_calibration_error", SCALED),
    Metric("optimal T", "temperature", SCALED),
)
_RELEASED_AUROC = (Metric("AUROC% pre T (entropy)", "auroc"),)

ABLATED = (_ERROR, _ECE, _ECE_AFTER, _T, _NLL)
"""What a variant of a recipe is compared by."""

SPECS = MappingProxyType(
    {
        "table_1": Spec("Table 1", MAIN_ARMS, (_ECE, _ECE_AFTER, _T), printed=True),
        "table_2": Spec("Table 2", MAIN_ARMS, (_ERROR,), printed=True),
        "table_3": Spec("Table 3", MAIN_ARMS, _AUROC, source="ood", condition="ood", printed=True),
        "table_f1": Spec("Table F.1", MAIN_ARMS, (*_ADAPTIVE, _T)),
        "table_f2": Spec("Table F.2", MAIN_ARMS, (*_CLASSWISE, _T)),
        "table_f3": Spec("Table F.3", FOCAL_ARMS, (_ECE, _ECE_AFTER, _T)),
        "table_f4": Spec("Table F.4", FOCAL_ARMS, (*_ADAPTIVE, _T)),
        "table_f5": Spec("Table F.5", FOCAL_ARMS, (*_CLASSWISE, _T)),
        "table_f6": Spec("Table F.6", FOCAL_ARMS, (_ERROR,)),
        "table_f7": Spec("Table F.7", MAIN_ARMS, _TOP, classes=6),  # Of five classes, all are among the top five.
        "table_f8": Spec("Table F.8", MAIN_ARMS, (_NLL,)),
        "table_f9": Spec("Table F.9", MAIN_ARMS, (_NLL_AFTER,)),
        "table_f10": Spec("Table F.10", MAIN_ARMS, (_MCE,)),
        "table_f11": Spec("Table F.11", MAIN_ARMS, (_MCE_AFTER,)),
        "table_h1": Spec("Table H.1", (REFERENCE, "MMCE", "FLSD-53"), _CONFIDENT),
        # Deviation: which focal loss Table J.1 has is not said; this is FLSD-53, the method that the paper proposes.
        "table_j1": Spec(
            "Table J.1", (REFERENCE, "FLSD-53"), (_ERROR, _ECE), source="early_stopping", condition="criterion"
        ),
        # The weights that the authors released, by their own notebooks, with more digits than the tables.
        "released": Spec("evaluation notebook", (REFERENCE,), _RELEASED, printed=True, printed_only=True),
        "released_ood": Spec(
            "notebook evaluate_single_model_ood.ipynb",
            (REFERENCE,),
            _RELEASED_AUROC,
            source="ood",
            condition="ood",
            printed=True,
            printed_only=True,
        ),
    }
)
"""Every table, by the name of its file."""
