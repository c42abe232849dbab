"""A small training run of every kind, on any device.

The tests of devices and `make gpu-check` use these runs.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.data.splits import SplitName
from softmax_temperature.data.trees import encode_trees, parse_tree
from softmax_temperature.losses import make_loss
from softmax_temperature.networks.registry import network_class
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params.focal import Transformer
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training import (
    Callback,
    ImageSet,
    Norms,
    Samples,
    Trainer,
    Watch,
)
from softmax_temperature.training.cooling import CoolingCallback, PixelCoolingCallback
from softmax_temperature.training.pixels import PixelCrossEntropyLoss, PixelScores
from softmax_temperature.training.texts import OverLabelledNodes, TokenSet, TreeSet
from softmax_temperature.training.translation.network import make_network
from softmax_temperature.training.translation.scores import TokenScores
from softmax_temperature.training.translation.sentences import (
    END,
    LengthBatches,
    PerToken,
    Ragged,
    SentencePairs,
)
from softmax_temperature.training.word_embeddings import EmbeddingSteps

CLASSES, VOCABULARY, VOID = 4, 30, 255
RECIPE: dict[str, Any] = {
    "epochs": 3,
    "planned_epochs": 4,
    "batch_size": 8,
    "optimizer": "sgd",
    "lr": 0.02,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "epsilon": 1e-8,
    "schedule": {"name": "cosine", "warmup": 0.5},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "flip": False,
    "mean": None,
    "std": None,
    "precision": "float32",
}
PIXELS = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]}
AUGMENTED = {**PIXELS, "crop_padding": 2, "flip": True}
LOSSES: dict[str, dict[str, Any]] = {
    "brier": {},
    "cross_entropy": {},
    "focal": {"gamma": 3.0},
    "label_smoothing": {},
    "mmce": {},
    "sample_dependent_focal": {},
    "scheduled_focal": {"gammas": [5.0, 3.0], "milestones": [2]},
    "tempered_cross_entropy": {"inverse_temperature": 2.0},
}


class Training(NamedTuple):
    """A trainer, and the callbacks that run after its epochs."""

    trainer: Trainer
    callbacks: dict[str, Callback]


def seeded(build: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    with drawn_from(3):
        return build(*arguments, **options)


def images(
    count: int, seed: int = 0, size: int = 16, split: SplitName = "train"
) -> ImageSet:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 200, (count, 3, size, size), generator=generator)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    for channel in range(3):
        pixels[labels == channel, channel] += 50
    return ImageSet(pixels.to(torch.uint8), labels, split)


def segmented(count: int, seed: int = 0, split: SplitName = "train") -> ImageSet:
    pixels = images(count, seed, size=32).inputs
    labels = (pixels[:, 0] > 120).to(torch.uint8).masked_fill(pixels[:, 1] > 230, VOID)
    return ImageSet(pixels, labels, split)


def texts(
    count: int, seed: int = 0, length: int = 40, split: SplitName = "train"
) -> TokenSet:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, VOCABULARY, (count, length), generator=generator)
    lengths = torch.randint(1, length + 1, (count, 1), generator=generator)
    tokens[torch.arange(length) >= lengths] = 0
    return TokenSet(tokens, tokens[:, 0] % 2, split)


def trees(count: int, seed: int = 0, split: SplitName = "train") -> TreeSet:
    draw = np.random.default_rng(seed)

    def text(depth: int) -> str:
        inside = (
            f"w{draw.integers(21)}"
            if not depth or draw.random() < 0.2
            else f"{text(depth - 1)} {text(depth - 1)}"
        )
        return f"({draw.integers(5)} {inside})"

    encoded = encode_trees(
        [parse_tree(text(5)) for _ in range(count)],
        tuple(f"w{number}" for number in range(18)),
    )
    return TreeSet(encoded, torch.arange(count) % 2, split)


def pairs(count: int, seed: int = 0, split: SplitName = "train") -> SentencePairs:
    draw = np.random.default_rng(seed)
    sides = (
        [
            [*draw.integers(4, VOCABULARY, draw.integers(1, 13)).tolist(), END]
            for _ in range(count)
        ]
        for _ in "st"
    )
    return SentencePairs(*map(Ragged.of, sides), split)


def splits(make: Callable[..., Samples], *counts: int) -> dict[SplitName, Samples]:
    names: tuple[SplitName, ...] = ("train", "validation", "test")
    return {
        name: make(count, seed, split=name)
        for seed, (name, count) in enumerate(zip(names, counts, strict=True))
    }


def small_vgg(**options: Any) -> nn.Module:
    network: nn.Module = seeded(
        network_class("vgg"),
        CLASSES,
        widths=(8, 8, 16, 16),
        dense=16,
        image_size=16,
        **options,
    )
    return network


def classification(
    device: str,
    network: nn.Module,
    sets: Mapping[SplitName, Samples],
    *,
    loss: str = "cross_entropy",
    cooling: Mapping[str, Any] | None = None,
    **recipe: Any,
) -> Training:
    """The training run of a classifier, with all callbacks that record something."""
    objective, train = make_loss(loss, LOSSES[loss]), sets["train"]
    if isinstance(train, TreeSet):
        train, objective = train.labelled_nodes(), OverLabelledNodes(objective)
    trainer = Trainer(
        network,
        objective,
        train,
        Recipe.model_validate(RECIPE | recipe),
        seed=5,
        device=device,
    )
    norms = Norms(sets["validation"].inputs)
    trainer.after_batch.append(norms.after_batch)
    watch = Watch(
        dict(sets), gradient_epochs=frozenset({2}), reliability_epochs=frozenset({2})
    )
    callbacks: dict[str, Callback] = {"norms": norms, "watch": watch}
    if cooling is not None:
        settings = {
            "period": "epoch",
            "optimizer_state": "keep",
            "mode": "last_layer",
            **cooling,
        }
        cools = CoolingCallback(network, sets["validation"], **settings)
        trainer.after_batch.append(cools.after_batch)
        callbacks = {"cooling": cools, **callbacks}
    return Training(trainer, callbacks)


def vgg(
    device: str, *, network: Mapping[str, Any] | None = None, **options: Any
) -> Training:
    return classification(
        device,
        small_vgg(**network or {}),
        splits(images, 40, 24, 20),
        **{**AUGMENTED, "clip_norm": 5.0, **options},
    )


def resnet(device: str, **options: Any) -> Training:
    network = seeded(network_class("bottleneck_resnet"), (1, 1, 1, 1), CLASSES, width=4)
    return classification(
        device, network, splits(images, 40, 24, 20), **AUGMENTED | options
    )


def text_cnn(device: str, **options: Any) -> Training:
    network = seeded(
        network_class("text_cnn"),
        VOCABULARY,
        embedding=8,
        filters=8,
        dense=8,
        num_classes=2,
    )
    sets = splits(texts, 160, 40, 45)
    training = classification(
        device, network, sets, batch_size=40, optimizer="adagrad", lr=0.01, **options
    )
    training.trainer.after_batch[:] = [EmbeddingSteps(training.trainer, 0.1)]
    return Training(training.trainer, {"watch": training.callbacks["watch"]})


def gru(device: str, **options: Any) -> Training:
    network = seeded(
        network_class("gru"), VOCABULARY, embedding=8, hidden=8, num_classes=2
    )
    return classification(
        device,
        network,
        splits(texts, 160, 40, 45),
        batch_size=40,
        cooling={},
        **options,
    )


def tree_lstm(device: str, **options: Any) -> Training:
    network = seeded(network_class("tree_lstm"), VOCABULARY, embedding=8, hidden=6)
    sets = splits(trees, 28, 12, 12)
    return classification(
        device, network, sets, batch_size=7, optimizer="adagrad", lr=0.05, **options
    )


def transformer(device: str) -> Training:
    network = make_network(
        VOCABULARY,
        Transformer(width=8, heads=2, layers=1, inner=16, dropout=0.1),
        seed=0,
    )
    train = LengthBatches.of(pairs(30, 0), tokens=60, seed=1)
    held = LengthBatches.of(pairs(30, 1, split="validation"), tokens=60, seed=1)
    schedule = {"name": "inverse_square_root", "warmup": 1.0}
    recipe = Recipe.model_validate(
        RECIPE
        | {"batch_size": 1, "optimizer": "adam", "lr": 0.005, "schedule": schedule}
    )
    objective = PerToken(make_loss("label_smoothing", {}))
    trainer = Trainer(network, objective, train, recipe, seed=5, device=device)
    return Training(trainer, {"scores": TokenScores(held)})


def unet(device: str) -> Training:
    network, sets = seeded(UNet, 2, 4), splits(segmented, 16, 20, 18)
    recipe = Recipe.model_validate(RECIPE | PIXELS | {"batch_size": 4})
    cooling = PixelCoolingCallback(
        network, sets["validation"], void=VOID, factor=1.0, seed=0, most=3000
    )  # type: ignore[arg-type]
    trainer = Trainer(
        network,
        PixelCrossEntropyLoss(VOID),
        sets["train"],
        recipe,
        seed=5,
        device=device,
    )
    scores = PixelScores(
        sets["test"], void=VOID, temperature=lambda: cooling.temperature
    )  # type: ignore[arg-type]
    return Training(trainer, {"cooling": cooling, "scores": scores})


def embeddings(count: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 5
    return torch.randn(count, 12, generator=generator) + 2 * torch.eye(12)[
        labels
    ], labels
