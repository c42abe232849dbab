"""The training loop: epochs, learning rates, callbacks, checkpoints and divergence."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.losses import Objective
from softmax_temperature.metrics.checks import all_finite
from softmax_temperature.networks.layers import last_layer_inputs
from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.runner.cells import Job
from softmax_temperature.runner.machine import resolve_precision
from softmax_temperature.training.processes import processes
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.step_graph import StepGraph, say_not_captured

_OF_THE_DEVICE = (
    "fused",
    "foreach",
    "capturable",
)  # Settings of an optimizer that a checkpoint must not restore.


class Diverged(ArithmeticError):
    """The loss, a weight or a logit is no longer finite: a result, not a fault."""


class Trainer:
    """A network with a `classifier`, trained in place by a recipe, and its optimizer.

    The order of the samples, their augmentation and dropout depend on the seed and the
    number of the epoch alone. `loss` is the mean over the samples of the last epoch,
    nan before the first. `after_batch` are functions called after each step, while its
    gradients are still there; what they change has to lie in the network, the optimizer
    or the state of a callback, and they leave the network in training mode. Raises
    LeakError for test data, and ValueError if the samples cannot be trained by the
    recipe, or not by several processes.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Objective,
        samples: Samples,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
    ) -> None:
        samples.for_fitting().check(recipe)
        self.network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.objective, self.samples, self.recipe = (
            objective,
            samples.to(device),
            recipe,
        )
        self.seed, self.device = seed, device
        self.epochs_done, self.loss = 0, math.nan
        self.after_batch: list[Callable[[Trainer], None]] = []
        self.optimizer = _optimizer(network, recipe, on_gpu=device != "cpu")
        # On a GPU the rate is a tensor there: updating it needs no sync and keeps the
        # captured graph valid.
        self._rate = (
            torch.zeros((), device=device)
            if self.optimizer.defaults.get("fused")
            else None
        )
        self._narrow = resolve_precision(recipe.precision, device) == "bfloat16"
        self._batch_size = min(recipe.batch_size, len(samples))
        self._processes = processes()
        self._shared = self._processes.train_together(self.network, self._batch_size)
        self._graph: StepGraph | None = None
        self._resident: dict[int, tuple[Tensor, Tensor]] = {}
        # Deviation: the last, smaller batch of an epoch is left out, as a summed loss
        # would weigh it differently; with a new order each epoch every sample still has
        # its turn. The released code keeps it.
        self.steps_per_epoch = len(samples) // self._batch_size

    def capture_steps(self) -> str | None:
        """Replay steps as a CUDA graph from now on; on a GPU, says and returns why not
        where that cannot be.
        """
        faults = {
            "its batches differ in shape": not self.samples.one_shape,
            f"{self.recipe.optimizer} has no fused form": self._rate is None,
            "several processes train it": self._processes.count > 1,
        }
        if self.device == "cpu":
            return None
        if why := next((why for why, is_so in faults.items() if is_so), None):
            return say_not_captured(why)
        self._graph = StepGraph(
            lambda table, position: self._compute(table, table[0], position)
        )
        return None

    def epoch(self) -> None:
        """Train for one epoch; raises Diverged if a logit, the loss or a weight is not
        finite.
        """
        generator = torch.Generator().manual_seed(
            seed_of(self.seed, "epoch", str(self.epochs_done))
        )
        order = torch.randperm(len(self.samples), generator=generator)
        batches = order[: self.steps_per_epoch * self._batch_size].split(
            self._batch_size
        )
        drawn = (
            self.samples.draw(self._batch_size, generator, self.recipe) for _ in batches
        )
        # All that is random about the samples of the epoch, in one copy to the device.
        tables = torch.stack(
            [
                torch.cat([rows[None], some])
                for rows, some in zip(batches, drawn, strict=True)
            ]
        )
        tables = tables.to(self.samples.inputs.device)
        label_rows = tables[:, 0].to(self.samples.labels.device)
        self.network.train()
        with torch.random.fork_rng(
            devices=[self.device] if self.device != "cpu" else []
        ):
            torch.manual_seed(
                seed_of(self.seed, "dropout", str(self.epochs_done))
                + self._processes.rank
            )
            losses = [
                self._step(number, *each)
                for number, each in enumerate(zip(tables, label_rows, strict=True))
            ]
        finite = torch.stack(
            [each.isfinite().all() for each in self.network.state_dict().values()]
        ).all()
        loss, weights_finite = torch.stack(
            [torch.stack(losses).double().mean(), finite.double()]
        ).tolist()
        if not (math.isfinite(loss) and weights_finite):
            raise Diverged(f"the loss is {loss} in epoch {self.epochs_done + 1}")
        self.epochs_done, self.loss = self.epochs_done + 1, loss

    def evaluate(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, classes) float32, and norms (n,) float64 of the last layer's
        inputs, on the CPU; or Diverged.
        """

        def compute(rows: Tensor) -> tuple[Tensor, ...]:
            found = [
                (logits, features.flatten(1).double().norm(dim=1))
                for logits, features in self.outputs(rows)
            ]
            return tuple(torch.cat(parts).cpu() for parts in zip(*found, strict=True))

        logits, norms = self._processes.over_all(self.resident(inputs), compute)
        self.check_finite(logits)
        return logits, norms

    def check_finite(self, logits: Tensor) -> None:
        """Raise Diverged if a logit of an evaluation is not finite."""
        if not all_finite(logits):
            raise Diverged(f"logits are not finite after epoch {self.epochs_done}")

    @torch.no_grad()
    def outputs(
        self, inputs: Tensor, batch_size: int = 500, samples: Samples | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits and last-layer features in evaluation mode, on the device, a batch at
        a time.
        """
        self.network.eval()
        for batch in self.resident(inputs).split(batch_size):
            yield self.forward((samples or self.samples).prepare(batch, self.recipe))

    def resident(self, tensor: Tensor) -> Tensor:
        """A tensor where the training samples are; a copy made for that stays there for
        the next time.
        """
        where = self.samples.inputs.device
        if tensor.device == where:
            return tensor
        if id(tensor) not in self._resident:
            self._resident[id(tensor)] = (tensor, tensor.to(where))
        return self._resident[id(tensor)][1]

    def forward(
        self, prepared: Tensor, network: nn.Module | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits and last-layer features of prepared inputs, in the network's mode and
        the recipe's precision.
        """
        with torch.autocast(self.device, torch.bfloat16, enabled=self._narrow):
            return last_layer_inputs(network or self.network, prepared)

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on."""
        parts = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        return {**parts, "epochs_done": self.epochs_done, "loss": self.loss}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where `state_dict` was taken, on any device."""
        self.network.load_state_dict(state["network"])
        groups = [
            group | {name: own[name] for name in _OF_THE_DEVICE if name in own}
            for group, own in zip(
                state["optimizer"]["param_groups"],
                self.optimizer.param_groups,
                strict=True,
            )
        ]
        self.optimizer.load_state_dict(state["optimizer"] | {"param_groups": groups})
        self.epochs_done, self.loss = state["epochs_done"], state["loss"]
        if self._graph is not None:  # The optimizer's tensors are others now.
            self.capture_steps()

    def _step(self, number: int, table: Tensor, label_rows: Tensor) -> Tensor:
        recipe = self.recipe
        position = planned_epoch(
            recipe, self.epochs_done + number / self.steps_per_epoch
        )
        rate: float | Tensor = recipe.lr * learning_rate_factor(
            recipe.schedule, position, recipe.planned_epochs
        )
        if self._rate is not None:
            rate = self._rate.fill_(rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = (
            self._graph(table, position)
            if self._graph
            else self._compute(table, label_rows, position)
        )
        for call in self.after_batch:
            call(self)
        return loss

    def _compute(self, table: Tensor, label_rows: Tensor, position: float) -> Tensor:
        """The step itself: `table` holds the rows of the samples, then what was drawn
        for them.
        """
        # The whole batch, so that what is random about a sample does not depend on the
        # process that trains it.
        inputs = self._processes.share(
            self.samples.batch(table[0], table[1:], self.recipe)
        )
        logits = self._processes.all_logits(self.forward(inputs, self._shared)[0])
        # On a GPU only the loss of the epoch is checked, later: reading a value of
        # every batch would stall its queue.
        if self.device == "cpu" and not all_finite(logits):
            raise Diverged(f"logits are not finite in epoch {self.epochs_done + 1}")
        loss = self.objective(logits, self.samples.labels[label_rows], position)
        self.optimizer.zero_grad()
        (loss * len(label_rows) if self.recipe.reduction == "sum" else loss).backward()
        if self.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        return loss.detach()


class Callback:
    """Acts or observes after each epoch; `kept` names what the next depends on:
    `history`, rows of JSON values.
    """

    kept: ClassVar[tuple[str, ...]] = ("history",)

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []

    def after_epoch(self, trainer: Trainer) -> None:
        """Called once after each epoch; may raise Diverged."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """What is kept, ready for a checkpoint, in containers that do not change later."""
        return {name: copy.copy(getattr(self, name)) for name in self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where `state_dict` was taken."""
        for name in self.kept:
            setattr(self, name, copy.copy(state[name]))


def train(trainer: Trainer, callbacks: Mapping[str, Callback], job: Job) -> bool:
    """Train for the epochs of the recipe, from the job's checkpoint if there is one;
    returns whether it diverged.

    The callbacks are called in this order after each epoch. A training that diverged
    ends as it was when last finite.
    """
    parts: dict[str, Trainer | Callback] = {"trainer": trainer, **callbacks}

    def states() -> dict[str, Any]:
        return {name: part.state_dict() for name, part in parts.items()}

    def restore(saved: dict[str, Any]) -> None:
        for name, state in saved.items():
            parts[name].load_state_dict(state)

    checkpointer, epochs = job.checkpointer(), trainer.recipe.epochs
    if job.cuda_graphs:
        trainer.capture_steps()
    restore(checkpointer.load() or {})
    while trainer.epochs_done < epochs:
        before = states()
        before["trainer"] = copy.deepcopy(before["trainer"])
        try:
            trainer.epoch()
            for callback in callbacks.values():
                callback.after_epoch(trainer)
        except Diverged:
            restore(before)
            return True
        checkpointer.save_if_due(states)
        job.progress(trainer.epochs_done, epochs)
    return False


def planned_epoch(recipe: Recipe, epochs_done: float) -> float:
    """The epoch of the written recipe that a training has reached; a shorter one is
    compressed.
    """
    return epochs_done * recipe.planned_epochs / recipe.epochs


def learning_rate_factor(schedule: Schedule, position: float, length: float) -> float:
    """What multiplies the learning rate after `position` epochs of `length` (Cooling,
    4.1; focal, appendices E, K).
    """
    share, factor = position / length, 1.0
    match schedule.name:
        case "steps":
            factor = schedule.factor ** sum(
                position >= milestone for milestone in schedule.milestones
            )
        case "linear":
            factor = 1 - share
        case "exponential":
            factor = schedule.factor**share
        case "cosine":
            factor = (1 + math.cos(math.pi * share)) / 2
        case "inverse_square_root":
            factor = math.sqrt(schedule.warmup / max(position, schedule.warmup))
    return (position / schedule.warmup if position < schedule.warmup else 1.0) * factor


def _optimizer(
    network: nn.Module, recipe: Recipe, *, on_gpu: bool
) -> torch.optim.Optimizer:
    """The recipe's; on a GPU in one kernel for all parameters, where torch has one."""
    parameters, decay, fused = (
        list(network.parameters()),
        recipe.weight_decay,
        on_gpu or None,
    )
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, recipe.lr, recipe.momentum, weight_decay=decay, fused=fused
        )
    if recipe.optimizer == "adam":
        betas = (recipe.momentum, recipe.beta2)
        return torch.optim.Adam(
            parameters,
            recipe.lr,
            betas,
            recipe.epsilon,
            weight_decay=decay,
            fused=fused,
            capturable=on_gpu,
        )
    return torch.optim.Adagrad(
        parameters, recipe.lr, weight_decay=decay, eps=recipe.epsilon
    )
