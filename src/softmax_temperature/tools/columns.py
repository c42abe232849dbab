"""Recognise columns of users' tables that are not scores, by name, type and values.

A score is the logit or probability of a class, or a dimension of an embedding.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softmax_temperature.metrics.label_column import label_columns
from softmax_temperature.metrics.probability_check import FEW_ROWS, SUM_TOLERANCE

# Names of columns whose whole numbers identify the rows, divide them into parts or
# label them. A class may have such a name, too ("id" is the code of Indonesian), so a
# column that holds fractions is accepted.
KEY = re.compile(
    r"(?:.*_)?(?:id|ids|idx|index|fold|split)|uid|uuid|guid|key|indices|rows?"
    r"|row_?num(?:ber)?|folds|splits|partition|subset|batch|epoch|step|seed"
    r"|gt|(?:ground_)?truth|gold|actual|true_class|y_test|(?:is_)?correct"
    r"|unnamed:_?\d+|(?:__index_)?level_\d+(?:__)?"
)
# Names that end in "Id" or "ID" after a lower-case letter, such as `imageId`, but not
# lower-case words such as `squid`.
CAMEL_KEY = re.compile(r".*[a-z]I[Dd]s?")
# Names of columns that summarise a row's prediction.
SUMMARY = re.compile(
    r"confidences?|confs?|conf(?:idence)?_scores?|msp|entropy|margin|nll"
    r"|(?:max|top_?1?|best|pred(?:icted)?)_(?:scores?|probs?|proba|probability|logit"
    r"|conf(?:idence)?)"
    r"|(?:sample|instance|example|row|case|class|importance|sampling)_(?:weights?|wts?)"
    r"|pred(?:icted)?_(?:label|class)|top_?1"
)
# Names of columns of weights, losses and the like, which are at least 0. A class may
# have such a name, too, as in win, draw and loss. Such a name counts only if the column
# has no negative number and each of the table's other columns has one.
NEVER_NEGATIVE = re.compile(
    r"weights?|wts?|loss(?:es)?|(?:ce|bce|log|focal|sample|row)_loss|cross_entropy"
    r"|ppl|perplexity|(?:un)?certainty|variance|std|stddev|freq(?:uency)?|counts?"
    r"|latency(?:_ms)?|duration|elapsed|time(?:_ms)?|timestamp|lengths?"
)
# Names of a binary classifier's only column. If there are other columns, a column with
# such a name summarises the prediction.
SINGLE_SCORE = re.compile(
    r"scores?|logit|prob(?:s|a|ability)?|y_(?:score|prob|proba|pred|hat)|yhat"
    r"|pred(?:s|ictions?|icted)?"
)
TEXT = re.compile(
    r"(?:object|str|large_str|utf8|large_utf8|bool|categ|enum|dictionary|date|time"
    r"|duration|null|list|struct|binary).*"
)

# Reasons why a column is not a score. All but the last three are proven by the values,
# whatever the column's name is.
EQUALS_LABELS = "equals the labels in every row"
LARGEST_SCORE = "equals the largest of the other scores in every row"
LARGEST_PROB = "equals the largest probability of the others in every row"
REST = "equals 1 minus the largest probability of the others in every row"
ENTROPY = "equals the entropy of the others in every row"
PERPLEXITY = "equals the perplexity of the others in every row"
ENERGY = "equals the energy of the others in every row"
WHOLE = "whole numbers beside fractions"
COUNTS = "counts the rows"
BY_NAME = ""
PROVEN = (
    EQUALS_LABELS,
    LARGEST_SCORE,
    LARGEST_PROB,
    REST,
    ENTROPY,
    PERPLEXITY,
    ENERGY,
)

# A column counts as the rows' largest score, or as their energy, if in no row the
# difference exceeds this fraction of the rows' median range. Writing the numbers with 4
# digits causes smaller differences.
SCORE_TOLERANCE = 1e-3
# A column counts as a summary of the rows' probabilities if no difference exceeds these
# tolerances. They allow for probabilities and entropies that are computed from logits
# written with 4 digits.
PROB_TOLERANCE = 2e-3
ENTROPY_TOLERANCE = 1e-2
# Rows of probabilities that are rounded to two decimals have sums that differ from one
# by less than this. A label in the row, unless it is 0, changes the sum by at least 1.
ROUNDED_SUMS = 0.1
# A column that varies by less than this many tolerances is not taken for a summary,
# because it may agree with one by chance.
LEAST_RANGE = 5
# The number of rows that are compared first. Most columns differ from every summary in
# one of them, so that their other rows need not be compared.
FIRST_ROWS = 3


def foreign_columns(
    names: Sequence[str],
    values: NDArray[Any],
    *,
    classes: bool = True,
    numbered: Collection[str] = (),
    labels: NDArray[Any] | None = None,
) -> dict[str, str]:
    """The columns that are not scores, each with the reason.

    The reason is empty for a column that is recognised by its name. The others are
    recognised by their values: a column may equal the labels, or equal a summary of the
    other scores, such as the largest. It may hold whole numbers from 0 while others
    hold fractions, or it may count the rows.

    Args:
        names: The columns' names.
        values: The table's numbers, shape (n, columns).
        classes: Whether the columns belong to classes. If not, they are dimensions of
            an embedding, of which some may hold whole numbers and others fractions.
        numbered: Names of columns that must be classes because they are numbered. They
            may hold whole numbers even if other columns hold fractions.
        labels: Numeric labels of shape (n,); None if the labels are unknown or not
            numbers.
    """
    values = np.asarray(values, np.float64)
    reasons: dict[str, str] = {}
    if labels is not None and len(names) > 1:
        # torch warns about read-only arrays.
        arrays = (np.require(array, requirements="W") for array in (values, labels))
        equal = label_columns(*map(torch.from_numpy, arrays))
        reasons |= {names[place]: EQUALS_LABELS for place in equal}
    for place, name in enumerate(names):
        column = values[:, place]
        by_name = _is_summary(name, alone=len(names) == 1) or (
            _is_key(name) and not has_fractions(column)
        )
        if name not in reasons and (by_name or _counts_rows(column)):
            reasons[name] = BY_NAME if by_name else COUNTS
    if classes:
        _add_never_negative(reasons, names, values)
    if classes and len(values) >= FEW_ROWS:
        _add_summaries(reasons, names, values)
        _add_whole(reasons, names, values, numbered)
    return {name: reasons[name] for name in names if name in reasons}


def has_known_name(name: str) -> bool:
    """Whether a column's name is that of a key or of a summary of predictions."""
    return _is_key(name) or _is_summary(name, alone=False)


def text_columns(names: Sequence[str], types: Sequence[Any]) -> list[str]:
    """Names of the columns that hold text, truth values, dates or objects."""
    return [
        name
        for name, kind in zip(names, types, strict=True)
        if TEXT.fullmatch(str(kind).lower())
    ]


def column_types(frame: Any) -> list[Any]:
    """The types of a data frame's columns.

    The supported data frames are listed at `arrays.column_names`.
    """
    types = getattr(frame, "dtypes", None)
    return list(frame.schema.types if types is None else types)


def plain_labels(labels: NDArray[Any]) -> NDArray[np.float64] | None:
    """The labels as numbers of shape (n,); None if there is not one number per row.

    Args:
        labels: Numbers of shape (n,) or (n, 1), or one-hot rows.
    """
    if labels.dtype.kind not in "iufb" or labels.ndim not in (1, 2):
        return None
    if labels.ndim == 2 and labels.shape[1] > 1:
        if not np.isin(labels, (0, 1)).all():
            return None
        labels = labels.argmax(axis=1)
    return labels.reshape(-1).astype(np.float64)


def is_nested(values: Any) -> bool:
    """Whether `values` holds objects, the first of which is a list, array or tensor."""
    first = values.flat[0] if values.dtype.kind == "O" and values.size else None
    return isinstance(first, list | tuple | np.ndarray | torch.Tensor)


def has_fractions(column: NDArray[Any]) -> bool:
    """Whether one of the finite numbers in `column` is not whole."""
    finite = column[np.isfinite(column)]
    return bool((finite != np.floor(finite)).any())


def _joined(name: str) -> str:
    return re.sub(r"[ .-]", "_", name.strip().lower())


def _is_summary(name: str, *, alone: bool) -> bool:
    """Whether a column's name is that of a summary of each row's prediction.

    Args:
        name: The column's name.
        alone: Whether the column is the only one.
    """
    joined = _joined(name)
    if SUMMARY.fullmatch(joined):
        return True
    return not alone and SINGLE_SCORE.fullmatch(joined) is not None


def _is_key(name: str) -> bool:
    return bool(KEY.fullmatch(_joined(name)) or CAMEL_KEY.fullmatch(name))


def _counts_rows(column: NDArray[Any]) -> bool:
    """Whether a column of many rows counts up in steps of 1."""
    if len(column) < FEW_ROWS:
        return False
    # Ignore numpy's warning: the difference of two masked scores, -inf, is NaN.
    with np.errstate(invalid="ignore"):
        return bool((np.diff(column) == 1).all())


def _add_never_negative(
    reasons: dict[str, str], names: Sequence[str], values: NDArray[np.float64]
) -> None:
    """Add to `reasons` columns of weights or losses beside logits.

    The other columns must be at least two, and each must hold a negative number.
    """
    with np.errstate(invalid="ignore"):
        negative: NDArray[np.bool_] = np.any(values < 0, axis=0)
    places = [place for place, name in enumerate(names) if name not in reasons]
    found = [
        place
        for place in places
        if not negative[place] and NEVER_NEGATIVE.fullmatch(_joined(names[place]))
    ]
    others = [place for place in places if place not in found]
    if len(others) > 1 and bool(negative[others].all()):
        reasons |= {names[place]: BY_NAME for place in found}


def _add_whole(
    reasons: dict[str, str],
    names: Sequence[str],
    values: NDArray[np.float64],
    numbered: Collection[str],
) -> None:
    """Add to `reasons` columns of whole numbers from 0, if others hold fractions.

    A constant column may be a class: the logit of a reference class is 0 in every row,
    and that of a masked class is a large negative number. If the rows sum to one, all
    columns are classes, and the whole numbers are probabilities.
    """
    places = [place for place, name in enumerate(names) if name not in reasons]
    fractions = {place for place in places if has_fractions(values[:, place])}
    whole = [
        place
        for place in places
        if place not in fractions
        and names[place] not in numbered
        and _counts_from_zero(values[:, place])
    ]
    if not whole or not fractions:
        return
    with np.errstate(invalid="ignore"):
        misses = np.abs(values[:, places].sum(axis=1) - 1)
    if bool((misses < ROUNDED_SUMS).all()):
        return
    reasons |= {names[place]: WHOLE for place in whole}


def _counts_from_zero(column: NDArray[np.float64]) -> bool:
    """Whether the numbers of a column are at least 0, and not all the same.

    NaN, which a join of tables leaves in some rows, is ignored.
    """
    numbers = column[~np.isnan(column)]
    return bool((numbers >= 0).all() and (numbers != numbers[:1]).any())


def _add_summaries(
    reasons: dict[str, str], names: Sequence[str], values: NDArray[np.float64]
) -> None:
    """Add to `reasons` columns that equal a summary of others, such as the largest."""
    while True:
        places = [place for place, name in enumerate(names) if name not in reasons]
        summary = None
        if len(places) > 2:
            summary = _summary(values[:, places], range(len(places)))
        if summary is None:
            return
        reasons[names[places[summary[0]]]] = summary[1]


def summary_at_end(values: NDArray[Any]) -> tuple[int, str] | None:
    """The first or last column if it summarises the others, with the reason; or None.

    Args:
        values: Scores, shape (n, columns).
    """
    rows, columns = values.shape
    if rows < FEW_ROWS or columns < 4:
        return None
    ends = [
        column
        for column in (columns - 1, 0)
        if _summary(values[:FIRST_ROWS].astype(np.float64), [column])
    ]
    return _summary(values.astype(np.float64), ends) if ends else None


def _summary(
    values: NDArray[np.float64], columns: Sequence[int]
) -> tuple[int, str] | None:
    """The first column that summarises the others, and the reason; None if none do.

    Only the `columns` are candidates.
    """
    if np.isnan(values).any() or np.isposinf(values).any():
        return None  # A later check refuses these numbers.
    finite = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(finite).all(axis=1).any():
        return None
    ranges = np.nanmax(finite, axis=1) - np.nanmin(finite, axis=1)
    # A row that has diverged must not raise the tolerance of the others.
    tolerance = SCORE_TOLERANCE * float(np.median(ranges))
    for column in columns:
        if not _reasons(values[:FIRST_ROWS], column, tolerance):
            continue
        for reason, allowed in _reasons(values, column, tolerance).items():
            if np.ptp(values[:, column]) > LEAST_RANGE * allowed:
                return column, reason
    return None


def _reasons(
    values: NDArray[np.float64], column: int, tolerance: float
) -> dict[str, float]:
    """The summaries of the other columns that `column` equals, and their tolerances.

    Args:
        values: Shape (n, columns), at least three columns.
        column: Index of the column.
        tolerance: The largest allowed difference from the largest other score, and from
            the energy.
    """
    candidate = values[:, column]
    other_scores = np.delete(values, column, axis=1)
    largest = other_scores.max(axis=1)
    if not (np.isfinite(candidate).all() and np.isfinite(largest).all()):
        return {}
    shares = np.exp(other_scores - largest[:, None])
    energy = -(largest + np.log(shares.sum(axis=1)))
    probs = shares / shares.sum(axis=1, keepdims=True)
    if other_scores.min() >= 0 and bool(
        (np.abs(other_scores.sum(axis=1) - 1) < SUM_TOLERANCE).all()
    ):
        probs = other_scores
    top = probs.max(axis=1)
    logs = np.log(np.where(probs > 0, probs, 1))
    entropy = -(probs * logs).sum(axis=1)
    summaries = {
        LARGEST_SCORE: (candidate - largest, tolerance),
        LARGEST_PROB: (candidate - top, PROB_TOLERANCE),
        REST: (candidate - (1 - top), PROB_TOLERANCE),
        ENERGY: (
            np.minimum(np.abs(candidate - energy), np.abs(candidate + energy)),
            tolerance,
        ),
        ENTROPY: (candidate - entropy, ENTROPY_TOLERANCE),
        PERPLEXITY: (np.log(np.maximum(candidate, 0.5)) - entropy, ENTROPY_TOLERANCE),
    }
    return {
        reason: allowed
        for reason, (differences, allowed) in summaries.items()
        if bool((np.abs(differences) <= allowed).all())
    }
