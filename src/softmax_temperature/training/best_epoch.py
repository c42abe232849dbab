"""Keeping the best epoch of a training by its validation accuracy (focal paper, appendix E: the text models)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softmax_temperature.training.trainer import Trainer
    from softmax_temperature.training.watch import Watch


class BestEpoch:
    """Follows a training and keeps the weights of its best epoch, the first of equally good ones.

    Attributes:
        epoch: which, from 1; 0 before the first.

    Args:
        watch: follows the same training, before this one, and looks at "validation", all that decides here.
    """

    def __init__(self, watch: Watch) -> None:
        self.epoch = 0
        self._watch, self._accuracy = watch, -1.0
        self._weights: dict[str, Any] = {}

    def after_epoch(self, trainer: Trainer) -> None:
        """Keep the network if it is better than all before."""
        rows = [row for row in self._watch.history if row["split"] == "validation"]
        accuracy = rows[-1]["accuracy"]
        if accuracy > self._accuracy:
            self.epoch, self._accuracy = trainer.epochs_done, accuracy
            self._weights = copy.deepcopy(trainer.network.state_dict())

    def restore(self, trainer: Trainer) -> None:
        """Give the network the weights of the best epoch."""
        trainer.network.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """What is kept so far."""
        return {"epoch": self.epoch, "accuracy": self._accuracy, "weights": self._weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        self.epoch, self._accuracy, self._weights = state["epoch"], state["accuracy"], state["weights"]
