"""Stage evaluate_focal: metrics, temperature scaling, intervals and out-of-distribution scores of every training."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_curve
from torch import Tensor

from softmax_temperature.metrics import (
    calibration_report,
    confident_report,
    out_of_distribution_auroc,
    out_of_distribution_interval,
    paired_difference,
)
from softmax_temperature.params import Params
from softmax_temperature.params.section import Section
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.folders import FOCAL_TRAINING
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.stages.training_cells import HELD_OUT, LAST_LOGITS, LOGITS

PAPER = "focal"
OUTPUT = Path("data/focal/evaluation")
REFERENCE = "CE"
"""The arm that the paper compares with."""
CRITERIA = ("ece", "nll")
CONFIDENT = 0.99  # Appendix H.
CURVE_POINTS = 100
SHIFT_METRICS = ("accuracy", "negative_log_likelihood", "expected_calibration_error")


class EvaluationCell(Section):
    """What a cell is given.

    `resampling_seed` is the task's, so that all arms are evaluated on the same resamples; `select` is the epoch of the
    training's `logits.safetensors`.
    """

    bootstrap: int
    resampling_seed: int
    select: str


def cells(params: Params) -> list[Cell]:
    """One cell per training; it also reads that of the reference arm with the same seed."""
    return [_cell(params, *names) for names in params.focal.trainings()]


def _cell(params: Params, task: str, arm: str, seed: int) -> Cell:
    inputs = {"training": FOCAL_TRAINING / task / arm / str(seed)}
    if arm != REFERENCE and REFERENCE in params.focal.arms_of(task):
        inputs["reference"] = FOCAL_TRAINING / task / REFERENCE / str(seed)
    plan = EvaluationCell(
        bootstrap=params.focal.evaluation.bootstrap,
        resampling_seed=seed_of(params.seed, "focal", "evaluation", task) % 2**32,
        select=params.focal.tasks[task].select,
    )
    return Cell(f"{task}/{arm}/{seed}", run, plan, inputs)


def run(job: Job, plan: EvaluationCell) -> None:
    """Evaluate one training.

    Writes lists of rows: `runs.json`, a row for each scaling ("none", or the criterion whose best temperature on
    validation data divides the logits) of the epoch that is selected, and of the last one where its logits are kept,
    too; of the former `differences.json`, against the reference arm; `ood.json` and `roc.json`; and `shift.json`, on
    shifted data sets. A training that diverged has none of them.
    """
    settings = {"bootstrap": plan.bootstrap, "seed": plan.resampling_seed}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("runs", "differences", "ood", "roc", "shift")}
    training = job.inputs["training"]
    reference = _logits(job.inputs["reference"], LOGITS) if "reference" in job.inputs else None
    for evaluated, file in ((plan.select, LOGITS), ("last", LAST_LOGITS)):
        logits = _logits(training, file)
        for scaling in ("none", *CRITERIA) if logits else ():
            found = _scaled_rows(logits, reference if file == LOGITS else None, scaling, settings)
            rows["runs"] += [{"evaluated": evaluated, "scaling": scaling, **row} for row in found.pop("runs")]
            for name, some in found.items() if file == LOGITS else ():
                rows[name] += [{"scaling": scaling, **row} for row in some]
    for name, some in rows.items():
        write_json(job.output / f"{name}.json", some)


def _scaled_rows(
    logits: dict[str, Tensor], reference: dict[str, Tensor] | None, scaling: str, settings: dict[str, int]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of one scaling, by file."""
    temperature, at_bound = _temperature(logits, scaling)
    test, labels = logits["test.logits"] / temperature, logits["test.labels"]
    fit = {"temperature": temperature, "at_bound": at_bound}
    rows: dict[str, list[dict[str, Any]]] = {"runs": [{**fit, **_report(test, labels, settings)}], "ood": [], "roc": []}
    shifted = sorted({key.removesuffix(".labels") for key in logits if key.endswith(".labels")} - set(HELD_OUT))
    rows["shift"] = [
        {"shifted": name, **_shift_report(logits[f"{name}.logits"] / temperature, logits[f"{name}.labels"], settings)}
        for name in shifted
    ]
    if reference:
        other = reference["test.logits"] / _temperature(reference, scaling)[0]
        rows["differences"] = _differences(test, other, labels, settings)
    for name in sorted(
        {key.removesuffix(".logits") for key in logits if key.endswith(".logits")} - {*HELD_OUT, *shifted}
    ):
        score, curve = _out_of_distribution(test, logits[f"{name}.logits"] / temperature, settings)
        rows["ood"].append({"ood": name, **score})
        rows["roc"] += [{"ood": name, **point} for point in curve]
    return rows


def _logits(training: Artifact, file: str) -> dict[str, Tensor]:
    """Logits and labels by split, float64; none when the training diverged, or has no such file."""
    if training.json("record.json")["diverged"] or (file == LAST_LOGITS and file not in training.files):
        return {}
    tensors = training.tensors(file)
    return {name: tensor.double() if name.endswith("logits") else tensor for name, tensor in tensors.items()}


def _temperature(logits: dict[str, Tensor], scaling: str) -> tuple[float, bool]:
    if scaling == "none":
        return 1.0, False
    fit = fit_temperature(logits["validation.logits"], logits["validation.labels"], criterion=scaling)
    return fit.temperature, fit.at_bound


def _report(logits: Tensor, labels: Tensor, settings: dict[str, int]) -> dict[str, Any]:
    """One row: every metric, and the ends of its interval where it has one."""
    row: dict[str, Any] = {}
    for report in (
        calibration_report(logits, labels, **settings),
        confident_report(logits, labels, threshold=CONFIDENT, **settings),
    ):
        intervals = report.pop("intervals")
        row |= {name: value for name, value in report.items() if name not in ("classes", "bins", "bootstrap")}
        row |= {f"{name}_low": low for name, (low, _) in intervals.items()}
        row |= {f"{name}_high": high for name, (_, high) in intervals.items()}
    return row


def _shift_report(logits: Tensor, labels: Tensor, settings: dict[str, int]) -> dict[str, Any]:
    """Accuracy, NLL and ECE with their intervals."""
    report = calibration_report(logits, labels, **settings)
    row: dict[str, Any] = {"samples": len(labels)}
    for name in SHIFT_METRICS:
        row[name] = report[name]
        row[f"{name}_low"], row[f"{name}_high"] = report["intervals"][name]
    return row


def _differences(logits: Tensor, reference: Tensor, labels: Tensor, settings: dict[str, int]) -> list[dict[str, Any]]:
    differences = paired_difference(logits, reference, labels, **settings)
    return [{"metric": name, **difference._asdict()} for name, difference in differences.items()]


def _out_of_distribution(
    inside: Tensor, outside: Tensor, settings: dict[str, int]
) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """The area under the curve by entropy (section 5), and points of the curve for drawing."""
    area = float(out_of_distribution_auroc(inside, outside, score="entropy"))
    low, high = out_of_distribution_interval(inside, outside, score="entropy", **settings)
    entropies = [torch.special.entr(torch.softmax(some, dim=1)).sum(1).numpy() for some in (inside, outside)]
    truth = np.repeat([0, 1], [len(some) for some in entropies])
    false_positive, true_positive, _ = roc_curve(truth, np.concatenate(entropies))
    rates = np.linspace(0, 1, CURVE_POINTS + 1)
    heights = np.interp(rates, false_positive, true_positive)
    points = zip(rates.round(6).tolist(), heights.round(6).tolist(), strict=True)
    curve = [{"false_positive_rate": x, "true_positive_rate": y} for x, y in points]
    return {"samples": len(outside), "auroc": area, "auroc_low": low, "auroc_high": high}, curve
