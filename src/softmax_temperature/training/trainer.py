"""The training loop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from softmax_temperature.jobs import seed_of
from softmax_temperature.training.networks import last_layer_inputs
from softmax_temperature.training.schedules import learning_rate_factor

if TYPE_CHECKING:
    from softmax_temperature.recipe import Recipe
    from softmax_temperature.training.samples import Samples

Objective = Callable[[Tensor, Tensor, float], Tensor]
"""Logits (n, classes), labels (n,) and the position in the written recipe (epochs) to the mean loss of the batch.

With a label for each pixel they are (n, classes, height, width) and (n, height, width)."""

EVALUATION_BATCH = 500


class Diverged(ArithmeticError):
    """The loss, a weight or a logit is no longer finite: a result, not a fault."""


class Trainer:
    """A network on its way through a recipe.

    All that changes from epoch to epoch is in `state_dict`; the order of the samples, their augmentation and dropout
    depend on the seed and the number of the epoch alone.

    Attributes:
        network: trained in place, on the device.
        epochs_done: how many.
        loss: mean over the samples of the last epoch, as the objective gives it; nan before the first.
        after_batch: called in this order after each step, whose gradients are still there; empty at first. What a call
            changes has to lie in the network, in the optimizer, or in the state of a follower (see `train`), and the
            network has to be in training mode afterwards.

    Args:
        network: prepared inputs to logits, with `features` and `classifier`.
        objective: what is minimised. Its mean over the batch is multiplied by the batch's size for the reduction "sum".
        samples: to train on; they move to the device.
        recipe: everything else.
        seed: of order, augmentation and dropout.
        device: where to compute.

    Raises:
        ValueError: the samples cannot be trained by the recipe.
    """

    def __init__(
        self, network: nn.Module, objective: Objective, samples: Samples, recipe: Recipe, *, seed: int, device: str
    ) -> None:
        samples.check(recipe)
        self.network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.objective, self.samples, self.recipe = objective, samples.to(device), recipe
        self.seed, self.device = seed, device
        self.epochs_done, self.loss = 0, math.nan
        self.after_batch: list[Callable[[Trainer], None]] = []
        self._before: dict[str, Any] = {}
        self.optimizer = _optimizer(network, recipe)
        self._batch_size = min(recipe.batch_size, len(samples))
        # Deviation: the last, smaller batch of an epoch is left out, as a summed loss would weigh it differently; with
        # a new order each epoch every sample still has its turn. The released code keeps it.
        self.steps_per_epoch = len(samples) // self._batch_size

    def epoch(self) -> None:
        """Train for one epoch.

        Raises:
            Diverged: the loss or a weight is not finite; the state is again that before this epoch.
        """
        self._before = copy.deepcopy(self.state_dict())
        try:
            loss = self._mean_loss_of_an_epoch()
        except Diverged:
            self.rewind()
            raise
        self.epochs_done, self.loss = self.epochs_done + 1, loss

    def rewind(self) -> None:
        """Go back to before the last epoch, for instance because its logits are not finite."""
        self.load_state_dict(self._before)

    @torch.no_grad()
    def evaluate(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits in evaluation mode, and the norms of the features that the last layer makes them of.

        Args:
            inputs: (n, ...) of the kind of the training samples' `inputs`, any device; a batch at a time moves to the
                network's.

        Returns:
            (n, classes) float32 and (n,) float64, on the CPU.

        Raises:
            Diverged: a logit is not finite.
        """
        self.network.eval()
        logits, norms = [], []
        for batch in inputs.split(EVALUATION_BATCH):
            prepared = self.samples.prepare(batch.to(self.device), self.recipe)
            with self._autocast():
                some, features = last_layer_inputs(self.network, prepared)
            logits.append(some.cpu())
            norms.append(features.flatten(1).double().norm(dim=1).cpu())
        together = torch.cat(logits)
        if not bool(together.isfinite().all()):
            raise Diverged(f"logits are not finite after epoch {self.epochs_done}")
        return together, torch.cat(norms)

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs_done": self.epochs_done,
            "loss": self.loss,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs_done, self.loss = state["epochs_done"], state["loss"]

    def _mean_loss_of_an_epoch(self) -> float:
        generator = torch.Generator().manual_seed(seed_of(self.seed, "epoch", str(self.epochs_done)))
        order = torch.randperm(len(self.samples), generator=generator).to(self.device)
        self.network.train()
        with torch.random.fork_rng(devices=[self.device] if self.device != "cpu" else []):
            torch.manual_seed(seed_of(self.seed, "dropout", str(self.epochs_done)))
            losses = [self._step(number, rows, generator) for number, rows in enumerate(self._batches(order))]
        loss = torch.stack(losses).double().mean().item()
        if not (math.isfinite(loss) and self._weights_are_finite()):
            raise Diverged(f"the loss is {loss} in epoch {self.epochs_done + 1}")
        return loss

    def _batches(self, order: Tensor) -> list[Tensor]:
        return list(order[: self.steps_per_epoch * self._batch_size].split(self._batch_size))

    def _step(self, number: int, rows: Tensor, generator: torch.Generator) -> Tensor:
        recipe = self.recipe
        position = recipe.position(self.epochs_done + number / self.steps_per_epoch)
        factor = learning_rate_factor(recipe.schedule, position, recipe.planned_epochs)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.lr * factor
        inputs = self.samples.batch(rows, generator, recipe)
        with self._autocast():
            logits, _ = last_layer_inputs(self.network, inputs)
        # On a GPU the loss of the epoch tells, later; a look at every batch would stop its queue.
        if self.device == "cpu" and not bool(logits.isfinite().all()):
            raise Diverged(f"logits are not finite in epoch {self.epochs_done + 1}")
        loss = self.objective(logits, self.samples.labels[rows], position)
        self.optimizer.zero_grad()
        (loss * len(rows) if recipe.reduction == "sum" else loss).backward()
        if recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip_norm)
        self.optimizer.step()
        for call in self.after_batch:
            call(self)
        return loss.detach()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    def _weights_are_finite(self) -> bool:
        return all(bool(value.isfinite().all()) for value in self.network.state_dict().values())


def _optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    parameters, decay = list(network.parameters()), recipe.weight_decay
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, recipe.lr, recipe.momentum, weight_decay=decay)
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, recipe.lr, (recipe.momentum, 0.999), recipe.epsilon, weight_decay=decay)
    return torch.optim.Adagrad(parameters, recipe.lr, weight_decay=decay, eps=recipe.epsilon)
