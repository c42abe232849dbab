"""Last-layer Cooling while a network learns to classify pixels (cooling paper, section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softmax_temperature.cooling.method import Cooling
from softmax_temperature.training.pixels import pixel_logits, pixel_table
from softmax_temperature.training.trainer import Diverged

if TYPE_CHECKING:
    from torch import nn

    from softmax_temperature.training.images import ImageSet
    from softmax_temperature.training.trainer import Trainer

# Deviation: the paper sets 320 images aside for Cooling and does not say how many of their 21 million pixels the
# temperature is fitted on. Here it is a random choice of them, the same after every epoch: one number needs no more,
# and neighbouring pixels say nearly the same. Pixels without a class are left out before.
MOST_PIXELS = 200_000


class PixelCooling:
    """Follows a training and cools its network after each epoch; all that changes lies in the network.

    Args:
        network: that of the trainer, held from now on.
        images: held out from training, with a label for every pixel.
        void: the label of pixels that are left out.
        factor: of `Cooling`.
        seed: chooses the pixels, if there are more than `most`.
        most: so many pixels at most.

    Raises:
        ValueError: no pixel has a class, or `factor` is not finite or below 0.
    """

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
        labels = images.labels.flatten()
        places = (labels != void).nonzero().squeeze(1)
        if not len(places):
            raise ValueError(f"images must have a pixel with a class, got {len(labels)} that are void")
        if len(places) > most:
            order = torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))
            places = places[order[:most]].sort().values
        self._cooling = Cooling(network, mode="last_layer", factor=factor)
        self._images, self._places, self._labels = images.images, places, labels[places].long()

    @property
    def temperature(self) -> float:
        """What divides the logits now."""
        return self._cooling.temperature

    @property
    def pixels(self) -> int:
        """How many pixels each temperature is fitted on."""
        return len(self._places)

    def after_epoch(self, trainer: Trainer) -> None:
        """Cool.

        Raises:
            Diverged: logits are not finite, or the temperature is beyond what a float can hold.
        """
        logits = self._logits(trainer)
        if not bool(logits.isfinite().all()):
            raise Diverged(f"logits are not finite after epoch {trainer.epochs_done}")
        try:
            self._cooling.cool(logits, self._labels)
        except ValueError as error:
            # With finite logits only a temperature that no float can hold is left.
            raise Diverged(str(error)) from error

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the temperature is in the network."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to take up."""

    def _logits(self, trainer: Trainer) -> Tensor:
        """Of the chosen pixels, (pixels, classes), on the CPU."""
        start, found = 0, []
        for logits in pixel_logits(trainer, self._images):
            table = pixel_table(logits)
            inside = self._places[(self._places >= start) & (self._places < start + len(table))] - start
            found.append(table[inside.to(table.device)].cpu())
            start += len(table)
        return torch.cat(found)
