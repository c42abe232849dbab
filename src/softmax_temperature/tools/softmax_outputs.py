"""Outputs of a softmax that are passed as logits one row at a time.

`check_not_probs` judges two rows or more. A server that passes each row by itself needs
a stricter test: a single row counts as an output of a softmax only for a pattern that
logits show by chance about once in a million rows.
"""

from typing import Any

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.probability_check import (
    JOINING_NODES,
    LOGITS_INSTEAD,
    NO_SOFTMAX,
    VIEW_NODES,
)

# The sum of a softmax in float32 over up to a thousand classes differs from one by less
# than this; over more classes, the tolerance grows with their number. Half precision is
# too coarse to judge a single row.
TOLERANCE = 2e-6
# Logits of a toy example have few decimals, and may sum to one.
DECIMALS = 3
# Softmax in torch's autograd graph, without the number at the end of the name.
SOFTMAX_NODE = "SoftmaxBackward"


def check_not_softmax_row(
    rows: Tensor, name: str, remedy: str = LOGITS_INSTEAD
) -> None:
    """Refuse a single row of at least three numbers that a softmax evidently returned.

    Args:
        rows: Shape (n, classes). Tables of several rows are not judged.
        name: Name of the row in messages.
        remedy: What to do if the row holds probabilities.
    """
    if len(rows) != 1 or rows.shape[1] < 3 or rows.dtype.itemsize < 4:
        return
    row = rows[0].detach().double()
    low, high = (bound.item() for bound in torch.aminmax(row))
    tolerance = TOLERANCE * max(1, len(row) / 1000)
    miss = abs(row.sum().item() - 1)
    if low < 0 or high > 1 or low == high or miss > tolerance:
        return
    # Numbers that were rounded in float64 may have been converted to float32.
    rounded = (row * 10**DECIMALS).round() / 10**DECIMALS
    if bool((row.float() == rounded.float()).all()):
        return
    raise ArgumentError(
        f"{name} are probabilities: the row lies in [0, 1] and sums to 1, as a "
        "softmax's does",
        remedy,
    )


def check_not_of_softmax(logits: Tensor, name: str) -> None:
    """Refuse logits if their autograd graph shows that a softmax returned them."""
    if _is_softmax_node(logits.grad_fn):
        raise ArgumentError(
            f"{name} are probabilities: they are the output of a softmax", NO_SOFTMAX
        )


def _is_softmax_node(node: Any) -> bool:
    """Whether a node of the graph is a softmax, or views or joins outputs of one."""
    while node is not None:
        name = type(node).__name__.rstrip("0123456789")
        if name == SOFTMAX_NODE:
            return True
        if name in JOINING_NODES:
            return all(_is_softmax_node(part) for part, _ in node.next_functions)
        if name not in VIEW_NODES:
            return False
        node = node.next_functions[0][0]
    return False
