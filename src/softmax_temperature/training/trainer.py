"""The training loop: epochs, learning rates, callbacks, checkpoints and divergence."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.losses.base import Loss
from softmax_temperature.metrics.checks import all_finite
from softmax_temperature.networks.layers import last_layer_inputs
from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.runner.cells import Job
from softmax_temperature.runner.machine import resolve_precision
from softmax_temperature.training.processes import processes
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.step_graph import StepGraph, say_not_captured

# Settings of an optimizer that depend on the device, so no checkpoint restores them.
_DEVICE_SETTINGS = ("fused", "foreach", "capturable")


class Diverged(ArithmeticError):
    """Raised if a run computes a number that is not finite: a result, not a fault."""


class Trainer:
    """Trains a network in place, according to a recipe.

    The network's last layer must be its attribute `classifier`. The order of the
    samples, their augmentation and dropout depend only on the seed and the number of
    the epoch. `loss` is the mean loss over the samples of the last epoch, or NaN before
    the first epoch.

    `after_batch` lists the functions to call after each step, while the step's
    gradients still exist. The functions may change the network, the optimizer and the
    state of a callback, and must leave the network in training mode.

    Raises LeakError for test data, and ValueError if the recipe does not suit the
    samples, or several processes cannot train the network.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Loss,
        samples: Samples,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
    ) -> None:
        samples.for_fitting().check(recipe)
        self.network = network.to(  # type: ignore[call-overload]
            device=device, memory_format=torch.channels_last
        )
        self.objective = objective
        self.samples = samples.to(device)
        self.recipe = recipe
        self.seed = seed
        self.device = device
        self.epochs_done = 0
        self.loss = math.nan
        self.after_batch: list[Callable[[Trainer], None]] = []
        self.optimizer = _optimizer(network, recipe, on_gpu=device != "cpu")
        # A fused optimizer, which runs on a GPU, reads its learning rate from a tensor
        # on the device. Changing the rate then needs no synchronisation and leaves the
        # captured graph valid.
        self._rate: Tensor | None = None
        if self.optimizer.defaults.get("fused"):
            self._rate = torch.zeros((), device=device)
        self._narrow = resolve_precision(recipe.precision, device) == "bfloat16"
        self._batch_size = min(recipe.batch_size, len(samples))
        self._processes = processes()
        self._shared = self._processes.train_together(self.network, self._batch_size)
        self._graph: StepGraph | None = None
        self._resident: dict[int, tuple[Tensor, Tensor]] = {}
        # Deviation: we drop the last, smaller batch of an epoch, because a summed loss
        # would weight it differently. The order changes each epoch, so every sample is
        # still used. The released code keeps that batch.
        self.steps_per_epoch = len(samples) // self._batch_size

    def capture_steps(self) -> str | None:
        """Try to replay further steps as a CUDA graph, after a few steps without one.

        The result is None on a CPU, where nothing is captured. It is also None if
        nothing prevents a capture, which `StepGraph` then tries. Otherwise the method
        prints and returns the reason that prevents a capture.
        """
        if self.device == "cpu":
            return None
        if not self.samples.one_shape:
            return say_not_captured("its batches differ in shape")
        if self._rate is None:
            return say_not_captured(f"{self.recipe.optimizer} has no fused form")
        if self._processes.count > 1:
            return say_not_captured("several processes train it")

        def step(table: Tensor, position: float) -> Tensor:
            return self._compute(table, table[0], position)

        self._graph = StepGraph(step)
        return None

    def epoch(self) -> None:
        """Train for one epoch.

        Raises Diverged if a logit, the loss or a weight is not finite.
        """
        tables = self._draw_epoch().to(self.samples.inputs.device)
        label_rows = tables[:, 0].to(self.samples.labels.device)
        self.network.train()
        losses = []
        gpus = [self.device] if self.device != "cpu" else []
        with torch.random.fork_rng(devices=gpus):
            dropout_seed = seed_of(self.seed, "dropout", str(self.epochs_done))
            torch.manual_seed(dropout_seed + self._processes.rank)
            for number, table in enumerate(tables):
                losses.append(self._step(number, table, label_rows[number]))
        mean_loss = torch.stack(losses).double().mean()
        tensors = self.network.state_dict().values()
        finite = torch.stack([tensor.isfinite().all() for tensor in tensors]).all()
        # Copy both values from the device at once, because each copy waits for a GPU.
        loss, weights_finite = torch.stack([mean_loss, finite.double()]).tolist()
        if not (math.isfinite(loss) and weights_finite):
            raise Diverged(f"the loss is {loss} in epoch {self.epochs_done + 1}")
        self.epochs_done += 1
        self.loss = loss

    def _draw_epoch(self) -> Tensor:
        """Draw all random numbers for the epoch's samples, in one tensor.

        The tensor has a table for each batch: the row indices of the batch's samples,
        then their random numbers.
        """
        seed = seed_of(self.seed, "epoch", str(self.epochs_done))
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.samples), generator=generator)
        whole_batches = order[: self.steps_per_epoch * self._batch_size]
        tables = []
        for rows in whole_batches.split(self._batch_size):
            drawn = self.samples.draw(self._batch_size, generator, self.recipe)
            tables.append(torch.cat([rows[None], drawn]))
        return torch.stack(tables)

    def evaluate(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logits, and the norms of the last layer's inputs.

        The logits are float32 and have shape (n, classes). The norms are float64 and
        have shape (n,). Both are on the CPU. Raises Diverged if a logit is not finite.
        """

        def compute(rows: Tensor) -> tuple[Tensor, ...]:
            logits = []
            norms = []
            for batch_logits, features in self.outputs(rows):
                logits.append(batch_logits)
                norms.append(features.flatten(1).double().norm(dim=1))
            return torch.cat(logits).cpu(), torch.cat(norms).cpu()

        logits, norms = self._processes.over_all(self.resident(inputs), compute)
        self.check_finite(logits)
        return logits, norms

    def check_finite(self, logits: Tensor) -> None:
        """Raise Diverged if one of `logits`, from an evaluation, is not finite."""
        if not all_finite(logits):
            raise Diverged(f"logits are not finite after epoch {self.epochs_done}")

    @torch.no_grad()
    def outputs(
        self, inputs: Tensor, batch_size: int = 500, samples: Samples | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each batch's logits and the inputs of the last layer, on the device.

        `samples` prepares the batches; by default, the training samples prepare them.
        """
        self.network.eval()
        for batch in self.resident(inputs).split(batch_size):
            yield self.forward((samples or self.samples).prepare(batch, self.recipe))

    def resident(self, tensor: Tensor) -> Tensor:
        """Return `tensor` on the device of the training samples.

        If the tensor must be copied, the copy stays on the device for the next call.
        """
        device = self.samples.inputs.device
        if tensor.device == device:
            return tensor
        if id(tensor) not in self._resident:
            self._resident[id(tensor)] = (tensor, tensor.to(device))
        _, copied = self._resident[id(tensor)]
        return copied

    def forward(
        self, prepared: Tensor, network: nn.Module | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute logits, and the inputs of the last layer, from prepared inputs.

        The network's mode does not change, and the recipe determines the precision. By
        default, `network` is the trainer's own network.
        """
        with torch.autocast(self.device, torch.bfloat16, enabled=self._narrow):
            return last_layer_inputs(network or self.network, prepared)

    def state_dict(self) -> dict[str, Any]:
        """The state that the next epoch depends on."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs_done": self.epochs_done,
            "loss": self.loss,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`, on any device."""
        self.network.load_state_dict(state["network"])
        groups = []
        for stored, present in zip(
            state["optimizer"]["param_groups"], self.optimizer.param_groups, strict=True
        ):
            names = [name for name in _DEVICE_SETTINGS if name in present]
            groups.append(stored | {name: present[name] for name in names})
        self.optimizer.load_state_dict(state["optimizer"] | {"param_groups": groups})
        self.epochs_done = state["epochs_done"]
        self.loss = state["loss"]
        if self._graph is not None:
            # Capture again, because the old graph refers to the optimizer's previous
            # tensors.
            self.capture_steps()

    def _step(self, number: int, table: Tensor, label_rows: Tensor) -> Tensor:
        recipe = self.recipe
        epochs_done = self.epochs_done + number / self.steps_per_epoch
        position = planned_epoch(recipe, epochs_done)
        factor = learning_rate_factor(recipe.schedule, position, recipe.planned_epochs)
        rate: float | Tensor = recipe.lr * factor
        if self._rate is not None:
            rate = self._rate.fill_(rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self._replay_or_compute(table, label_rows, position)
        for call in self.after_batch:
            call(self)
        return loss

    def _replay_or_compute(
        self, table: Tensor, label_rows: Tensor, position: float
    ) -> Tensor:
        if self._graph is not None:
            return self._graph(table, position)
        return self._compute(table, label_rows, position)

    def _compute(self, table: Tensor, label_rows: Tensor, position: float) -> Tensor:
        """Take a step, and return the loss.

        `table` holds row indices, followed by random numbers.
        """
        # Augment the whole batch before it is divided, so that a sample's random
        # numbers do not depend on its process.
        batch = self.samples.batch(table[0], table[1:], self.recipe)
        share, _ = self.forward(self._processes.share(batch), self._shared)
        logits = self._processes.all_logits(share)
        # On a GPU, logits are not checked, because reading a value of every batch would
        # stall the GPU's queue; `epoch` checks the loss and the weights at its end.
        if self.device == "cpu" and not all_finite(logits):
            raise Diverged(f"logits are not finite in epoch {self.epochs_done + 1}")
        labels = self.samples.labels[label_rows]
        loss: Tensor = self.objective(logits, labels, position)
        self.optimizer.zero_grad()
        if self.recipe.reduction == "sum":
            (loss * len(label_rows)).backward()
        else:
            loss.backward()
        if self.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        return loss.detach()


class Callback:
    """Base class of callbacks, which are called after each epoch.

    `kept` names the attributes that a checkpoint must hold, such as `history`, a list
    of rows of JSON values.
    """

    kept: ClassVar[tuple[str, ...]] = ("history",)

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []

    def after_epoch(self, trainer: Trainer) -> None:
        """Change the network, or record values, after an epoch.

        An override may raise Diverged to end training.
        """
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The kept attributes, in containers that do not change later."""
        return {name: copy.copy(getattr(self, name)) for name in self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""
        for name in self.kept:
            setattr(self, name, copy.copy(state[name]))


def train(trainer: Trainer, callbacks: Mapping[str, Callback], job: Job) -> bool:
    """Train for the epochs of the recipe, and return whether training diverged.

    Training starts from the job's checkpoint if there is one. The callbacks are called
    in the order of the mapping after each epoch. A run that diverges ends in its last
    finite state.
    """
    parts: dict[str, Trainer | Callback] = {"trainer": trainer, **callbacks}

    def states() -> dict[str, Any]:
        return {name: part.state_dict() for name, part in parts.items()}

    def restore(saved: dict[str, Any]) -> None:
        for name, part in parts.items():
            part.load_state_dict(saved[name])

    checkpointer = job.checkpointer()
    epochs = trainer.recipe.epochs
    if job.cuda_graphs:
        trainer.capture_steps()
    checkpointer.resume(restore)
    while trainer.epochs_done < epochs:
        before = states()
        before["trainer"] = _copied(before["trainer"])
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


def _copied(state: Any) -> Any:
    """Copy nested containers of tensors; `copy.deepcopy` takes 20 times as long."""
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, dict):
        copied = copy.copy(state)  # With the attributes of a network's state_dict.
        copied.update({key: _copied(value) for key, value in state.items()})
        return copied
    if isinstance(state, list | tuple):
        return type(state)(map(_copied, state))
    return copy.deepcopy(state)


def planned_epoch(recipe: Recipe, epochs_done: float) -> float:
    """The epoch of the planned recipe that a run has reached after `epochs_done`.

    A run of more or fewer epochs than planned stretches or compresses the recipe.
    """
    return epochs_done * recipe.planned_epochs / recipe.epochs


def learning_rate_factor(schedule: Schedule, position: float, length: float) -> float:
    """Return the factor that multiplies `lr` after `position` of `length` epochs.

    Cooling paper, section 4.1; focal paper, appendices E and K.
    """
    share = position / length
    factor = 1.0
    match schedule.name:
        case "steps":
            passed = [position >= milestone for milestone in schedule.milestones]
            factor = schedule.factor ** sum(passed)
        case "linear":
            factor = 1 - share
        case "exponential":
            factor = schedule.factor**share
        case "cosine":
            factor = (1 + math.cos(math.pi * share)) / 2
        case "inverse_square_root":
            factor = math.sqrt(schedule.warmup / max(position, schedule.warmup))
    if position < schedule.warmup:
        return position / schedule.warmup * factor
    return factor


def _optimizer(
    network: nn.Module, recipe: Recipe, *, on_gpu: bool
) -> torch.optim.Optimizer:
    """Make the recipe's optimizer.

    On a GPU one kernel updates all parameters, if torch has such a kernel.
    """
    parameters = list(network.parameters())
    fused = on_gpu or None
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=recipe.lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            fused=fused,
        )
    if recipe.optimizer == "adam":
        return torch.optim.Adam(
            parameters,
            lr=recipe.lr,
            betas=(recipe.momentum, recipe.beta2),
            eps=recipe.epsilon,
            weight_decay=recipe.weight_decay,
            fused=fused,
            capturable=on_gpu,
        )
    return torch.optim.Adagrad(
        parameters,
        lr=recipe.lr,
        weight_decay=recipe.weight_decay,
        eps=recipe.epsilon,
    )
