"""Speed of the training loop against a plain float32 loop over a DataLoader.

Both train the same network from the same weights on the same random images of 32×32
pixels, with SGD, cropping and mirroring. The peer is the loop of the usual tutorials:
PIL images, torchvision's transforms one image at a time, a DataLoader with one worker
per core, the default memory format, and the VGG's layers in the usual order, with
pooling after the activation. Ours keeps uint8 images on the device, augments a batch at
a time, uses the channels-last format, computes in bfloat16 if the machine has it, and
pools before ReLU.

Each side runs in its own process. The peer's process has Python's default settings;
ours keeps freed memory, as a cell's process does. Each warms up for one epoch, then the
two alternate, epoch by epoch. Results are medians over the rounds of the ratios and
speeds, because the speed of a shared machine may change by a fifth from one minute to
the next.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from benchmarks import timing
from benchmarks.precision import fastest_precision
from benchmarks.program import print_result
from softmax_temperature.losses import make_loss
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.machine import keep_freed_memory
from softmax_temperature.training import ImageSet, Trainer

MEAN = [0.4914, 0.4822, 0.4465]
STD = [0.2023, 0.1994, 0.2010]
NETWORKS = {
    "vgg": (Network(architecture="vgg"), 64),
    "resnet50": (Network(architecture="bottleneck_resnet"), 128),
}
IMAGES = {
    "cpu": {"vgg": 2048, "resnet50": 256},
    "cuda": {"vgg": 50_000, "resnet50": 20_000},
}
ROUNDS = {"vgg": 15, "resnet50": 5}
RECIPE = {
    "epochs": 100,
    "planned_epochs": 100,
    "optimizer": "sgd",
    "lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "epsilon": 1e-8,
    "schedule": {"name": "constant"},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 4,
    "flip": True,
    "mean": MEAN,
    "std": STD,
}
# Holds, in a process started by `side`, the function that trains one epoch.
_sides: list[Callable[[], None]] = []


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time both sides on both networks, in alternating epochs.

    Args:
        quick: Use one small network and few images.

    Returns:
        name, size, device, our precision, and for each network the images per second of
        ours and of the peer, and their ratio.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    result: dict[str, Any] = {
        "name": "training throughput",
        "size": "images of 3 x 32 x 32",
        "device": device,
        "precision": fastest_precision(),
    }
    for name, (network, batch_size) in NETWORKS.items():
        if quick and name != "vgg":
            continue
        count = 2 * batch_size if quick else IMAGES[device][name]
        arguments = (network, *random_images(count), batch_size, device)
        with side(our_epoch, *arguments) as ours, side(plain_epoch, *arguments) as peer:
            pairs = []
            for _ in range(1 if quick else ROUNDS[name]):
                our_seconds = ours.submit(seconds).result()
                peer_seconds = peer.submit(seconds).result()
                pairs.append((our_seconds, peer_seconds))
        result |= {
            f"{name}_images": count,
            f"{name}_batch_size": batch_size,
            f"{name}_rounds": len(pairs),
            f"{name}_ours_per_second": count / median(ours for ours, _ in pairs),
            f"{name}_peer_per_second": count / median(peer for _, peer in pairs),
            f"{name}_ratio": median(peer / ours for ours, peer in pairs),
        }
    return result


def side(
    build: Callable[..., Callable[[], None]], *arguments: Any
) -> ProcessPoolExecutor:
    """Start a process that builds one side and trains its first epoch.

    Submit `seconds` to the returned executor to time the next epoch.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        max_workers=1,
        mp_context=context,
        initializer=begin,
        initargs=(build, *arguments),
    )


def begin(build: Callable[..., Callable[[], None]], *arguments: Any) -> None:
    """Build one side in this process, and warm up."""
    _sides.append(build(*arguments))
    _sides[0]()


def seconds() -> float:
    """Wall-clock seconds of one epoch of this process's side."""
    return timing.seconds(_sides[0])


def random_images(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random uint8 images of shape (count, 32, 32, 3), and labels of ten classes."""
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    labels = generator.integers(0, 10, count)
    return pixels, labels


def our_epoch(
    network: Network,
    pixels: np.ndarray,
    labels: np.ndarray,
    batch_size: int,
    device: str,
) -> Callable[[], None]:
    """Return a function that trains one epoch with this project's loop.

    As a side effect, the process keeps its freed memory from now on.
    """
    keep_freed_memory()
    recipe = Recipe.model_validate(
        RECIPE | {"batch_size": batch_size, "precision": fastest_precision()}
    )
    channels_first = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
    images = ImageSet(channels_first, torch.from_numpy(labels), "train")
    model = build_network(network, classes=10, seed=0)
    trainer = Trainer(
        model,
        make_loss("cross_entropy", {}),
        images,
        recipe,
        seed=0,
        device=device,
    )
    trainer.capture_steps()
    return trainer.epoch


class Pictures(Dataset[Any]):
    """PIL images, transformed one at a time."""

    def __init__(self, pixels: np.ndarray, labels: np.ndarray) -> None:
        self.images = [Image.fromarray(image) for image in pixels]
        self.labels = labels.tolist()
        steps = [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
        self.transform = transforms.Compose(steps)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Any, int]:
        return self.transform(self.images[row]), self.labels[row]


def in_the_usual_order(network: nn.Module) -> nn.Module:
    """Move each max-pooling after the ReLU that followed it, and return the network.

    The network computes the same function, with the same weights.
    """
    for stack in list(network.modules()):
        if not isinstance(stack, nn.Sequential):
            continue
        for first, (pool, activation) in enumerate(pairwise(list(stack))):
            if isinstance(pool, nn.MaxPool2d) and isinstance(activation, nn.ReLU):
                stack[first] = activation
                stack[first + 1] = pool
    return network


def plain_epoch(
    network: Network,
    pixels: np.ndarray,
    labels: np.ndarray,
    batch_size: int,
    device: str,
) -> Callable[[], None]:
    """Return a function that trains one epoch with the usual loop."""
    loader = DataLoader(
        Pictures(pixels, labels),
        batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=os.cpu_count() or 1,
        persistent_workers=True,
        pin_memory=device == "cuda",
    )
    model = in_the_usual_order(build_network(network, classes=10, seed=0)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4)

    def epoch() -> None:
        model.train()
        for images, truth in loader:
            loss = F.cross_entropy(model(images.to(device)), truth.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return epoch


if __name__ == "__main__":
    sys.exit(print_result(measure, __doc__))
