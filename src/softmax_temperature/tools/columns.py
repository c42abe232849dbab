"""Recognise columns of users' tables that are not scores, by name, type and values.

A score is the logit or probability of a class, or a dimension of an embedding.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.metrics.probability_check import FEW_ROWS

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
# Names of columns that sum up a row's prediction.
SUMMARY = re.compile(
    r"confidences?|confs?|max_(?:probs?|probability|logit)|msp|entropy|margin|nll"
    r"|sample_weights?|pred(?:icted)?_(?:label|class)|top_?1"
)
# Names of a binary classifier's only column. If there are other columns, a column with
# such a name sums up the prediction.
SINGLE_SCORE = re.compile(
    r"scores?|logit|prob(?:s|a|ability)?|y_(?:score|prob|proba|pred|hat)|yhat"
    r"|pred(?:s|ictions?|icted)?"
)
INTEGER = re.compile(r"u?int\d+(?:\[pyarrow\])?")
TEXT = re.compile(
    r"(?:object|str|large_str|utf8|large_utf8|bool|categ|enum|dictionary|date|time"
    r"|duration|null|list|struct|binary).*"
)


def foreign_columns(
    names: Sequence[str],
    types: Sequence[Any],
    values: NDArray[Any],
    *,
    classes: bool = True,
) -> list[str]:
    """Names of the columns that are not scores.

    Such a column is recognised by its name, by an integer type if other columns hold
    fractions, or by values that count the rows.

    Args:
        names: The columns' names.
        types: The columns' types, of pandas, polars or Arrow.
        values: The table's numbers, shape (n, columns).
        classes: Whether the columns belong to classes. If not, they are dimensions of
            an embedding, of which some may hold whole numbers and others fractions.
    """
    integers = [INTEGER.fullmatch(str(kind).lower()) is not None for kind in types]
    mixed = classes and len(values) >= FEW_ROWS and any(integers)
    if mixed:
        mixed = any(
            _has_fractions(values[:, place])
            for place, is_integer in enumerate(integers)
            if not is_integer
        )
    foreign = []
    for place, name in enumerate(names):
        column = values[:, place]
        if (
            _is_summary(name, alone=len(names) == 1)
            or (_is_key(name) and not _has_fractions(column))
            or _counts_rows(column)
            or (mixed and integers[place] and not _is_reference(column))
        ):
            foreign.append(name)
    return foreign


def text_columns(names: Sequence[str], types: Sequence[Any]) -> list[str]:
    """Names of the columns of text, truth values, dates or objects."""
    return [
        name
        for name, kind in zip(names, types, strict=True)
        if TEXT.fullmatch(str(kind).lower())
    ]


def column_types(frame: Any) -> list[Any]:
    """The types of a data frame's columns.

    `arrays.column_names` says which data frames are supported.
    """
    types = getattr(frame, "dtypes", None)
    return list(frame.schema.types if types is None else types)


def _joined(name: str) -> str:
    return re.sub(r"[ .-]", "_", name.strip().lower())


def _is_summary(name: str, *, alone: bool) -> bool:
    """Whether a column's name says that the column sums up each row's prediction.

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


def _has_fractions(column: NDArray[Any]) -> bool:
    finite = column[np.isfinite(column)]
    return bool((finite != np.floor(finite)).any())


def _counts_rows(column: NDArray[Any]) -> bool:
    """Whether a column of many rows counts up in steps of 1."""
    return len(column) >= FEW_ROWS and bool((np.diff(column) == 1).all())


def _is_reference(column: NDArray[Any]) -> bool:
    """Whether a column is constant and at most 0.

    The logit of a reference class is 0 in every row, and that of a masked class is a
    large negative number.
    """
    return bool(column[0] <= 0 and (column == column[0]).all())
