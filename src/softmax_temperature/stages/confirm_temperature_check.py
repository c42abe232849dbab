"""Stage confirm_temperature_check: fresh seeds with the learning rates that validation data prefer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softmax_temperature.params import Params
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.temperature_check import Confirmation, Training
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages import train_temperature_check
from softmax_temperature.stages.training_cells import LOGITS

PAPER = "temperature_check"
OUTPUT = Path("data/temperature_check/confirmation")
CHOICE = "choice.json"
"""The file with the rescaled learning rate that a confirmation was trained with."""


def cells(params: Params) -> list[Cell]:
    """One cell per sweep, inverse temperature, start and fresh seed; each reads the trainings that it chooses from."""
    return [_cell(params, confirmation) for confirmation in params.temperature_check.confirmations()]


def _cell(params: Params, confirmation: Confirmation) -> Cell:
    paper = params.temperature_check
    name, place, start, seed = confirmation
    rates = {f"{rate:g}": rate for rate in paper.sweeps[name].rates(place)}
    tried = {
        f"{label}/{other}": train_temperature_check.OUTPUT / Training(name, place, rate, start, other).cell
        for label, rate in rates.items()
        for other in range(paper.seeds_of(name))
    }
    # The rate is a placeholder until the cell has chosen one.
    plan = train_temperature_check.plan_of(params, Training(name, place, 1.0, start, seed)) | {"describes": False}
    inputs = {"data": PREPARED / paper.sweeps[name].dataset, **tried}
    return Cell(confirmation.cell, run, {"rates": rates, "plan": plan}, inputs)


def run(job: Job, *, rates: Mapping[str, float], plan: dict[str, Any]) -> None:
    """Train with the rate whose trainings have the highest mean validation accuracy; of equal ones, the lowest rate.

    Writes `choice.json`, and the files of `train_temperature_check.run`.
    """
    accuracies: dict[str, list[float]] = {label: [] for label in rates}
    for name, artifact in job.inputs.items():
        if name != "data":
            accuracies[name.partition("/")[0]].append(_accuracy(artifact))
    best = max(sorted(rates, key=rates.__getitem__), key=lambda label: sum(accuracies[label]) / len(accuracies[label]))
    write_json(job.output / CHOICE, {"learning_rate": rates[best]})
    rate = rates[best] / plan["inverse_temperature"] ** 2
    recipe = Recipe.model_validate(plan["recipe"]).changed({"lr": rate})
    train_temperature_check.run(job, **plan | {"recipe": recipe.model_dump(mode="json")})


def _accuracy(training: Artifact) -> float:
    """On validation data; one that diverged is as accurate as guessing."""
    record = training.json("record.json")
    if record["diverged"]:
        return 1 / float(record["classes"])
    tensors = training.tensors(LOGITS)
    return (tensors["validation.logits"].argmax(dim=1) == tensors["validation.labels"]).double().mean().item()
