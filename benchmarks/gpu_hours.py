"""Estimate a profile's GPU-hours by block: python -m benchmarks.gpu_hours paper.

The estimate scales the images per second that we measured on an H100
(docs/gpu_and_clusters.md) by multiply-adds. We have no measured rate for text networks,
the Transformer, embedding and the search: their rates are assumed, and marked as such.
Evaluating an image is assumed to cost a third of training on it.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch.utils.flop_counter import FlopCounterMode

from softmax_temperature.networks.registry import build_network
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.tools.programs import run_program

# Multiply-adds per second on an H100 in bfloat16: measured images per second of
# training, times the multiply-adds of the network's forward pass.
LARGE = 15.0e12
"""The rate of ResNet-50, at 11,558 images per second; WRN-16-4 reaches 19.5e12."""
SMALL = 7.7e12
"""The rate of Cooling's small VGG: 200,000 images per second in 12 parallel runs."""
SMALL_NETWORK = 0.1e9
# The following rates are assumed, and summed over all runs on one GPU: samples per
# second of the text networks and of embedding, tokens per second of the Transformer,
# and operations per second of the search. EVALUATED is the assumed cost of evaluating a
# sample, relative to training on it.
TEXTS = {"gru": 20_000, "text_cnn": 20_000, "tree_lstm": 2_000}
EMBEDDED = 2_000
TOKENS = 400_000
GRID_FLOPS = 20e12
EVALUATED = 1 / 3
# Numbers of training, validation and test samples; image side in pixels (0 for texts).
SIZES = {
    "cifar10": (45_000, 5_000, 10_000, 32),
    "cifar100": (45_000, 5_000, 10_000, 32),
    "cifar10-99": (49_500, 500, 10_000, 32),
    "cifar100-99": (49_500, 500, 10_000, 32),
    "tiny_imagenet": (90_000, 10_000, 10_000, 64),
    "imagenet64": (1_153_050, 128_117, 50_000, 64),
    "imdb": (22_500, 2_500, 25_000, 0),
    "newsgroups20_all": (15_098, 900, 3_999, 0),
    "sst_trees": (6_920, 872, 1_821, 0),
}
# Numbers of samples and of classes of each data set of classifier_temperature.
EMBEDDINGS = {
    "mnist": (70_000, 10),
    "cifar10": (60_000, 10),
    "dtd": (5_640, 47),
    "photoart": (6_500, 50),
    "cifar100": (60_000, 100),
    "pinterest_faces_105": (17_500, 105),
    "cub200": (11_788, 200),
    "imagenet_r": (30_000, 200),
    "caltech256": (29_780, 256),
    "fss1000": (10_000, 1_000),
    "imagenet_mini": (38_668, 1_000),
    "things": (26_107, 1_854),
}
PAIRS_OF_WMT = 4_500_000
TOKENS_PER_PAIR = 60
SECONDS = 3_600


@dataclass
class Block:
    """One task, experiment or sweep of a profile.

    Attributes:
        stage: The stage that trains it.
        name: Its name in the parameters.
        trainings: Number of its training runs.
        hours: GPU-hours of all its training runs.
        assumed: Whether the rate is assumed, not measured.
    """

    stage: str
    name: str
    trainings: int
    hours: float
    assumed: bool = False


def show(
    profile: Annotated[str, typer.Argument(help="The name of a profile.")],
) -> None:
    """Print a profile's blocks, the GPU-hours of each stage, and the total."""
    _, params = render_profile(profile, Path("profiles"))
    sums: dict[str, float] = {}
    print("stage | block | trainings | H100-hours\n---|---|---|---")
    for block in blocks(params):
        mark = ", assumed rate" if block.assumed else ""
        hours = f"{block.hours:.1f}{mark}"
        print(f"{block.stage} | {block.name} | {block.trainings} | {hours}")
        sums[block.stage] = sums.get(block.stage, 0) + block.hours
    total = sum(sums.values())
    shares = ", ".join(f"{stage}: {ceil(hours)}" for stage, hours in sums.items())
    print(f"\ngpu_hours: {{{shares}}}\n{total:.0f} in all")


def blocks(params: Params) -> Iterator[Block]:
    """Yield the blocks of each paper that the profile runs."""
    if "classifier_temperature" in params.papers:
        yield from _classifier(params)
    if "focal" in params.papers:
        yield from _focal(params)
    if "cooling" in params.papers:
        yield from _cooling(params)
    if "temperature_check" in params.papers:
        yield from _temperature_check(params)


def _classifier(params: Params) -> Iterator[Block]:
    paper = params.classifier_temperature
    images = sum(EMBEDDINGS[name][0] for name in paper.datasets)
    backbones = [params.backbones[name] for name in paper.backbones]
    pairs = len(paper.datasets) * len(backbones)
    hours = images * len(backbones) / EMBEDDED / SECONDS
    yield Block("embed", "all images, all backbones", pairs, hours, assumed=True)
    dimensions = sum(spec.embedding for spec in backbones)
    search = paper.search
    passes = 6 * search.epochs * len(search.inverse_temperatures)
    sizes = [EMBEDDINGS[name] for name in paper.datasets]
    products = sum(0.75 * count * classes for count, classes in sizes) * dimensions
    hours = passes * products / GRID_FLOPS / SECONDS
    yield Block("search", "51 temperatures", pairs, hours, assumed=True)


def _focal(params: Params) -> Iterator[Block]:
    paper = params.focal
    watching = paper.watching
    for name, task in paper.tasks.items():
        trainings = [each for each in paper.trainings() if each[0] == name]
        train, *_ = SIZES[task.dataset]
        watched = min(watching.train_images or train, train)
        hours = 0.0
        for _, arm, _ in trainings:
            recipe = paper.recipe_of(name, arm)
            hours += _hours(
                params.networks[task.network],
                task.dataset,
                recipe,
                watched=watched,
                every=watching.every,
            )
        assumed = task.text is not None
        yield Block("train_focal", name, len(trainings), hours, assumed)
    if paper.translation:
        trainings_of_translation = len(paper.translation.trainings())
        tokens = PAIRS_OF_WMT * TOKENS_PER_PAIR * paper.translation.recipe.epochs
        hours = trainings_of_translation * tokens / TOKENS / SECONDS
        yield Block(
            "train_translation", "WMT14", trainings_of_translation, hours, assumed=True
        )


def _cooling(params: Params) -> Iterator[Block]:
    paper = params.cooling
    for name, experiment in paper.experiments.items():
        trainings = [each for each in paper.trainings() if each[0] == name]
        train, *_ = SIZES[experiment.dataset]
        watched = min(paper.watching.train_images or train, train)
        hours = 0.0
        for _, schedule, _, _ in trainings:
            hours += _hours(
                params.networks[experiment.network],
                experiment.dataset,
                paper.recipe_of(name, schedule),
                watched=watched,
                every=paper.watching.every,
            )
        yield Block("train_cooling", name, len(trainings), hours)
    task = paper.segmentation
    if task and task.size:
        seen = 20_210 + EVALUATED * 2_320
        images = seen * task.recipe.epochs * len(task.trainings())
        network = UNet(task.classes, task.width)
        rate = _images_per_second(_multiply_adds(network, task.size[0]))
        hours = images / rate / SECONDS
        yield Block("train_segmentation", "ADE20K", len(task.trainings()), hours)


def _temperature_check(params: Params) -> Iterator[Block]:
    paper = params.temperature_check
    for name, sweep in paper.sweeps.items():
        searched = [each for each in paper.trainings() if each.sweep == name]
        fresh = [each for each in paper.confirmations() if each.sweep == name]
        network = params.networks[sweep.network]
        # The frozen half of a pair is evaluated but not trained.
        is_pair = bool(sweep.correlations or sweep.logit_norms)
        hours = _hours(
            network,
            sweep.dataset,
            paper.recipe_of(name),
            watched=paper.watch_images,
            every=paper.watch_every,
        )
        hours *= 1 + EVALUATED * is_pair
        assumed = network.architecture in TEXTS
        for stage, trainings in (
            ("train_temperature_check", len(searched)),
            ("confirm_temperature_check", len(fresh)),
        ):
            if trainings:
                yield Block(stage, name, trainings, trainings * hours, assumed)


def _hours(
    network: Network, dataset: str, recipe: Recipe, *, watched: int, every: int
) -> float:
    """GPU-hours of one training run, including its evaluations."""
    train, validation, test, side = SIZES[dataset]
    evaluations = ceil(recipe.epochs / every)
    evaluated = evaluations * (watched + validation + test)
    samples = recipe.epochs * train + EVALUATED * evaluated
    if side:
        rate = _images_per_second(_multiply_adds_of(network.model_dump_json(), side))
    else:
        rate = TEXTS[network.architecture]
    return samples / rate / SECONDS


def _images_per_second(multiply_adds: float) -> float:
    """Images per second on one GPU, summed over the runs on it."""
    throughput = SMALL if multiply_adds < SMALL_NETWORK else LARGE
    return throughput / multiply_adds


@cache
def _multiply_adds_of(network: str, side: int) -> float:
    with torch.device("meta"):
        built = build_network(Network.model_validate_json(network), classes=10, seed=0)
    return _multiply_adds(built, side)


def _multiply_adds(network: torch.nn.Module, side: int) -> float:
    """Multiply-adds of a forward pass on one image."""
    network = network.to("meta").eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.empty(1, 3, side, side, device="meta"))
    return counter.get_total_flops() / 2


if __name__ == "__main__":
    sys.exit(run_program(show, __doc__))
