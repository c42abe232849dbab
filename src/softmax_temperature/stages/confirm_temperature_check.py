"""Stage confirm_temperature_check: fresh seeds with the learning rates that validation data prefer."""

from pathlib import Path

from softmax_temperature.params import Params
from softmax_temperature.params.temperature_check import Training
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.runner.section import Section
from softmax_temperature.stages import train_temperature_check
from softmax_temperature.stages.trainings import LOGITS

PAPER = "temperature_check"
OUTPUT = Path("data/temperature_check/confirmation")
CHOICE = "choice.json"
"""The file with the rescaled learning rate that a confirmation was trained with."""


class ConfirmationCell(Section):
    """What a cell is given: the rates by their names, and the training with a rate that is a placeholder."""

    rates: dict[str, float]
    plan: train_temperature_check.SweepCell


def cells(params: Params) -> list[Cell]:
    """One cell per sweep, inverse temperature, start and fresh seed; each reads the trainings that it chooses from."""
    paper, found = params.temperature_check, []
    for confirmation in paper.confirmations():
        name, at, start, seed = confirmation
        rates = {f"{rate:g}": rate for rate in paper.sweeps[name].rates(at)}
        inputs = {"data": PREPARED / paper.sweeps[name].dataset} | {
            f"{label}/{other}": train_temperature_check.OUTPUT / Training(name, at, rate, start, other).cell
            for label, rate in rates.items()
            for other in range(paper.seeds_of(name))
        }
        training = train_temperature_check.plan_of(params, Training(name, at, 1.0, start, seed))
        plan = ConfirmationCell(rates=rates, plan=training)
        found.append(Cell(confirmation.cell, run, plan, inputs, training.network.gpu_share))
    return found


def run(job: Job, plan: ConfirmationCell) -> None:
    """Train with the rate whose trainings have the highest mean validation accuracy; of equal ones, the lowest rate.

    Writes `choice.json`, and the files of `train_temperature_check.run`.
    """
    rates, training = plan.rates, plan.plan
    accuracies: dict[str, list[float]] = {label: [] for label in rates}
    for name, artifact in job.inputs.items():
        if name != "data":
            accuracies[name.partition("/")[0]].append(_accuracy(artifact))
    best = max(sorted(rates, key=rates.__getitem__), key=lambda label: sum(accuracies[label]) / len(accuracies[label]))
    write_json(job.output / CHOICE, {"learning_rate": rates[best]})
    recipe = training.recipe.changed({"lr": rates[best] / training.training.inverse_temperature**2})
    train_temperature_check.run(job, training.model_copy(update={"recipe": recipe}))


def _accuracy(training: Artifact) -> float:
    """On validation data; one that diverged is as accurate as guessing."""
    record = training.json("record.json")
    if record["diverged"]:
        return 1 / float(record["classes"])
    tensors = training.tensors(LOGITS)
    return (tensors["validation.logits"].argmax(dim=1) == tensors["validation.labels"]).double().mean().item()
