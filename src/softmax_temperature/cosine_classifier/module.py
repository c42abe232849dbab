"""A cosine classifier as a layer of a network (classifier_temperature, section 3.1)."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from softmax_temperature.metrics.checks import ArgumentError, check_positive


class CosineClassifier(nn.Module):
    """Logits are cosines of embeddings and class weights, times a fixed inverse
    temperature.

    Args:
        in_features: Length of an embedding.
        classes: Number of classes.
        inverse_temperature: Multiplies the cosines; or "auto", what
            `suggest_temperature` says of `sample`.
        sample: Embeddings (n, in_features) and labels (n,) for "auto".

    Attributes:
        weight: Shape (classes, in_features), of random directions and length 1 at the
            start.
        inverse_temperature: A scalar buffer, part of `state_dict()`.
        suggestion: What "auto" rests on, or None.

    Divide the cross-entropy by `inverse_temperature`, as the paper does: one learning
    rate then serves every value.

    Examples:
        >>> import torch
        >>> classifier = CosineClassifier(8, 3, inverse_temperature=16.0)
        >>> logits = classifier(torch.randn(5, 8, generator=torch.manual_seed(0)))
        >>> logits.shape, bool(logits.abs().max() <= 16)
        (torch.Size([5, 3]), True)
    """

    inverse_temperature: Tensor

    def __init__(
        self,
        in_features: int,
        classes: int,
        inverse_temperature: float | Literal["auto"] = "auto",
        *,
        sample: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.suggestion = None
        if sample is not None and inverse_temperature != "auto":
            raise ArgumentError(
                f"sample is for inverse_temperature 'auto', got {inverse_temperature!r}",
                "Leave one of them out.",
            )
        if inverse_temperature == "auto":
            from softmax_temperature.tools.suggest import (
                suggest_temperature,
            )  # It knows this package.

            if sample is None:
                raise ValueError(
                    "inverse_temperature 'auto' needs sample=(embeddings, labels)"
                )
            if sample[0].ndim != 2 or sample[0].shape[1] != in_features:
                raise ArgumentError(
                    f"sample must have embeddings of shape (n, {in_features}), "
                    f"got {tuple(sample[0].shape)}",
                    "Give those that the classifier will see.",
                )
            self.suggestion = suggest_temperature(*sample)
            inverse_temperature = self.suggestion.inverse_temperature
        check_positive(inverse_temperature, "inverse_temperature")
        self.register_buffer(
            "inverse_temperature", torch.tensor(float(inverse_temperature))
        )
        self.weight = nn.Parameter(
            functional.normalize(torch.randn(classes, in_features), dim=1)
        )

    def forward(self, embeddings: Tensor) -> Tensor:
        """Logits (..., classes) of embeddings (..., in_features)."""
        cosines = functional.linear(
            functional.normalize(embeddings, dim=-1),
            functional.normalize(self.weight, dim=-1),
        )
        return self.inverse_temperature * cosines
