"""Stage evaluate_focal: metrics, temperature scaling, intervals and out-of-distribution
scores of every training.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from softmax_temperature import metrics
from softmax_temperature.data.logits import Logits, read_logits
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.params import Params
from softmax_temperature.params.focal import REFERENCE
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.stages import (
    FOCAL_TRAINING,
    LAST_LOGITS,
    LOGITS,
    stage,
)

SCALINGS = ("none", "ece", "nll")
CONFIDENT = 0.99  # Appendix H.
CURVE_POINTS = 100
SHIFT_METRICS = ("accuracy", "negative_log_likelihood", "expected_calibration_error")
Rows = list[dict[str, Any]]


@stage
def evaluate_focal(params: Params) -> Iterator[Cell]:
    """One cell per training; it also reads that of the reference arm with the same
    seed.
    """
    paper = params.focal
    for task, arm, seed in paper.trainings():
        inputs = {"training": FOCAL_TRAINING / task / arm / str(seed)}
        if arm != REFERENCE and REFERENCE in paper.arms_of(task):
            inputs["reference"] = FOCAL_TRAINING / task / REFERENCE / str(seed)
        plan = {
            "bootstrap": paper.evaluation.bootstrap,
            "select": paper.tasks[task].select,
        }
        # The task's, so that all arms are evaluated on the same resamples.
        plan["resampling_seed"] = (
            seed_of(params.seed, "focal", "evaluation", task) % 2**32
        )
        yield Cell(f"{task}/{arm}/{seed}", _evaluate, plan, inputs)


def _evaluate(job: Job, *, bootstrap: int, resampling_seed: int, select: str) -> None:
    """Write lists of rows, none where the training diverged.

    `runs.json` has one for each scaling of the epoch that is selected, and of the last
    one where its logits are kept; the other files are about the selected one.
    """
    settings = {"bootstrap": bootstrap, "seed": resampling_seed}
    rows: dict[str, Rows] = {
        name: [] for name in ("runs", "differences", "ood", "roc", "shift")
    }
    reference = (
        _logits(job.inputs["reference"], LOGITS) if "reference" in job.inputs else {}
    )
    for evaluated, file in ((select, LOGITS), ("last", LAST_LOGITS)):
        logits = _logits(job.inputs["training"], file)
        for scaling in SCALINGS if logits else ():
            scaled, about = _scaled(logits, scaling)
            test, labels = scaled["test"].for_evaluation()
            report = metrics.calibration_report(test, labels, **settings)
            confident = metrics.confident_report(
                test, labels, threshold=CONFIDENT, **settings
            )
            own = {"evaluated": evaluated, "scaling": scaling, **about}
            rows["runs"].append(own | _row(report) | _row(confident))
            if file == LOGITS:
                other = (
                    _scaled(reference, scaling)[0]["test"].values if reference else None
                )
                for name, found in _compared(scaled, other, settings).items():
                    rows[name] += [{"scaling": scaling, **row} for row in found]
    for name, some in rows.items():
        write_json(job.output / f"{name}.json", some)


def _logits(training: Artifact, file: str) -> dict[str, Logits]:
    """Logits in float64 by set; none if the training diverged or has no such file."""
    if training.json("record.json")["diverged"] or (
        file == LAST_LOGITS and file not in training.files
    ):
        return {}
    stored = read_logits(training, file)
    return {name: logits.double() for name, logits in stored.items()}


def _scaled(
    sets: dict[str, Logits], scaling: str
) -> tuple[dict[str, Logits], dict[str, Any]]:
    """The logits over the temperature fitted on validation data, and that temperature."""
    temperature = 1.0
    at_bound = False
    if scaling != "none":
        fit = fit_temperature(*sets["validation"].for_fitting(), criterion=scaling)
        temperature = fit.temperature
        at_bound = fit.at_bound
    scaled = {name: logits.divided_by(temperature) for name, logits in sets.items()}
    return scaled, {"temperature": temperature, "at_bound": at_bound}


def _row(report: dict[str, Any], names: Iterable[str] = ()) -> dict[str, Any]:
    """Metrics of a report, these or all, each with the ends of its interval where it
    has one.
    """
    row = {
        name: report[name]
        for name in names
        or report.keys() - {"classes", "bins", "bootstrap", "intervals"}
    }
    for name, (low, high) in report["intervals"].items():
        row |= {f"{name}_low": low, f"{name}_high": high} if name in row else {}
    return row


def _compared(
    sets: dict[str, Logits], reference: Tensor | None, settings: dict[str, int]
) -> dict[str, Rows]:
    """Test data against the reference arm, on shifted data sets, and beside those out
    of the distribution.
    """
    test, labels = sets["test"].for_evaluation()
    rows: dict[str, Rows] = {"differences": [], "ood": [], "roc": [], "shift": []}
    if reference is not None:
        differences = metrics.paired_difference(test, reference, labels, **settings)
        rows["differences"] = [
            {"metric": name, **one._asdict()} for name, one in differences.items()
        ]
    for name in sorted(sets.keys() - set(HELD_OUT)):
        others = sets[name].values
        if sets[name].labels is not None:
            report = metrics.calibration_report(
                *sets[name].for_evaluation(), **settings
            )
            rows["shift"].append(
                {"shifted": name, **_row(report, ("samples", *SHIFT_METRICS))}
            )
        else:
            area = float(
                metrics.out_of_distribution_auroc(test, others, score="entropy")
            )
            low, high = metrics.out_of_distribution_interval(
                test, others, score="entropy", **settings
            )
            score = {
                "samples": len(others),
                "auroc": area,
                "auroc_low": low,
                "auroc_high": high,
            }
            rows["ood"].append({"ood": name, **score})
            curve = metrics.out_of_distribution_curve(test, others, points=CURVE_POINTS)
            axes = ("false_positive_rate", "true_positive_rate")
            rows["roc"] += [
                {"ood": name, **dict(zip(axes, point, strict=True))}
                for point in curve.tolist()
            ]
    return rows
