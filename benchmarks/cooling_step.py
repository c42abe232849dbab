"""Time of a Cooling step relative to the epoch before it, in every mode.

The Cooling paper reports 1.9 % (section 3.1). As in the paper, a small VGG trains on
49,500 images of 32×32 pixels (here random) in batches of 64, and the temperature is
fitted on 500 further images. A step includes everything that Cooling adds: the logits
of the held-out images, the fit, and the changes to the network and the optimizer. In
each round, every mode in turn trains an epoch and then takes a step; results are
medians over the rounds. Networks train in the machine's fastest precision.
"""

import sys
from functools import partial
from statistics import median
from typing import Any

import torch

from benchmarks.precision import fastest_precision
from benchmarks.program import print_result
from benchmarks.timing import seconds
from softmax_temperature.data.splits import SplitName
from softmax_temperature.losses import make_loss
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.machine import keep_freed_memory
from softmax_temperature.training import ImageSet, Trainer
from softmax_temperature.training.cooling import CoolingCallback

MODES = ("last_layer", "distributed", "periodic")
TRAIN_IMAGES = 49_500
HELD_OUT_IMAGES = 500
QUICK_IMAGES = 640
BATCH_SIZE = 64
ROUNDS = 3
WRONG_LABELS = 0.1
# With these limits, the periodic mode redistributes every time, which is its most
# expensive case.
LIMITS = {"max_temperature": 0.0, "reset_temperature": 1.0}
RECIPE = {
    "epochs": 50,
    "planned_epochs": 50,
    "batch_size": BATCH_SIZE,
    "optimizer": "sgd",
    "lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "epsilon": 1e-8,
    "schedule": {"name": "constant"},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "flip": False,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time an epoch and the Cooling step after it, in every mode.

    Args:
        quick: Use few images and one round.

    Returns:
        name, size, precision, rounds; epoch_seconds; for each mode the seconds of its
        step and their share of the epoch; and share, the largest share.
    """
    keep_freed_memory()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision = fastest_precision()
    count = QUICK_IMAGES if quick else TRAIN_IMAGES
    train = random_images(count, seed=0, split="train")
    held_out = random_images(HELD_OUT_IMAGES, seed=1, split="validation")
    trainers = {
        mode: cooled(mode, train, held_out, device, precision) for mode in MODES
    }
    # The first step allocates memory and chooses kernels, so it is not timed.
    for trainer, callback in trainers.values():
        callback.after_epoch(trainer)
    epochs = []
    # For each mode, one pair per round: seconds of the step and of the epoch before it.
    steps: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    for _ in range(1 if quick else ROUNDS):
        for mode, (trainer, callback) in trainers.items():
            epoch = seconds(trainer.epoch)
            step = seconds(partial(callback.after_epoch, trainer))
            epochs.append(epoch)
            steps[mode].append((step, epoch))
    result: dict[str, Any] = {
        "name": "Cooling step",
        "size": (
            f"{len(train)} images in batches of {BATCH_SIZE}, {len(held_out)} to fit "
            "on, small VGG"
        ),
        "precision": precision,
        "rounds": len(steps[MODES[0]]),
        "epoch_seconds": median(epochs),
    }
    for mode, pairs in steps.items():
        result[f"{mode}_seconds"] = median(step for step, _ in pairs)
        result[f"{mode}_share"] = median(step / epoch for step, epoch in pairs)
    return {**result, "share": max(result[f"{mode}_share"] for mode in MODES)}


def random_images(count: int, *, seed: int, split: SplitName) -> ImageSet:
    """Noise images whose brightness depends on their label.

    A few labels are wrong; otherwise no best temperature would exist.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    noise = torch.randint(0, 128, (count, 3, 32, 32), generator=generator)
    images = (noise + 12 * labels[:, None, None, None]).to(torch.uint8)
    wrong = torch.rand(count, generator=generator) < WRONG_LABELS
    random_labels = torch.randint(10, (count,), generator=generator)
    return ImageSet(images, torch.where(wrong, random_labels, labels), split)


def cooled(
    mode: str, train: ImageSet, held_out: ImageSet, device: str, precision: str
) -> tuple[Trainer, CoolingCallback]:
    """Return a trainer with a new network, and the Cooling callback of that network."""
    network = build_network(Network(architecture="vgg"), classes=10, seed=0)
    recipe = Recipe.model_validate(RECIPE | {"precision": precision})
    trainer = Trainer(
        network,
        make_loss("cross_entropy", {}),
        train,
        recipe,
        seed=0,
        device=device,
    )
    return trainer, CoolingCallback(
        network, held_out, period="epoch", optimizer_state="keep", mode=mode, **LIMITS
    )


if __name__ == "__main__":
    sys.exit(print_result(measure, __doc__))
