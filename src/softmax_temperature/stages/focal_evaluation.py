"""The stage `evaluate_focal`: metrics, temperature scaling and intervals."""

from collections.abc import Collection, Iterator
from typing import Any

from torch import Tensor

from softmax_temperature import metrics
from softmax_temperature.data.logits import (
    LAST_LOGITS,
    LOGITS,
    Logits,
    read_logits,
)
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.params import Params
from softmax_temperature.params.focal import REFERENCE
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.scaling import TEMPERATURE_GRID, fit_temperature
from softmax_temperature.stages import (
    FOCAL_TRAINING,
    stage,
)

SCALINGS = ("none", "ece", "nll")
CONFIDENT = 0.99  # Appendix H.
CURVE_POINTS = 100
SHIFT_METRICS = (
    "samples",
    "accuracy",
    "negative_log_likelihood",
    "expected_calibration_error",
)
Rows = list[dict[str, Any]]
Sets = dict[str, Logits]


@stage
def evaluate_focal(params: Params) -> Iterator[Cell]:
    """Yield one cell per run.

    If the task has the reference arm, the cells of the other arms also read the
    reference arm's run with the same seed.
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
        # Use the task's seed, so that all arms are evaluated on the same resamples.
        plan["resampling_seed"] = (
            seed_of(params.seed, "focal", "evaluation", task) % 2**32
        )
        yield Cell(f"{task}/{arm}/{seed}", _evaluate, plan, inputs)


def _evaluate(job: Job, *, bootstrap: int, resampling_seed: int, select: str) -> None:
    """Write lists of rows, which are empty if training diverged.

    `runs.json` has a row for each scaling of the logits after the selected epoch, and
    of the logits after the last epoch if the run kept them. The other files describe
    the selected epoch.
    """
    settings = {"bootstrap": bootstrap, "seed": resampling_seed}
    training = job.inputs["training"]
    selected = _logits(training, LOGITS)
    last = _logits(training, LAST_LOGITS)
    reference: Sets = {}
    if "reference" in job.inputs:
        reference = _logits(job.inputs["reference"], LOGITS)
    runs: Rows = []
    compared: dict[str, Rows] = {"differences": [], "ood": [], "roc": [], "shift": []}
    if selected:
        for scaling in SCALINGS:
            scaled, fit = _scaled(selected, scaling)
            names = {"evaluated": select, "scaling": scaling}
            runs.append(names | fit | _test_row(scaled, settings))
            scaled_reference = _scaled(reference, scaling)[0] if reference else None
            rows_by_file = _compared(scaled, scaled_reference, settings)
            for name, rows in rows_by_file.items():
                compared[name] += [{"scaling": scaling, **row} for row in rows]
    if last:
        for scaling in SCALINGS:
            scaled, fit = _scaled(last, scaling)
            names = {"evaluated": "last", "scaling": scaling}
            runs.append(names | fit | _test_row(scaled, settings))
    write_json(job.output / "runs.json", runs)
    write_json(job.output / "differences.json", compared["differences"])
    write_json(job.output / "ood.json", compared["ood"])
    write_json(job.output / "roc.json", compared["roc"])
    write_json(job.output / "shift.json", compared["shift"])


def _logits(training: Artifact, file: str) -> Sets:
    """Read the logits in `file` as float64, keyed by set.

    No sets are returned if the run diverged or did not write the file.
    """
    if training.json("record.json")["diverged"]:
        return {}
    if file == LAST_LOGITS and file not in training.files:
        return {}
    stored = read_logits(training, file)
    return {name: logits.double() for name, logits in stored.items()}


def _scaled(sets: Sets, scaling: str) -> tuple[Sets, dict[str, Any]]:
    """Apply `scaling` to all logits; also return the temperature and `at_bound`.

    The temperature is fitted on validation data.
    """
    temperature = 1.0
    at_bound = False
    if scaling != "none":
        rows = sets["validation"].for_fitting()
        fit = fit_temperature(*rows, criterion=scaling, grid=TEMPERATURE_GRID)
        temperature = fit.temperature
        at_bound = fit.at_bound
    scaled = {name: logits.divided_by(temperature) for name, logits in sets.items()}
    return scaled, {"temperature": temperature, "at_bound": at_bound}


def _test_row(sets: Sets, settings: dict[str, int]) -> dict[str, Any]:
    """Compute test metrics of all predictions and of confident ones (appendix H)."""
    test, labels = sets["test"].for_evaluation()
    report = metrics.calibration_report(test, labels, **settings)
    confident = metrics.confident_report(test, labels, threshold=CONFIDENT, **settings)
    return _row(report) | _row(confident)


def _row(report: dict[str, Any], names: Collection[str] = ()) -> dict[str, Any]:
    """Select metrics from `report`, with the ends of their intervals.

    `names` are the metrics to select; if it is empty, all are selected.
    """
    settings = {"classes", "bins", "bootstrap", "intervals"}
    row = {name: report[name] for name in names or report.keys() - settings}
    for name, (low, high) in report["intervals"].items():
        if name in row:
            row[f"{name}_low"] = low
            row[f"{name}_high"] = high
    return row


def _compared(
    sets: Sets, reference: Sets | None, settings: dict[str, int]
) -> dict[str, Rows]:
    """Compute all rows except those of `runs.json`, keyed by file name.

    The test logits are compared with those of the reference arm and of
    out-of-distribution data sets. The logits of shifted data sets are not compared;
    their rows have the metrics of these logits alone.
    """
    rows: dict[str, Rows] = {"differences": [], "ood": [], "roc": [], "shift": []}
    test, labels = sets["test"].for_evaluation()
    if reference is not None:
        differences = metrics.paired_difference(
            test, reference["test"].values, labels, **settings
        )
        for metric, difference in differences.items():
            rows["differences"].append({"metric": metric, **difference._asdict()})
    for name in sorted(sets.keys() - set(HELD_OUT)):
        if sets[name].labels is not None:
            shifted, classes = sets[name].for_evaluation()
            report = metrics.calibration_report(shifted, classes, **settings)
            rows["shift"].append({"shifted": name, **_row(report, SHIFT_METRICS)})
        else:
            outliers = sets[name].values
            rows["ood"].append({"ood": name, **_auroc(test, outliers, settings)})
            for point in _roc(test, outliers):
                rows["roc"].append({"ood": name, **point})
    return rows


def _auroc(test: Tensor, outliers: Tensor, settings: dict[str, int]) -> dict[str, Any]:
    """Compute the area under the ROC curve of the entropy, with its interval."""
    area = metrics.out_of_distribution_auroc(test, outliers, score="entropy")
    low, high = metrics.out_of_distribution_interval(
        test, outliers, score="entropy", **settings
    )
    return {
        "samples": len(outliers),
        "auroc": float(area),
        "auroc_low": low,
        "auroc_high": high,
    }


def _roc(test: Tensor, outliers: Tensor) -> Rows:
    """Compute the points of the ROC curve of the entropy."""
    curve = metrics.out_of_distribution_curve(test, outliers, points=CURVE_POINTS)
    return [
        {"false_positive_rate": false_positives, "true_positive_rate": true_positives}
        for false_positives, true_positives in curve.tolist()
    ]
