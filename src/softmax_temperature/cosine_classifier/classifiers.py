"""All cosine classifiers of a grid as one tensor of weights: a training step and a count of correct samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.blocks import Buffers
from softmax_temperature.cosine_classifier.products import choose_products
from softmax_temperature.cosine_classifier.residuals import logit_unit, replace_by_residual
from softmax_temperature.cosine_classifier.updates import UPDATES

if TYPE_CHECKING:
    from softmax_temperature.cosine_classifier.settings import Settings


class Batch(NamedTuple):
    """A batch of embeddings X, prepared once for the products of all blocks."""

    transposed: Tensor  # X', for weights (rows, dim) times X', giving scores (rows, batch)
    plain: Tensor  # X, for residuals (rows, batch) times X, giving gradients (rows, dim)
    labels: Tensor  # (batch,)


class CosineClassifiers:
    """One classifier per problem, a problem being one (repeat, inverse temperature) pair, in this order.

    Args:
        initial: weights of each repeat, shape (repeats, classes, dim), in the wide dtype of the settings.
        inverse_temperatures: one or more.
        settings: optimiser, loss and precision.
    """

    def __init__(self, initial: Tensor, inverse_temperatures: Sequence[float], settings: Settings) -> None:
        repeats, classes, _ = initial.shape
        self.weights = initial.repeat_interleave(len(inverse_temperatures), dim=0)
        self.update = UPDATES[settings.optimizer](self.weights, settings.lr, settings.momentum)
        self.products = choose_products(settings.precision, initial.device)
        # Accuracy is counted on float32 cosines after training in bfloat16 too. Measured on five mixtures of 50 classes
        # (dim 256, alpha 1 to 250, 100 epochs, 4,000 test samples): products in bfloat16 moved the best accuracy of the
        # training by 0.00004 on average and 0.0018 at most, a quarter of its standard error; rounded cosines in the
        # evaluation, where ties count as correct, would raise it by up to 0.0035 more, and single epochs by up to 0.03.
        self.exact_products = choose_products(
            "float64" if initial.dtype == torch.float64 else "float32", initial.device
        )
        alpha = initial.new_tensor(inverse_temperatures).repeat(repeats)[:, None, None]
        alpha = alpha.expand(-1, classes, 1).contiguous()
        self._logit_scale = alpha * logit_unit(initial.device)
        # Eq. (3) divided by alpha, or as it stands.
        self._gradient_scale = torch.ones_like(alpha) if settings.rescale else alpha
        self._buffers = Buffers(initial.dtype, initial.device)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes, by name; each of shape (problems, classes, dim)."""
        return {"weights": self.weights, **self.update.state}

    def prepare_batch(self, embeddings: Tensor, labels: Tensor) -> Batch:
        """A batch for `train_step`; embeddings in the dtype of `products`."""
        return Batch(self.products.prepare(embeddings.T), self.products.prepare(embeddings), labels)

    def prepare_test(self, embeddings: Tensor) -> Tensor:
        """Embeddings, shape (n, dim), for `count_correct`."""
        return self.exact_products.prepare(embeddings.T)

    @torch.no_grad()
    def train_step(self, block: slice, batch: Batch, step: int) -> None:
        """One step of the optimiser on one batch for the problems of a block; `step` counts from 1."""
        weights, samples = self.weights[block], len(batch.labels)
        inverse_norm = torch.linalg.vector_norm(weights, dim=2, keepdim=True).reciprocal_()
        scratch = self._buffers.take("gradient", *weights.shape)
        scaled = torch.mul(weights, inverse_norm * self._logit_scale[block], out=scratch)
        residual = self.products.multiply(scaled.flatten(0, 1), batch.transposed, "scores")
        replace_by_residual(residual.view(*weights.shape[:2], samples), batch.labels, self._buffers)
        gradient = scratch.copy_(self.products.multiply(residual, batch.plain, "gradient").view_as(weights))
        # From the gradient of the direction to that of the weight: its part along the weight changes no cosine.
        products = torch.mul(weights, gradient, out=self._buffers.take("products", *weights.shape))
        along = products.sum(dim=2, keepdim=True).mul_(inverse_norm).mul_(inverse_norm)
        gradient.addcmul_(weights, along, value=-1).mul_(inverse_norm.mul_(self._gradient_scale[block]).div_(samples))
        self.update.apply(block, weights, gradient, step)

    @torch.no_grad()
    def count_correct(self, block: slice, transposed: Tensor, labels: Tensor) -> Tensor:
        """Samples whose own class has no lower cosine than any other, shape (problems of the block,).

        Args:
            block: the problems.
            transposed: from `prepare_test`.
            labels: shape (n,).
        """
        directions = functional.normalize(self.weights[block], dim=2)
        cosines = self.exact_products.multiply(directions.flatten(0, 1), transposed, "cosines")
        cosines = cosines.view(*directions.shape[:2], len(labels))
        own = cosines.gather(1, labels.expand(len(cosines), 1, -1))
        return (own >= cosines.amax(dim=1, keepdim=True)).sum(dim=(1, 2))

    def is_finite(self, block: slice) -> bool:
        """Whether the weights' lengths are: where one overflows, its cosines become 0 and training stands still."""
        return bool(torch.isfinite(torch.linalg.vector_norm(self.weights[block], dim=2)).all())
