"""Training with a label for every pixel (cooling paper, section 4.4): the loss, logits
in batches, and scores.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.base import Loss
from softmax_temperature.metrics.scores import (
    confusion_matrix,
    mean_intersection_over_union,
    pixel_accuracy,
)
from softmax_temperature.training.samples import ImageSet
from softmax_temperature.training.trainer import Callback, Trainer

BATCH = 16  # Images; logits of 150 classes for 256×256 pixels then take 630 MB.


class PixelCrossEntropyLoss(Loss):
    """Mean of -log p over the pixels of the batch whose label is not `void`, nats; 0
    where there are none, so that such a batch leaves the network as it is.
    """

    def __init__(self, void: int) -> None:
        super().__init__()
        self.void = void

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        epoch: float | None = None,  # noqa: ARG002
    ) -> Tensor:
        """The loss of a batch: logits (b, classes, height, width)."""
        # As a table: with channels last nothing moves, and torch's loss of maps has no
        # deterministic form on a GPU.
        table, classes = pixel_table(logits), labels.flatten().long()
        total = F.cross_entropy(table, classes, ignore_index=self.void, reduction="sum")
        return total / (classes != self.void).sum().clamp(min=1)


def pixel_table(logits: Tensor) -> Tensor:
    """Logits (n, classes, height, width) as (n * height * width, classes)."""
    return logits.movedim(1, -1).flatten(0, -2)


def pixel_logits(trainer: Trainer, images: Tensor) -> Iterator[Tensor]:
    """Logits (b, classes, height, width), on the device, of images uint8, a batch at a
    time, to fit in memory.
    """
    return (logits for logits, _ in trainer.outputs(images, BATCH))


def pixel_predictions(trainer: Trainer, images: Tensor) -> Tensor:
    """The class of every pixel of images (n, 3, height, width) uint8: (n, height,
    width) int64, on the CPU.
    """
    return torch.cat(
        [logits.argmax(1).cpu() for logits in pixel_logits(trainer, images)]
    )


class PixelScores(Callback):
    """Scores pixels that are not `void` after each epoch: `mean_iou` and
    `pixel_accuracy`, fractions; `temperature`.
    """

    def __init__(
        self, images: ImageSet, *, void: int, temperature: Callable[[], float]
    ) -> None:
        super().__init__()
        self._images, self._void, self._temperature = images, void, temperature

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row."""
        finite, confusion = [], []
        labels = trainer.resident(self._images.labels).split(BATCH)
        for logits, truth in zip(
            pixel_logits(trainer, self._images.inputs), labels, strict=True
        ):
            finite.append(logits.sum())  # Not finite if one of them is not.
            confusion.append(
                confusion_matrix(
                    logits.argmax(1), truth, classes=logits.shape[1], void=self._void
                )
            )
        trainer.check_finite(torch.stack(finite))
        whole = torch.stack(confusion).sum(0).cpu()
        row = {"epoch": trainer.epochs_done, "loss": trainer.loss}
        row |= {
            "mean_iou": mean_intersection_over_union(whole).item(),
            "pixel_accuracy": pixel_accuracy(whole).item(),
        }
        self.history.append({**row, "temperature": self._temperature()})
