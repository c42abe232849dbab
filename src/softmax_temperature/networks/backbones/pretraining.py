"""Training of small backbones from scratch."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.backbones.preprocessing import Preprocess
from softmax_temperature.runner.jobs import seed_of

EVALUATION_BATCH = 512


class Pretraining:
    """Stochastic gradient descent with momentum on the cross-entropy; the learning rate falls to 0 along a half cosine.

    The order of the images depends on the seed and the epoch alone, so a training resumed from `state_dict` gives the
    same bits on a CPU. The last, smaller batch of an epoch is left out, unless it is the only one.

    Args:
        network: images to logits (n, classes); trained in place.
        preprocess: prepares its images.
        images: (n, channels, height, width) uint8.
        labels: (n,) int64.
        epochs: length of the schedule.
        batch_size: images per step.
        lr: learning rate of the first step.
        momentum: of the optimizer, as `weight_decay`.
        weight_decay: of all parameters.
        seed: of the order of the images.
        device: where to compute.
    """

    def __init__(
        self,
        network: nn.Module,
        preprocess: Preprocess,
        images: Tensor,
        labels: Tensor,
        *,
        epochs: int,
        batch_size: int,
        lr: float,
        momentum: float,
        weight_decay: float,
        seed: int,
        device: str,
    ) -> None:
        self.network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.preprocess, self.images, self.labels = preprocess, images.to(device), labels.to(device)
        self.batch_size = min(batch_size, len(labels))
        self.lr, self.seed, self.device = lr, seed, device
        self.epochs_done, self.loss = 0, math.nan
        self.steps_per_epoch = len(labels) // self.batch_size
        self.steps = epochs * self.steps_per_epoch
        self.optimizer = torch.optim.SGD(network.parameters(), lr, momentum, weight_decay=weight_decay)

    def epoch(self) -> None:
        """Train for one epoch; its mean loss, in nats, is then in `loss`.

        Raises:
            FloatingPointError: the loss is not finite.
        """
        generator = torch.Generator().manual_seed(seed_of(self.seed, "epoch", str(self.epochs_done)))
        order = torch.randperm(len(self.labels), generator=generator).to(self.device)
        first = self.epochs_done * self.steps_per_epoch
        self.network.train()
        batches = order.split(self.batch_size)[: self.steps_per_epoch]
        losses = [self._step(first + number, rows) for number, rows in enumerate(batches)]
        self.loss = torch.stack(losses).mean().item()
        if not math.isfinite(self.loss):
            raise FloatingPointError(f"the loss is {self.loss} in epoch {self.epochs_done + 1}; lower lr ({self.lr})")
        self.epochs_done += 1

    @torch.inference_mode()
    def accuracy(self, images: Tensor, labels: Tensor) -> float:
        """The fraction of images (n, channels, height, width) whose largest logit is that of their label (n,)."""
        self.network.eval()
        correct = 0
        for part, truth in zip(images.split(EVALUATION_BATCH), labels.split(EVALUATION_BATCH), strict=True):
            logits = self.network(self.preprocess(part, device=self.device))
            correct += int((logits.argmax(1).cpu() == truth).sum())
        return correct / len(labels)

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on."""
        progress = {"epochs_done": self.epochs_done, "loss": self.loss}
        return {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(), **progress}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where `state_dict` was taken."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs_done, self.loss = state["epochs_done"], state["loss"]

    def _step(self, number: int, rows: Tensor) -> Tensor:
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * (1 + math.cos(math.pi * number / self.steps)) / 2
        logits = self.network(self.preprocess(self.images[rows], device=self.device))
        loss = F.cross_entropy(logits, self.labels[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()
