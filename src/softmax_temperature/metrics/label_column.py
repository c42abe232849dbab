"""Check that the labels are not among the columns of the scores.

If a table of scores and labels is passed as scores, its label column is mistaken for
one more class, or for one more dimension of the embeddings.
"""

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.probability_check import FEW_ROWS


def label_columns(scores: Tensor, labels: Tensor) -> list[int]:
    """Return the columns that equal the labels in every row.

    The list is empty if the table has fewer than `FEW_ROWS` rows, if all labels are the
    same, or if the table contains only 0 and 1, as one-hot predictions do.

    Args:
        scores: Shape (n, columns).
        labels: Shape (n,).
    """
    table = scores.detach()
    if len(table) < FEW_ROWS or labels.shape != table.shape[:1]:
        return []
    # Compare all rows only in columns that equal the labels in the first rows.
    equal = (table[:FEW_ROWS] == labels[:FEW_ROWS, None]).all(dim=0)
    found = [
        column
        for column in torch.nonzero(equal).flatten().tolist()
        if bool((table[:, column] == labels).all())
    ]
    if not found or bool((labels == labels[0]).all()):
        return []
    only_bits = bool(((table == 0) | (table == 1)).all())
    return [] if only_bits else found


def check_no_label_column(scores: Tensor, labels: Tensor, name: str = "logits") -> None:
    """Refuse scores if one of their columns equals the labels in every row.

    Args:
        scores: Shape (n, columns).
        labels: Shape (n,).
        name: Name of the scores in messages.
    """
    found = label_columns(scores, labels)
    if not found:
        return
    column = found[0]
    selection = f"np.delete(..., {column}, axis=1)"
    if column == scores.shape[1] - 1:
        selection = f"[:, :{column}]"
    elif column == 0:
        selection = "[:, 1:]"
    raise ArgumentError(
        f"{name} hold the labels: column {column} equals them in every row",
        f"Leave this column out, as {selection} does.",
    )
