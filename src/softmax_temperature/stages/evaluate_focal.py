"""Stage evaluate_focal: metrics, temperature scaling, intervals and out-of-distribution scores of every training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.artifacts import write_json
from softmax_temperature.jobs import Cell, Job, seed_of
from softmax_temperature.stages import train_focal

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.artifacts import Artifact
    from softmax_temperature.params import Params

OUTPUT = Path("data/focal/evaluation")
CRITERIA = ("ece", "nll")
CONFIDENT = 0.99  # Appendix H.
CURVE_POINTS = 200


def cells(params: Params) -> list[Cell]:
    """One cell per training; it also reads that of the reference arm with the same seed."""
    paper = params.focal
    reference = paper.evaluation.reference
    found = []
    for task, place in paper.tasks.items():
        for arm in paper.arms_of(task):
            for seed in range(paper.seeds):
                inputs = {"training": train_focal.OUTPUT / task / arm / str(seed)}
                if arm != reference and reference in paper.arms_of(task):
                    inputs["reference"] = train_focal.OUTPUT / task / reference / str(seed)
                parameters = {
                    "out_of_distribution": place.out_of_distribution + [train_focal.NOISE] * bool(place.gaussian_noise),
                    "bins": paper.evaluation.bins,
                    "bootstrap": paper.evaluation.bootstrap,
                    # The task's, so that all arms are judged on the same resamples.
                    "resampling_seed": seed_of(params.seed, "focal", "evaluation", task) % 2**32,
                }
                found.append(Cell(f"{task}/{arm}/{seed}", run, parameters, inputs))
    return found


def run(job: Job, *, out_of_distribution: list[str], bins: int, bootstrap: int, resampling_seed: int) -> None:
    """Evaluate one training.

    Writes lists of rows: `runs.json`, a row for each scaling ("none", or the criterion whose best temperature on
    validation data divides the logits); `differences.json`, against the reference arm; `ood.json` and `roc.json`. A
    training that diverged has none of them.

    Args:
        job: its inputs are `training` and, unless this is the reference arm, `reference`.
        out_of_distribution: the names of the sets.
        bins: of every binned metric.
        bootstrap: resamples for the intervals.
        resampling_seed: of the resamples.
    """
    settings: dict[str, Any] = {"bins": bins, "bootstrap": bootstrap, "seed": resampling_seed}
    logits = _logits(job.inputs["training"])
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("runs", "differences", "ood", "roc")}
    if logits is not None:
        reference = _logits(job.inputs["reference"]) if "reference" in job.inputs else None
        for scaling in ("none", *CRITERIA):
            temperature, at_bound = _temperature(logits, scaling, bins)
            about = {"scaling": scaling}
            scaled = logits["test.logits"] / temperature
            report = _report(scaled, logits["test.labels"], settings)
            rows["runs"].append({**about, "temperature": temperature, "at_bound": at_bound, **report})
            if reference is not None:
                other = reference["test.logits"] / _temperature(reference, scaling, bins)[0]
                rows["differences"] += [
                    about | row for row in _differences(scaled, other, logits["test.labels"], settings)
                ]
            for name in out_of_distribution:
                score, curve = _out_of_distribution(scaled, logits[f"{name}.logits"] / temperature)
                rows["ood"].append({**about, "ood": name, **score})
                rows["roc"] += [{**about, "ood": name, **point} for point in curve]
    for name, some in rows.items():
        write_json(job.output / f"{name}.json", some)


def _logits(training: Artifact) -> dict[str, Tensor] | None:
    """Logits and labels by split, float64; None when the training diverged."""
    if training.json("record.json")["diverged"]:
        return None
    tensors = training.tensors("logits.safetensors")
    return {name: tensor.double() if name.endswith("logits") else tensor for name, tensor in tensors.items()}


def _temperature(logits: dict[str, Tensor], scaling: str, bins: int) -> tuple[float, bool]:
    from softmax_temperature.scaling import fit_temperature

    if scaling == "none":
        return 1.0, False
    fit = fit_temperature(logits["validation.logits"], logits["validation.labels"], criterion=scaling, bins=bins)
    return fit.temperature, fit.at_bound


def _report(logits: Tensor, labels: Tensor, settings: dict[str, Any]) -> dict[str, Any]:
    """One row: every metric, and the ends of its interval where it has one."""
    import torch

    from softmax_temperature.metrics import calibration_report

    report = calibration_report(logits, labels, **settings)
    intervals = report.pop("intervals")
    lows = {f"{name}_low": low for name, (low, _) in intervals.items()}
    highs = {f"{name}_high": high for name, (_, high) in intervals.items()}
    confidences, predicted = torch.softmax(logits, dim=1).max(1)
    confident = confidences >= CONFIDENT
    right = (predicted == labels)[confident]
    return {
        **{name: value for name, value in report.items() if name not in ("classes", "bins", "bootstrap")},
        **lows,
        **highs,
        "confident_share": confident.double().mean().item(),
        "confident_accuracy": right.double().mean().item() if len(right) else None,
    }


def _differences(logits: Tensor, reference: Tensor, labels: Tensor, settings: dict[str, Any]) -> list[dict[str, Any]]:
    from softmax_temperature.metrics import paired_difference

    differences = paired_difference(logits, reference, labels, **settings)
    return [{"metric": name, **difference._asdict()} for name, difference in differences.items()]


def _out_of_distribution(inside: Tensor, outside: Tensor) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """The area under the curve by entropy (section 5), and points of the curve for drawing."""
    import numpy as np
    import torch
    from sklearn.metrics import roc_curve

    from softmax_temperature.metrics import out_of_distribution_auroc

    area = out_of_distribution_auroc(inside, outside, score="entropy")
    entropies = [torch.special.entr(torch.softmax(some, dim=1)).sum(1).numpy() for some in (inside, outside)]
    truth = np.repeat([0, 1], [len(some) for some in entropies])
    false_positive, true_positive, _ = roc_curve(truth, np.concatenate(entropies))
    rates = np.linspace(0, 1, CURVE_POINTS + 1)
    heights = np.interp(rates, false_positive, true_positive)
    points = zip(rates.round(6).tolist(), heights.round(6).tolist(), strict=True)
    curve = [{"false_positive_rate": x, "true_positive_rate": y} for x, y in points]
    return {"samples": len(outside), "auroc": float(area)}, curve
