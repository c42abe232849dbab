"""Cooling while a network trains, with temperatures fitted on held-out samples.

Cooling paper, Algorithm 3.1 for classifiers and section 4.4 for pixels.
"""

from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.cooling import Cooling
from softmax_temperature.cooling.method import TemperatureOutOfRange
from softmax_temperature.cooling.optimizer_state import check_policy
from softmax_temperature.metrics.checks import check_batch
from softmax_temperature.training.pixels import BATCH, pixel_logits, pixel_table
from softmax_temperature.training.samples import ImageSet, Samples
from softmax_temperature.training.trainer import Callback, Diverged, Trainer

# Deviation: the temperature is fitted on at most 200,000 randomly chosen pixels, the
# same after every epoch, because fitting one number needs no more pixels and
# neighbouring pixels are nearly equal. Pixels without a class are excluded first. The
# paper sets 320 images aside for Cooling but does not say on how many of their 21
# million pixels it fits the temperature.
MOST_PIXELS = 200_000


class CoolingCallback(Callback):
    """Cools a network on held-out samples, once per epoch or every `period` batches.

    If the period is in batches, `after_batch` must be in `trainer.after_batch`;
    `TrainingRun.run` adds it. Each time the network is cooled, a row is added to
    `temperatures`: `cooling` (the number of the row) and `epoch` (both counted from 1),
    `applied` (the factor that divided the logits), `total` (the product of all factors
    so far) and `at_bound` (whether there was no best temperature, so that nothing
    changed).

    Raises LeakError for test data, and Diverged if a logit or temperature is not
    finite.
    """

    kept = ("batches", "temperatures")

    def __init__(
        self,
        network: nn.Module,
        samples: Samples,
        *,
        period: str | int,
        optimizer_state: str,
        **settings: Any,
    ) -> None:
        self._samples = samples.for_fitting()
        self._cooling = Cooling(network, **settings)
        self._period = period
        self._policy = optimizer_state
        self.batches = 0
        self.temperatures: list[dict[str, Any]] = []

    def after_batch(self, trainer: Trainer) -> None:
        """Count the batch, and cool the network if the batch ends a period."""
        self.batches += 1
        if isinstance(self._period, int) and self.batches % self._period == 0:
            self._cool(trainer, trainer.epochs_done + 1)
            trainer.network.train()

    def after_epoch(self, trainer: Trainer) -> None:
        """Cool the network, unless the period is in batches."""
        if self._period == "epoch":
            self._cool(trainer, trainer.epochs_done)

    def _cool(self, trainer: Trainer, epoch: int) -> None:
        check_policy(trainer.optimizer, self._policy)
        logits, _ = trainer.evaluate(self._samples.inputs)
        check_batch(logits, self._samples.labels)
        applied = _cooled(
            self._cooling,
            logits,
            self._samples.labels,
            optimizer=trainer.optimizer,
            policy=self._policy,
        )
        assert self._cooling.last_fit is not None, "a Cooling that returns has fitted"
        before = self.temperatures[-1]["total"] if self.temperatures else 1.0
        self.temperatures.append(
            {
                "cooling": len(self.temperatures) + 1,
                "epoch": epoch,
                "applied": applied,
                "total": applied * before,
                "at_bound": self._cooling.last_fit.at_bound,
            }
        )


class PixelCoolingCallback(Callback):
    """Cools the last layer of a network that classifies pixels, after each epoch.

    The temperature is fitted on those pixels of the held-out images whose label is not
    `void`; if there are more than `most`, on `most` of them, drawn with `seed`. The
    callback keeps all its state in the network. Raises LeakError for test images, and
    ValueError if all pixels are `void`.
    """

    kept = ()

    def __init__(
        self,
        network: nn.Module,
        images: ImageSet,
        *,
        void: int,
        factor: float,
        seed: int,
        most: int = MOST_PIXELS,
    ) -> None:
        labels = images.for_fitting().labels.flatten()
        rows = (labels != void).nonzero().squeeze(1)
        if not len(rows):
            raise ValueError(
                f"images must have a pixel with a class, but all {len(labels)} pixels "
                "are void"
            )
        if len(rows) > most:
            generator = torch.Generator().manual_seed(seed)
            order = torch.randperm(len(rows), generator=generator)
            rows = rows[order[:most]].sort().values
        self._cooling = Cooling(network, mode="last_layer", factor=factor)
        self._images = images.inputs
        self._rows = rows
        self._labels = labels[rows].long()
        self.pixels = len(rows)

    @property
    def temperature(self) -> float:
        """The temperature that now divides the logits."""
        return self._cooling.temperature

    def after_epoch(self, trainer: Trainer) -> None:
        """Cool the last layer.

        Raises Diverged if a logit or the temperature is not finite.
        """
        pixels_per_batch = BATCH * self._images[0, 0].numel()
        batches = -(-len(self._images) // BATCH)
        counts = torch.bincount(self._rows // pixels_per_batch, minlength=batches)
        places = trainer.resident(self._rows) % pixels_per_batch
        rows_by_batch = places.split(counts.tolist())
        chosen = []
        for logits, rows in zip(
            pixel_logits(trainer, self._images), rows_by_batch, strict=True
        ):
            chosen.append(pixel_table(logits)[rows])
        logits = torch.cat(chosen).cpu()
        trainer.check_finite(logits)
        _cooled(self._cooling, logits, self._labels)


def _cooled(cooling: Cooling, logits: Tensor, labels: Tensor, **options: Any) -> float:
    try:
        return cooling.cool(logits, labels, **options)
    except TemperatureOutOfRange as error:
        raise Diverged(str(error)) from error
