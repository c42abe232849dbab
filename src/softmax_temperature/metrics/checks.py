"""Shared argument checks; errors name the argument and the value."""

import math

import torch
from torch import Tensor

# Sums of float32 softmax rows stay well inside; rows rounded to three digits do not.
PROBABILITY_TOLERANCE = 1e-5


def all_finite(values: Tensor) -> bool:
    """Whether no entry is infinite or not a number; on a CPU `isfinite().all()` takes
    thirty times as long.
    """
    return bool(torch.stack(torch.aminmax(values.detach())).isfinite().all())


def check_logits(
    logits: Tensor, *, name: str = "logits", values: bool = True, masked: bool = False
) -> None:
    """Refuse logits that are not finite floats of shape (n, classes), n >= 1, classes
    >= 2; `values` are optional, and a class may be `masked` in a row by a logit of
    -inf, if another is left.
    """
    if not isinstance(logits, Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(logits).__name__}")
    if not logits.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {logits.dtype}")
    if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
        raise ValueError(
            f"{name} must have shape (n, classes), n >= 1, classes >= 2, got {tuple(logits.shape)}"
        )
    if values and masked:
        # The largest logit of a row is infinite or not a number where one of them is,
        # or where no class is left.
        largest = logits.detach().amax(dim=1)
        if not all_finite(largest):
            row = int(torch.nonzero(~torch.isfinite(largest))[0])
            value = largest[row].item()
            rule = "or -inf where a class is masked and another is left"
            raise ValueError(f"{name} must be finite, got {value} in row {row}, {rule}")
    elif values and not all_finite(logits):
        row, column = torch.nonzero(~torch.isfinite(logits))[0].tolist()
        raise ValueError(
            f"{name} must be finite, got {logits[row, column].item()} in row {row}, class {column}"
        )


def check_probs(probs: Tensor) -> None:
    """Refuse probabilities that are not finite floats in [0, 1] of shape (n, classes)
    with rows that sum to one.
    """
    check_logits(probs, name="probs")
    low, high = (bound.item() for bound in torch.aminmax(probs))
    if low < 0 or high > 1 + PROBABILITY_TOLERANCE:
        raise ValueError(f"probs must lie in [0, 1], got values from {low} to {high}")
    # Half-precision rows may miss one by their rounding unit.
    sums = probs.sum(dim=1, dtype=torch.float64)
    worst = int((sums - 1).abs().argmax())
    if abs(sums[worst].item() - 1) > max(
        PROBABILITY_TOLERANCE, torch.finfo(probs.dtype).eps
    ):
        raise ValueError(
            f"probs must have rows that sum to one, got {sums[worst].item():.8g} in row {worst}"
        )


def check_labels(
    labels: Tensor,
    scores: Tensor,
    *,
    name: str = "labels",
    values: bool = True,
    masked: bool = False,
) -> None:
    """Refuse labels that are not integers in [0, classes), one per row of `scores` and
    on its device; if classes may be `masked`, also labels with a score of -inf.
    """
    rows, classes = scores.shape
    if not isinstance(labels, Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(labels).__name__}")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {labels.dtype}")
    if labels.shape != (rows,):
        raise ValueError(
            f"{name} must have shape ({rows},), one per row, got {tuple(labels.shape)}"
        )
    if labels.device != scores.device:
        raise ValueError(
            f"{name} must be on {scores.device} like the scores, got {labels.device}"
        )
    if values:
        low, high = (bound.item() for bound in torch.aminmax(labels))
        if low < 0 or high >= classes:
            raise ValueError(
                f"{name} must be in [0, {classes}), got {low if low < 0 else high}"
            )
        if masked:
            _check_unmasked(labels, scores, name)


def _check_unmasked(labels: Tensor, scores: Tensor, name: str) -> None:
    """Refuse labels of classes that are masked."""
    of_label = scores.detach().gather(1, labels.long()[:, None]).squeeze(1)
    if bool(of_label.isneginf().any()):
        row = int(torch.nonzero(of_label.isneginf())[0])
        raise ValueError(
            f"{name} must not be a masked class, got {labels[row].item()} in row {row}, "
            "where its logit is -inf"
        )


def check_embeddings(embeddings: Tensor, name: str = "embeddings") -> Tensor:
    """Refuse embeddings that are not finite floats of shape (n, dim), each with a
    direction.

    Returns the largest absolute entry of each, shape (n, 1).
    """
    shape = tuple(embeddings.shape)
    if embeddings.ndim != 2 or 0 in shape or not embeddings.is_floating_point():
        found = f"{embeddings.dtype} of shape {shape}"
        raise ValueError(
            f"{name} must be non-empty, floating point, of shape (n, dim), got {found}"
        )
    largest = embeddings.abs().amax(dim=1, keepdim=True)
    wrong = ~(torch.isfinite(largest) & (largest > 0)).flatten()
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        fault = "is all zeros" if largest[row] == 0 else "holds NaN or infinity"
        raise ValueError(f"{name} must each have a direction, row {row} {fault}")
    return largest


def check_classes(labels: Tensor, rows: int, name: str = "labels") -> int:
    """Refuse labels that are not int64 of shape (rows,), at least 0; returns the
    highest one.
    """
    if labels.shape != (rows,):
        raise ValueError(
            f"{name} must have shape ({rows},) like the embeddings, got {tuple(labels.shape)}"
        )
    if labels.dtype != torch.int64:
        raise ValueError(f"{name} must be int64, got {labels.dtype}")
    low, high = (int(bound) for bound in torch.aminmax(labels))
    if low < 0:
        raise ValueError(f"{name} must not be negative, got {low}")
    return high


def check_positive(value: float, name: str) -> None:
    """Refuse a number that is not finite and above zero."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be finite and positive, got {value}")


def check_count(value: int, name: str, *, least: int) -> None:
    """Refuse a count that is not an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"{name} must be an integer of at least {least}, got {value!r}"
        )


def check_batch(logits: Tensor, labels: Tensor) -> None:
    """Refuse a training batch that no loss can take; values are read on the CPU only."""
    values = _may_be_read(logits)
    check_logits(logits, values=values)
    check_labels(labels, logits, values=values)


def check_fractions(fractions: Tensor, name: str) -> None:
    """Refuse a tensor that holds anything but numbers in [0, 1]; values are read as in
    `check_batch`.
    """
    if not fractions.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {fractions.dtype}")
    if _may_be_read(fractions) and not ((fractions >= 0) & (fractions <= 1)).all():
        raise ValueError(
            f"{name} must be in [0, 1], got {fractions.min().item()} to {fractions.max().item()}"
        )


def check_gamma(gamma: float | Tensor) -> None:
    """Refuse a gamma that is negative or not finite; tensors are read as in
    `check_batch`.
    """
    if not isinstance(gamma, Tensor):
        if not 0 <= gamma < math.inf:
            raise ValueError(f"gamma must be finite and at least 0, got {gamma}")
    elif _may_be_read(gamma) and not ((gamma >= 0) & torch.isfinite(gamma)).all():
        raise ValueError(
            f"gamma must be finite and at least 0, got {gamma.min().item()} to {gamma.max().item()}"
        )


def _may_be_read(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def as_rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (n, classes, ...) and labels (n, ...) as a table with one row per label;
    tables stay as they are.
    """
    if logits.ndim <= 2:
        return logits, labels
    expected = (logits.shape[0], *logits.shape[2:])
    if labels.shape != expected:
        raise ValueError(
            f"labels must have shape {expected}, one per pixel, got {tuple(labels.shape)}"
        )
    return logits.movedim(1, -1).flatten(0, -2), labels.flatten()
