"""Training steps and accuracies of all cosine classifiers of a grid, as one tensor."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.products import Buffers, choose_products
from softmax_temperature.metrics.checks import check_count, check_positive

# torch.optim.Adam's defaults. Adam's first decay rate is not here, because the argument
# `momentum` sets it.
_ADAM_SECOND_DECAY = 0.999
_ADAM_EPSILON = 1e-8
# Number of logits per pass of the softmax: 1 MiB of float32 fits in one core's cache.
_LOGITS_PER_PASS_ON_CPU = 2**18

CHOICES = {
    "optimizer": ("sgd", "adam"),
    "precision": ("float32", "bfloat16", "float64"),
}


@dataclass(frozen=True)
class Settings:
    """Training settings; `train_temperature_grid` explains them.

    `problems_per_block` is the largest number of problems in a block. If it is None,
    the number is derived from the memory that a block may use.
    """

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
        check_count(self.batch_size, "batch_size", least=1)
        check_count(self.repeats, "repeats", least=1)
        check_count(self.seed, "seed", least=0)
        if self.problems_per_block is not None:
            check_count(self.problems_per_block, "problems_per_block", least=1)
        check_positive(self.lr, "lr")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {value!r}"
                )

    @property
    def wide_dtype(self) -> torch.dtype:
        """Dtype of weights, softmax and update; products may use a narrower dtype."""
        return torch.float64 if self.precision == "float64" else torch.float32


class Batch(NamedTuple):
    """A batch of embeddings X, prepared once for the products of all blocks.

    Attributes:
        transposed: The prepared transpose of X. Multiplying weights (rows, dim) by it
            gives scores (rows, batch).
        plain: The prepared X. Multiplying residuals (rows, batch) by it gives gradients
            (rows, dim).
        labels: True classes of shape (batch,).
    """

    transposed: Tensor
    plain: Tensor
    labels: Tensor


class CosineClassifiers:
    """One classifier per problem; a problem is one repeat at one inverse temperature.

    Problems are ordered by repeat, then by inverse temperature.

    Args:
        initial: Initial weights of each repeat, shape (repeats, classes, dim).
        inverse_temperatures: Factors of the cosines.
        settings: Training settings.

    Attributes:
        weights: Shape (problems, classes, dim).
        moments: The optimizer's velocity or moments, keyed by name; each has the shape
            of `weights`.
        products: Matrix products for training.
        exact_products: Matrix products for counting correct samples.
    """

    def __init__(
        self, initial: Tensor, inverse_temperatures: Sequence[float], settings: Settings
    ) -> None:
        repeats, classes, _ = initial.shape
        self.weights = initial.repeat_interleave(len(inverse_temperatures), dim=0)
        self.moments: dict[str, Tensor] = {}
        if settings.optimizer == "adam":
            self.moments["first_moment"] = torch.zeros_like(self.weights)
            self.moments["second_moment"] = torch.zeros_like(self.weights)
        else:
            self.moments["velocity"] = torch.zeros_like(self.weights)
        self.lr = settings.lr
        self.momentum = settings.momentum
        self.products = choose_products(settings.precision, initial.device)
        # Correct samples are counted with float32 cosines even after training in
        # bfloat16. Ties count as correct, so cosines rounded to bfloat16 would raise
        # the best accuracy by up to 0.0035 and the accuracy of single epochs by up to
        # 0.03.
        wide = "float64" if initial.dtype == torch.float64 else "float32"
        self.exact_products = choose_products(wide, initial.device)
        alpha = initial.new_tensor(inverse_temperatures).repeat(repeats)[:, None, None]
        alpha = alpha.expand(-1, classes, 1).contiguous()
        self._logit_scale = alpha * logit_unit(initial.device)
        # The gradient of Eq. (3) has the factor alpha, unless the loss is rescaled.
        self._gradient_scale = torch.ones_like(alpha) if settings.rescale else alpha
        self._buffers = Buffers(initial.dtype, initial.device)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All state that training changes, each of shape (problems, classes, dim)."""
        return {"weights": self.weights, **self.moments}

    def prepare_batch(self, embeddings: Tensor, labels: Tensor) -> Batch:
        """Prepare a batch for `train_step`; `embeddings` must have `products.dtype`."""
        transposed = self.products.prepare(embeddings.T)
        plain = self.products.prepare(embeddings)
        return Batch(transposed, plain, labels)

    def prepare_test(self, embeddings: Tensor) -> Tensor:
        """Prepare embeddings, shape (n, dim), for `count_correct`."""
        return self.exact_products.prepare(embeddings.T)

    @torch.no_grad()
    def train_step(self, block: slice, batch: Batch, step: int) -> None:
        """Take one optimizer step on a batch, for the problems of a block.

        Args:
            block: The problems to train.
            batch: The samples.
            step: Index of the step since training began, counted from 1.
        """
        weights = self.weights[block]
        norms = torch.linalg.vector_norm(weights, dim=2, keepdim=True)
        inverse_norms = norms.reciprocal_()
        gradient = self._direction_gradient(block, weights, inverse_norms, batch)
        # Convert the gradient with respect to the direction into the gradient with
        # respect to the weight: remove the part along the weight, which changes no
        # cosine.
        scratch = self._buffers.take("products", *weights.shape)
        torch.mul(weights, gradient, out=scratch)
        along = scratch.sum(dim=2, keepdim=True).mul_(inverse_norms).mul_(inverse_norms)
        gradient.addcmul_(weights, along, value=-1)
        scale = inverse_norms.mul_(self._gradient_scale[block]).div_(len(batch.labels))
        gradient.mul_(scale)
        self._update(block, weights, gradient, step)

    def _direction_gradient(
        self, block: slice, weights: Tensor, inverse_norms: Tensor, batch: Batch
    ) -> Tensor:
        """Compute the gradient with respect to the directions, summed over the batch.

        This is Eq. (3) without the factor alpha.
        """
        scratch = self._buffers.take("gradient", *weights.shape)
        scaled = torch.mul(
            weights, inverse_norms * self._logit_scale[block], out=scratch
        )
        scores = self.products.multiply(
            scaled.flatten(0, 1), batch.transposed, "scores"
        )
        problems, classes, _ = weights.shape
        logits = scores.view(problems, classes, len(batch.labels))
        replace_by_residual(logits, batch.labels, self._buffers)
        # `scores` now holds the residuals.
        gradient = self.products.multiply(scores, batch.plain, "gradient")
        return scratch.copy_(gradient.view_as(weights))

    def _update(
        self, block: slice, weights: Tensor, gradient: Tensor, step: int
    ) -> None:
        """Update weights and moments in place, as torch.optim.SGD or Adam would."""
        if "velocity" in self.moments:
            velocity = self.moments["velocity"][block]
            torch.add(gradient, velocity, alpha=self.momentum, out=velocity)
            weights.sub_(velocity, alpha=self.lr)
            return
        first = self.moments["first_moment"][block].lerp_(gradient, 1 - self.momentum)
        second = self.moments["second_moment"][block].mul_(_ADAM_SECOND_DECAY)
        second.addcmul_(gradient, gradient, value=1 - _ADAM_SECOND_DECAY)
        first_bias = 1 - self.momentum**step
        second_bias = 1 - _ADAM_SECOND_DECAY**step
        root = torch.sqrt(second).div_(math.sqrt(second_bias)).add_(_ADAM_EPSILON)
        weights.addcdiv_(first, root, value=-self.lr / first_bias)

    @torch.no_grad()
    def count_correct(self, block: slice, transposed: Tensor, labels: Tensor) -> Tensor:
        """Count the correct samples of each problem in a block, shape (problems,).

        A sample is correct if no class has a higher cosine than its true class.
        """
        directions = functional.normalize(self.weights[block], dim=2)
        problems, classes, _ = directions.shape
        cosines = self.exact_products.multiply(
            directions.flatten(0, 1), transposed, "cosines"
        )
        cosines = cosines.view(problems, classes, len(labels))
        true_class = cosines.gather(1, labels.expand(problems, 1, -1))
        correct = true_class >= cosines.amax(dim=1, keepdim=True)
        return correct.sum(dim=(1, 2))


def logit_unit(device: torch.device) -> float:
    """Return the factor by which to multiply logits for `replace_by_residual`.

    The factor is 1 on a GPU, where the softmax uses exp. Elsewhere the factor is
    log2(e), because on a CPU exp2 is three times as fast as exp. Multiplying by the
    factor costs nothing, because it is folded into the scale of the weights.
    """
    return 1.0 if device.type == "cuda" else math.log2(math.e)


def replace_by_residual(logits: Tensor, labels: Tensor, buffers: Buffers) -> None:
    """Overwrite logits with p(c | x, alpha) - q(c | x) of Eq. (3).

    Args:
        logits: Shape (problems, classes, batch), multiplied by `logit_unit`. Samples
            are contiguous, so that the softmax runs along vectors of samples even if
            there are only ten classes.
        labels: True classes of shape (batch,).
        buffers: Scratch memory in the dtype of the softmax.
    """
    problems, classes, batch = logits.shape
    problems_per_pass = problems
    if not logits.is_cuda:
        problems_per_pass = max(1, _LOGITS_PER_PASS_ON_CPU // (classes * batch))
    true_class = labels.expand(min(problems_per_pass, problems), 1, batch)
    minus_one = torch.full((), -1.0, dtype=buffers.dtype, device=logits.device)
    minus_one = minus_one.expand(true_class.shape)
    for part in logits.split(problems_per_pass):
        probs = _softmax(part, buffers)
        probs.scatter_add_(1, true_class[: len(part)], minus_one[: len(part)])
        if probs is not part:
            part.copy_(probs)


def _softmax(logits: Tensor, buffers: Buffers) -> Tensor:
    """Compute the softmax over classes in the dtype of `buffers`.

    The logits are already multiplied by `logit_unit`. On a CPU the function works in
    place, or in scratch memory if the logits have a narrower dtype.
    """
    if logits.is_cuda:
        return torch.softmax(logits, dim=1, dtype=buffers.dtype)
    probs = logits
    if logits.dtype != buffers.dtype:
        probs = buffers.take("probs", *logits.shape).copy_(logits)
    probs.sub_(probs.amax(dim=1, keepdim=True)).exp2_()
    return probs.mul_(probs.sum(dim=1, keepdim=True).reciprocal_())
