"""Collect the runs of the temperature_check paper from its stages' cells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from softmax_temperature.data.logits import LOGITS, read_logits
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.heuristic.ridge import RidgeHeuristic, shipped
from softmax_temperature.losses.tempered_cross_entropy import tempered_logits
from softmax_temperature.metrics import (
    expected_calibration_error,
    negative_log_likelihood,
)
from softmax_temperature.networks.registry import check_network
from softmax_temperature.papers.shared.collecting import (
    DeclaredRun,
    MeasuredRun,
    gather_study,
)
from softmax_temperature.papers.shared.records import write_study
from softmax_temperature.papers.temperature_check.study import COURSES, SLUG
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.temperature_check import (
    COOLED,
    CURVES,
    PLAIN,
    number_in,
)
from softmax_temperature.runner.artifacts import MANIFEST, Artifact, open_artifact
from softmax_temperature.scaling import apply_temperature, fit_temperature
from softmax_temperature.stages import HEURISTIC
from softmax_temperature.stages.early_learning import early_learning
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.temperature_check import (
    CHOICE,
    confirm_temperature_check,
    train_temperature_check,
)

STAGES = (fetch, train_temperature_check, confirm_temperature_check, early_learning)
MEASURED_COLUMNS = {
    COURSES: (
        "moment",
        "time",
        "loss",
        "change",
        "drift",
        "drift_error",
        "distance",
    )
}
"""Maps each measured table whose rows belong to runs to its columns.

See `study.MEASURED_TABLES`.
"""
EVENTS = (UNIT, TENTH, WHOLE, FIT, LEARNED)
DYNAMICS = {"network": "real", "linearised": "linearised"}
"""Maps the name of a model in the factors to its name in the cells.

Two models follow gradient flow: the network and its linearisation.
"""
_FACTS_OF_FLOW = (
    "smooth",
    "parameters",
    "classes",
    "kernel_norm",
    "kernel_norm_error",
    "unit_time",
    "logit_time",
    "drift_rate",
    "ending",
)

# Deviation: we call a run diverged if its loss, a logit or a weight is no longer
# finite. A run that still guesses at the end has not diverged; its accuracy shows that
# it guesses. We do not know how the paper defines divergence.


def collect(params: Params, folder: Path) -> None:
    """Write runs, tables, claims and metrics of the study into the paper's folder.

    Raises:
        InputError: If a declared run is neither in a cell on this machine nor recorded
            in the folder.
    """
    read = partial(read_run, heuristic=_heuristic())
    runs = gather_study(
        folder, SLUG, params, declared_runs, read, tables=MEASURED_COLUMNS
    )
    if runs is None:
        return
    write_study(
        folder,
        SLUG,
        params.profile,
        runs=runs,
        tables={},
        code=[*(stage.module for stage in STAGES), __name__],
    )


def _heuristic() -> RidgeHeuristic:
    """The heuristic that was fitted on this machine, or else the shipped heuristic."""
    if not (HEURISTIC / MANIFEST).is_file():
        return shipped()
    fitted = open_artifact(HEURISTIC).json("heuristic.json")
    return RidgeHeuristic.model_validate(fitted)


def declared_runs(params: Params) -> Iterator[DeclaredRun]:
    """The runs that `params` declare: tuning, confirmations and gradient flow."""
    section = params.temperature_check
    stage = train_temperature_check
    parameters = {cell.name: cell.parameters for cell in stage.cells(params)}
    batch_norm = {
        sweep.network: has_batch_norm(params.networks[sweep.network])
        for sweep in section.sweeps.values()
    }
    for training in section.trainings():
        sweep = section.sweeps[training.sweep]
        factors = {
            **_sweep_factors(params, training.sweep),
            "batch_norm": batch_norm[sweep.network],
            "learning_rate": training.learning_rate,
            "inverse_temperature": training.inverse_temperature,
            **start_factors(training.start),
            "seed": training.seed,
            "role": "tuning",
        }
        yield DeclaredRun(stage, training.cell, factors, parameters[training.cell])
    stage = confirm_temperature_check
    parameters = {cell.name: cell.parameters for cell in stage.cells(params)}
    for confirmation in section.confirmations():
        sweep = section.sweeps[confirmation.sweep]
        factors = {
            **_sweep_factors(params, confirmation.sweep),
            "batch_norm": batch_norm[sweep.network],
            "inverse_temperature": confirmation.inverse_temperature,
            **start_factors(confirmation.start),
            "seed": confirmation.seed,
            "role": "confirmation",
        }
        cell = confirmation.cell
        yield DeclaredRun(stage, cell, factors, parameters[cell])
    yield from _declared_flows(params)


def has_batch_norm(network: Network) -> bool:
    """Whether `network` has batch normalisation."""
    modules = check_network(network).modules()
    return any(isinstance(module, _BatchNorm) for module in modules)


def _sweep_factors(params: Params, name: str) -> dict[str, Any]:
    """The factors that all runs of the sweep `name` share."""
    sweep = params.temperature_check.sweeps[name]
    recipe = params.temperature_check.recipe_of(name)
    return {
        "task": "training",
        "sweep": name,
        "dataset": sweep.dataset,
        "network": sweep.network,
        "architecture": params.networks[sweep.network].architecture,
        "loss": "tempered_cross_entropy",
        "schedule": recipe.schedule.name,
        "warmup": recipe.schedule.warmup,
        "optimizer": recipe.optimizer,
        "weight_decay": recipe.weight_decay,
        "crop_padding": recipe.crop_padding,
        "flip": recipe.flip,
        "epochs": recipe.epochs,
        "planned_epochs": recipe.planned_epochs,
    }


def start_factors(start: str) -> dict[str, Any]:
    """The factors that describe `start`, a name from the parameters."""
    norm = number_in(start, "norm-")
    correlation = number_in(start, "pair-")
    if start in {PLAIN, COOLED}:
        kind = "own"
    elif norm is not None:
        kind = "norm"
    else:
        kind = "pair"
    return {
        "mode": "last_layer" if start == COOLED else "none",
        "start": kind,
        "start_norm": norm,
        "correlation": correlation,
    }


def _declared_flows(params: Params) -> Iterator[DeclaredRun]:
    """The declared trajectories of gradient flow; a cell contains several of them."""
    section = params.temperature_check.early_learning
    if section is None:
        return
    parameters = {cell.name: cell.parameters for cell in early_learning.cells(params)}
    for network, question, seed in section.courses():
        cell = f"{network}/{question}/{seed}"
        shared = {
            "task": "gradient_flow",
            "dataset": section.dataset,
            "network": network,
            "architecture": params.networks[network].architecture,
            "batch_norm": False,
            "loss": "tempered_cross_entropy",
            "seed": seed,
        }
        if question == CURVES:
            courses = _curves(section.curves.inverse_temperatures)
        else:
            norms = section.norms
            courses = _norms(norms.inverse_temperature, norms.logit_norms)
        for course in courses:
            yield DeclaredRun(early_learning, cell, shared | course, parameters[cell])


def _curves(inverse_temperatures: list[float]) -> Iterator[dict[str, Any]]:
    """Yield the factors of the trajectories that start from logits of 0.

    The linearised trajectory is the same for every inverse temperature, so its inverse
    temperature is None.
    """
    start = {"start": "zero", "start_norm": 0.0}
    yield {**start, "dynamics": "linearised", "inverse_temperature": None}
    for value in inverse_temperatures:
        yield {**start, "dynamics": "network", "inverse_temperature": value}


def _norms(inverse_temperature: float, norms: list[float]) -> Iterator[dict[str, Any]]:
    """Yield the factors of the trajectories that start from logits with given `norms`.

    For each norm there is a trajectory of the network and one of its linearisation.
    """
    for norm in norms:
        for dynamics in DYNAMICS:
            yield {
                "start": "norm",
                "start_norm": norm,
                "dynamics": dynamics,
                "inverse_temperature": inverse_temperature,
            }


def read_run(
    run: DeclaredRun, artifact: Artifact, *, heuristic: RidgeHeuristic
) -> MeasuredRun:
    """Read the facts, the values and the measured tables of a run from its cell."""
    if run.stage is early_learning:
        return _flow(run, artifact)
    record = artifact.json("record.json")
    names = ("classes", "parameters", "diverged", "epochs_done", "initial_logit_norm")
    facts = {name: record[name] for name in names}
    facts |= {f"{split}_samples": record["samples"][split] for split in SPLITS}
    if run.stage is confirm_temperature_check:
        facts["learning_rate"] = artifact.json(CHOICE)["learning_rate"]
    return MeasuredRun(facts, _values(run, artifact, record, heuristic))


def _values(
    run: DeclaredRun, artifact: Artifact, record: Any, heuristic: RidgeHeuristic
) -> list[dict[str, Any]]:
    """The values of a training run.

    The values are the run's history and, for the last epoch, the temperature of
    Cooling, the heuristic's prediction, and metrics of the logits. A run may lack some
    of the values for the last epoch.
    """
    by_place: dict[tuple[str, int, bool], dict[str, Any]] = {}

    def add(split: str, epoch: int, *, scaled: bool = False, **metrics: Any) -> None:
        place = {"split": split, "epoch": epoch, "scaled": scaled}
        row = by_place.setdefault((split, epoch, scaled), place)
        row |= metrics

    last = record["epochs_done"]
    for row in artifact.json("history.json"):
        add(row["split"], row["epoch"], accuracy=row["accuracy"], nll=row["nll"])
    temperatures = artifact.json("temperatures.json")
    if temperatures:
        add("validation", last, temperature=temperatures[-1]["total"])
    statistics = artifact.json("statistics.json")
    if statistics is not None:
        estimate = heuristic.predict(statistics)
        add(
            "train",
            last,
            heuristic_inverse_temperature=estimate.predicted,
            heuristic_is_inside=estimate.inside,
        )
    if not record["diverged"]:
        for row in _evaluation(artifact, run.factors["inverse_temperature"]):
            add(epoch=last, **row)
    return list(by_place.values())


def _evaluation(
    artifact: Artifact, inverse_temperature: float
) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a run's held-out logits, before and after scaling."""
    stored = read_logits(artifact, LOGITS)
    validation_logits, validation_labels = stored["validation"].for_fitting()
    test_logits, test_labels = stored["test"].for_evaluation()
    validation = tempered_logits(validation_logits.double(), inverse_temperature)
    test = tempered_logits(test_logits.double(), inverse_temperature)
    fit = fit_temperature(validation, validation_labels)
    yield {
        "split": "validation",
        "accuracy": _accuracy(validation, validation_labels),
    }
    confidence = torch.softmax(test, dim=1).amax(dim=1).mean().item()
    yield {
        "split": "test",
        "accuracy": _accuracy(test, test_labels),
        "confidence": confidence,
        **_calibration(test, test_labels),
    }
    yield {
        "split": "test",
        "scaled": True,
        "temperature": fit.temperature,
        "at_bound": fit.at_bound,
        **_calibration(apply_temperature(test, fit.temperature), test_labels),
    }


def _accuracy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    return (logits.argmax(dim=1) == labels).double().mean().item()


def _calibration(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    probabilities = torch.softmax(logits, dim=1)
    return {
        "nll": negative_log_likelihood(logits, labels).item(),
        "ece": expected_calibration_error(probabilities, labels).item(),
    }


def _flow(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    """Read a trajectory of gradient flow, with its times in rescaled units.

    The facts `unit_time`, `logit_time` and `drift_rate` are predictions from the
    initial network: the time in which the logits change by 1, the time in which they
    change by their own norm, and the initial rate at which the kernel changes.
    """
    record = artifact.json("record.json")
    if run.factors["start"] == "zero":
        courses = artifact.json("courses.json")
        measured = _of_value(
            courses, "inverse_temperature", run.factors["inverse_temperature"]
        )
        rows = measured["rows"]
        times = {row["moment"]: row["time"] for row in rows}
        tables = {COURSES: rows}
    else:
        courses = artifact.json("starts.json")
        measured = _of_value(courses, "wanted_norm", run.factors["start_norm"])
        times = measured[DYNAMICS[run.factors["dynamics"]]]
        measured |= {"ending": times["ending"]}
        tables = {}
    measured = record | measured
    facts = {name: measured.get(name) for name in _FACTS_OF_FLOW}
    facts |= {
        "initial_logit_norm": measured.get("logit_norm", 0.0),
        "correlation": measured.get("correlation"),
        "train_samples": record["images"],
        "diverged": False,
        "epochs_done": 0,
    }
    events = {f"time_to_{event}": times.get(event) for event in EVENTS}
    values = [{"split": "train", "epoch": 0, **events}]
    return MeasuredRun(facts, values, tables)


def _of_value(courses: list[dict[str, Any]], name: str, value: Any) -> dict[str, Any]:
    """The trajectory in `courses` whose entry `name` has the value `value`."""
    return next(course for course in courses if course[name] == value)
