"""Training of small backbones from scratch."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.networks.backbones import Preprocess


@dataclass
class Pretraining:
    """Stochastic gradient descent on the cross-entropy; the learning rate falls to 0 along a half cosine."""

    network: nn.Module
    preprocess: Preprocess
    images: Tensor
    labels: Tensor
    epochs: int
    batch_size: int
    lr: float
    momentum: float
    weight_decay: float
    seed: int
    device: str

    def __post_init__(self) -> None:
        self.network.to(device=self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.images, self.labels = self.images.to(self.device), self.labels.to(self.device)
        self.batch_size = min(self.batch_size, len(self.labels))
        self.epochs_done, self.loss = 0, math.nan
        self.steps_per_epoch = len(self.labels) // self.batch_size
        parameters = self.network.parameters()
        self.optimizer = torch.optim.SGD(parameters, self.lr, self.momentum, weight_decay=self.weight_decay)

    def epoch(self) -> None:
        """Train for one epoch; its mean loss, in nats, is then in `loss`. FloatingPointError if it is not finite."""
        generator = torch.Generator().manual_seed(seed_of(self.seed, "epoch", str(self.epochs_done)))
        order = torch.randperm(len(self.labels), generator=generator).to(self.device)
        first = self.epochs_done * self.steps_per_epoch
        self.network.train()
        batches = order.split(self.batch_size)[: self.steps_per_epoch]
        losses = [self._step(number, rows) for number, rows in enumerate(batches, start=first)]
        self.loss = torch.stack(losses).mean().item()
        if not math.isfinite(self.loss):
            raise FloatingPointError(f"the loss is {self.loss} in epoch {self.epochs_done + 1}; lower lr ({self.lr})")
        self.epochs_done += 1

    @torch.inference_mode()
    def accuracy(self, images: Tensor, labels: Tensor) -> float:
        """The fraction of images (n, channels, height, width) whose largest logit is that of their label (n,)."""
        self.network.eval()
        prepared = (self.preprocess(part, device=self.device) for part in images.split(512))
        predicted = torch.cat([self.network(part).argmax(1) for part in prepared]).cpu()
        return int((predicted == labels).sum()) / len(labels)

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
            group["lr"] = self.lr * (1 + math.cos(math.pi * number / (self.epochs * self.steps_per_epoch))) / 2
        logits = self.network(self.preprocess(self.images[rows], device=self.device))
        loss = F.cross_entropy(logits, self.labels[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()
