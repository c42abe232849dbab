"""Speed of the training loop, against a plain loop over a DataLoader with transforms in float32.

Both train the same network from the same weights on the same random images of 32×32 pixels, with SGD, cropping and
mirroring. The peer is the loop of the usual tutorials: images as PIL objects, torchvision's transforms one image at a
time, a DataLoader with as many workers as there are cores, the default memory format. Ours keeps uint8 images on the
device, augments a batch at a time, and computes with channels last, in bfloat16 where the machine multiplies it.

The first epoch of each side warms up; the fastest of the next ones counts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from benchmarks.precision import fastest_precision
from softmax_temperature.network_spec import Network
from softmax_temperature.objectives import make_objective
from softmax_temperature.recipe import Recipe
from softmax_temperature.training import ImageSet, Trainer, build_network

MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]
NETWORKS = {
    "vgg": (Network(architecture="vgg"), 64),
    "resnet50": (Network(architecture="bottleneck_resnet"), 128),
}
IMAGES = {"cpu": {"vgg": 4096, "resnet50": 384}, "cuda": {"vgg": 50_000, "resnet50": 20_000}}
EPOCHS = 3


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time both sides on both networks, in one run.

    Args:
        quick: one small network on few images.

    Returns:
        name, size, device, precision of ours, and for each network images per second of ours and of the peer, and
        their ratio.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    result: dict[str, Any] = {"name": "training throughput", "size": "images of 3 x 32 x 32"}
    result |= {"device": device, "precision": fastest_precision()}
    for name, (network, batch_size) in NETWORKS.items():
        if quick and name != "vgg":
            continue
        count = 2 * batch_size if quick else IMAGES[device][name]
        pixels, labels = random_images(count)
        ours = fastest(our_epoch(network, pixels, labels, batch_size, device), quick=quick)
        peer = fastest(plain_epoch(network, pixels, labels, batch_size, device), quick=quick)
        result |= {
            f"{name}_images": count,
            f"{name}_batch_size": batch_size,
            f"{name}_ours_per_second": count / ours,
            f"{name}_peer_per_second": count / peer,
            f"{name}_ratio": peer / ours,
        }
    return result


def random_images(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (count, 32, 32, 3) uint8 and labels of ten classes."""
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8), generator.integers(0, 10, count)


def our_epoch(
    network: Network, pixels: np.ndarray, labels: np.ndarray, batch_size: int, device: str
) -> Callable[[], None]:
    """One epoch of this project's loop."""
    recipe = Recipe.model_validate(
        {
            "epochs": 100,
            "planned_epochs": 100,
            "batch_size": batch_size,
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
            "precision": fastest_precision(),
        }
    )
    images = ImageSet(torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels))
    model = build_network(network, classes=10, seed=0)
    trainer = Trainer(model, make_objective("cross_entropy", {}), images, recipe, seed=0, device=device)
    return trainer.epoch


class Pictures(Dataset[Any]):
    """Images as PIL objects, transformed one at a time."""

    def __init__(self, pixels: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = [Image.fromarray(image) for image in pixels], labels.tolist()
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


def plain_epoch(
    network: Network, pixels: np.ndarray, labels: np.ndarray, batch_size: int, device: str
) -> Callable[[], None]:
    """One epoch of the usual loop."""
    loader = DataLoader(
        Pictures(pixels, labels),
        batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=os.cpu_count() or 1,
        persistent_workers=True,
        pin_memory=device == "cuda",
    )
    model: nn.Module = build_network(network, classes=10, seed=0).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4)

    def epoch() -> None:
        model.train()
        for images, truth in loader:
            loss = F.cross_entropy(model(images.to(device)), truth.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return epoch


def fastest(epoch: Callable[[], None], *, quick: bool) -> float:
    """Seconds of the fastest epoch after the first."""
    epoch()
    return min(_seconds(epoch) for _ in range(1 if quick else EPOCHS))


def _seconds(epoch: Callable[[], None]) -> float:
    start = time.perf_counter()
    epoch()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--quick", action="store_true", help="small sizes, seconds")
    print(json.dumps(measure(quick=reader.parse_args().quick), indent=1))
