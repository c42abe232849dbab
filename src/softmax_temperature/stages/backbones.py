"""Stages pretrain and embed: the backbones that the pipeline trains itself, and all images through all backbones."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_model
from torch import Tensor

from softmax_temperature.data.glyphs import choose_characters, draw_glyphs, pretraining_pool
from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import generator_for, seed_of
from softmax_temperature.data.splits import SplitName, stratified_holdout
from softmax_temperature.networks.backbones.loading import load_backbone, locate_weights
from softmax_temperature.networks.backbones.preprocessing import described_preprocess
from softmax_temperature.networks.backbones.pretraining import Pretraining
from softmax_temperature.networks.embeddings import extract, write_embeddings
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.registry import build_classifier
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.shared import Embed, Pretrain, PretrainRecipe
from softmax_temperature.runner.artifacts import digest_of_file, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import BACKBONES, EMBEDDINGS, PREPARED
from softmax_temperature.runner.machine import resolve_precision
from softmax_temperature.stages import stage

WEIGHTS = "weights.safetensors"
HELD_OUT = 0.1
"""The share of each class's images that measures the accuracy in the record; nothing is chosen by it."""


class _PretrainPlan(Pretrain):
    spec: Backbone
    data_seed: int  # The project's, so that all backbones see the same images.


@stage("classifier_temperature", BACKBONES)
def pretrain(params: Params) -> Iterator[Cell]:
    """One cell per backbone whose weights are "pretrain", widest first, because the longest should not start last."""
    for name, spec in sorted(params.backbones.items(), key=lambda item: -item[1].embedding):
        if spec.weights == "pretrain":
            plan = _PretrainPlan(**params.pretrain.model_dump(), spec=spec, data_seed=params.seed)
            yield Cell(name, _pretrain, plan)


def _pretrain(job: Job, plan: _PretrainPlan) -> None:
    """Train a backbone on glyphs that no other data set uses; writes the weights of the whole network and a record."""
    images, labels, held_out = _glyphs(plan)
    with drawn_from(job.seed):
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
    record = {
        "classes": plan.classes,
        "images": {"train": int((~held_out).sum()), "held_out": int(held_out.sum())},
        "final_train_loss": training.loss,
        "held_out_accuracy": training.accuracy(images[held_out], labels[held_out]),
    }
    save_model(training.network.cpu(), str(job.output / WEIGHTS))
    write_json(job.output / "record.json", record)


def _glyphs(plan: _PretrainPlan) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, 1, 32, 32) uint8, labels (n,), and which of them are held out (n,)."""
    characters = choose_characters(plan.classes, pretraining_pool, where="pretrain.classes", seed=plan.data_seed)
    images, labels = draw_glyphs(characters, plan.images_per_class, seed=plan.data_seed)
    held_out = stratified_holdout(labels, HELD_OUT, generator_for(plan.data_seed, "pretrain"))
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return torch.from_numpy(channels_first), torch.from_numpy(labels), torch.from_numpy(held_out)


class _EmbedPlan(Embed):
    backbone: str
    spec: Backbone
    root: str
    weights_sha256: str | None  # Of the backbone's weights file, if it has one.
    seed: int  # One for all data sets: an untrained backbone is the same network on each.


@stage("classifier_temperature", EMBEDDINGS)
def embed(params: Params) -> Iterator[Cell]:
    """One cell per data set and backbone; weights that are missing are fetched now, or refused by an InputError."""
    plans = {}
    for data, name in params.embedded_pairs():
        spec, root = params.backbones[name], params.data.root
        if name not in plans:
            path = locate_weights(spec, root=Path(root), download=params.data.download)
            seed, digest = seed_of(params.seed, "backbones", name), digest_of_file(path) if path else None
            own = {"backbone": name, "spec": spec, "root": root, "weights_sha256": digest, "seed": seed}
            plans[name] = _EmbedPlan(**params.embed.model_dump(), **own)
        weights = {"weights": BACKBONES / name} if spec.weights == "pretrain" else {}
        yield Cell(f"{data}/{name}", _embed, plans[name], {"images": PREPARED / data, **weights}, gpu_share=1.0)


def _embed(job: Job, plan: _EmbedPlan) -> None:
    """Embed one data set with one backbone; writes the files of `write_embeddings`."""
    images = open_prepared(job.inputs["images"], root=Path(plan.root))
    pretrained = job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    loaded = load_backbone(plan.spec, root=Path(plan.root), seed=plan.seed, pretrained=pretrained)
    if plan.weights_sha256 not in (None, loaded.provenance["weights_sha256"]):
        where = f"backbones.{plan.backbone}"
        raise InputError("the weights changed during the run", where=where, remedy="Run it again.")
    precision = resolve_precision(plan.precision, job.device)
    done, total = 0, sum(len(images.labels(split)) for split in images.splits)

    def embeddings(split: SplitName) -> Iterator[Tensor]:
        nonlocal done
        where, batches = f"{images.name}/{split} with {plan.backbone}", images.batches(split, plan.batch_size)
        how = {"device": job.device, "precision": precision, "where": where}
        for batch in extract(loaded.network, loaded.preprocess, batches, **how):  # type: ignore[arg-type]
            yield batch
            done += len(batch)
            job.progress(done, total)

    rows = {split: (images.labels(split), images.index(split)) for split in images.splits}
    about = {"dataset": images.name, "backbone": plan.backbone, "precision": precision}
    write_embeddings(job.output, rows, embeddings, loaded.provenance | about)
