"""Small training runs of tiny networks, on random images that differ by class."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.losses import CrossEntropyLoss
from softmax_temperature.networks.cifar_resnet import CifarResNet
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.cells import Job
from softmax_temperature.training import ImageSet, Trainer
from tests import small_trainings as small

CLASSES, SIZE = small.CLASSES, 6
RECIPE = (
    small.RECIPE
    | small.PIXELS
    | {"planned_epochs": 3, "lr": 0.05, "weight_decay": 0.001}
)
RECIPE |= {"schedule": {"name": "constant"}}


class TwoLayers(nn.Module):
    """A network with a hidden layer, dropout and a last layer."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Flatten(), nn.Linear(3 * SIZE**2, 12), nn.ReLU(), nn.Dropout(dropout)
        )
        self.classifier = nn.Linear(12, CLASSES)

    def features(self, images: Tensor) -> Tensor:
        hidden: Tensor = self.hidden(images)
        return hidden

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(images))
        return logits


@pytest.fixture
def make_recipe() -> Callable[..., Recipe]:
    """A function that makes a plain recipe: no schedule, clipping or augmentation.

    The function's arguments change the recipe's values.
    """
    return lambda **changes: Recipe.model_validate(RECIPE | changes)


@pytest.fixture
def make_images() -> Callable[..., ImageSet]:
    """A function that makes noise images; all classes but one have a bright channel."""
    return lambda count=21, seed=0, split="train": small.images(
        count, seed, size=SIZE, split=split
    )


@pytest.fixture
def make_network() -> Callable[..., nn.Module]:
    """A function that makes "resnet" (batch norm) or "two-layers" (dropout)."""

    def make(name: str = "two-layers", dropout: float = 0.0) -> nn.Module:
        with drawn_from(0):
            if name == "two-layers":
                return TwoLayers(dropout)
            return CifarResNet(blocks=1, num_classes=CLASSES, widths=(4, 8, 16))

    return make


@pytest.fixture
def make_trainer(
    make_recipe: Callable[..., Recipe],
    make_images: Callable[..., ImageSet],
    make_network: Callable[..., nn.Module],
) -> Callable[..., Trainer]:
    """A function that makes a trainer on the CPU; its arguments change the recipe."""

    def make(
        network: nn.Module | str = "two-layers",
        *,
        objective: Any = CrossEntropyLoss(),  # noqa: B008
        images: ImageSet | None = None,
        seed: int = 7,
        **changes: Any,
    ) -> Trainer:
        images = make_images() if images is None else images
        network = make_network(network) if isinstance(network, str) else network
        return Trainer(
            network, objective, images, make_recipe(**changes), seed=seed, device="cpu"
        )

    return make


@pytest.fixture
def make_job() -> Callable[[Path], Job]:
    """A function that makes a job in a folder, with a checkpoint after every epoch."""

    def make(folder: Path) -> Job:
        for name in ("output", "work"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        return Job(
            0, {}, folder / "output", folder / "work", "cpu", checkpoint_seconds=0.0
        )

    return make
