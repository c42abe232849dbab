"""The base classes of all losses, their reductions, and the checks of a batch."""

from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import (
    PROBABILITY_TOLERANCE,
    ArgumentError,
    all_finite,
    as_rows,
    binary_rows_remedy,
    check_argument_order,
    check_below_limit,
    check_count,
    check_labels,
    check_logits,
    check_weight,
    check_weighted_classes,
    is_binary,
    is_one_hot,
    is_transformed,
    may_be_read,
)
from softmax_temperature.metrics.probability_check import (
    FEW_ROWS,
    NO_SOFTMAX,
    check_not_of_sigmoid,
    check_not_probs,
    with_earlier,
)

CLASS_INDICES = "Give one class for each row, such as labels.argmax(dim=1)."
REDUCTIONS = ("mean", "sum", "none")
WEIGHTS_SHOWN = 10


class Loss(nn.Module):
    """Base class of training losses, called with logits, labels and the epoch.

    `epoch` is the position in the training recipe, in epochs; only losses that change
    during training need it.
    """

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Make the loss from its `options` in params.yaml."""
        return cls(**options)

    def forward(
        self, logits: Tensor, labels: Tensor, epoch: float | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        The logits have shape (n, classes) and the labels (n,), unless a subclass says
        otherwise.
        """
        raise NotImplementedError

    def tempered(self, logits: Tensor) -> Tensor:
        """The logits whose softmax the loss evaluates; by default, `logits` itself."""
        return logits


class SampleLoss(Loss):
    """Base class of losses with class weights, ignored labels and a reduction.

    The loss is called with logits (n, classes) and labels (n,), or with logits (n,
    classes, ...) and labels (n, ...). A subclass defines `losses`, or computes the loss
    of a batch in its own `forward`. If its loss is also defined for soft labels, which
    are floating-point probabilities of the same shape as the logits, it defines
    `soft_losses` too.

    Args:
        weight: Weight of each class, shape (classes,). As in
            `torch.nn.CrossEntropyLoss`, the mean divides the sum of the weighted losses
            by the sum of the samples' weights; for soft labels it divides by the number
            of samples.
        ignore_index: Label of samples to ignore, such as void pixels. With None, no
            sample is ignored, and the loss skips a search that would make the host wait
            for a GPU.
        reduction: "mean", "sum", or "none". If all samples of a batch are ignored, the
            mean is NaN, the sum is 0, and "none" returns zeros.

    Raises:
        ValueError: If a shape or a value is wrong. Values are checked only on the CPU,
            and only the first batches are checked for probabilities that were passed as
            logits. The output of a sigmoid is refused whenever the autograd graph
            reveals it.
    """

    arguments: ClassVar[tuple[str, ...]] = ()
    """Attributes of this loss that `repr` lists before those common to all losses."""
    sigmoids: ClassVar[bool] = True
    """Whether to refuse logits that look like the outputs of a sigmoid.

    Logits are accepted if the autograd graph shows that no sigmoid returned them.
    """
    weight: Tensor | None
    # The rows of the first small batches, and whether enough rows have been checked for
    # probabilities.
    _first_rows: Tensor | None = None
    _is_judged = False

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        check_weight(weight)
        check_reduction(reduction)
        if ignore_index is not None:
            ignore_index = check_count(ignore_index, "ignore_index", least=-(2**63))
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Make the loss from its `options` in params.yaml; no label is ignored."""
        for name in ("weight", "ignore_index", "reduction"):
            if name in options:
                raise TypeError(f"{name} cannot be set in params.yaml")
        return cls(**options, ignore_index=None)

    def losses(self, logits: Tensor, labels: Tensor, epoch: float | None) -> Tensor:
        """Return the loss of each sample, (n,), for logits in float32 or wider."""
        raise NotImplementedError

    def soft_losses(
        self,
        logits: Tensor,  # noqa: ARG002
        targets: Tensor,
        epoch: float | None,  # noqa: ARG002
    ) -> Tensor:
        """Return the class-weighted loss of each sample, (n,).

        The base class raises ValueError; a subclass whose loss is defined for soft
        labels overrides this method.
        """
        remedy = CLASS_INDICES
        if may_be_read(targets) and is_binary(targets) and not is_one_hot(targets):
            remedy = binary_rows_remedy(targets)
        raise ArgumentError(
            f"labels must be class indices: {type(self).__name__} is not defined for "
            f"soft labels, got {targets.dtype} of shape {tuple(targets.shape)}",
            remedy,
        )

    def forward(
        self, logits: Tensor, labels: Tensor, epoch: float | None = None
    ) -> Tensor:
        """Return the reduced loss of a batch, in the dtype of the logits."""
        rows, targets = split_rows(logits, labels)
        if is_soft(rows, targets):
            losses = self.checked_soft_losses(rows, targets, epoch)
            total = reduced(losses, self.reduction).to(logits.dtype)
            shape = (logits.shape[0], *logits.shape[2:])
            return total.view(shape) if self.reduction == "none" else total
        rows, targets, counted = self.counted_rows(rows, targets)
        if len(rows):
            self.check_rows(rows, targets)
            losses = self.losses(widened(rows), targets.long(), epoch)
        else:
            losses = widened(rows).sum(dim=1)
        weight = self.class_weights(rows.shape[1], losses.dtype)
        weights = None if weight is None else weight[targets.long()]
        if weights is not None:
            losses = weights * losses
        return self.reduced_rows(losses, weights, counted, logits, labels)

    def reduced_rows(
        self,
        losses: Tensor,
        weights: Tensor | None,
        counted: Tensor | None,
        logits: Tensor,
        labels: Tensor,
    ) -> Tensor:
        """Reduce weighted losses of the rows that count, and cast to the logits' dtype.

        Args:
            losses: Shape (rows,).
            weights: Weights of shape (rows,); the mean divides by the sum of the
                weights. If they are None, the mean divides by the number of rows.
            counted: Mask of the rows that count; None if all of them count.
            logits: The logits of the batch.
            labels: The labels of the batch; losses that are not reduced are returned in
                the shape of the labels.
        """
        if counted is not None and is_transformed(logits, labels):
            # The rows that do not count are still among the losses.
            losses = losses.masked_fill(~counted, 0)
            ones = losses.new_ones(()) if weights is None else weights
            weights = torch.where(counted, ones, 0)
            counted = None
        if weights is not None and self.reduction == "mean":
            return (losses.sum() / weights.sum()).to(logits.dtype)
        if self.reduction != "none":
            return reduced(losses, self.reduction).to(logits.dtype)
        if counted is not None:
            losses = losses.new_zeros(len(counted)).masked_scatter(counted, losses)
        return losses.to(logits.dtype).view(labels.shape)

    def checked_soft_losses(
        self, logits: Tensor, targets: Tensor, epoch: float | None
    ) -> Tensor:
        """Check a batch with soft labels, and return its losses in at least float32."""
        if self.ignore_index is not None and self.ignore_index >= 0:
            raise ArgumentError(
                f"ignore_index must be negative or None for soft labels, "
                f"got {self.ignore_index}",
                "Leave rows without a class out, and omit ignore_index.",
            )
        self.check_rows(logits, targets)
        return self.soft_losses(widened(logits), targets.to(widened(logits)), epoch)

    def counted_rows(
        self, logits: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the rows and labels that count, and the mask that selects them.

        The mask is None if `ignore_index` is None. While torch compiles or vectorises
        the code, no shape may depend on values; rows that do not count are then kept,
        with logits of 0 and the label 0.
        """
        if self.ignore_index is None:
            return logits, labels, None
        # Widen the labels first, because in uint8 the default, -100, would equal the
        # label 156.
        counted = labels.long() != self.ignore_index
        if counted.shape != logits.shape[:1]:
            check_labels(labels, logits)
        if is_transformed(logits, labels):
            rows = torch.where(counted[:, None], logits, 0)
            return rows, torch.where(counted, labels.long(), 0), counted
        return logits[counted], labels[counted], counted

    def check_rows(self, logits: Tensor, labels: Tensor) -> None:
        """Refuse a batch (n, classes) that the loss cannot use; see `check_batch`."""
        check_batch(logits, labels, probs=False)
        known = check_not_of_sigmoid(logits)
        if self._is_judged or not may_be_read(logits, labels):
            return
        rows = with_earlier(logits, self._first_rows)
        check_not_probs(
            rows,
            remedy=NO_SOFTMAX,
            sigmoids=self.sigmoids and not known,
            of_network=True,
        )
        self._is_judged = len(rows) >= FEW_ROWS
        self._first_rows = None if self._is_judged else rows

    def class_weights(self, classes: int, dtype: torch.dtype) -> Tensor | None:
        """Return the class weights, (classes,), in `dtype`; None if there are none."""
        if self.weight is None:
            return None
        check_weighted_classes(self.weight, classes)
        return self.weight.to(dtype)

    def extra_repr(self) -> str:
        """The arguments as text, for `repr`."""
        names = (*self.arguments, "ignore_index", "reduction")
        shown = [f"{name}={getattr(self, name)!r}" for name in names]
        if self.weight is not None:
            few = self.weight.numel() <= WEIGHTS_SHOWN
            weight = self.weight.tolist() if few else f"<{self.weight.numel()} classes>"
            shown.append(f"weight={weight}")
        return ", ".join(shown)


def split_rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Reshape logits and labels to one row per sample or pixel."""
    check_argument_order(logits, labels)
    if not isinstance(logits, Tensor) or logits.ndim < 2:
        check_logits(logits, values=False)
    if is_soft(logits, labels):
        if logits.ndim == 2:
            return logits, labels
        return (
            logits.movedim(1, -1).flatten(0, -2),
            labels.movedim(1, -1).flatten(0, -2),
        )
    return as_rows(logits, labels)


def widened(tensor: Tensor) -> Tensor:
    """Cast the tensor to float32 if its dtype is narrower."""
    # Differences between float16 logits can overflow.
    return tensor.float() if tensor.dtype.itemsize < 4 else tensor


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Reduce the samples' losses, shape (n,), to their mean or sum, or return them."""
    check_reduction(reduction)
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def check_reduction(reduction: str) -> None:
    """Refuse a reduction unless it is "mean", "sum" or "none"."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, "
            f"got {reduction!r}",
            "Give one of them.",
        )


def is_soft(logits: Tensor, labels: Tensor) -> bool:
    """Whether labels are probabilities, one per class, instead of class indices."""
    return (
        isinstance(labels, Tensor)
        and labels.is_floating_point()
        and labels.ndim >= 2
        and labels.shape == logits.shape
    )


def one_hot_targets(logits: Tensor, labels: Tensor) -> Tensor:
    """Return labels as probabilities (n, classes); class indices become one-hot."""
    if is_soft(logits, labels):
        return labels.to(logits)
    # `vmap` of a gradient cannot handle torch's one_hot.
    return torch.zeros_like(logits).scatter(1, labels.long()[:, None], 1)


def check_batch(
    logits: Tensor, labels: Tensor, *, probs: bool = True, sigmoids: bool = True
) -> None:
    """Refuse a batch that no loss can handle; values are checked on the CPU only.

    Logits must be finite, or -inf for a masked class, and at least one class of each
    row must be unmasked. Labels must be class indices, or probabilities of the same
    shape as the logits, with 0 for masked classes.

    Args:
        logits: Shape (n, classes).
        labels: Shape (n,) or (n, classes).
        probs: Whether to refuse logits that look like probabilities.
        sigmoids: Whether to also refuse logits that look like the outputs of a sigmoid,
            unless the autograd graph shows that no sigmoid returned them.
    """
    check_argument_order(logits, labels)
    check_logits(logits, values=False)
    readable = may_be_read(logits, labels)
    masked = _masked_classes(logits) if readable else None
    if probs:
        known = check_not_of_sigmoid(logits)
        if readable:
            check_not_probs(
                logits,
                remedy=NO_SOFTMAX,
                sigmoids=sigmoids and not known,
                of_network=True,
            )
    if is_soft(logits, labels):
        if readable:
            _check_soft_labels(labels, masked)
        return
    check_labels(labels, logits, values=readable)
    if masked is not None:
        on_mask = masked.gather(1, labels.long()[:, None]).squeeze(1)
        if bool(on_mask.any()):
            row = int(on_mask.int().argmax())
            raise ArgumentError(
                f"labels must not name a masked class, got class {labels[row].item()} "
                f"in row {row}, which has the logit -inf",
                "Give that class a finite logit, or leave such rows out.",
            )


def _masked_classes(logits: Tensor) -> Tensor | None:
    """Return the mask of the logits that are -inf, or None if all logits are finite.

    ValueError is raised for NaN, for inf, for the largest float, which may have
    replaced an inf, and for a row in which every class is masked.
    """
    if all_finite(logits):
        check_below_limit(logits.detach().max()[None], logits)
        return None
    masked = torch.isneginf(logits)
    wrong = ~(torch.isfinite(logits) | masked)
    if bool(wrong.any()):
        row, column = torch.nonzero(wrong)[0].tolist()
        raise ArgumentError(
            f"logits must be finite, got {logits[row, column].item()} in row {row}, "
            f"class {column}; only -inf, for a masked class, is allowed",
            "Look for a learning rate that is too high, or NaN in the inputs.",
        )
    nothing_left = masked.all(dim=1)
    if bool(nothing_left.any()):
        row = int(nothing_left.int().argmax())
        raise ArgumentError(
            f"logits must leave a class unmasked, got only -inf in row {row}",
            "Leave such rows out.",
        )
    check_below_limit(logits.detach().max()[None], logits)
    return masked


def _check_soft_labels(labels: Tensor, masked: Tensor | None) -> None:
    """Refuse soft labels that are not probabilities, or not 0 for a masked class."""
    sums = labels.sum(dim=1, dtype=torch.float64)
    tolerance = max(PROBABILITY_TOLERANCE, torch.finfo(labels.dtype).eps)
    inside = ((labels >= 0) & (labels <= 1 + tolerance)).all(dim=1)
    sound = inside & ((sums - 1).abs() <= tolerance)
    if not bool(sound.all()):
        row = int((~sound).int().argmax())
        remedy = "Divide each row by its sum, or give classes as whole numbers."
        if is_binary(labels):
            remedy = binary_rows_remedy(labels)  # Dividing would hide several classes.
        raise ArgumentError(
            "soft labels must be probabilities, in [0, 1] with rows that sum to one, "
            f"got a sum of {sums[row].item():.8g} in row {row}",
            remedy,
        )
    if masked is not None and bool((labels[masked] > 0).any()):
        row = int(((labels > 0) & masked).any(dim=1).int().argmax())
        raise ArgumentError(
            f"soft labels must give masked classes probability 0, but row {row} does "
            "not",
            "Give these classes finite logits, or leave such rows out.",
        )
