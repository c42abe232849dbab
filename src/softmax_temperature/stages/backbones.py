"""Stages pretrain and embed: the backbones that the pipeline trains itself, and all images through all backbones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_model
from torch import Tensor

from softmax_temperature.data.glyphs import choose_characters, draw_glyphs, pretraining_pool
from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import generator_for, seed_of
from softmax_temperature.data.splits import SplitName, stratified_holdout
from softmax_temperature.networks.backbones import described_preprocess, load_backbone, locate_weights
from softmax_temperature.networks.embeddings import extract, write_embeddings
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.pretraining import Pretraining
from softmax_temperature.networks.registry import build_classifier
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.shared import Embed, Pretrain, PretrainRecipe
from softmax_temperature.runner.artifacts import digest_of_file, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.machine import resolve_precision
from softmax_temperature.stages import BACKBONES, EMBEDDINGS, PREPARED, part_of, stage

WEIGHTS = "weights.safetensors"
HELD_OUT = 0.1
"""The share of each class's images that measures the accuracy in the record; nothing is chosen by it."""


@stage("classifier_temperature", BACKBONES)
def pretrain(params: Params) -> Iterator[Cell]:
    """One cell per backbone whose weights are "pretrain", widest first, because the longest should not start last."""
    for name, spec in sorted(params.backbones.items(), key=lambda item: -item[1].embedding):
        if spec.weights == "pretrain":
            # The project's seed, so that all backbones see the same images.
            yield Cell(name, _pretrain, {"spec": spec, "how": params.pretrain, "data_seed": params.seed})


def _pretrain(job: Job, *, spec: Backbone, how: Pretrain, data_seed: int) -> None:
    """Train a backbone on glyphs that no other data set uses; writes the weights of the whole network and a record."""
    characters = choose_characters(how.classes, pretraining_pool, where="pretrain.classes", seed=data_seed)
    drawn, numbers = draw_glyphs(characters, how.images_per_class, seed=data_seed)
    held_out = torch.from_numpy(stratified_holdout(numbers, HELD_OUT, generator_for(data_seed, "pretrain")))
    images, labels = torch.from_numpy(drawn).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(numbers)
    with drawn_from(job.seed):
        network = build_classifier(spec, num_classes=how.classes)
    recipe = part_of(how, PretrainRecipe).model_dump() | {"seed": job.seed, "device": job.device}
    training = Pretraining(network, described_preprocess(spec), images[~held_out], labels[~held_out], **recipe)
    checkpointer = job.checkpointer()
    if (state := checkpointer.load()) is not None:
        training.load_state_dict(state)
    while training.epochs_done < how.epochs:
        training.epoch()
        checkpointer.save_if_due(training.state_dict)
        job.progress(training.epochs_done, how.epochs)
    record = {
        "classes": how.classes,
        "images": {"train": int((~held_out).sum()), "held_out": int(held_out.sum())},
        "final_train_loss": training.loss,
        "held_out_accuracy": training.accuracy(images[held_out], labels[held_out]),
    }
    save_model(training.network.cpu(), str(job.output / WEIGHTS))
    write_json(job.output / "record.json", record)


@stage("classifier_temperature", EMBEDDINGS)
def embed(params: Params) -> Iterator[Cell]:
    """One cell per data set and backbone; weights that are missing are fetched now, or refused by an InputError."""
    digests: dict[str, str | None] = {}
    for data, name in params.embedded_pairs():
        spec, root = params.backbones[name], params.data.root
        if name not in digests:
            path = locate_weights(spec, root=Path(root), download=params.data.download)
            digests[name] = digest_of_file(path) if path else None
        plan = {"backbone": name, "spec": spec, "how": params.embed, "root": root, "weights_sha256": digests[name]}
        # One seed for all data sets: an untrained backbone is the same network on each.
        plan["seed"] = seed_of(params.seed, "backbones", name)
        weights = {"weights": BACKBONES / name} if spec.weights == "pretrain" else {}
        yield Cell(f"{data}/{name}", _embed, plan, {"images": PREPARED / data, **weights}, gpu_share=1.0)


def _embed(
    job: Job, *, backbone: str, spec: Backbone, how: Embed, root: str, weights_sha256: str | None, seed: int
) -> None:
    """Embed one data set with one backbone; writes the files of `write_embeddings`."""
    images = open_prepared(job.inputs["images"], root=Path(root))
    pretrained = job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    network, preprocess, provenance = load_backbone(spec, root=Path(root), seed=seed, pretrained=pretrained)
    if weights_sha256 not in (None, provenance["weights_sha256"]):
        where = f"backbones.{backbone}"
        raise InputError("the weights changed during the run", where=where, remedy="Run it again.")
    precision = resolve_precision(how.precision, job.device)
    done, total = 0, sum(len(images.labels(split)) for split in images.splits)

    def embeddings(split: SplitName) -> Iterator[Tensor]:
        nonlocal done
        options: Any = {"device": job.device, "precision": precision, "where": f"{images.name}/{split} with {backbone}"}
        for batch in extract(network, preprocess, images.batches(split, how.batch_size), **options):
            yield batch
            done += len(batch)
            job.progress(done, total)

    rows = {split: (images.labels(split), images.index(split)) for split in images.splits}
    about = {"dataset": images.name, "backbone": backbone, "precision": precision}
    write_embeddings(job.output, rows, embeddings, provenance | about)
