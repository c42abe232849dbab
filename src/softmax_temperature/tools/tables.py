"""Columns of users' tables: the label, and the classes in their order.

Columns are chosen by name, never because they are numeric. The column of labels has one
of the names in `LABEL_NAMES`. The columns of classes (or dimensions) are named by plain
numbers, `0`, `1`, ..., or by a common prefix and a number, `logit_0`, `logit_1`, ...
Numbers may be written as fractions, `0.0`, `1.0`, ..., as labels of type float are.
The numbers count from 0 or 1 without a gap, and determine the order. A binary
classifier has one column, whose name is one of `SINGLE_NAMES`. Unless `--columns` lists
the columns to use, a table with any other column is refused, and the error names that
column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.tools.columns import (
    PROVEN,
    foreign_columns,
    has_fractions,
    has_known_name,
    is_nested,
    plain_labels,
)
from softmax_temperature.tools.files import counts

if TYPE_CHECKING:
    import pandas as pd

LABEL_NAMES = (
    "labels",
    "label",
    "targets",
    "target",
    "y_true",
    "y",
    "true_label",
    "true_labels",
    "ground_truth",
    "class",
)
SINGLE_NAMES: Mapping[str, Sequence[str]] = {
    "logits": ("logit", "logits", "score", "y_score"),
    "probs": (
        "prob",
        "probs",
        "probability",
        "y_prob",
        "y_proba",
        "p",
        "score",
        "y_score",
    ),
    "embeddings": (),
    "labels": (),
}
NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)")
# `--columns` and data frames may also have text after the number: `class_0_logit`.
NUMBER_INSIDE = re.compile(rf"{NUMBERED.pattern}(?P<suffix>\D*)")
FRACTION = re.compile(r"(?P<whole>\D*\d+)\.(?P<rest>\d+)")
# float64 represents every whole number up to this one exactly.
LARGEST_KEY = 2**53
# A column holds numbers, not text, if at most this share of its cells is text.
MOST_TEXTS = 0.2
# Maximum number of columns that a message names; it only counts the others.
MOST_NAMED = 5


def arrays_of(
    table: pd.DataFrame,
    matrix: str,
    *,
    where: str,
    required: Sequence[str],
    columns: Sequence[str] = (),
    given_labels: NDArray[Any] | None = None,
) -> dict[str, NDArray[Any]]:
    """Take the required arrays from `table`, keyed by name.

    Args:
        table: The user's table.
        matrix: Name of the matrix: "logits", "probs" or "embeddings".
        where: Name of the file in messages.
        required: The arrays to take: the matrix, "labels", or both.
        columns: Names and patterns that select the class columns.
        given_labels: The labels, if they are in a file of their own.

    Raises:
        InputError: If a column is neither the label nor a class.
    """
    names = [str(name).strip() for name in table.columns]
    # If `columns` are given, they use the names in the file, so keep these names.
    names = names if columns else plain_names(names)
    table = table.set_axis(names, axis=1)
    labels = _label_names(table, alone="labels" in required)
    candidates = [name for name in names if name not in labels]
    arrays = {}
    if "labels" in required:
        if len(labels) > 1:
            raise InputError(
                f"has columns {' and '.join(labels)}, and each could be the label",
                where=where,
                remedy="Keep one.",
            )
        if labels:
            arrays["labels"] = _label_column(table, labels[0], where)
    elif labels and not columns:
        raise InputError(
            f"has a column {labels[0]!r}, but --labels also gives labels",
            where=where,
            remedy="Omit --labels, remove the column, or name the classes: --columns.",
        )
    if matrix not in required:
        return arrays or {"labels": _labels_alone(table, names, where)}
    chosen = _chosen(candidates, columns, where)
    if not columns:
        lacks_label = "labels" in required and not labels
        chosen = _numbered(table, candidates, matrix, where, lacks_label=lacks_label)
    if chosen:
        arrays[matrix] = _numbers(table, chosen, where)
        label_array = arrays.get("labels", given_labels)
        _refuse_foreign(arrays[matrix], chosen, columns, matrix, label_array, where)
    return arrays


def _stripped(table: pd.DataFrame) -> pd.DataFrame:
    """The table, with its column names as text without spaces at either end."""
    return table.set_axis([str(name).strip() for name in table.columns], axis=1)


def check_same_order(
    scores: pd.DataFrame, labels: pd.DataFrame, columns: Sequence[str], where: str
) -> None:
    """Refuse scores and labels if a key shows that their rows do not belong together.

    A key is an index, or a column that is neither a score nor a label and that both
    tables have. It holds text, or whole numbers that are all distinct. If the two
    tables have no value of the key in common, it is ignored.

    Args:
        scores: The table of the scores.
        labels: The table of the labels.
        columns: Names and patterns that select the class columns.
        where: Names of the two files in messages.
    """
    scores, labels = _stripped(scores), _stripped(labels)
    rest_of_scores = []
    if columns:  # Without --columns, all columns of the table are scores.
        named = _label_names(scores, alone=False)
        candidates = [name for name in scores.columns if name not in named]
        chosen = _chosen(candidates, columns, where)
        rest_of_scores = [name for name in candidates if name not in chosen]
    named = _label_names(labels, alone=True)
    # Without a column named label, all columns of the table are labels.
    rest_of_labels = [name for name in labels.columns if named and name not in named]
    keys = _keys(scores, rest_of_scores)
    others_keys = _keys(labels, rest_of_labels)
    for name, values in keys.items():
        if name in others_keys:
            _check_key(name, values, others_keys[name], where)


def _keys(table: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series[str]]:
    """The keys among the columns `names` and the index of a table, as text."""
    columns = {f"column {name!r}": table[name] for name in names}
    index = table.index
    if index.names == [None]:
        columns["index"] = index.to_series()
    else:
        # In a csv file, the same index is a column, so give it the name of a column.
        name = ", ".join(str(level) for level in index.names)
        columns[f"column {name!r}"] = index.to_series()
    return {
        name: text
        for name, column in columns.items()
        if not (_is_unnamed(name) and _is_default(column))
        and (text := _key_text(column)) is not None
    }


def _is_unnamed(name: str) -> bool:
    """Whether a key is an index without a name; csv files store it as a column."""
    return name == "index" or name.startswith("column 'Unnamed:")


def _is_default(column: pd.Series[Any]) -> bool:
    """Whether a column counts the rows from 0, as pandas' default index does."""
    return column.tolist() == list(range(len(column)))


def _key_text(column: pd.Series[Any]) -> pd.Series[str] | None:
    """The column as text if it may be a key, and otherwise None."""
    kind = column.dtype.kind
    if kind in "bc" or is_nested(column.to_numpy()):
        return None
    if kind in "iuf":
        if column.hasnans or not column.is_unique:
            return None
        if kind == "f":
            numbers = column.to_numpy(np.float64)
            if has_fractions(numbers) or not (np.abs(numbers) <= LARGEST_KEY).all():
                return None
            column = column.astype(np.int64)
    return column.astype(str).str.strip().reset_index(drop=True)


def _check_key(
    name: str, values: pd.Series[str], others: pd.Series[str], where: str
) -> None:
    """Refuse two columns of keys that share values but are not equal."""
    if values.tolist() == others.tolist() or not values.isin(others).any():
        return
    shorter = min(len(values), len(others))
    differs = values[:shorter].to_numpy() != others[:shorter].to_numpy()
    row = int(differs.argmax()) if differs.any() else shorter
    if sorted(values) == sorted(others):
        raise InputError(
            f"have the same {name} in different orders, from row {row} on",
            where=where,
            remedy="Sort both files by it.",
        )
    raise InputError(
        f"have different values in {name}, from row {row} on",
        where=where,
        remedy="Give the same rows in both files, in the same order. If it does not "
        "identify the rows, drop it from one file.",
    )


def _label_names(table: pd.DataFrame, *, alone: bool) -> list[str]:
    """The columns with a name for labels.

    A class may also have such a name, for instance `target`. Therefore a column that
    holds fractions is left out, unless the labels must be in this table and no other
    column can hold them.

    Args:
        table: The user's table.
        alone: Whether the labels must be in this table.
    """
    labels = [name for name in table.columns if name.lower() in LABEL_NAMES]
    whole = [
        name
        for name in labels
        if table[name].dtype.kind != "f"
        or not has_fractions(table[name].to_numpy(np.float64, na_value=np.nan))
    ]
    return whole if whole or not alone else labels


def _labels_alone(
    table: pd.DataFrame, names: Sequence[str], where: str
) -> NDArray[Any]:
    """Take the labels from a table that has no label column.

    The labels may be the table's only column, which is called 0 if the file does not
    name it, or they may be one-hot, in numbered columns.
    """
    if len(names) == 1 and names[0] == "0":
        return _label_column(table, names[0], where)
    if all(name.isdigit() for name in names):
        return _numbers(table, _numbered(table, names, "labels", where), where)
    raise InputError(
        f"has no column named label (its columns: {listed(names)})",
        where=where,
        remedy="Name the column of labels `label`.",
    )


def _label_column(table: pd.DataFrame, name: str, where: str) -> NDArray[Any]:
    """Return the labels in the column `name`; raise InputError if it holds text."""
    column = table[name]
    if column.dtype.kind not in "iufb":
        _refuse_few_texts(column, where)
        raise InputError(
            f"column {name!r} is not numeric",
            where=where,
            remedy="Number the classes from 0.",
        )
    if column.hasnans:
        return column.to_numpy(np.float64, na_value=np.nan)
    return column.to_numpy()


def _chosen(candidates: Sequence[str], columns: Sequence[str], where: str) -> list[str]:
    """Choose the columns that `--columns` names.

    An entry that is the name of a column selects only this column, even if the entry
    also matches others as a pattern. Columns that match the same pattern are in the
    order of their numbers.
    """
    chosen: list[str] = []
    for pattern in columns:
        matches = [name for name in candidates if fnmatchcase(name, pattern)]
        if pattern in candidates:
            matches = [pattern]
        if not matches:
            raise InputError(
                f"has no column {pattern!r} other than the label (--columns)",
                where=where,
                remedy=nearest(pattern, candidates),
            )
        plain = dict(zip(matches, plain_names(matches), strict=True))
        chosen += sorted(matches, key=lambda name: numbered_key(plain[name]))
    if len(set(chosen)) < len(chosen):
        twice = next(name for name in chosen if chosen.count(name) > 1)
        raise InputError(
            f"column {twice!r} is named twice (--columns)",
            where=where,
            remedy="Name each column once.",
        )
    return chosen


def _refuse_foreign(
    values: NDArray[np.float64],
    chosen: Sequence[str],
    columns: Sequence[str],
    matrix: str,
    labels: NDArray[Any] | None,
    where: str,
) -> None:
    """Refuse columns that are not classes.

    A column that equals the labels or a summary of the other columns is always refused.
    Another column that does not look like a class is refused only if a pattern of
    `--columns` matches it and no entry of `--columns` is its name.

    Args:
        values: The numbers of the chosen columns.
        chosen: The names of the chosen columns.
        columns: Names and patterns that select the class columns.
        matrix: Name of the matrix.
        labels: The labels, if they are known.
        where: Name of the file in messages.
    """
    reasons = foreign_columns(
        chosen,
        values,
        classes=matrix != "embeddings",
        numbered=numbered_columns(chosen),
        labels=None if labels is None else plain_labels(labels),
    )
    proven = {name: why for name, why in reasons.items() if why in PROVEN}
    if proven:
        raise InputError(
            f"has columns that are not {matrix}: {explained(proven)}",
            where=where,
            remedy="Remove them, or choose the other columns with --columns.",
        )
    unnamed = {name: why for name, why in reasons.items() if name not in columns}
    if columns and unnamed:
        raise InputError(
            f"a pattern of --columns also matches {explained(unnamed)}, which do not "
            "look like classes",
            where=where,
            remedy="Choose the classes with another pattern, or name each column.",
        )


def numbered_columns(columns: Sequence[str]) -> list[str]:
    """The columns that are numbered from 0 or 1 without a gap, as in `class_0_logit`.

    Their names must be equal except for the number. The list is empty if there is no
    such group of columns, or if there are several numbered groups, because it is then
    not known which of them holds the classes.
    """
    groups: dict[tuple[str, str], dict[str, int]] = {}
    for column, plain in zip(columns, plain_names(columns), strict=True):
        texts, number = numbered_key(plain)
        if number >= 0:
            groups.setdefault(texts, {})[column] = number
    several = [group for group in groups.values() if len(group) > 1]
    if len(several) != 1 or not counts(list(several[0].values())):
        return []
    return list(several[0])


def plain_names(names: Sequence[str]) -> list[str]:
    """The names with `0.0`, `1.0`, ... written as `0`, `1`, ...

    Labels of type float give such names. If a name ends in another fraction, as in
    `0.0`, `0.1`, ..., the columns are numbered by the fractions, and the names stay as
    they are. They also stay if only one of them ends in `.0`, or if two of them would
    become equal.
    """
    matches = [FRACTION.fullmatch(name) for name in names]
    if any(match and match["rest"] != "0" for match in matches):
        return list(names)
    plain = [
        match["whole"] if match else name
        for match, name in zip(matches, names, strict=True)
    ]
    several = sum(match is not None for match in matches) > 1
    unique = len(set(plain)) == len(set(names))
    return plain if several and unique else list(names)


def numbered_key(name: str) -> tuple[tuple[str, str], int]:
    """The key that sorts numbered columns: the text around the number, and the number.

    The number is -1 if `name` has none.
    """
    match = NUMBER_INSIDE.fullmatch(name)
    if not match:
        return (name, ""), -1
    return (match["prefix"], match["suffix"]), int(match["number"])


def _numbered(
    table: pd.DataFrame,
    candidates: Sequence[str],
    matrix: str,
    where: str,
    *,
    lacks_label: bool = False,
) -> list[str]:
    """The columns that match the naming rule, in the order of their numbers."""
    if len(candidates) == 1 and (
        table.shape[1] == 1 or candidates[0].lower() in SINGLE_NAMES[matrix]
    ):
        return _single(candidates[0], matrix, where)
    groups: dict[str, list[str]] = {}
    unnumbered = []
    for name in candidates:
        if match := NUMBERED.fullmatch(name):
            groups.setdefault(match["prefix"], []).append(name)
        else:
            unnumbered.append(name)
    _refuse_index(table, candidates, where)
    _numbers(table, candidates, where)  # Refuse text, whatever the columns' names.
    _refuse_others(groups, unnumbered, matrix, where, lacks_label=lacks_label)
    if not candidates:
        return []
    (group,) = groups.values()
    ordered = sorted(group, key=numbered_key)
    numbers = [numbered_key(name)[1] for name in ordered]
    if len(ordered) < 2 or not counts(numbers):
        raise InputError(
            f"class columns {listed(ordered)} do not count from 0 or 1 without a gap",
            where=where,
            remedy=f"Give one column per class, {ordered[0]!r} and so on.",
        )
    return ordered


def _single(name: str, matrix: str, where: str) -> list[str]:
    """Check the name of a binary classifier's only column, and return it in a list."""
    if name != "0" and name.lower() not in SINGLE_NAMES[matrix]:
        raise InputError(
            f"has one column, {name[:40]!r}, whose name does not show that it holds "
            f"{matrix}",
            where=where,
            remedy="Name it logit (for class 1), or separate columns with commas.",
        )
    return [name]


def _refuse_index(table: pd.DataFrame, candidates: Sequence[str], where: str) -> None:
    """Refuse a first column that looks like the index of a data frame."""
    if not candidates or candidates[0] != table.columns[0]:
        return
    first = candidates[0]
    counted = (
        len(table) > 2
        and table[first].dtype.kind in "iuf"
        and bool((table[first] == np.arange(len(table))).all())
    )
    if counted or first.startswith("Unnamed:"):
        raise InputError(
            f"has a column {first!r} that looks like the index of a data frame",
            where=where,
            remedy="Write the table without it: to_csv(path, index=False).",
        )


def _refuse_others(
    groups: Mapping[str, Sequence[str]],
    unnumbered: Sequence[str],
    matrix: str,
    where: str,
    *,
    lacks_label: bool,
) -> None:
    """Raise unless all columns form one numbered group, such as logit_0, logit_1."""
    largest = max(groups, key=lambda prefix: len(groups[prefix]), default="")
    pattern = f"{largest}*" if largest else "[0-9]*"
    if unnumbered:
        rename = "Name the column of labels `label`. " if lacks_label else ""
        example = f" such as {pattern!r}" if groups else ", for instance cat,dog"
        remedy = f"Remove them, or name the classes with --columns{example}."
        several = any(len(group) > 1 for group in groups.values())
        if several and not all(has_known_name(name) for name in unnumbered):
            # Classes such as W, N1, N2 and R are only partly numbered.
            remedy = (
                "If they are classes, name each class in its order, such as --columns "
                f"{unnumbered[0]},{groups[largest][0]},...; otherwise remove them, or "
                f"choose the classes with --columns{example}."
            )
        raise InputError(
            f"columns {listed(unnumbered)} are neither the label nor numbered "
            f"{matrix} ({matrix}_0, {matrix}_1, ...)",
            where=where,
            remedy=f"{rename}{remedy}",
        )
    if len(groups) > 1:
        raise InputError(
            "has several groups of numbered columns: "
            f"{listed([f'{prefix}*' for prefix in groups])}",
            where=where,
            remedy=f"Keep one group, or choose it with --columns {pattern!r}.",
        )


def _numbers(
    table: pd.DataFrame, chosen: Sequence[str], where: str
) -> NDArray[np.float64]:
    """The columns `chosen` of the table as a float64 matrix; text is refused."""
    for name in chosen:
        if table[name].dtype.kind in "iufb":
            continue
        if is_nested(table[name].to_numpy()):
            raise InputError(
                f"column {name!r} holds a list in each row",
                where=where,
                remedy=f"Write a column for each class, {name}_0, {name}_1, ..., or "
                f"save np.stack(table[{name!r}]) as npy.",
            )
        remedy = "Remove it, or write plain numbers"
        if where.lower().endswith(".csv"):
            remedy += ", separated by commas"
        _refuse_few_texts(table[name], where)
        raise InputError(
            f"column {name!r} is not numeric", where=where, remedy=f"{remedy}."
        )
    return table[list(chosen)].to_numpy(np.float64, na_value=np.nan)


def _refuse_few_texts(column: pd.Series[Any], where: str) -> None:
    """Refuse a column of numbers among which a few cells hold text; name the first."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    wrong = np.flatnonzero((numbers.isna() & column.notna()).to_numpy())
    if not 0 < len(wrong) <= MOST_TEXTS * len(column):
        return
    row = int(wrong[0])
    more = f" ({len(wrong)} such rows)" if len(wrong) > 1 else ""
    remedy = "Correct or remove such rows."
    if row == len(column) - 1:
        remedy = "It is the last row: if the file was cut off, write it again."
    raise InputError(
        f"column {column.name!r} is not numeric: row {row} holds "
        f"{str(column.iloc[row])[:40]!r}{more}",
        where=where,
        remedy=remedy,
    )


def listed(names: Sequence[str]) -> str:
    """The first few `names` as text for a message, and the number of the others."""
    text = ", ".join(repr(name) for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{text} and {more} more" if more > 0 else text


def around(names: Sequence[object], place: int) -> str:
    """A few `names` around the one at `place`, as text for a message."""
    start = 0
    if place > MOST_NAMED - 2:
        start = max(0, min(place - 1, len(names) - MOST_NAMED))
    end = start + MOST_NAMED
    text = ", ".join(label_text(name) for name in names[start:end])
    return f"{'..., ' if start else ''}{text}{', ...' if end < len(names) else ''}"


def label_text(label: object) -> str:
    """The text of a label; whole numbers have all their digits, and no decimals."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def around_difference(names: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """A few names of each list around their first difference, as texts."""
    pairs = zip(names, others, strict=False)
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return around(names, equal), around(others, equal)


def explained(reasons: Mapping[str, str]) -> str:
    """The first few names in `reasons` as text, with the reason if there is one."""
    texts = [
        f"{name!r} ({reason})" if reason else repr(name)
        for name, reason in list(reasons.items())[:MOST_NAMED]
    ]
    more = len(reasons) - MOST_NAMED
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
