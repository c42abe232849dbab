"""All cosine classifiers of a grid as one tensor of weights: a training step and a
count of correct samples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.products import Buffers, choose_products
from softmax_temperature.metrics.checks import check_count, check_positive

# torch.optim.Adam's defaults; the first decay rate is the caller's momentum.
_ADAM_SECOND_DECAY = 0.999
_ADAM_EPSILON = 1e-8
# Logits of one pass of the softmax: 1 MiB of float32, which stays in the cache of one
# core.
_LOGITS_PER_PASS_ON_CPU = 2**18

CHOICES = {
    "optimizer": ("sgd", "adam"),
    "precision": ("float32", "bfloat16", "float64"),
}


@dataclass(frozen=True)
class Settings:
    """What `train_temperature_grid` explains, and the most problems in a block."""

    batch_size: int
    lr: float
    momentum: float = 0.9
    rescale: bool = True
    optimizer: str = "sgd"
    repeats: int = 1
    seed: int = 0
    precision: str = "float32"
    problems_per_block: int | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("batch_size", 1),
            ("repeats", 1),
            ("seed", 0),
            ("problems_per_block", 1),
        ):
            if (value := getattr(self, name)) is not None:
                check_count(value, name, least=least)
        check_positive(self.lr, "lr")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        for name, values in CHOICES.items():
            if (value := getattr(self, name)) not in values:
                raise ValueError(
                    f"{name} must be one of {', '.join(values)}, got {value!r}"
                )

    @property
    def wide_dtype(self) -> torch.dtype:
        """The dtype of weights, softmax and update; only matrix products are narrower."""
        return torch.float64 if self.precision == "float64" else torch.float32


class Batch(NamedTuple):
    """A batch of embeddings X, prepared once for the products of all blocks."""

    transposed: (
        Tensor  # X', for weights (rows, dim) times X', giving scores (rows, batch)
    )
    plain: (
        Tensor  # X, for residuals (rows, batch) times X, giving gradients (rows, dim)
    )
    labels: Tensor  # (batch,)


class CosineClassifiers:
    """One classifier per (repeat, inverse temperature), in this order; `initial` is
    (repeats, classes, dim).
    """

    def __init__(
        self, initial: Tensor, inverse_temperatures: Sequence[float], settings: Settings
    ) -> None:
        repeats, classes, _ = initial.shape
        self.weights = initial.repeat_interleave(len(inverse_temperatures), dim=0)
        moments = (
            ("first_moment", "second_moment")
            if settings.optimizer == "adam"
            else ("velocity",)
        )
        self.moments = {name: torch.zeros_like(self.weights) for name in moments}
        self.lr, self.momentum = settings.lr, settings.momentum
        self.products = choose_products(settings.precision, initial.device)
        # Accuracy is counted on float32 cosines after training in bfloat16 too: rounded
        # ones, where ties count as correct, would raise the best accuracy by up to
        # 0.0035, and single epochs by up to 0.03.
        wide = "float64" if initial.dtype == torch.float64 else "float32"
        self.exact_products = choose_products(wide, initial.device)
        alpha = initial.new_tensor(inverse_temperatures).repeat(repeats)[:, None, None]
        alpha = alpha.expand(-1, classes, 1).contiguous()
        self._logit_scale = alpha * logit_unit(initial.device)
        # Eq. (3), divided by alpha or not.
        self._gradient_scale = torch.ones_like(alpha) if settings.rescale else alpha
        self._buffers = Buffers(initial.dtype, initial.device)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes, each of shape (problems, classes, dim)."""
        return {"weights": self.weights, **self.moments}

    def prepare_batch(self, embeddings: Tensor, labels: Tensor) -> Batch:
        """A batch for `train_step`; embeddings in the dtype of `products`."""
        return Batch(
            self.products.prepare(embeddings.T),
            self.products.prepare(embeddings),
            labels,
        )

    def prepare_test(self, embeddings: Tensor) -> Tensor:
        """Embeddings, shape (n, dim), for `count_correct`."""
        return self.exact_products.prepare(embeddings.T)

    @torch.no_grad()
    def train_step(self, block: slice, batch: Batch, step: int) -> None:
        """One step of the optimiser on one batch for the problems of a block; `step`
        counts from 1.
        """
        weights, samples = self.weights[block], len(batch.labels)
        inverse_norm = torch.linalg.vector_norm(
            weights, dim=2, keepdim=True
        ).reciprocal_()
        scratch = self._buffers.take("gradient", *weights.shape)
        scaled = torch.mul(
            weights, inverse_norm * self._logit_scale[block], out=scratch
        )
        residual = self.products.multiply(
            scaled.flatten(0, 1), batch.transposed, "scores"
        )
        replace_by_residual(
            residual.view(*weights.shape[:2], samples), batch.labels, self._buffers
        )
        gradient = scratch.copy_(
            self.products.multiply(residual, batch.plain, "gradient").view_as(weights)
        )
        # From the gradient of the direction to that of the weight: its part along the
        # weight changes no cosine.
        products = torch.mul(
            weights, gradient, out=self._buffers.take("products", *weights.shape)
        )
        along = products.sum(dim=2, keepdim=True).mul_(inverse_norm).mul_(inverse_norm)
        gradient.addcmul_(weights, along, value=-1).mul_(
            inverse_norm.mul_(self._gradient_scale[block]).div_(samples)
        )
        self._update(block, weights, gradient, step)

    def _update(
        self, block: slice, weights: Tensor, gradient: Tensor, step: int
    ) -> None:
        """A step of torch.optim.SGD or Adam, in place."""
        if "velocity" in self.moments:
            velocity = self.moments["velocity"][block]
            torch.add(gradient, velocity, alpha=self.momentum, out=velocity)
            weights.sub_(velocity, alpha=self.lr)
            return
        first = self.moments["first_moment"][block].lerp_(gradient, 1 - self.momentum)
        second = self.moments["second_moment"][block].mul_(_ADAM_SECOND_DECAY)
        second.addcmul_(gradient, gradient, value=1 - _ADAM_SECOND_DECAY)
        root = (
            torch.sqrt(second)
            .div_(math.sqrt(1 - _ADAM_SECOND_DECAY**step))
            .add_(_ADAM_EPSILON)
        )
        weights.addcdiv_(first, root, value=-self.lr / (1 - self.momentum**step))

    @torch.no_grad()
    def count_correct(self, block: slice, transposed: Tensor, labels: Tensor) -> Tensor:
        """Samples whose own class has no lower cosine than any other, shape (problems
        of the block,).
        """
        directions = functional.normalize(self.weights[block], dim=2)
        cosines = self.exact_products.multiply(
            directions.flatten(0, 1), transposed, "cosines"
        )
        cosines = cosines.view(*directions.shape[:2], len(labels))
        own = cosines.gather(1, labels.expand(len(cosines), 1, -1))
        return (own >= cosines.amax(dim=1, keepdim=True)).sum(dim=(1, 2))


def logit_unit(device: torch.device) -> float:
    """What logits are multiplied by before `replace_by_residual`: it reads them in nats
    on a GPU, in bits elsewhere.
    """
    # On a CPU exp2 is three times as fast as exp, and the factor costs nothing inside
    # the scale of the weights.
    return 1.0 if device.type == "cuda" else math.log2(math.e)


def replace_by_residual(logits: Tensor, labels: Tensor, wide: Buffers) -> None:
    """Overwrite logits (problems, classes, batch) in `logit_unit` by p(c | x, alpha) -
    q(c | x) of Eq. (3).
    """
    # Samples are contiguous, so that the softmax runs along vectors of samples even for
    # ten classes.
    _, classes, batch = logits.shape
    at_once = (
        len(logits)
        if logits.is_cuda
        else max(1, _LOGITS_PER_PASS_ON_CPU // (classes * batch))
    )
    own_class = labels.expand(min(at_once, len(logits)), 1, batch)
    minus_one = torch.full((), -1.0, dtype=wide.dtype, device=logits.device).expand(
        own_class.shape
    )
    for part in logits.split(at_once):
        probs = (
            torch.softmax(part, dim=1, dtype=wide.dtype)
            if part.is_cuda
            else _softmax_of_bits(part, wide)
        )
        probs.scatter_add_(1, own_class[: len(part)], minus_one[: len(part)])
        if probs is not part:
            part.copy_(probs)


def _softmax_of_bits(logits: Tensor, wide: Buffers) -> Tensor:
    """Softmax to the base 2 along the classes: in place, or in scratch memory where
    logits are narrower.
    """
    probs = (
        logits
        if logits.dtype == wide.dtype
        else wide.take("probs", *logits.shape).copy_(logits)
    )
    probs.sub_(probs.amax(dim=1, keepdim=True)).exp2_()
    return probs.mul_(probs.sum(dim=1, keepdim=True).reciprocal_())
