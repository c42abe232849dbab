"""The training loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from softmax_temperature.runner.cells import seed_of
from softmax_temperature.training.networks import last_layer_inputs
from softmax_temperature.training.processes import processes
from softmax_temperature.training.schedules import learning_rate_factor

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Recipe
    from softmax_temperature.training.samples import Samples

Objective = Callable[[Tensor, Tensor, float], Tensor]
"""Logits (n, classes), labels (n,) and the position in the written recipe (epochs) to the mean loss of the batch.

With a label for each pixel they are (n, classes, height, width) and (n, height, width); with one for each token of some
sentences, (tokens, classes) and (1, tokens or more)."""

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
        micro_batches: pieces in which a batch passes the network, or each process's share of it; 1 unless memory ran
            out, see `split_batches`.
        processes: that train it together.
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
        ValueError: the samples cannot be trained by the recipe, or not by several processes.
    """

    def __init__(
        self, network: nn.Module, objective: Objective, samples: Samples, recipe: Recipe, *, seed: int, device: str
    ) -> None:
        samples.check(recipe)
        self.network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.objective, self.samples, self.recipe = objective, samples.to(device), recipe
        self.seed, self.device = seed, device
        self.epochs_done, self.loss, self.micro_batches = 0, math.nan, 1
        self.after_batch: list[Callable[[Trainer], None]] = []
        self._before: dict[str, Any] = {}
        self.optimizer = _optimizer(network, recipe)
        self._batch_size = self._batch_length = min(recipe.batch_size, len(samples))
        self.processes = processes()
        self._shared = self.processes.train_together(self.network, self._batch_size)
        # Deviation: the last, smaller batch of an epoch is left out, as a summed loss would weigh it differently; with
        # a new order each epoch every sample still has its turn. The released code keeps it.
        self.steps_per_epoch = len(samples) // self._batch_size

    def epoch(self) -> None:
        """Train for one epoch.

        Raises:
            Diverged: the loss or a weight is not finite; the state is again that before this epoch.
            torch.OutOfMemoryError: the device's memory does not suffice; `rewind` goes back to before this epoch.
        """
        self._before = {}  # Makes room for the next copy.
        self._before = _copied(self.state_dict())
        try:
            loss = self._mean_loss_of_an_epoch()
        except Diverged:
            self.rewind()
            raise
        self.epochs_done, self.loss = self.epochs_done + 1, loss

    def rewind(self) -> None:
        """Go back to before the last epoch, for instance because its logits are not finite."""
        if self._before:  # Otherwise the epoch did not begin.
            self.load_state_dict(self._before)

    @property
    def can_split_batches(self) -> bool:
        """Whether the pieces of a batch hold more than one sample, and nobody waits for them; see `split_batches`."""
        return self.processes.count == 1 and self.micro_batches < self._batch_length

    def split_batches(self) -> None:
        """From now on let each batch pass the network in twice as many pieces.

        The step remains that of the whole batch, whatever the objective: the pieces' logits are put together before it,
        and what the gradient needs of each piece is computed again when its turn comes. Batch normalisation is the
        exception: it takes its statistics from a piece, and its running averages move twice a piece.

        Of several processes each one lets its share pass in so many pieces, if the training began in one process that
        did. They do not begin to: when the memory of one runs out, the others wait for it in the middle of a step.
        """
        self.micro_batches *= 2
        self.optimizer.zero_grad()
        torch.cuda.empty_cache()

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
        logits, norms = self.processes.over_all(inputs, self._logits_and_norms)
        if not bool(logits.isfinite().all()):
            raise Diverged(f"logits are not finite after epoch {self.epochs_done}")
        return logits, norms

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs_done": self.epochs_done,
            "loss": self.loss,
            "micro_batches": self.micro_batches,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs_done, self.loss = state["epochs_done"], state["loss"]
        self.micro_batches = state["micro_batches"]

    def _logits_and_norms(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        logits, norms = [], []
        for batch in inputs.split(max(1, EVALUATION_BATCH // self.micro_batches)):
            prepared = self.samples.prepare(batch.to(self.device), self.recipe)
            with self._autocast():
                some, features = last_layer_inputs(self.network, prepared)
            logits.append(some.cpu())
            norms.append(features.flatten(1).double().norm(dim=1).cpu())
        return torch.cat(logits), torch.cat(norms)

    def _mean_loss_of_an_epoch(self) -> float:
        generator = torch.Generator().manual_seed(seed_of(self.seed, "epoch", str(self.epochs_done)))
        order = torch.randperm(len(self.samples), generator=generator).to(self.device)
        self.network.train()
        with torch.random.fork_rng(devices=[self.device] if self.device != "cpu" else []):
            torch.manual_seed(seed_of(self.seed, "dropout", str(self.epochs_done)) + self.processes.rank)
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
        # All of it, so that what is random about a sample does not depend on who trains it.
        inputs = self.processes.share(self.samples.batch(rows, generator, recipe))
        self._batch_length = len(inputs)
        logits = self.processes.all_logits(self._logits(inputs), len(inputs))
        # On a GPU the loss of the epoch tells, later; a look at every batch would stop its queue.
        if self.device == "cpu" and not bool(logits.isfinite().all()):
            raise Diverged(f"logits are not finite in epoch {self.epochs_done + 1}")
        loss = self.objective(logits, self.samples.labels[rows], position)
        self.optimizer.zero_grad()
        (loss * len(rows) if recipe.reduction == "sum" else loss).backward()
        if self.micro_batches > 1:
            self.processes.add_gradients(self.network)
        if recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip_norm)
        self.optimizer.step()
        for call in self.after_batch:
            call(self)
        return loss.detach()

    def _logits(self, inputs: Tensor) -> Tensor:
        if self.micro_batches == 1:
            return self._logits_at_once(inputs)
        pieces = inputs.split(math.ceil(len(inputs) / self.micro_batches))
        return torch.cat([checkpoint(self._logits_at_once, piece, use_reentrant=False) for piece in pieces])

    def _logits_at_once(self, inputs: Tensor) -> Tensor:
        # The network of several processes counts on being called once a step.
        network = self._shared if self.micro_batches == 1 else self.network
        with self._autocast():
            return last_layer_inputs(network, inputs)[0]

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    def _weights_are_finite(self) -> bool:
        return all(bool(value.isfinite().all()) for value in self.network.state_dict().values())


def _copied(state: Any) -> Any:
    """What training does not change any more. Of many small tensors, copy.deepcopy takes ten times as long."""
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    return [_copied(value) for value in state] if isinstance(state, list) else state


def _optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    parameters, decay = list(network.parameters()), recipe.weight_decay
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, recipe.lr, recipe.momentum, weight_decay=decay)
    if recipe.optimizer == "adam":
        betas = (recipe.momentum, recipe.beta2)
        return torch.optim.Adam(parameters, recipe.lr, betas, recipe.epsilon, weight_decay=decay)
    return torch.optim.Adagrad(parameters, recipe.lr, weight_decay=decay, eps=recipe.epsilon)
