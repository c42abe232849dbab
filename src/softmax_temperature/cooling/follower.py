"""Cooling while a network trains: once a period, from what held-out samples say (cooling paper, Algorithm 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softmax_temperature.cooling.method import Cooling
from softmax_temperature.cooling.optimizer_state import check_policy
from softmax_temperature.metrics.checks import check_batch
from softmax_temperature.training import Diverged

if TYPE_CHECKING:
    from torch import nn

    from softmax_temperature.training import Samples, Trainer

EPOCH = "epoch"


class CoolingFollower:
    """Follows a training and cools its network; put `after_batch` into the trainer's for a period in batches.

    Its state is what it counts and the rows; temperatures are in the network's.

    Attributes:
        temperatures: a row for each Cooling: `cooling` and `epoch` (from 1), `applied` (what the logits were divided
            by), `total` (the product of all so far), `at_bound` (whether there was no best temperature, so that nothing
            happened).

    Args:
        network: that of the trainer, held from now on.
        samples: held out from training.
        period: "epoch", or a number of batches, counted from the first of the training.
        optimizer_state: the policy of `rescale_optimizer_state`.
        settings: of `Cooling`.

    Raises:
        ValueError: `period` is below 1, or `Cooling` refuses a setting or the network.
    """

    def __init__(
        self, network: nn.Module, samples: Samples, *, period: str | int, optimizer_state: str, **settings: Any
    ) -> None:
        if period != EPOCH and not (isinstance(period, int) and period >= 1):
            raise ValueError(f"period must be 'epoch' or a number of batches, got {period!r}")
        self._cooling, self._samples = Cooling(network, **settings), samples
        self._period, self._policy = period, optimizer_state
        self._batches = 0
        self.temperatures: list[dict[str, Any]] = []

    def after_batch(self, trainer: Trainer) -> None:
        """Count the batch, and cool if it ends a period.

        Raises:
            Diverged: logits are not finite, or the temperature is beyond what a float can hold.
        """
        self._batches += 1
        if isinstance(self._period, int) and self._batches % self._period == 0:
            self._cool(trainer, trainer.epochs_done + 1)
            trainer.network.train()

    def after_epoch(self, trainer: Trainer) -> None:
        """Cool, unless the period is in batches.

        Raises:
            Diverged: as above.
        """
        if self._period == EPOCH:
            self._cool(trainer, trainer.epochs_done)

    def state_dict(self) -> dict[str, Any]:
        """Batches and rows so far."""
        return {"batches": self._batches, "temperatures": list(self.temperatures)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        self._batches, self.temperatures = state["batches"], list(state["temperatures"])

    def _cool(self, trainer: Trainer, epoch: int) -> None:
        check_policy(trainer.optimizer, self._policy)
        logits, _ = trainer.evaluate(self._samples.inputs)
        check_batch(logits, self._samples.labels)
        try:
            applied = self._cooling.cool(logits, self._samples.labels, optimizer=trainer.optimizer, policy=self._policy)
        except ValueError as error:
            # With a sound batch and a known policy only a temperature that no float can hold is left.
            raise Diverged(str(error)) from error
        assert self._cooling.last_fit is not None, "a Cooling that returns has fitted"
        total = applied * (self.temperatures[-1]["total"] if self.temperatures else 1.0)
        row = {"cooling": len(self.temperatures) + 1, "epoch": epoch, "applied": applied, "total": total}
        self.temperatures.append({**row, "at_bound": self._cooling.last_fit.at_bound})
