"""Stage pretrain: trains the backbones whose weights are "pretrain", on glyphs that no other data set uses."""

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from softmax_temperature.data.glyphs import choose_characters, draw_glyphs, pretraining_pool
from softmax_temperature.data.sampling import stratified_holdout
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.networks.backbones.networks import build_classifier
from softmax_temperature.networks.backbones.preprocessing import described_preprocess
from softmax_temperature.networks.backbones.pretraining import Pretraining
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.shared import Pretrain, PretrainRecipe
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import BACKBONES

PAPER = "classifier_temperature"
OUTPUT = BACKBONES
WEIGHTS = "weights.safetensors"
HELD_OUT = 0.1
"""The share of each class's images that measures the accuracy in the record; nothing is chosen by it."""


class PretrainCell(Pretrain):
    """What a cell is given; `data_seed` is the project's, so that all backbones see the same images."""

    spec: Backbone
    data_seed: int


def cells(params: Params) -> list[Cell]:
    """One cell per backbone, widest first, because the longest should not start last."""
    specs = {name: spec for name, spec in params.backbones.items() if spec.weights == "pretrain"}
    shared = params.pretrain.model_dump() | {"data_seed": params.seed}
    widest_first = sorted(specs, key=lambda name: -specs[name].embedding)
    return [Cell(name, run, PretrainCell(spec=specs[name], **shared)) for name in widest_first]


def run(job: Job, plan: PretrainCell) -> None:
    """Train one backbone; writes `weights.safetensors`, the whole network, and `record.json`."""
    images, labels, held_out = _images(plan)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)
        network = build_classifier(plan.spec, num_classes=plan.classes)
    settings = plan.model_dump(include=set(PretrainRecipe.model_fields)) | {"seed": job.seed, "device": job.device}
    preprocess = described_preprocess(plan.spec)
    training = Pretraining(network, preprocess, images[~held_out], labels[~held_out], **settings)
    checkpointer = job.checkpointer()
    if (state := checkpointer.load()) is not None:
        training.load_state_dict(state)
    while training.epochs_done < plan.epochs:
        training.epoch()
        checkpointer.save_if_due(training.state_dict)
        job.progress(training.epochs_done, plan.epochs)
    weights = {name: value.cpu().contiguous() for name, value in training.network.state_dict().items()}
    save_file(weights, job.output / WEIGHTS)
    record = {
        "classes": plan.classes,
        "images": {"train": int((~held_out).sum()), "held_out": int(held_out.sum())},
        "final_train_loss": training.loss,
        "held_out_accuracy": training.accuracy(images[held_out], labels[held_out]),
    }
    write_json(job.output / "record.json", record)


def _images(plan: PretrainCell) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, 1, 32, 32) uint8, labels (n,), and which of them are held out (n,)."""
    characters = choose_characters(plan.classes, pretraining_pool, where="pretrain.classes", seed=plan.data_seed)
    images, labels = draw_glyphs(characters, plan.images_per_class, seed=plan.data_seed)
    held_out = stratified_holdout(labels, HELD_OUT, generator_for(plan.data_seed, "pretrain"))
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return torch.from_numpy(channels_first), torch.from_numpy(labels), torch.from_numpy(held_out)
