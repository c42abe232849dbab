"""Shared argument checks; their errors name the argument and its value."""

import math
import operator
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Another numbering of the labels counts as better only if it agrees with more
# predictions than the given numbering does, and if the difference exceeds this many
# standard deviations.
CLEAR_DIFFERENCE = 4
# Labels are judged to count from 1 only if the labels minus 1 agree with the
# predictions in at least the share `SHIFTED_ACCURACY` of the rows, and in at least
# `SHIFTED_RATIO` times as many rows as the labels themselves. The shift must also be
# evident in more than the share `SHIFTED_CLASSES` of the classes that have at least
# `ENOUGH_ROWS` rows.
SHIFTED_ACCURACY = 0.5
SHIFTED_RATIO = 2
SHIFTED_CLASSES = 0.8
ENOUGH_ROWS = 5
# In another order of the columns, features may also agree with the labels, but hardly
# ever in this share of the rows.
SURE = 0.9
NOT_FEATURES = "If the columns are features, give the logits of a model instead."
SEVERAL_CLASSES = (
    "If a row may have several classes, each column is a classifier of two classes of "
    "its own."
)
# The remedy for logits of pixels whose classes are in the last dimension.
CLASSES_AT_END = (
    "Move the classes to the second dimension: logits.movedim(-1, 1) for a tensor, "
    "np.moveaxis(logits, -1, 1) for an array."
)
# The sum of a softmax row in float32 differs from one by far less than this; the sum of
# a row that a user has rounded can differ by more.
PROBABILITY_TOLERANCE = 1e-5
# A 90 % interval leaves out 5 % on each side. The lowest and the highest of 19
# resamples lie on average at the 5th and the 95th percentile; those of fewer resamples
# do not reach these percentiles.
FEWEST_RESAMPLES = 19
TOO_FEW_RESAMPLES = (
    f"fewer than {FEWEST_RESAMPLES} resamples do not give a 90 % interval"
)
MORE_RESAMPLES = "Give 1000 or more, or 0 for no intervals."
# One-hot scores are taken for labels only if there are at least this many rows.
FEWEST_IN_ORDER = 20
# Number of elements that are compared at once.
PIECE = 1 << 20
# The largest numbers of floating-point types. A logit that equals one of them is
# treated as infinity, because `nan_to_num` replaces infinity with it. A logit that
# equals the negative of one of them is treated as the mask of a class.
WIDE_LIMITS = tuple(
    torch.finfo(dtype).max for dtype in (torch.bfloat16, torch.float32, torch.float64)
)
# A negative logit is judged to mark masked classes if the gap between it and the next
# larger logit is more than this many times the range of all larger logits, and if it
# occurs in at least the share `FILL_SHARE` of the rows. Tables of fewer than
# `FEWEST_FILLED` rows are not judged.
FILL_DISTANCE = 100
FILL_SHARE = 0.1
FEWEST_FILLED = 20
# A negative logit that occurs in at least the share `TOP_SHARE` of the rows is judged
# to mark masked classes even if the gap is only `TOP_DISTANCE` times the range, as in a
# file that has only the largest logits of each row. Clipping the logits would not leave
# such a gap.
TOP_DISTANCE = 2
TOP_SHARE = 0.9
AT_LIMIT = (
    "It is an infinity that was replaced, as nan_to_num does. Leave such rows out; if "
    "float16 overflowed, compute the logits in float32."
)


class ArgumentError(ValueError):
    """Raised if an argument violates its documentation; `remedy` says what to do."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)
        self.fault = fault
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.fault}. {self.remedy}"


def all_finite(values: Tensor) -> bool:
    """Whether no entry is infinite or NaN."""
    # Check only the minimum and the maximum, because on a CPU `isfinite().all()` takes
    # thirty times as long.
    return bool(torch.stack(torch.aminmax(values.detach())).isfinite().all())


def check_logits(
    logits: Tensor, *, name: str = "logits", values: bool = True, masked: bool = False
) -> None:
    """Refuse logits whose shape, dtype or values are wrong.

    Args:
        logits: Floating-point tensor of shape (n, classes), with at least one row and
            two classes. Its values must be finite, except as `masked` allows.
        name: Name of the argument in messages.
        values: Whether to check values as well as shape and dtype.
        masked: Whether a logit of -inf may mask a class in a row; at least one class of
            each row must stay unmasked.
    """
    check_tensor(logits, name)
    _check_not_decided(logits, name)
    if not logits.is_floating_point():
        raise ArgumentError(
            f"{name} must be floating point, got {logits.dtype}",
            "Convert them with .float().",
        )
    if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
        raise ArgumentError(
            f"{name} must have shape (n, classes), n >= 1, classes >= 2, "
            f"got {tuple(logits.shape)}",
            "Give one row per sample and one column per class.",
        )
    if values and masked:
        # The largest logit of a row is not finite if the row holds NaN or inf, or if
        # all its classes are masked.
        largest = logits.detach().amax(dim=1)
        if not all_finite(largest):
            row = int(torch.nonzero(~torch.isfinite(largest))[0])
            value = largest[row].item()
            raise ArgumentError(
                f"{name} must be finite, got {value} in row {row}; -inf may mask some, "
                "but not all, classes of a row",
                "Leave such rows out.",
            )
        check_below_limit(largest, logits, name)
    elif values and not all_finite(logits):
        row, column = torch.nonzero(~torch.isfinite(logits))[0].tolist()
        value = logits[row, column].item()
        raise ArgumentError(
            f"{name} must be finite, got {value} in row {row}, class {column}",
            "Leave such rows out.",
        )
    elif values:
        check_below_limit(logits.detach().amax(dim=1), logits, name)


def predicted_classes(name: str) -> ArgumentError:
    """Return the error for scores that are in fact predicted classes.

    The classes may be given as numbers or as one-hot rows.
    """
    return ArgumentError(
        f"{name} must be numbers of shape (n, classes), but they look like predicted "
        "classes",
        "Give the scores that the classes were predicted from.",
    )


def _check_not_decided(scores: Tensor, name: str) -> None:
    """Refuse whole numbers that are evidently predicted classes, not scores.

    Such numbers are either one per row or one-hot integers. One-hot floats are
    accepted: a decision tree may return them as probabilities, and they may be logits
    of a toy example.
    """
    if scores.is_complex() or scores.dtype == torch.bool or not scores.numel():
        return
    if scores.is_floating_point():
        if scores.ndim != 1 or len(scores) < 2 or not may_be_read(scores):
            return
        decided = bool((scores == scores.floor()).all() and (scores >= -1).all())
    else:
        shape = tuple(scores.shape)
        one_each = scores.ndim == 1 or (scores.ndim == 2 and shape[1] == 1)
        readable = scores.ndim == 2 and may_be_read(scores)
        decided = one_each or (readable and is_one_hot(scores))
    if decided:
        raise predicted_classes(name)


def check_below_limit(largest: Tensor, logits: Tensor, name: str = "logits") -> None:
    """Refuse logits equal to the largest float of a type.

    Such logits usually stand in for infinity.

    Args:
        largest: One-dimensional tensor of the largest logit of each row, or of only the
            largest of all rows.
        logits: Shape (n, classes); finite, or -inf where a class is masked.
        name: Name of the argument in messages.
    """
    highest = largest.max().item()
    if highest not in (*WIDE_LIMITS, torch.finfo(logits.dtype).max):
        return
    row, column = torch.nonzero(logits == highest)[0].tolist()
    raise ArgumentError(
        f"{name} must be below the largest float, got {highest:.5g} in row {row}, "
        f"class {column}",
        AT_LIMIT,
    )


def check_argument_order(scores: Any, labels: Any, *, name: str = "logits") -> None:
    """Refuse labels in place of scores and scores in place of labels.

    Losses in Keras and metrics in scikit-learn take the labels first. Soft labels have
    the same shape as the scores, so only two signs reveal a swap. The first is that
    only the labels require a gradient. Because labels may also be learned for fixed
    logits, the scores must in addition sum to one in each row; this condition is
    skipped if their values cannot be read. The second sign is that all scores are
    one-hot, and the labels are not.

    Args:
        scores: Logits or probabilities, shape (n, classes, ...).
        labels: Class indices (n, ...), or probabilities (n, classes, ...).
        name: Name of the scores in messages.
    """
    both = isinstance(scores, Tensor) and isinstance(labels, Tensor)
    if not both or not labels.is_floating_point() or labels.ndim < 2:
        return
    sign = _sign_of_swap(scores, labels, name)
    if sign:
        fault, remedy = sign
        raise ArgumentError(f"{name} and labels look swapped: {fault}", remedy)


def _sign_of_swap(scores: Tensor, labels: Tensor, name: str) -> tuple[str, str] | None:
    """Return the fault and remedy if scores and soft labels are swapped, or None."""
    first = f"Give the {name} first."
    if scores.requires_grad or scores.is_complex():
        return None
    if scores.shape == (labels.shape[0], *labels.shape[2:]):
        # Class indices were passed before the scores of each sample or pixel.
        shapes = f"got shapes {tuple(scores.shape)} and {tuple(labels.shape)}"
        whole = not scores.is_floating_point()
        return (shapes, first) if whole or scores.ndim == 1 else None
    if scores.shape != labels.shape:
        return None
    if torch.is_grad_enabled() and labels.requires_grad:
        remedy = f"{first} If they are in this order, detach the labels."
        fault = f"only the labels require a gradient, not the {name}"
        # It is acceptable to wait for a GPU here, because labels hardly ever require a
        # gradient.
        swapped = is_transformed(scores, labels) or _sum_to_one(scores)
        return (fault, remedy) if swapped else None
    return (
        (f"the {name} are one-hot, and the labels are not", first)
        if _only_first_is_one_hot(scores, labels)
        else None
    )


def _only_first_is_one_hot(scores: Tensor, labels: Tensor) -> bool:
    """Whether the scores are one-hot and the labels are not.

    Fewer than `FEWEST_IN_ORDER` rows are not judged. For almost all scores, the first
    row already gives the answer.
    """
    few = scores.numel() < FEWEST_IN_ORDER * scores.shape[1]
    if few or not may_be_read(scores, labels) or not is_one_hot(scores[:1]):
        return False
    return is_one_hot(scores) and not is_one_hot(labels)


def _sum_to_one(scores: Tensor) -> bool:
    """Whether all rows or pixels lie in [0, 1] and sum to one, as labels do."""
    if scores.is_floating_point() and not all_finite(scores):
        return False
    misses = (scores.sum(dim=1, dtype=torch.float64) - 1).abs()
    tolerance = PROBABILITY_TOLERANCE
    if scores.is_floating_point():
        tolerance = max(tolerance, torch.finfo(scores.dtype).eps)
    return bool(((scores >= 0) & (scores <= 1 + tolerance)).all()) and bool(
        (misses <= tolerance).all()
    )


def check_labels(
    labels: Tensor,
    scores: Tensor,
    *,
    name: str = "labels",
    values: bool = True,
    masked: bool = False,
) -> None:
    """Refuse labels whose shape, dtype, device or values are wrong.

    Args:
        labels: Integers in [0, classes), of shape (n,), on the device of the scores.
        scores: Logits or probabilities, shape (n, classes).
        name: Name of the argument in messages.
        values: Whether to check values as well as shape, dtype and device.
        masked: Whether classes may be masked; a label of a masked class is refused.
    """
    check_tensor(labels, name)
    rows, classes = scores.shape
    if labels.shape != (rows,):
        raise ArgumentError(
            f"{name} must have shape ({rows},), one per row, got {tuple(labels.shape)}",
            label_shape_remedy(
                tuple(labels.shape), (rows, classes), one_hot=is_one_hot(labels)
            ),
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ArgumentError(
            f"{name} must be integers, got {labels.dtype}", "Convert them: .long()."
        )
    if labels.device != scores.device:
        raise ArgumentError(
            f"{name} must be on {scores.device} like the scores, got {labels.device}",
            f"Move them: .to('{scores.device}').",
        )
    if values:
        low, high = (int(bound) for bound in torch.aminmax(labels.long()))
        check_not_wrapped(labels, (low, high), classes, name)
        if low < 0 or high >= classes:
            raise ArgumentError(
                f"{name} must be in [0, {classes}), got {low if low < 0 else high}",
                _label_range_remedy(low, high, classes),
            )
        if masked:
            _check_unmasked(labels, scores, name)


def check_not_shifted(labels: Tensor, scores: Tensor, name: str = "labels") -> None:
    """Refuse labels that evidently count from 1.

    Labels are judged only if there are more than two classes and the smallest label is
    1. A label equal to the number of classes need not be considered, because
    `check_labels` refuses it.

    Labels whose minimum is 1 may also be right: the samples of class 0, such as the
    background, may have been left out, and a poor model may still predict that class
    often. Labels are therefore refused only if two conditions hold. In at least half of
    the rows, the prediction is the label minus 1. For almost every label, the label
    minus 1 is the most frequent prediction, and is predicted at least twice as often as
    the label itself.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
        name: Name of the labels in messages.
    """
    numbers = labels.long()
    if scores.shape[1] == 2 or int(numbers.min()) != 1:
        return
    predicted = scores.detach().argmax(dim=1)
    if evidence := _shift(numbers, predicted, scores.shape[1]):
        shifted, unshifted = evidence
        raise ArgumentError(
            f"{name} from {int(numbers.min())} to {int(numbers.max())} agree with "
            f"{unshifted} of {len(numbers)} predictions, but with {shifted} if they "
            "count from 1",
            "Subtract 1: column c holds class c, from 0.",
        )


def check_no_background(labels: Tensor, scores: Tensor, name: str = "labels") -> None:
    """Refuse scores whose first column evidently belongs to no class of the labels.

    Some networks have a background column before the columns of their classes. The
    evidence is the same as for labels that count from 1 (`check_not_shifted`), but with
    a shift in the other direction. Labels are judged only if the largest label is the
    index of the second-to-last column.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
        name: Name of the labels in messages.
    """
    numbers = labels.long()
    last = scores.shape[1] - 1
    if last == 1 or int(numbers.max()) != last - 1:
        return
    predicted = scores.detach().argmax(dim=1)
    if evidence := _shift(last - numbers, last - predicted, last + 1):
        shifted, unshifted = evidence
        raise ArgumentError(
            f"{name} from {int(numbers.min())} to {last - 1} agree with {unshifted} of "
            f"{len(numbers)} predictions, but with {shifted} if column 0 belongs to "
            "none of them, such as a background",
            _background_remedy(shifted / len(numbers)),
        )


def _background_remedy(accuracy: float) -> str:
    """Return the remedy for a column in front; `accuracy` is that without it."""
    if accuracy >= SURE:
        return "Leave column 0 out, as logits[:, 1:] does."
    return (
        "If column 0 is such a class, leave it out, as logits[:, 1:] does. "
        f"{NOT_FEATURES}"
    )


def _shift(labels: Tensor, predicted: Tensor, classes: int) -> tuple[int, int] | None:
    """Return how many predictions are right with and without a shift by one.

    The result is None if the shift is not evident.
    """
    agrees = predicted == labels - 1
    if len(predicted[agrees].unique()) < 2:
        return None  # Predictions of only one class do not reveal the numbering.
    shifted = int(agrees.sum())
    unshifted = int((predicted == labels).sum())
    if (
        shifted >= SHIFTED_ACCURACY * len(labels)
        and shifted >= SHIFTED_RATIO * unshifted
        and shifted - unshifted > CLEAR_DIFFERENCE * math.sqrt(shifted + unshifted)
        and _share_of_shifted_classes(labels, predicted, classes) > SHIFTED_CLASSES
    ):
        return shifted, unshifted
    return None


def _share_of_shifted_classes(labels: Tensor, predicted: Tensor, classes: int) -> float:
    """Share of the labels whose rows are evidently predicted as the label minus 1.

    The label minus 1 is then the most frequent prediction, and at least `SHIFTED_RATIO`
    times as frequent as the label itself. Only labels with at least `ENOUGH_ROWS` rows
    are considered. If there are none, the labels with the most rows are.

    Args:
        labels: Shape (n,), at least 1.
        predicted: Shape (n,).
        classes: Number of classes.
    """
    # Count the pairs that occur, because a matrix of all pairs may be too large.
    pairs, counts = (labels * classes + predicted).unique(return_counts=True)
    of_pair = pairs // classes
    guesses = pairs % classes

    def greatest(values: Tensor) -> Tensor:
        return values.new_zeros(classes).scatter_reduce(0, of_pair, values, "amax")

    rows = torch.bincount(labels, minlength=classes)
    judged = rows >= min(ENOUGH_ROWS, int(rows.max()))
    shifted = greatest(counts * (guesses == of_pair - 1))
    unshifted = greatest(counts * (guesses == of_pair))
    wins = (shifted == greatest(counts)) & (shifted >= SHIFTED_RATIO * unshifted)
    return (wins & judged).sum().item() / judged.sum().item()


def check_not_wrapped(
    labels: Any, bounds: tuple[int, int], classes: int, name: str
) -> None:
    """Refuse labels that wrapped because their dtype is too narrow for the classes.

    A dtype that cannot hold the largest class is allowed as long as every label fits. A
    negative label, or a label equal to the largest number of an unsigned dtype, shows
    that a larger number has wrapped around.

    Args:
        labels: A tensor or an array of integers.
        bounds: The smallest and the largest label.
        classes: Number of classes.
        name: Name of the argument in messages.
    """
    info = torch.iinfo if isinstance(labels, Tensor) else np.iinfo
    limits = info(labels.dtype)
    low, high = bounds
    if limits.max >= classes - 1 or (
        low >= 0 and (limits.min, high) != (0, limits.max)
    ):
        return
    raise ArgumentError(
        f"{name} are {labels.dtype}, which holds at most {limits.max}, but there are "
        f"{classes} classes, and larger numbers have wrapped around",
        "Convert the original labels to int64.",
    )


def _check_unmasked(labels: Tensor, scores: Tensor, name: str) -> None:
    """Raise ArgumentError if a label is a class that is masked in its row.

    The logit of such a class is -inf, the lowest number of a floating-point type, or a
    number such as -1e4 that marks masked classes (`_is_fill`). Such a logit would
    dominate a fit or a mean.
    """
    label_scores = scores.detach().gather(1, labels.long()[:, None]).squeeze(1)
    lowest, row = (each.item() for each in label_scores.min(dim=0))
    limits = (*WIDE_LIMITS, torch.finfo(scores.dtype).max, math.inf)
    if -lowest in limits:
        row = int(row)
        raise ArgumentError(
            f"{name} must not be a masked class, got {labels[row].item()} in row "
            f"{row}, where its logit is {lowest:.5g}",
            "Give that class a finite logit, or leave such rows out.",
        )
    if _is_fill(lowest, label_scores, scores.detach()):
        row = int(row)
        raise ArgumentError(
            f"{name} must not be a masked class, got {labels[row].item()} in row "
            f"{row}, where its logit is {lowest:.5g}, as that of masked classes",
            "Give that class its own logit, or leave such rows out.",
        )


def _is_fill(lowest: float, label_scores: Tensor, scores: Tensor) -> bool:
    """Whether `lowest`, the lowest score of any label, evidently marks masked classes.

    Args:
        lowest: The smallest of `label_scores`.
        label_scores: The score of each row's label, shape (n,).
        scores: Shape (n, classes).
    """
    if lowest >= 0 or len(scores) < FEWEST_FILLED:
        return False
    # For almost all tables, the scores of the labels alone rule this out.
    highest = scores.max().item()
    others = label_scores[label_scores > lowest]
    if len(others) and not _is_below(
        lowest, others.min().item(), highest, TOP_DISTANCE
    ):
        return False
    next_lowest = math.inf
    filled = []
    in_column = torch.zeros(scores.shape[1], dtype=torch.int64, device=scores.device)
    for piece in scores.split(max(1, PIECE // scores.shape[1])):
        fills = piece == lowest
        filled.append(fills.sum(dim=1))
        in_column += fills.sum(dim=0)
        above = torch.where(fills | (piece < lowest), math.inf, piece)
        next_lowest = min(next_lowest, above.min().item())
    in_row = torch.cat(filled)
    common = int((in_row > 0).sum()) >= FILL_SHARE * len(scores)
    # A class that never occurs may have the same low logit in every row, so its column
    # does not count.
    unused = (in_column == len(scores)).sum()
    in_most = int((in_row > unused).sum()) >= TOP_SHARE * len(scores)
    return (common and _is_below(lowest, next_lowest, highest, FILL_DISTANCE)) or (
        in_most and _is_below(lowest, next_lowest, highest, TOP_DISTANCE)
    )


def _is_below(low: float, next_lowest: float, highest: float, distance: float) -> bool:
    """Whether the gap above `low` exceeds `distance` times the range above the gap."""
    return 0 < distance * (highest - next_lowest) < next_lowest - low


def check_tensor(value: Any, name: str) -> None:
    """Raise TypeError unless `value` is a tensor."""
    if isinstance(value, Tensor):
        return
    message = f"{name} must be a torch tensor, got {type(value).__name__}"
    if is_list_of_tables(value):
        shape = tuple(value[0].shape)
        message += (
            f" of {len(value)} tables of shape {shape}. Join batches: "
            "torch.cat(batches). If each belongs to another output of a classifier "
            "with several outputs, give one, with its labels."
        )
    elif isinstance(value, list | tuple) and all(isinstance(v, Tensor) for v in value):
        message += ". Join the batches: torch.cat(batches)."
    raise TypeError(message)


def is_list_of_tables(value: Any) -> bool:
    """Whether `value` is a list of two or more tables with the same number of rows."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        return False
    if not all(isinstance(each, Tensor | np.ndarray) for each in value):
        return False
    return all(each.ndim == 2 and len(each) == len(value[0]) for each in value)


def check_one_tensor(output: Any, name: str, purpose: str) -> None:
    """Raise TypeError unless `output`, which a network returned, is one tensor."""
    if not isinstance(output, Tensor):
        raise TypeError(
            f"{name} must return one tensor of logits to be {purpose}, got "
            f"{type(output).__name__}. Give the part that returns only the logits: in "
            "a Hugging Face model, its last layer, such as model.classifier."
        )


def is_one_hot(labels: Any) -> bool:
    """Whether each row or pixel has a single class in labels (n, classes, ...).

    Labels on an accelerator are not read, nor are any labels while torch compiles or
    vectorises the code: the answer is then True.
    """
    if isinstance(labels, Tensor) and not may_be_read(labels):
        return True
    return bool(is_binary(labels) and labels.ndim > 1 and (labels.sum(1) == 1).all())


def is_binary(labels: Any) -> bool:
    """Whether all entries of a tensor or an array are 0, 1 or truth values."""
    return bool(((labels == 0) | (labels == 1)).all())


def binary_rows_remedy(labels: Any) -> str:
    """Return advice for rows of zeros and ones, (n, classes), not all one-hot."""
    if bool((labels.sum(1) > 1).any()):
        return f"Give one class for each row. {SEVERAL_CLASSES}"
    return f"Leave rows without a class out. {SEVERAL_CLASSES}"


def label_shape_remedy(
    labels: tuple[int, ...], scores: tuple[int, int], *, one_hot: bool = True
) -> str:
    """Return advice for labels whose shape is not one label per row of the scores.

    Args:
        labels: Shape of the labels.
        scores: Shape of the scores, (n, classes).
        one_hot: Whether the labels are one-hot. It matters only if they have the shape
            of the scores.
    """
    rows, classes = scores
    if labels == scores and not one_hot:
        return f"Give one class for each row. {SEVERAL_CLASSES}"
    if labels == (rows, 1):
        return "Drop the last dimension: labels[:, 0]."
    if len(labels) == 2 and labels[0] == rows:
        return "Convert one-hot labels to classes with labels.argmax(dim=1)."
    if labels in ((classes,), (classes, 1)):
        return f"The scores, {scores}, look transposed: give (n, classes)."
    if labels == (rows + 1,):
        return (
            "There is one label too many; check whether a header was read as a label."
        )
    return "Give one class for each row."


def _label_range_remedy(low: int, high: int, classes: int) -> str:
    """Return advice for labels from `low` to `high` that do not fit in [0, classes)."""
    if (low, high) == (1, classes):
        return f"They run from 1 to {classes}: subtract 1."
    if low < 0:
        return "Leave rows without a class out."
    return (
        f"Number the classes from 0 to {classes - 1}; each is a column of the scores."
    )


def check_embeddings(embeddings: Tensor, name: str = "embeddings") -> Tensor:
    """Refuse embeddings unless they are finite floats (n, dim) without a row of zeros.

    Returns:
        The largest absolute entry of each embedding, shape (n, 1).
    """
    shape = tuple(embeddings.shape)
    if embeddings.ndim != 2 or 0 in shape or not embeddings.is_floating_point():
        raise ArgumentError(
            f"{name} must be non-empty, floating point, of shape (n, dim), "
            f"got {embeddings.dtype} of shape {shape}",
            "Give one row per sample.",
        )
    largest = embeddings.abs().amax(dim=1, keepdim=True)
    wrong = ~(torch.isfinite(largest) & (largest > 0)).flatten()
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        fault = "is all zeros" if largest[row] == 0 else "holds NaN or infinity"
        raise ArgumentError(
            f"{name} must be finite and not all zeros, but row {row} {fault}",
            "Leave such rows out.",
        )
    return largest


def check_classes(labels: Tensor, rows: int, name: str = "labels") -> int:
    """Refuse labels unless they are int64, of shape (rows,), and at least 0.

    Returns:
        The highest label.
    """
    if labels.shape != (rows,):
        raise ArgumentError(
            f"{name} must have shape ({rows},) like the embeddings, "
            f"got {tuple(labels.shape)}",
            "Give one class for each row of embeddings, (n, dim).",
        )
    if labels.dtype != torch.int64:
        raise ArgumentError(
            f"{name} must be int64, got {labels.dtype}", "Convert them: .long()."
        )
    low, high = (int(bound) for bound in torch.aminmax(labels))
    if low < 0:
        raise ArgumentError(
            f"{name} must not be negative, got {low}", "Leave rows without a class out."
        )
    return high


def check_positive(value: float, name: str, dtype: torch.dtype | None = None) -> None:
    """Refuse a number unless it is finite and above zero.

    Args:
        value: The number.
        name: Name of the argument in messages.
        dtype: Floating-point type whose range must include the number.
    """
    if not is_number_between(value, 0, math.inf) or value == 0:
        raise ArgumentError(
            f"{name} must be finite and positive, got {value!r}", "Give such a number."
        )
    if dtype is None:
        return
    limits = torch.finfo(dtype)
    if not limits.tiny <= float(value) <= limits.max:
        raise ArgumentError(
            f"{name} must be in the range of {dtype}, {limits.tiny:.3g} to "
            f"{limits.max:.3g}, got {float(value):.6g}",
            "Scale the logits by a constant, or give them in a wider type.",
        )


def check_at_least_zero(value: float, name: str) -> None:
    """Refuse a number unless it is finite and at least zero."""
    if not is_number_between(value, 0, math.inf):
        raise ArgumentError(
            f"{name} must be finite and at least 0, got {value!r}",
            "Give such a number.",
        )


def is_number_between(value: Any, low: float, high: float) -> bool:
    """Whether `value` is a single number in [low, high).

    Text, lists, tensors with several entries and truth values do not count as numbers.
    """
    if is_truth_value(value):
        return False
    try:
        return bool(low <= value < high)
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ):  # Arrays and tensors raise the last two.
        return False


def is_truth_value(value: Any) -> bool:
    """Whether `value` is a Python or numpy bool, which Python treats as 1 or 0."""
    if isinstance(value, Tensor):
        return value.dtype == torch.bool
    return isinstance(value, bool | np.bool_)


def check_count(value: int, name: str, *, least: int) -> int:
    """Refuse a count that is not an integer of at least `least`.

    Returns:
        The count as a Python int, because JSON cannot hold a numpy integer.
    """
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or is_truth_value(value) or count < least:
        raise ArgumentError(
            f"{name} must be an integer of at least {least}, got {value!r}",
            "Give a whole number in this range.",
        )
    return count


def check_bootstrap(bootstrap: int, *, optional: bool = True) -> int:
    """Return the number of resamples as an int, or raise an error if it is too small.

    Args:
        bootstrap: The argument.
        optional: Whether 0, which means no intervals, is allowed.
    """
    bootstrap = check_count(bootstrap, "bootstrap", least=0)
    if bootstrap >= FEWEST_RESAMPLES or (optional and bootstrap == 0):
        return bootstrap
    remedy = MORE_RESAMPLES if optional else "Give 1000 or more."
    raise ArgumentError(f"bootstrap={bootstrap}: {TOO_FEW_RESAMPLES}", remedy)


def check_flag(value: bool, name: str) -> None:
    """Raise TypeError unless `value` is a bool; Python treats the text "no" as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be true or false, got {value!r}")


def check_weight(weight: Tensor | None) -> None:
    """Refuse class weights unless they are a tensor (classes,) of finite numbers >= 0.

    Values are checked on the CPU only.
    """
    if weight is None:
        return
    check_tensor(weight, "weight")
    if weight.ndim != 1:
        raise ArgumentError(
            f"weight must have shape (classes,), got {tuple(weight.shape)}",
            "Give one number for each class.",
        )
    if weight.is_complex():
        raise ArgumentError(
            f"weight must be real, got {weight.dtype}",
            "Give one number for each class.",
        )
    if may_be_read(weight):
        wrong = ~(torch.isfinite(weight) & (weight >= 0))
        if bool(wrong.any()):
            raise ArgumentError(
                f"weight must be finite and at least 0, got {weight[wrong][0].item()}",
                "Give one such number for each class.",
            )


def check_weighted_classes(weight: Tensor | None, classes: int) -> None:
    """Refuse class weights whose number differs from the number of classes."""
    if weight is not None and len(weight) != classes:
        raise ArgumentError(
            f"weight must have shape ({classes},), one per class of the logits, "
            f"got {tuple(weight.shape)}",
            "Give one number for each class.",
        )


def check_batch(logits: Tensor, labels: Tensor) -> None:
    """Refuse a batch whose logits or labels are malformed.

    A logit of -inf is refused, too. Values are checked on the CPU only.
    """
    values = may_be_read(logits, labels)
    check_logits(logits, values=values)
    check_labels(labels, logits, values=values)


def check_fractions(fractions: Tensor, name: str) -> None:
    """Refuse a tensor unless it is floating point, with values in [0, 1].

    Values are checked on the CPU only.
    """
    check_tensor(fractions, name)
    if not fractions.is_floating_point():
        raise ArgumentError(
            f"{name} must be floating point, got {fractions.dtype}",
            "Convert them with .float().",
        )
    if may_be_read(fractions) and not ((fractions >= 0) & (fractions <= 1)).all():
        low = fractions.min().item()
        high = fractions.max().item()
        raise ArgumentError(
            f"{name} must be in [0, 1], got {low} to {high}", "Give fractions."
        )


def check_gamma(gamma: float | Tensor) -> None:
    """Refuse a gamma that is negative or not finite.

    Values of a tensor are checked on the CPU only.
    """
    if not isinstance(gamma, Tensor):
        check_at_least_zero(gamma, "gamma")
        return
    if is_truth_value(gamma) or gamma.is_complex():
        raise ArgumentError(
            f"gamma must be real numbers, got {gamma.dtype}",
            "Give a number, or one for each sample.",
        )
    if may_be_read(gamma) and not ((gamma >= 0) & torch.isfinite(gamma)).all():
        low = gamma.min().item()
        high = gamma.max().item()
        raise ArgumentError(
            f"gamma must be finite and at least 0, got {low} to {high}",
            "Give such a number, or one for each sample.",
        )


def may_be_read(*tensors: Tensor) -> bool:
    """Whether the tensors' values can be read without waiting for a GPU."""
    on_cpu = all(tensor.device.type == "cpu" for tensor in tensors)
    return on_cpu and not is_transformed(*tensors)


def is_transformed(*tensors: Tensor) -> bool:
    """Whether torch is compiling the code, or `torch.vmap` is vectorising it.

    The values of the tensors can then not be read, and no shape may depend on them.
    """
    if torch.compiler.is_compiling():
        return True
    # `vmap` hides a dimension of the tensors that it maps over.
    return any(torch.func.debug_unwrap(each).ndim != each.ndim for each in tensors)


def as_rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Reshape logits (n, classes, ...) and labels (n, ...) to one row per label.

    Logits (n, classes) and labels (n,) are returned unchanged. Shapes are checked here,
    before labels are used as indices.
    """
    check_tensor(logits, "logits")
    check_tensor(labels, "labels")
    if logits.ndim <= 2:
        check_logits(logits, values=False)
        check_labels(labels, logits, values=False)
        return logits, labels
    expected = (logits.shape[0], *logits.shape[2:])
    if labels.shape != expected:
        raise ArgumentError(
            f"labels must have shape {expected}, one per pixel, "
            f"got {tuple(labels.shape)}",
            map_remedy(labels, tuple(logits.shape), single=False),
        )
    return logits.movedim(1, -1).flatten(0, -2), labels.flatten()


def map_remedy(labels: Any, logits: tuple[int, ...], *, single: bool) -> str:
    """Return advice for label maps that do not hold one label per pixel of the logits.

    Args:
        labels: The labels, a tensor or an array.
        logits: Shape of the logits, (n, classes, ...).
        single: Whether logits of shape (n, 1, ...), which belong to class 1 of two
            classes, are accepted.
    """
    expected = (logits[0], *logits[2:])
    shape = tuple(labels.shape)
    if shape == (logits[0], 1, *logits[2:]):
        return "Drop the second dimension: labels[:, 0]."
    if shape == logits and is_one_hot(labels):
        return "Convert one-hot maps to classes with labels.argmax(1)."
    if shape in (logits, (logits[0], 1, *logits[1:])):
        # The logits have one number for each pixel, as a network for two classes may
        # return.
        whole = "logits[:, None]"
        if not single:
            whole = "torch.stack([torch.zeros_like(logits), logits], dim=1)"
        masks = "" if shape == logits else " and labels[:, 0]"
        return f"For masks of two classes, 0 and 1, give {whole}{masks}."
    if shape == logits[:-1]:
        return CLASSES_AT_END
    return f"Give one class for each pixel, {expected}."
