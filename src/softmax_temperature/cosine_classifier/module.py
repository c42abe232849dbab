"""A cosine classifier as a layer of a network (classifier_temperature, section 3.1)."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_count,
    check_positive,
    check_tensor,
)


class CosineClassifier(nn.Module):
    """A linear layer whose logits are cosines times a fixed inverse temperature.

    The cosines are between embeddings and class weights. Vectors are normalised in
    float32 or wider, so that a layer in half precision uses the cosines of its rounded
    weights. An embedding of zeros has the cosine 0.

    Args:
        in_features: Length of an embedding, at least 2: the direction of a single
            number is only its sign.
        classes: Number of classes, at least 2.
        inverse_temperature: Factor of the cosines, or "auto" for the one that
            `suggest_temperature` suggests for `sample`.
        sample: Embeddings (n, in_features) and labels (n,) for "auto".

    Attributes:
        weight: Shape (classes, in_features); starts as random directions of length 1.
        inverse_temperature: A scalar buffer, part of `state_dict()`.
        suggestion: The suggestion that "auto" used, or None.

    Raises:
        ValueError: If an argument is out of range, "auto" is given without a `sample`,
            or a `sample` without "auto".

    If the cross-entropy is divided by `inverse_temperature`, as in the paper, one
    learning rate suits every inverse temperature.

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
        check_count(in_features, "in_features", least=2)
        check_count(classes, "classes", least=2)
        self.suggestion = None
        if sample is not None and inverse_temperature != "auto":
            raise ArgumentError(
                "sample requires inverse_temperature 'auto', got "
                f"{inverse_temperature!r}",
                "Omit one of them.",
            )
        if inverse_temperature == "auto":
            # Imported here because tools imports this package.
            from softmax_temperature.tools.suggest import suggest_temperature

            if sample is None:
                raise ValueError(
                    "inverse_temperature 'auto' needs sample=(embeddings, labels)"
                )
            _check_sample(sample, in_features)
            self.suggestion = suggest_temperature(*sample)
            inverse_temperature = self.suggestion.inverse_temperature
        if isinstance(inverse_temperature, Tensor) and (
            inverse_temperature.requires_grad
        ):
            raise ArgumentError(
                "inverse_temperature is fixed and not learned, got a "
                f"{type(inverse_temperature).__name__} that requires a gradient",
                "Give a plain number.",
            )
        check_positive(
            inverse_temperature, "inverse_temperature", torch.get_default_dtype()
        )
        self.register_buffer(
            "inverse_temperature", torch.tensor(float(inverse_temperature))
        )
        self.weight = nn.Parameter(
            functional.normalize(torch.randn(classes, in_features), dim=1)
        )

    def forward(self, embeddings: Tensor) -> Tensor:
        """Compute logits (..., classes) from embeddings (..., in_features).

        The logits have the dtype of the embeddings.
        """
        in_features = self.weight.shape[1]
        check_tensor(embeddings, "embeddings")
        if not embeddings.is_floating_point():
            raise ArgumentError(
                f"embeddings must be floating point, got {embeddings.dtype}",
                "Convert them with .float().",
            )
        if embeddings.shape[-1:] != (in_features,):
            raise ValueError(
                f"embeddings must have shape (..., {in_features}), "
                f"got {tuple(embeddings.shape)}"
            )
        cosines = functional.linear(_directions(embeddings), _directions(self.weight))
        logits = self.inverse_temperature * cosines
        return logits.to(embeddings.dtype) if _is_narrow(embeddings) else logits

    def extra_repr(self) -> str:
        """The layer's arguments as text, for `repr`."""
        classes, in_features = self.weight.shape
        return (
            f"in_features={in_features}, classes={classes}, "
            f"inverse_temperature={self.inverse_temperature.item():.6g}"
        )


def _check_sample(sample: Any, in_features: int) -> None:
    """Raise unless `sample` is a pair whose first entry is a matrix of embeddings."""
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        raise ArgumentError(
            f"sample must be (embeddings, labels), got {type(sample).__name__}",
            "Pass both in a tuple.",
        )
    embeddings = sample[0]
    if not hasattr(embeddings, "shape"):
        raise ArgumentError(
            "sample must hold its embeddings in a tensor or an array, got "
            f"{type(embeddings).__name__}",
            "Convert them: torch.tensor(embeddings).",
        )
    shape = tuple(embeddings.shape)
    if len(shape) != 2 or shape[1] != in_features:
        raise ArgumentError(
            f"sample must have embeddings of shape (n, {in_features}), got {shape}",
            "Give embeddings like those that the classifier will receive.",
        )


def _directions(vectors: Tensor) -> Tensor:
    """Scale `vectors` (..., dim) to length 1, in float32 at least; zeros stay zeros."""
    wide = vectors.float() if _is_narrow(vectors) else vectors
    # Dividing by the largest entry first keeps squares in range. The gradient treats
    # that entry as a constant, because a direction does not depend on it.
    largest = wide.detach().abs().amax(dim=-1, keepdim=True)
    zero = largest == 0
    directions = functional.normalize(wide / torch.where(zero, 1, largest), dim=-1)
    # Zeros have no direction, so they stay zeros: dividing them by the normalisation's
    # 1e-12 would give a huge gradient.
    return directions.masked_fill(zero, 0)


def _is_narrow(tensor: Tensor) -> bool:
    return tensor.dtype.itemsize < 4
