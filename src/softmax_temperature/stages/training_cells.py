"""What the training stages share: the parameters of a cell, and the files that every training leaves."""

from collections.abc import Iterable, Mapping
from typing import Any

from safetensors.torch import save_file
from torch import Tensor, nn

from softmax_temperature.data.splits import SplitName
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.section import Section
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.training import Diverged, Samples, Trainer, check_network, count_parameters

WEIGHTS = "weights.safetensors"
LOGITS = "logits.safetensors"
LAST_LOGITS = "last-logits.safetensors"
"""Of the last epoch, where another one was selected to be evaluated."""
HELD_OUT: tuple[SplitName, ...] = ("validation", "test")


class TrainingCell(Section):
    """What every training of a network by its name is given; `training_seed` is of weights, order and augmentation."""

    network: Network
    recipe: Recipe
    root: str
    training_seed: int


def check_networks(params: Params, names: Iterable[str]) -> None:
    """Refuse networks that do not take their arguments before any training: the parameters are wrong, not a cell."""
    for name in dict.fromkeys(names):
        check_network(params.networks[name])


def save_weights(job: Job, network: nn.Module) -> None:
    """Write `weights.safetensors`."""
    weights = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
    save_file(weights, job.output / WEIGHTS)


def save_logits(
    job: Job,
    trainer: Trainer,
    sets: Mapping[SplitName, Samples],
    outliers: Mapping[str, Tensor] | None = None,
    shifted: Mapping[str, Samples] | None = None,
    file: str = LOGITS,
) -> bool:
    """Write `file`: logits and labels of validation, test and shifted data, and logits of outliers.

    Returns:
        Whether all logits are finite; otherwise nothing is written.
    """
    labelled: dict[str, Samples] = {split: sets[split] for split in HELD_OUT} | dict(shifted or {})
    inputs = {name: some.inputs for name, some in labelled.items()} | dict(outliers or {})
    try:
        found = {f"{name}.logits": trainer.evaluate(some)[0] for name, some in inputs.items()}
    except Diverged:
        return False
    save_file(found | {f"{name}.labels": some.labels for name, some in labelled.items()}, job.output / file)
    return True


def save_record(job: Job, trainer: Trainer, *, diverged: bool, recipe: Recipe, **about: Any) -> None:
    """Write `record.json`: how long the training was, whether it diverged, and what else there is to say about it."""
    record = {
        "epochs": recipe.epochs,
        "planned_epochs": recipe.planned_epochs,
        "epochs_done": trainer.epochs_done,
        "diverged": diverged,
        "parameters": count_parameters(trainer.network),
    }
    write_json(job.output / "record.json", record | about)
