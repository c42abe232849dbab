"""Stage pretrain: trains the backbones whose weights are "pretrain", on glyphs that no other data set uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import BACKBONES

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.networks.backbones.pretraining import Pretraining
    from softmax_temperature.params import Params

OUTPUT = BACKBONES
WEIGHTS = "weights.safetensors"
HELD_OUT = 0.1
"""The share of each class's images that measures the accuracy in the record; nothing is chosen by it."""


def cells(params: Params) -> list[Cell]:
    """One cell per backbone, widest first, because the longest should not start last."""
    names = [name for name, spec in params.backbones.items() if spec.weights == "pretrain"]
    widest_first = sorted(names, key=lambda name: -params.backbones[name].embedding)
    return [_cell(params, name) for name in widest_first]


def _cell(params: Params, name: str) -> Cell:
    pool = {"classes", "images_per_class"}
    parameters = {
        "spec": params.backbones[name].model_dump(),
        "recipe": params.pretrain.model_dump(exclude=pool),
        **params.pretrain.model_dump(include=pool),
        # The project's, not the cell's: all backbones see the same images.
        "data_seed": params.seed,
    }
    return Cell(name, run, parameters)


def run(
    job: Job,
    *,
    spec: dict[str, Any],
    recipe: dict[str, Any],
    classes: int,
    images_per_class: int,
    data_seed: int,
) -> None:
    """Train one backbone; writes `weights.safetensors`, the whole network, and `record.json`.

    Args:
        job: resumes from its checkpoint.
        spec: the backbone, as JSON.
        recipe: epochs, batch_size, lr, momentum and weight_decay of `backbones.pretraining.Pretraining`.
        classes: how many characters.
        images_per_class: of each, the held-out ones included.
        data_seed: of the images.
    """
    from safetensors.torch import save_file  # Here, because it imports torch, which `--help` must not.

    images, labels, held_out = _images(classes, images_per_class, data_seed)
    training = _new_training(job, Backbone.model_validate(spec), images[~held_out], labels[~held_out], classes, recipe)
    _train(job, training, recipe["epochs"])
    weights = {name: value.cpu().contiguous() for name, value in training.network.state_dict().items()}
    save_file(weights, job.output / WEIGHTS)
    record = {
        "classes": classes,
        "images": {"train": int((~held_out).sum()), "held_out": int(held_out.sum())},
        "final_train_loss": training.loss,
        "held_out_accuracy": training.accuracy(images[held_out], labels[held_out]),
    }
    write_json(job.output / "record.json", record)


def _new_training(
    job: Job, spec: Backbone, images: Tensor, labels: Tensor, classes: int, recipe: dict[str, Any]
) -> Pretraining:
    import torch

    from softmax_temperature.networks.backbones.networks import build_classifier
    from softmax_temperature.networks.backbones.preprocessing import described_preprocess
    from softmax_temperature.networks.backbones.pretraining import Pretraining

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)
        network = build_classifier(spec, classes=classes)
    preprocess = described_preprocess(spec)
    return Pretraining(network, preprocess, images, labels, **recipe, seed=job.seed, device=job.device)


def _train(job: Job, training: Pretraining, epochs: int) -> None:
    checkpointer = job.checkpointer()
    if (state := checkpointer.load()) is not None:
        training.load_state_dict(state)
    while training.epochs_done < epochs:
        training.epoch()
        checkpointer.save_if_due(training.state_dict)
        job.progress(training.epochs_done, epochs)


def _images(classes: int, images_per_class: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, 1, 32, 32) uint8, labels (n,), and which of them are held out (n,)."""
    import numpy as np
    import torch

    from softmax_temperature.data.glyphs import choose_characters, draw_glyphs, pretraining_pool
    from softmax_temperature.data.sampling import generator_for, stratified_holdout

    characters = choose_characters(classes, pretraining_pool, where="pretrain.classes", seed=seed)
    images, labels = draw_glyphs(characters, images_per_class, seed=seed)
    held_out = stratified_holdout(labels, HELD_OUT, generator_for(seed, "pretrain"))
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return torch.from_numpy(channels_first), torch.from_numpy(labels), torch.from_numpy(held_out)
