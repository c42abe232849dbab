"""Training with a label for every pixel: the loss, logits in batches, and scores.

Cooling paper, section 4.4.
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

BATCH = 16
"""Images per batch in evaluation.

Logits of 150 classes for 256×256 pixels then take 630 MB.
"""


class PixelCrossEntropyLoss(Loss):
    """Mean of -log p over the pixels of a batch whose label is not `void`, in nats.

    The loss and its gradient are 0 for a batch in which every pixel is `void`.
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
        """The loss of a batch with logits (b, classes, height, width)."""
        # Reshape the maps to a table with a row for each pixel, because torch's
        # cross-entropy of maps is not deterministic on a GPU. If channels are last in
        # memory, reshaping copies nothing.
        table = pixel_table(logits)
        classes = labels.flatten().long()
        total = F.cross_entropy(table, classes, ignore_index=self.void, reduction="sum")
        return total / (classes != self.void).sum().clamp(min=1)


def pixel_table(logits: Tensor) -> Tensor:
    """Reshape logits (n, classes, height, width) to (n * height * width, classes)."""
    return logits.movedim(1, -1).flatten(0, -2)


def pixel_logits(trainer: Trainer, images: Tensor) -> Iterator[Tensor]:
    """Yield the logits (b, classes, height, width) of batches of uint8 `images`."""
    for logits, _ in trainer.outputs(images, BATCH):
        yield logits


def pixel_predictions(trainer: Trainer, images: Tensor) -> Tensor:
    """Predict the class of every pixel.

    The images are a uint8 tensor of shape (n, 3, height, width). The classes are an
    int64 tensor of shape (n, height, width), on the CPU.
    """
    batches = pixel_logits(trainer, images)
    return torch.cat([logits.argmax(1).cpu() for logits in batches])


class PixelScores(Callback):
    """Scores the pixels whose label is not `void`, after each epoch.

    A row of `history` has `epoch`, `loss` (of training), `mean_iou` and
    `pixel_accuracy`, as fractions, and `temperature`.
    """

    def __init__(
        self, images: ImageSet, *, void: int, temperature: Callable[[], float]
    ) -> None:
        super().__init__()
        self._images = images
        self._void = void
        self._temperature = temperature

    def after_epoch(self, trainer: Trainer) -> None:
        """Score the network, and add the epoch's row to `history`."""
        sums = []
        matrices = []
        labels = trainer.resident(self._images.labels).split(BATCH)
        batches = pixel_logits(trainer, self._images.inputs)
        for logits, truth in zip(batches, labels, strict=True):
            # Keep only the sum of the logits, which is not finite if any logit is not
            # finite.
            sums.append(logits.sum())
            classes = logits.shape[1]
            predicted = logits.argmax(1)
            matrices.append(
                confusion_matrix(predicted, truth, classes=classes, void=self._void)
            )
        trainer.check_finite(torch.stack(sums))
        confusion = torch.stack(matrices).sum(0).cpu()
        self.history.append(
            {
                "epoch": trainer.epochs_done,
                "loss": trainer.loss,
                "mean_iou": mean_intersection_over_union(confusion).item(),
                "pixel_accuracy": pixel_accuracy(confusion).item(),
                "temperature": self._temperature(),
            }
        )
