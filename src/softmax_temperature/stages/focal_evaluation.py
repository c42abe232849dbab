"""Stage evaluate_focal: metrics, temperature scaling, intervals and out-of-distribution
scores of every training.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from softmax_temperature import metrics
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.params import Params
from softmax_temperature.params.focal import REFERENCE
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.stages import (
    FOCAL_EVALUATION,
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


@stage("focal", FOCAL_EVALUATION)
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
            test, labels = scaled["test.logits"], scaled["test.labels"]
            report = metrics.calibration_report(test, labels, **settings)
            confident = metrics.confident_report(
                test, labels, threshold=CONFIDENT, **settings
            )
            own = {"evaluated": evaluated, "scaling": scaling, **about}
            rows["runs"].append(own | _row(report) | _row(confident))
            if file == LOGITS:
                other = (
                    _scaled(reference, scaling)[0]["test.logits"] if reference else None
                )
                for name, found in _compared(scaled, other, settings).items():
                    rows[name] += [{"scaling": scaling, **row} for row in found]
    for name, some in rows.items():
        write_json(job.output / f"{name}.json", some)


def _logits(training: Artifact, file: str) -> dict[str, Tensor]:
    """Logits and labels by split, float64; none when the training diverged, or has no
    such file.
    """
    if training.json("record.json")["diverged"] or (
        file == LAST_LOGITS and file not in training.files
    ):
        return {}
    tensors = training.tensors(file)
    return {
        name: tensor.double() if name.endswith("logits") else tensor
        for name, tensor in tensors.items()
    }


def _scaled(
    logits: dict[str, Tensor], scaling: str
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The logits over the temperature that validation data choose, with the labels; and
    that temperature.
    """
    temperature, at_bound = 1.0, False
    if scaling != "none":
        fit = fit_temperature(
            logits["validation.logits"], logits["validation.labels"], criterion=scaling
        )
        temperature, at_bound = fit.temperature, fit.at_bound
    scaled = {
        name: one / temperature if name.endswith("logits") else one
        for name, one in logits.items()
    }
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
    logits: dict[str, Tensor], reference: Tensor | None, settings: dict[str, int]
) -> dict[str, Rows]:
    """Test data against the reference arm, on shifted data sets, and beside those out
    of the distribution.
    """
    test, labels = logits["test.logits"], logits["test.labels"]
    rows: dict[str, Rows] = {"differences": [], "ood": [], "roc": [], "shift": []}
    if reference is not None:
        differences = metrics.paired_difference(test, reference, labels, **settings)
        rows["differences"] = [
            {"metric": name, **one._asdict()} for name, one in differences.items()
        ]
    for name in sorted({key.rpartition(".")[0] for key in logits} - set(HELD_OUT)):
        others = logits[f"{name}.logits"]
        if f"{name}.labels" in logits:
            report = metrics.calibration_report(
                others, logits[f"{name}.labels"], **settings
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
