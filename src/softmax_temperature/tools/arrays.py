"""Read users' arrays from files by name, and check them."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.data.splits import random_holdout
from softmax_temperature.metrics.calibration import CHUNK
from softmax_temperature.metrics.checks import (
    PROBABILITY_TOLERANCE,
    SEVERAL_CLASSES,
    ArgumentError,
    check_below_limit,
    check_labels,
    check_logits,
    check_not_wrapped,
    is_list_of_tables,
    is_one_hot,
    predicted_classes,
)
from softmax_temperature.metrics.class_order import check_class_order
from softmax_temperature.metrics.double_softmax import check_not_double
from softmax_temperature.metrics.label_column import check_no_label_column
from softmax_temperature.metrics.probability_check import (
    FEW_ROWS,
    FROM_COMPLEMENTS,
    FROM_ODDS,
    OVER_CLASSES,
    SUM_SHARE,
    SUM_TOLERANCE,
    check_not_probs,
    rounded_decimals,
    share_of_complements,
    share_of_odds,
    sum_of_columns,
    sum_tolerance,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.columns import (
    EQUALS_LABELS,
    column_types,
    foreign_columns,
    has_fractions,
    is_nested,
    plain_labels,
    summary_at_end,
    text_columns,
)
from softmax_temperature.tools.files import TABLE_ENDINGS, counts, read_content
from softmax_temperature.tools.flattened_classes import check_not_one_column
from softmax_temperature.tools.label_leaks import check_no_leak
from softmax_temperature.tools.log_bases import check_natural
from softmax_temperature.tools.log_odds import check_not_log_odds
from softmax_temperature.tools.options import in_options
from softmax_temperature.tools.ordinal_scores import (
    are_ordinal,
    check_not_ordinal,
    end_at_one,
    fall_or_rise,
    logits_of_classes,
    probs_of_classes,
)
from softmax_temperature.tools.refilled_zeros import check_not_refilled
from softmax_temperature.tools.rounded_copies import rounded_pairs
from softmax_temperature.tools.shifted_labels import check_not_late
from softmax_temperature.tools.standardised_columns import check_not_standardised
from softmax_temperature.tools.tables import (
    LABEL_NAMES,
    MOST_NAMED,
    NUMBERED,
    around,
    around_difference,
    arrays_of,
    check_same_order,
    explained,
    label_text,
    listed,
    numbered_columns,
    numbered_key,
    plain_names,
)
from softmax_temperature.tools.unfilled_rows import check_filled

Arrays = dict[str, NDArray[Any]]
Rows = tuple[Tensor, Tensor]
SAMPLE = Path(__file__).with_name("sample_logits.npz")
KINDS = ("logits", "probs")
# Remedies for probabilities that were passed as logits, for quantised scores, and for
# log-odds of probabilities.
SAY_PROBS = "Pass kind='probs'."
SAY_DEQUANTISED = (
    "Add 128, divide by 256, and give them as probabilities: kind='probs'."
)
SAY_LOG_SIGMOID = (
    "Give log(sigmoid(x)) of each number x, or give sigmoid(x) as probabilities: "
    "kind='probs'."
)
# The largest accepted label. float64 represents every integer up to this one exactly.
LARGEST_LABEL = 2**53
# The largest share of labels whose probability may have underflowed to 0. A larger
# share changes the fitted temperature by more than a percent.
MOST_ZEROS = 1e-3
# The remedy for a column whose entries are lists, as in some parquet files.
NESTED_REMEDY = 'Stack the lists of its rows, as np.stack(df["logits"]) does.'
# The remedy for rows with inf, because half precision rounds numbers above 65504 to it.
OVERFLOWED = "Remove such rows; if float16 overflowed, compute the scores in float32."
# Two tables count as the same samples if they share more than this fraction of the rows
# of the smaller one.
SHARED = 0.5
# If one table is rounded, the share `SHARED_ROUNDED` of the smaller table's rows must
# agree, and that table must have at least `FEWEST_ROUNDED` rows. By chance, far fewer
# agree: a row counts only if it occurs once in each table, which holds for at most 37 %
# of independent rows.
SHARED_ROUNDED = 2 / 3
FEWEST_ROUNDED = 50
# A table with fewer distinct samples than this is not checked for copies. It may be a
# toy example, or come from a decision tree, which gives all samples in a leaf the same
# scores.
FEWEST_SAMPLES = 50
# A table consists of copies if at least this share of its distinct samples occur
# equally often, and more than once.
COPIED = 0.9
# Whole numbers with more distinct values than this cannot be predictions of two
# classes.
MOST_CLASSES = 20
# Words that mark arrays of validation or test rows, as in `val_logits` or `logits_val`.
OTHER_ROWS = {
    "validation": ("validation", "val", "valid", "cal", "calibration"),
    "test": ("test",),
}
# Other names that files may use for the arrays that commands need.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "logits": ("outputs", "preds", "predictions", "y_pred", "scores"),
    "probs": ("probabilities", "probability", "prob", "proba", "y_prob", "y_proba"),
    "embeddings": ("features", "x"),
    "labels": LABEL_NAMES[1:],
}


def sample_logits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return logits (1500, 10) and labels (1500,) of an overconfident digit classifier.

    The classifier is a logistic regression with little regularisation, trained on the
    first 297 of scikit-learn's digits and evaluated on the other 1,500.

    Examples:
        >>> logits, labels = sample_logits()
        >>> round(float((logits.argmax(axis=1) == labels).mean()), 3)
        0.851
    """
    arrays = read_arrays(SAMPLE, "logits", required=("logits", "labels"))
    return arrays["logits"].astype(np.float64), arrays["labels"].astype(np.int64)


@contextmanager
def user_data(where: object, remedy: str) -> Iterator[None]:
    """Turn the library's errors about a user's data into InputErrors.

    Remedies then name the command's options instead of Python's arguments.

    Args:
        where: Name of the file in messages.
        remedy: Remedy for errors that have none.
    """
    try:
        yield
    except ArgumentError as error:
        raise InputError(
            error.fault[:300], where=str(where), remedy=in_options(error.remedy)
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(str(error)[:300], where=str(where), remedy=remedy) from error


def read_rows(
    matrix: str,
    path: Path,
    labels: Path | None,
    other: str,
    other_path: Path | None,
    other_labels: Path | None,
    *,
    columns: Sequence[str] = (),
) -> tuple[Arrays, Arrays | None]:
    """Read a user's matrix and labels, and those of the other rows if there are any.

    Args:
        matrix: Name of the matrix: "logits", "probs" or "embeddings".
        path: The file that holds the matrix.
        labels: File of the labels, if they are not in the file of the matrix.
        other: Name of the other rows, "validation" or "test".
        other_path: File of the other rows. If None, the other rows are read from the
            first file, if it has arrays such as `test_embeddings` and `test_labels`.
            Only one of the two files may hold other rows.
        other_labels: File of the other rows' labels.
        columns: Names and patterns that select the class columns in tables.

    Returns:
        The arrays of the rows, and those of the other rows or None.

    Raises:
        InputError: If an array is missing, or a file cannot be read.
    """
    (unused,) = OTHER_ROWS.keys() - {other}
    optional = [*_names_of_rows(other, matrix), *_names_of_rows(unused, matrix)]
    arrays = _read_pair(matrix, path, labels, optional, columns)
    names = [name for name in arrays if name in _names_of_rows(other, matrix)]
    other_rows = _pop_rows(arrays, other, matrix, path)
    if extra := [name for name in arrays if name in optional]:
        purpose = "report" if other == "validation" else "test"
        raise InputError(
            f"holds {' and '.join(extra)} beside {matrix}, so it is not clear which "
            f"rows to {purpose} on",
            where=str(path),
            remedy=_remedy_of_rows(other, matrix),
        )
    if other_path:
        if other_rows:
            held = " and ".join(f"{other}_{name}" for name in other_rows)
            raise InputError(
                f"holds {held}, but {other_path} also gives {other} rows",
                where=str(path),
                remedy=f"Omit --{other}, or save this file without its {other} arrays.",
            )
        return arrays, _read_pair(matrix, other_path, other_labels, (), columns)
    if len(other_rows) == 1 or other_labels:
        absent = "labels" if matrix in other_rows else matrix
        fault = f"{other} rows have no {absent}"
        remedy = f"Save both {other}_{matrix} and {other}_labels"
        if names:
            fault += f" (it holds: {', '.join(names)})"
            remedy += ", or neither"
        raise InputError(fault, where=str(path), remedy=f"{remedy}.")
    return arrays, other_rows or None


def _names_of_rows(rows: str, matrix: str) -> dict[str, tuple[str, str]]:
    """The possible names of arrays of other rows, each with its two parts.

    The parts of `val_logits` and of `logits_val` are `val` and `logits`.

    Args:
        rows: "validation" or "test".
        matrix: Name of the matrix.
    """
    return {
        form: (word, name)
        for word in OTHER_ROWS[rows]
        for part in (matrix, "labels")
        for name in _names_of(part)
        for form in (f"{word}_{name}", f"{name}_{word}")
    }


def _names_of(part: str) -> tuple[str, ...]:
    """The names that the array `part` may have, its own name first."""
    names = (part, *OTHER_NAMES[part])
    if part == "probs":
        # Probabilities are often saved under a name for logits. Accept these names,
        # because later checks look at the values.
        return (*names, "logits", *OTHER_NAMES["logits"])
    return names


def _is_of_labels(name: str) -> bool:
    """Whether `name` is a name for labels, possibly with a word such as `val`."""
    forms = (_names_of_rows(rows, "labels") for rows in OTHER_ROWS)
    return name in LABEL_NAMES or any(name in form for form in forms)


def _candidates(part: str, names: Collection[str]) -> list[str]:
    """The `names` that may denote the array `part`; empty if there are none.

    If the array's own name is among them, only this name is returned. If there are
    names for probabilities, names for logits are left out.
    """
    if part in names:
        return [part]
    aliases = [name for name in OTHER_NAMES[part] if name in names]
    return aliases or [name for name in _names_of(part) if name in names]


def _pop_rows(arrays: Arrays, rows: str, matrix: str, path: Path) -> Arrays:
    """Remove the other rows' arrays from `arrays`; return their matrix and labels."""
    names_of_rows = _names_of_rows(rows, matrix)
    held = {form: arrays.pop(form) for form in names_of_rows if form in arrays}
    words = list(dict.fromkeys(names_of_rows[form][0] for form in held))
    if len(words) > 1:
        raise InputError(
            f"holds rows of {' and of '.join(words)}, and each could be the {rows} "
            "rows",
            where=str(path),
            remedy=f"Keep one of them, under the name {rows}.",
        )
    other_rows = {}
    for part in (matrix, "labels"):
        names = _candidates(part, [names_of_rows[form][1] for form in held])
        forms = [form for form in held if names_of_rows[form][1] in names]
        if len(forms) > 1:
            raise InputError(
                f"holds {' and '.join(forms)}, and each could be the {rows} {part}",
                where=str(path),
                remedy=f"Save one of them as {rows}_{part}, without the others.",
            )
        if forms:
            other_rows[part] = held[forms[0]]
    return other_rows


def _remedy_of_rows(other: str, matrix: str) -> str:
    """Advice on naming the arrays in a file with several parts of a data set."""
    main = "report" if other == "validation" else "train"
    purpose = "fit" if other == "validation" else "test"
    return (
        f"Save the rows to {main} on as {matrix} and labels, those to {purpose} on as "
        f"{other}_{matrix} and {other}_labels, and no others."
    )


def _read_pair(
    matrix: str,
    path: Path,
    labels: Path | None,
    optional: Sequence[str],
    columns: Sequence[str],
) -> Arrays:
    if labels is None:
        required = (matrix, "labels")
        return read_arrays(
            path, matrix, required=required, optional=optional, columns=columns
        )
    label_names = ("labels", *OTHER_NAMES["labels"])
    own_content, given_content = read_content(path), read_content(labels)
    label_arrays = _arrays_in(given_content, labels, matrix, required=("labels",))
    arrays = _arrays_in(
        own_content,
        path,
        matrix,
        required=(matrix,),
        optional=(*optional, *label_names),
        columns=columns,
        given_labels=label_arrays["labels"],
    )
    for name in label_names:
        if name in arrays:
            raise InputError(
                f"holds {name}, but {labels} also gives labels",
                where=str(path),
                remedy=f"Omit --labels, or save only the {matrix} in this file.",
            )
    if all(file.suffix.lower() in TABLE_ENDINGS for file in (path, labels)):
        check_same_order(own_content, given_content, columns, f"{path}, {labels}")
    return arrays | label_arrays


def read_arrays(
    path: Path,
    matrix: str,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Arrays:
    """Read the arrays in the file `path`, by name.

    The module `tables` selects the columns of a table. If a file holds a single unnamed
    array, it is taken as the required array if only one is required, and otherwise as
    the matrix.
    """
    return _arrays_in(
        read_content(path),
        path,
        matrix,
        required=required,
        optional=optional,
        columns=columns,
    )


def _arrays_in(
    content: Any,
    path: Path,
    matrix: str,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
    columns: Sequence[str] = (),
    given_labels: NDArray[Any] | None = None,
) -> Arrays:
    """Return the arrays in `content`, read from the file `path`, keyed by name.

    If the labels are in a file of their own, they are passed as `given_labels`, because
    the module `tables` compares columns with them.
    """
    if path.suffix.lower() in TABLE_ENDINGS:
        if not len(content):
            raise InputError(
                "has no rows", where=str(path), remedy="Give a file with rows."
            )
        content = arrays_of(
            content,
            matrix,
            where=str(path),
            required=required,
            columns=columns,
            given_labels=given_labels,
        )
    elif columns and matrix in required:
        raise InputError(
            f"is not a table, so it has no columns {', '.join(columns)}",
            where=str(path),
            remedy="Omit --columns, or give a csv or parquet file.",
        )
    with user_data(path, "Save plain arrays."):
        arrays = _by_name(content, required[0] if len(required) == 1 else matrix)
    held = list(arrays)
    for name in required:
        if name not in arrays and (alias := _other_name(name, arrays, path)):
            arrays[name] = arrays.pop(alias)
    absent = [name for name in required if name not in arrays]
    if absent:
        raise _absent(absent, required, held, content, path, matrix, optional)
    return {name: arrays[name] for name in (*required, *optional) if name in arrays}


def _by_name(content: Any, unnamed: str) -> Arrays:
    """The arrays in `content`, keyed by name, or by `unnamed` if there is no name."""
    if isinstance(content, Tensor | np.ndarray):
        if unnamed == "labels":
            check_exact_labels(content)
        return {unnamed: as_numpy(content)}
    if not isinstance(content, dict):
        return {}
    asked = {unnamed, *LABEL_NAMES, *OTHER_NAMES.get(unnamed, ())}
    for name, value in content.items():
        if _is_of_labels(str(name)):
            check_exact_labels(value, str(name))
    return {
        str(name): as_numpy(value)
        for name, value in content.items()
        # Skip single numbers and texts that are saved beside the arrays, such as the
        # epoch.
        if isinstance(value, Tensor | np.ndarray) and (value.ndim or name in asked)
    }


def _other_name(name: str, arrays: Arrays, path: Path) -> str | None:
    """The name under which `arrays` hold the required array `name`, or None."""
    candidates = _candidates(name, arrays)
    if len(candidates) > 1:
        raise InputError(
            f"holds {' and '.join(candidates)}, and each could be the {name}",
            where=str(path),
            remedy=f"Save one of them as {name}.",
        )
    return candidates[0] if candidates else None


def _absent(
    absent: Sequence[str],
    required: Sequence[str],
    held: Sequence[str],
    content: Any,
    path: Path,
    matrix: str,
    optional: Sequence[str],
) -> InputError:
    """The error for the file `path`, which has arrays `held` but lacks `absent`."""
    entries = {}
    if isinstance(content, dict):
        entries = {str(name): value for name, value in content.items()}
    parts = [
        name if name in held else f"{name}, a {type(entries[name]).__name__}"
        for name in (entries or held)
    ]
    holds = ", ".join(parts[:MOST_NAMED]) or "no array"
    if len(parts) > MOST_NAMED:
        holds += f" and {len(parts) - MOST_NAMED} more"
    if not held and not isinstance(content, dict):
        holds = f"one {type(content).__name__}"
    names = "these names" if len(required) > 1 else "this name"
    remedy = f"Save {' and '.join(required)} under {names}."
    if any(name in entries and name not in held for name in absent):
        remedy = "Save each as one array; torch.cat joins a list of batches."
    probs = [name for name in held if name in ("probs", *OTHER_NAMES["probs"])]
    if "logits" in absent and probs:
        remedy = "If these are probabilities, pass --probs."
    elif "labels" in absent and len(required) > 1:
        remedy += " Or give the labels in a file of their own: --labels."
    other = "test" if matrix == "embeddings" else "validation"
    rows = {**_names_of_rows("validation", matrix), **_names_of_rows("test", matrix)}
    if any(name in rows and name in optional for name in held):
        remedy = _remedy_of_rows(other, matrix)
    return InputError(
        f"has no {' and no '.join(absent)} (it holds: {holds})",
        where=str(path),
        remedy=remedy,
    )


def as_numpy(value: Any) -> NDArray[Any]:
    """Convert `value`, a tensor or array-like, to a numpy array."""
    noun = type(value).__name__
    _refuse_outputs(value)
    if isinstance(value, Tensor):
        value = _dense(value)
    elif isinstance(value, list | tuple):
        # Convert tensors first, because NumPy refuses those that require gradients or
        # have a narrow dtype.
        value = [
            _dense(part).numpy() if isinstance(part, Tensor) else part for part in value
        ]
    check_unmasked_entries(value)
    try:
        array = np.asarray(value)
    except ValueError as error:
        if is_list_of_tables(value):
            shapes = list(dict.fromkeys(str(part.shape) for part in value))
            raise ArgumentError(
                f"a {noun} has {len(value)} tables of {len(value[0])} rows, of shapes "
                f"such as {', '.join(shapes[:MOST_NAMED])}, as those of a classifier "
                "with several outputs",
                "Give one table with the labels of its output, such as "
                "logits[k] and labels[:, k].",
            ) from error
        shapes = list(dict.fromkeys(str(_shape(part) or "?") for part in value))
        shown = ", ".join(shapes[:MOST_NAMED])
        raise ArgumentError(
            f"a {noun} has parts of different shapes, such as {shown}",
            "Join batches with torch.cat(batches) for tensors, np.concatenate(batches) "
            "for arrays; rows must have the same length.",
        ) from error
    if array.ndim == 0:
        remedy = "Give a tensor, an array or a list of rows."
        if isinstance(value, Mapping) and value:
            held = ", ".join(repr(key) for key in list(value)[:MOST_NAMED])
            remedy = f"Give one of its entries ({held}), such as output['logits']."
        raise ArgumentError(
            f"arrays must have one row per sample, got one {type(value).__name__}",
            remedy,
        )
    if array.dtype.kind == "O" and _is_of_pandas(value) and _holds_numbers(value):
        # NumPy would convert nullable and Arrow columns to objects, so let pandas
        # convert them.
        return np.asarray(value.to_numpy(np.float64, na_value=np.nan))
    return array


def _refuse_outputs(value: Any) -> None:
    """Refuse a tuple whose parts have different shapes, so not all of them are logits.

    It may hold scores and labels, which are separate arguments, or the logits and the
    hidden states that a network returned.
    """
    if not isinstance(value, tuple) or len(value) < 2:
        return
    shapes = [_shape(part) for part in value]
    scores, others = shapes[0], shapes[1:]
    if scores is not None and (
        len(scores) < 2 or all(shape == scores for shape in others)
    ):
        return
    labels = others[0]
    if len(value) == 2 and scores and labels and _are_of_rows(scores, labels):
        raise ArgumentError(
            f"one array is expected, got a tuple of two, of shapes {scores} and "
            f"{labels}",
            "Pass scores and labels as two arguments, as *pair does.",
        )
    if scores and all(shape and shape[1:] == scores[1:] for shape in others):
        return  # These are batches of different sizes.
    parts = [
        f"a {type(part).__name__}" if shape is None else str(shape)
        for part, shape in zip(value, shapes, strict=True)
    ]
    shown = ", ".join(parts[:MOST_NAMED])
    raise ArgumentError(
        f"one array is expected, got a {type(value).__name__} of {shown}",
        "Give the part with the logits, such as predictions[0].",
    )


def _are_of_rows(scores: tuple[int, ...], labels: tuple[int, ...]) -> bool:
    """Whether labels of the shape `labels` can belong to scores of shape `scores`."""
    return len(labels) < 3 and labels[0] == scores[0]


def _shape(part: Any) -> tuple[int, ...] | None:
    """The shape of `part` as an array; None if NumPy cannot convert it."""
    if hasattr(part, "shape"):
        return tuple(part.shape)
    try:
        return tuple(np.shape(part))
    except (ValueError, TypeError, RuntimeError):
        return None


def _holds_numbers(values: Any) -> bool:
    """Whether all columns of the data frame or series `values` are numeric."""
    dtypes = values.dtypes if values.ndim == 2 else [values.dtype]
    return all(getattr(dtype, "kind", "O") in "iuf" for dtype in dtypes)


def check_unmasked_entries(value: Any) -> None:
    """Refuse an array with masked entries; NumPy would treat them as numbers."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        rows = "~array.mask" if value.ndim == 1 else "~array.mask.any(axis=1)"
        raise ArgumentError(
            f"an array of shape {value.shape} has masked entries, and masks are not "
            "supported",
            f"Remove their rows, here and in the other array: array[{rows}].data.",
        )


def check_dense(tensor: Tensor) -> None:
    """Refuse a sparse, quantised or meta tensor."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        raise ArgumentError(
            f"a tensor of shape {tuple(tensor.shape)} is sparse, quantised or without "
            "data",
            "Give plain numbers, such as tensor.to_dense() or tensor.dequantize().",
        )


def _dense(tensor: Tensor) -> Tensor:
    """Return `tensor` on the CPU, in a dtype that NumPy supports."""
    check_dense(tensor)
    tensor = tensor.detach().cpu()
    # NumPy has neither bfloat16 nor 8-bit floating-point types.
    narrow = tensor.is_floating_point() and tensor.dtype.itemsize < 4
    narrow = narrow and tensor.dtype != torch.float16
    return tensor.float() if narrow else tensor


def check_given(
    values: Any, labels: Any, name: str, label_name: str = "labels"
) -> None:
    """Check the names and types that are lost when scores and labels become arrays."""
    check_not_sparse(values, name)
    check_not_sparse(labels, label_name)
    check_exact_labels(labels)
    check_frame(values, labels, name)
    check_one_hot_columns(values, labels, name)


def check_not_sparse(values: Any, name: str) -> None:
    """Refuse a sparse array or matrix of SciPy; SciPy is not imported."""
    if type(values).__module__.startswith("scipy.sparse"):
        raise ArgumentError(
            f"{name} must be a dense array, got a sparse {type(values).__name__} of "
            f"shape {values.shape}",
            "Convert it, as .toarray() does.",
        )


def check_frame(values: Any, labels: Any, name: str, *, classes: bool = True) -> None:
    """Refuse a data frame with wrong or unordered columns, or with reordered labels.

    Column names must be unique. No column may equal the labels, have a name for labels
    but no fractions, or hold something other than scores (`columns.foreign_columns`).
    If several columns are numbered, all columns must be numbered, in ascending order.

    Args:
        values: Scores, possibly a data frame.
        labels: Labels, possibly a data frame or a series.
        name: Name of the scores in messages.
        classes: Whether the columns belong to classes, not to dimensions of embeddings.
    """
    columns = column_names(values)
    if columns is None:
        return
    for place, column in enumerate(columns):
        if column in columns[:place]:
            raise ArgumentError(
                f"{name} has two columns {column!r}", "Give each column its own name."
            )
    foreign = _foreign_columns(values, columns, labels, classes=classes)
    if foreign:
        remedy = "Drop these columns."
        if set(foreign.values()) != {EQUALS_LABELS}:
            remedy += (
                " If they are scores, give a matrix without names, such as "
                "frame.to_numpy()."
            )
        raise ArgumentError(
            f"{name} has columns that are not scores: {explained(foreign)}", remedy
        )
    beside = _beside_numbered(columns)
    if beside:
        raise ArgumentError(
            f"{name} has numbered columns and others: {listed(beside)}",
            "If all are classes, give a matrix without names, with the classes in "
            "their order, such as frame.to_numpy() or frame[[...]].to_numpy(). If not, "
            "drop the others.",
        )
    _check_numerical_order(columns, name)
    both = _is_of_pandas(values) and _is_of_pandas(labels)
    if both and _is_reordered(values.index, labels.index):
        raise ArgumentError(
            f"{name} and the labels have the same index in different orders",
            "Reorder the labels: labels.loc[logits.index].",
        )


def _foreign_columns(
    frame: Any, columns: Sequence[str], labels: Any, *, classes: bool
) -> dict[str, str]:
    """The columns of a data frame that are not scores, each with the reason."""
    types = column_types(frame)
    foreign = dict.fromkeys(text_columns(columns, types), "")
    everything = as_numpy(frame)
    _refuse_nested(everything, columns)
    if len(foreign) == len(columns):
        return {}  # A later check reports that the whole matrix is not numeric.
    places = [place for place, column in enumerate(columns) if column not in foreign]
    matrix = everything[:, places]
    if matrix.dtype.kind == "O":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            return foreign
    if matrix.dtype.kind == "c":
        return foreign  # A later check refuses complex numbers.
    rest = [columns[place] for place in places]
    foreign |= foreign_columns(
        rest,
        matrix,
        classes=classes,
        numbered=numbered_columns(rest),
        labels=plain_labels(as_numpy(labels)),
    )
    for column, values in zip(rest, matrix.T, strict=True):
        if _is_label_name(column, columns) and not has_fractions(values):
            foreign.setdefault(column, "")
    return {column: foreign[column] for column in columns if column in foreign}


def _is_label_name(column: str, columns: Sequence[str]) -> bool:
    """Whether a column's name is a name for labels.

    If all names are single letters, a name for labels, such as "y", may be a class.
    """
    letters = len(columns) > 1 and all(len(name) == 1 for name in columns)
    return not letters and column.lower() in LABEL_NAMES


def _refuse_nested(frame: NDArray[Any], columns: Sequence[str]) -> None:
    """Refuse a data frame with a column of lists."""
    if frame.dtype.kind != "O":
        return
    for place, column in enumerate(columns):
        if is_nested(frame[:, place]):
            raise ArgumentError(
                f"column {column!r} holds a list in each row",
                f"Stack the lists: np.stack(frame[{column!r}]).",
            )


def _beside_numbered(columns: Sequence[str]) -> list[str]:
    """The columns outside the numbered group; empty if no columns are numbered.

    A single column whose name ends in a number, such as `covid19`, is not numbered.
    """
    groups: dict[str, list[str]] = {}
    for column in columns:
        if match := NUMBERED.fullmatch(column):
            groups.setdefault(match["prefix"], []).append(column)
    several = [group for group in groups.values() if len(group) > 1]
    if not several:
        return []
    numbered = {column for group in groups.values() for column in group}
    counted = [
        group for group in several if counts([numbered_key(name)[1] for name in group])
    ]
    # Names such as A1, A2, B1 and B2 may all be classes.
    class_columns = set(counted[0]) if len(counted) == 1 == len(several) else numbered
    return [column for column in columns if column not in class_columns]


def _check_numerical_order(columns: Sequence[str], name: str) -> None:
    """Refuse columns that are numbered, but not in ascending order."""
    keys = [numbered_key(column) for column in columns]
    if len({texts for texts, _ in keys}) == 1 and keys != sorted(keys):
        shown, _ = around_difference(columns, sorted(columns, key=numbered_key))
        raise ArgumentError(
            f"{name} has its columns in the order {shown}, not in numerical order",
            "Sort them, or give a matrix without names.",
        )


def check_one_hot_columns(values: Any, labels: Any, name: str) -> None:
    """Refuse one-hot labels whose columns are ordered differently from the scores'.

    Args:
        values: Scores, possibly a data frame.
        labels: Labels, possibly a data frame of one-hot rows.
        name: Name of the scores in messages.
    """
    classes = column_names(labels)
    if classes is None or len(classes) < 2:
        return
    _check_numerical_order(classes, "the frame of one-hot labels")
    columns = column_names(values)
    if columns is not None and are_reordered(columns, classes):
        shown, shown_classes = around_reordered(columns, classes)
        raise ArgumentError(
            f"{name} has the columns {shown}, but the one-hot labels have "
            f"{shown_classes}",
            "Give both the same order of classes, such as labels[logits.columns].",
        )


def are_reordered(names: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two lists hold the same names in different orders.

    A prefix that all names in a list share is ignored, so that `logit_cat` matches
    `cat`.
    """
    first = _without_prefix(names)
    second = _without_prefix(others)
    return first != second and sorted(first) == sorted(second)


def around_reordered(names: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """A few names of each list around their first difference; see `are_reordered`."""
    pairs = zip(_without_prefix(names), _without_prefix(others), strict=True)
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return around(names, equal), around(others, equal)


def _without_prefix(names: Sequence[str]) -> list[str]:
    """The `names` without the prefix that all of them share."""
    letters = zip(*names, strict=False)
    shared = sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, letters))
    return [name[shared:] for name in names]


def check_same_columns(values: Any, others: Any, name: str) -> None:
    """Refuse two data frames whose columns have different names or orders.

    Args:
        values: The first data frame, or an object without column names.
        others: The second data frame, or an object without column names.
        name: Name of the second data frame, for messages.
    """
    columns = column_names(values)
    other_columns = column_names(others)
    if columns is None or other_columns is None or columns == other_columns:
        return
    shown, shown_others = around_difference(columns, other_columns)
    raise ArgumentError(
        f"{name} have the columns {shown_others}, but the others have {shown}",
        "Give the same columns in the same order, or matrices without names.",
    )


def column_names(values: Any) -> list[str] | None:
    """Names of a data frame's columns; None for other values.

    Data frames are those of pandas and polars, Arrow tables and record batches.
    """
    names = getattr(values, "column_names", None)
    is_frame = type(values).__name__ == "DataFrame"
    if names is None and is_frame:
        names = getattr(values, "columns", None)
    if names is None or callable(names):
        return None
    return plain_names([str(column).strip() for column in names])


def _is_of_pandas(values: Any) -> bool:
    """Whether `values` is a pandas data frame or series; pandas is not imported."""
    is_named = type(values).__name__ in ("DataFrame", "Series")
    return is_named and type(values).__module__.partition(".")[0] == "pandas"


def _is_reordered(index: Any, other: Any) -> bool:
    """Whether two indexes hold the same keys in different orders."""
    if index.equals(other):
        return False
    return bool(index.sort_values().equals(other.sort_values()))


def check_other_rows(
    held_out: Tensor, others: Tensor, *, names: tuple[str, str], remedy: str
) -> None:
    """Refuse two tables that share most rows of the smaller one, in any order.

    Numbers that agree in float32 count as equal. If only one table is rounded, the
    other table is rounded in the same way, and the two are compared again. Rows that
    occur several times in a table are ignored: a decision tree, for instance, gives
    many samples the same scores.

    Args:
        held_out: Shape (n, dim).
        others: Shape (m, dim).
        names: Names of the two tables, for messages.
        remedy: The remedy that the error gives.
    """
    shared = shared_rows(held_out, others)
    fewer = min(len(held_out), len(others))
    if shared > SHARED * fewer:
        raise ArgumentError(
            f"{names[0]} ({len(held_out)} rows) and {names[1]} ({len(others)}) have "
            f"{shared} rows in common, which makes the result too optimistic",
            remedy,
        )
    if fewer < FEWEST_ROUNDED or held_out.shape[1] != others.shape[1]:
        return
    for rounded in rounded_pairs(held_out, others):
        shared = shared_rows(*rounded)
        if shared > SHARED_ROUNDED * fewer:
            raise ArgumentError(
                f"{names[0]} ({len(held_out)} rows) and {names[1]} ({len(others)}) "
                f"have {shared} rows in common, up to rounding, which makes the result "
                "too optimistic",
                remedy,
            )


def shared_rows(held_out: Tensor, others: Tensor) -> int:
    """The number of rows that two tables share; see `check_other_rows`."""
    held_out_keys = _single(row_keys(held_out))
    return int(torch.isin(held_out_keys, _single(row_keys(others))).sum())


def check_no_copies(table: Tensor, labels: Tensor, name: str) -> None:
    """Refuse a table that consists of several copies of a smaller one.

    Such a table arises, for instance, if every process of a distributed evaluation sees
    all samples. A table with few different samples is not refused.

    Args:
        table: Shape (n, classes).
        labels: Shape (n,).
        name: Name of the table in messages.
    """
    # Two rows are the same sample only if their labels are equal, too. So add a row's
    # label, times a random factor, to the row's key.
    factor = np.random.default_rng(1).integers(-(2**63), 2**63)
    keys = row_keys(table) + labels * int(factor)
    counts = keys.unique(return_counts=True)[1]
    if len(counts) < FEWEST_SAMPLES:
        return
    remedy = "Give each sample once; a distributed evaluation may repeat them."
    copies = math.gcd(*counts.tolist())
    if copies > 1:
        raise ArgumentError(
            f"{name} hold each of {len(counts)} samples {copies} times or a multiple, "
            "which makes intervals too narrow",
            remedy,
        )
    # Not all samples occur equally often if one of the processes has left out its last
    # batch. Rounding can also make scores equal, but then the numbers of copies vary.
    copies = int(counts.mode().values)
    share = (counts == copies).double().mean().item()
    if copies > 1 and share >= COPIED:
        raise ArgumentError(
            f"{name} hold {100 * share:.0f} % of {len(counts)} samples {copies} times, "
            "which makes intervals too narrow",
            remedy,
        )


def _single(keys: Tensor) -> Tensor:
    """The `keys` that occur only once."""
    different, counts = keys.unique(return_counts=True)
    single: Tensor = different[counts == 1]
    return single


def row_keys(table: Tensor) -> Tensor:
    """Compute an int64 key for each row of a table (n, dim).

    Equal rows have equal keys. Two different rows have equal keys only by chance, which
    is rare. A row's key is the sum, modulo 2^64, of the bits of its entries (as
    float32) times random factors.
    """
    factors = torch.from_numpy(
        np.random.default_rng(0).integers(-(2**63), 2**63, table.shape[1])
    )
    pieces = [
        # Add 0, which turns -0 into 0, because the two have different bits.
        ((piece.float() + 0.0).view(torch.int32) * factors).sum(dim=1)
        for piece in table.split(max(1, CHUNK // table.shape[1]))
    ]
    return torch.cat(pieces)


def split_rows(
    rows: Rows,
    fraction: float,
    generator: np.random.Generator,
    *,
    every_class: bool = False,
) -> tuple[Rows, Rows]:
    """Split off a random fraction of the rows, stratified by class.

    Args:
        rows: Values and labels.
        fraction: Fraction of the rows to split off.
        generator: Source of randomness.
        every_class: Whether at least one row of each class must remain. If so, the only
            row of a class is never split off, and the fraction must be at most a half.

    Returns:
        The remaining rows, and the rows split off.
    """
    labels = rows[1].numpy()
    drawn = np.ones(len(labels), dtype=np.bool_)
    if every_class:
        drawn = np.bincount(labels)[labels] > 1
    held_out = np.zeros(len(labels), dtype=np.bool_)
    if drawn.any():
        held_out[drawn] = random_holdout(labels[drawn], fraction, generator)
    chosen = torch.from_numpy(held_out)
    values, classes = rows
    rest = (values[~chosen], classes[~chosen])
    return rest, (values[chosen], classes[chosen])


def checked_logits(
    logits: Any,
    labels: Any,
    kind: str = "logits",
    *,
    name: str = "",
    remedy: str = SAY_PROBS,
    dequantised: str = SAY_DEQUANTISED,
    log_sigmoid: str = SAY_LOG_SIGMOID,
    tokens: bool = False,
) -> Rows:
    """Check a user's logits and labels, and return them as tensors.

    Args:
        logits: Logits or probabilities of shape (n, classes), (n,) or (n, 1).
        labels: Whole numbers of shape (n,), or one-hot rows of shape (n, classes).
        kind: "logits", or "probs" for probabilities.
        name: Prefix for the names of the arguments in messages.
        remedy: The remedy to suggest if the logits look like probabilities.
        dequantised: The remedy to suggest if the scores look like a quantised softmax.
        log_sigmoid: The remedy to suggest if the logits look like log-odds.
        tokens: Whether the rows are tokens, taken from scores of shape (n, classes, T).

    Returns:
        Logits of shape (n, classes), and int64 labels of shape (n,). Logits given as
        floating-point numbers of at most 32 bits become float32; all other scores
        become float64. The logits may share memory with the input.

    Raises:
        ValueError: If an array is malformed, if the scores do not look like `kind`, if
            a column was made from the labels, if the labels evidently number the
            classes in a different order from the columns, or if the labels are shifted
            by one row.
    """
    if kind not in KINDS:
        raise ArgumentError(
            f"kind must be 'logits' or 'probs', got {kind!r}", "Give one of the two."
        )
    values, classes = as_numpy(logits), as_numpy(labels)
    _refuse_swapped(values, classes, f"{name}{kind}")
    _refuse_flattened(values, classes, f"{name}{kind}")
    values = _score_table(values, classes, f"{name}{kind}")
    _refuse_strangers(values, classes, f"{name}{kind}")
    _refuse_decisions(values, classes, f"{name}{kind}")
    _refuse_quantised(values, f"{name}{kind}", dequantised)
    if kind == "probs":
        single = values.shape[1] == 1
        values = _prob_table(values, f"{name}probs")
        table = torch.from_numpy(values)
    else:
        table = torch.from_numpy(values)
        _refuse_altered(table, f"{name}logits", remedy, log_sigmoid)
        if table.shape[1] == 1:
            # The single logit belongs to class 1 of two; class 0 gets the logit 0.
            table = torch.cat([torch.zeros_like(table), table], dim=1)
    check_not_one_column(values, classes, kind, f"{name}{kind}")
    check_logits(table, name=f"{name}{kind}", masked=True)
    _refuse_correctness(classes, table.shape[1], f"{name}labels")
    numbers = class_numbers(classes, table.shape, f"{name}labels")
    _refuse_void_labels(numbers, table, classes, f"{name}labels")
    check_labels(numbers, table, name=f"{name}labels", masked=True)
    _check_order(numbers, table, kind, name, tokens=tokens)
    if kind == "probs":
        least = _least_probs(logits, single=single)
        _refuse_label_zeros(values, numbers, least, f"{name}probs")
        # Change the table in place, because a language model's table is large.
        np.log(np.clip(values, least, None, out=values), out=values)
    return table, numbers


def _refuse_altered(table: Tensor, name: str, remedy: str, log_sigmoid: str) -> None:
    """Refuse numbers that were computed from logits, such as probabilities.

    Args:
        table: Logits, shape (n, classes).
        name: Name of the logits in messages.
        remedy: The remedy for probabilities.
        log_sigmoid: The remedy for log-odds.
    """
    check_not_standardised(table.numpy(), name)
    check_not_refilled(table.numpy(), name)
    if end_at_one(table):
        raise ArgumentError(
            f"{name} are cumulative probabilities: every row "
            f"{'falls from' if bool(table[0, 0] > table[0, -1]) else 'rises to'} 1",
            f"Give one logit per class: np.log({probs_of_classes(table)}).",
        )
    try:
        check_not_probs(table, name=name, remedy=remedy)
    except ArgumentError as error:
        if not _may_be_cumulative(table):
            raise
        raise ArgumentError(
            error.fault,
            "If they are those of an ordinal model, give one logit per class: "
            f"np.log({probs_of_classes(table)}). Otherwise: {error.remedy}",
        ) from error
    check_natural(table, name)
    check_not_log_odds(table, name, log_sigmoid)


def _check_order(
    labels: Tensor, table: Tensor, kind: str, prefix: str, *, tokens: bool
) -> None:
    """Refuse labels whose classes or rows are evidently in a different order.

    Cumulative logits are refused first, because their rows look sorted.
    """
    if kind == "logits":
        check_not_ordinal(labels, table, f"{prefix}logits")
    check_class_order(labels, table, f"{prefix}labels", any_order=True)
    check_not_late(labels, table, f"{prefix}labels", tokens=tokens)


def _refuse_correctness(labels: NDArray[Any], classes: int, name: str) -> None:
    """Refuse true and false as labels of more than two classes."""
    if labels.dtype.kind == "b" and labels.ndim == 1 and classes > 2:
        raise ArgumentError(
            f"{name} are true or false, but there are {classes} classes",
            "Give the class of each row, not whether its prediction was right.",
        )


def refuse_label_column(values: NDArray[Any], labels: NDArray[Any], name: str) -> None:
    """Refuse scores (n, classes) with a column that was made from the labels."""
    plain = plain_labels(labels)
    if plain is None or values.ndim != 2 or values.shape[1] < 2:
        return
    table = torch.from_numpy(np.require(values, requirements=["C", "W"]))
    check_no_label_column(table, torch.from_numpy(plain), name)
    check_no_leak(values, plain, name, classes=True)


def check_exact_labels(labels: Any, name: str = "labels") -> None:
    """Refuse labels in a floating-point type that may have rounded them.

    Half precision has no odd numbers above 2,048, and bfloat16 none above 256.
    """
    dtype = getattr(labels, "dtype", None)
    if isinstance(labels, Tensor) and labels.is_floating_point():
        # The next number after 1 is 1 + eps.
        largest_exact = round(2 / torch.finfo(labels.dtype).eps)
    elif getattr(dtype, "kind", "") == "f" and isinstance(dtype, np.dtype):
        largest_exact = round(2 / float(np.finfo(dtype).eps))
    else:
        return
    values = as_numpy(labels)
    largest = float(values.max(initial=0, where=np.isfinite(values)))
    if values.dtype.kind == "f" and largest_exact <= largest <= LARGEST_LABEL:
        raise ArgumentError(
            f"{name} are {dtype}, which rounds whole numbers above {largest_exact}, "
            f"got {int(largest)}",
            "Convert the original labels to int64.",
        )


def class_numbers(
    labels: NDArray[Any], scores: Sequence[int], name: str = "labels"
) -> Tensor:
    """Convert a user's labels to int64 class indices of shape (n,).

    Args:
        labels: Whole numbers of shape (n,) or (n, 1), or one-hot rows of shape
            (n, classes). An array of any other shape keeps its shape.
        scores: Shape of the scores, (n, classes).
        name: Name of the argument in messages.

    Raises:
        ValueError: If the labels are neither whole numbers nor one-hot.
    """
    check_label_dimensions(labels.shape, scores, name)
    if labels.ndim != 2 or len(labels) != scores[0]:
        return whole_numbers(labels, name)
    if labels.shape[1] == 1:
        return whole_numbers(labels[:, 0], name)
    odd = ~np.isin(labels, (0, 1))
    if odd.any():
        raise ArgumentError(
            f"{name} must have shape ({scores[0]},), one per row, or be one-hot, "
            f"got {labels.dtype} {labels.shape} with {label_text(labels[odd][0])} in "
            f"row {odd.any(axis=1).argmax()}",
            "Give one class for each row, such as labels.argmax(axis=1).",
        )
    if labels.shape != tuple(scores):
        raise ArgumentError(
            f"{name} must be one-hot in the shape {tuple(scores)}, got {labels.shape}",
            "Give one column for each class.",
        )
    ones = labels.sum(axis=1)
    wrong = np.flatnonzero(ones != 1)
    if len(wrong):
        raise ArgumentError(
            f"{name} must be one-hot, got {int(ones[wrong[0]])} ones in row {wrong[0]}",
            "Give exactly one class for each row; or, for a mask of two classes, one "
            "row per pixel: logits.reshape(-1, 1) and labels.reshape(-1). "
            f"{SEVERAL_CLASSES}",
        )
    return torch.from_numpy(labels.argmax(axis=1))


def check_label_dimensions(
    labels: Sequence[int], scores: Sequence[int], name: str
) -> None:
    """Refuse labels with dimensions of length 1 that only have to be dropped.

    Args:
        labels: Shape of the labels.
        scores: Shape of the scores, (n, classes).
        name: Name of the labels in messages.
    """
    squeezed = tuple(length for length in labels if length != 1)
    if len(labels) > 2 and squeezed in (tuple(scores), tuple(scores[:1])):
        raise ArgumentError(
            f"{name} must have shape ({scores[0]},), one per row, or be one-hot, got "
            f"{tuple(labels)}",
            "Drop the dimensions of length 1, as .squeeze() does.",
        )


def whole_numbers(values: NDArray[Any], name: str) -> Tensor:
    """Convert `values` to int64; raise ValueError if one is not a whole number."""
    if values.dtype.kind not in "fiub":
        example = values.flat[0] if values.size else "nothing"
        if isinstance(example, str):
            example = str(example)  # The repr of NumPy's text type shows the type.
        kind = " (object)" if values.dtype.kind == "O" else ""
        remedy = "Number the classes from 0, in the order of the scores' columns."
        if hold_integers(values):
            remedy = "Convert them: labels.astype(int)."
        raise ArgumentError(
            f"{name} must be whole numbers, got {example!r}{kind}", remedy
        )
    wrong = ~np.isfinite(values) | (values != np.floor(values))
    wrong |= np.abs(values.astype(np.float64)) > LARGEST_LABEL
    if wrong.any():
        row = np.flatnonzero(wrong.reshape(len(values), -1).any(axis=1))[0]
        raise ArgumentError(
            f"{name} must be whole numbers, got {label_text(values[wrong].flat[0])} in "
            f"row {row}",
            "Number the classes from 0, and remove rows without a class.",
        )
    return torch.from_numpy(values.astype(np.int64))


def hold_integers(values: NDArray[Any]) -> bool:
    """Whether `values`, an array of objects or texts, holds only whole numbers."""
    if values.dtype.kind not in "OSU":
        return False
    try:
        return bool((values.astype(np.int64) == values.astype(np.float64)).all())
    except (TypeError, ValueError, OverflowError):
        return False


def check_some_class(labels: NDArray[Any], name: str) -> None:
    """Refuse labels that are all the same negative number, as those of a test split."""
    if labels.dtype.kind not in "if" or not len(labels):
        return
    low = labels.min()
    if low < 0 and (labels == low).all():
        raise ArgumentError(
            f"{name} are all {label_text(low)}, so no row has a class",
            "Give rows with classes. The test split of a public benchmark may have "
            "none, so use its validation split.",
        )


def _refuse_void_labels(
    labels: Tensor, table: Tensor, user_labels: NDArray[Any], name: str
) -> None:
    """Refuse labels outside [0, classes), with a remedy, if the likely cause is known.

    The cause may be a label that marks rows without a class, -1 for the first of two
    classes, 255 for the second, numbers that did not fit their dtype, or classes that
    are numbered from -1.

    Args:
        labels: Shape (n,), int64.
        table: The scores, shape (n, classes).
        user_labels: The user's labels.
        name: Name of the argument in messages.
    """
    classes = table.shape[1]
    outside = labels[(labels < 0) | (labels >= classes)].unique().tolist()
    check_some_class(labels.numpy(), name)
    if user_labels.dtype.kind in "iu" and user_labels.size:
        bounds = (int(user_labels.min()), int(user_labels.max()))
        check_not_wrapped(user_labels, bounds, classes, name)
    if outside == [-1] and classes == 2 and labels.unique().tolist() == [-1, 1]:
        raise ArgumentError(
            f"{name} must be in [0, 2), got -1 and 1",
            "Replace -1 by 0: (labels + 1) // 2.",
        )
    if classes == 2 and labels.unique().tolist() == [0, 255]:
        raise ArgumentError(
            f"{name} must be in [0, 2), got 0 and 255, as the pixels of a mask",
            "Replace 255 by 1: labels // 255.",
        )
    if outside == [classes] and bool((labels == 0).any()):
        if are_ordinal(labels, table):
            raise ArgumentError(
                f"{name} must be in [0, {classes}), got {classes}: the scores are "
                "those of an ordinal model, without a column for the highest grade",
                logits_of_classes(table),
            )
        raise ArgumentError(
            f"{name} must be in [0, {classes}), got {classes}",
            f"Number the classes from 0 to {classes - 1}; each is a column of the "
            f"scores. If {classes} marks rows without a class, such as a background, "
            f"pass ignore_index={classes}.",
        )
    if len(outside) == 1 and not 0 <= outside[0] <= classes:
        remedy = f"Leave rows without a class out, as ignore_index={outside[0]} does."
        if (outside[0], int(labels.max())) == (-1, classes - 2):
            remedy += f" If the classes run from -1 to {classes - 2}, add 1."
        raise ArgumentError(
            f"{name} must be in [0, {classes}), got {outside[0]}", remedy
        )


def _score_table(values: NDArray[Any], labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert logits or probabilities to a table of shape (n, classes) or (n, 1).

    NaN and inf are refused; entries may be -inf. The table is float32 or float64, and
    is copied only if necessary.
    """
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2) or not values.size:
        remedy = "Give one row per sample and one column per class."
        if values.dtype.kind not in "fiu":
            remedy = "Give rows of real numbers, such as array.astype(float)."
        if is_nested(values):
            remedy = NESTED_REMEDY
        raise ArgumentError(
            f"{name} must be numbers of shape (n, classes), "
            f"got {values.dtype} {values.shape}",
            remedy,
        )
    if values.ndim == 1 and values.dtype.kind in "iu":
        _refuse_decisions(values[:, None], labels, name, fewest=1)
    # A float16 table becomes float32, which represents every float16.
    narrow = values.dtype in (np.float16, np.float32)
    dtype = np.float32 if narrow else np.float64
    # torch requires contiguous rows, and warns about read-only arrays.
    table = np.require(values.reshape(len(values), -1), dtype, ["C", "W"])
    # Check only each row's maximum: it is NaN or inf if one of the numbers is.
    largest = table.max(axis=1)
    wrong = np.flatnonzero(np.isnan(largest) | np.isposinf(largest))
    if len(wrong):
        row = wrong[0]
        column = np.flatnonzero(np.isnan(table[row]) | np.isposinf(table[row]))[0]
        raise ArgumentError(
            f"{name} must be finite, got {table[row, column]} in row {row}, "
            f"class {column}",
            "Remove such rows." if np.isnan(table[row, column]) else OVERFLOWED,
        )
    if values.dtype == np.float16:
        # Other types are checked later, but this one has been widened by then.
        half = torch.from_numpy(table).half()
        check_below_limit(half.amax(dim=1), half, name)
    return table


def _refuse_swapped(values: NDArray[Any], labels: NDArray[Any], name: str) -> None:
    """Refuse scores and labels that were given in the wrong order."""
    one_each = values.ndim == 1 or values.shape[1:] == (1,)
    is_table = labels.ndim == 2 and labels.shape[1] > 1 and labels.dtype.kind == "f"
    # One-hot labels have the shape of the scores.
    one_hot = (
        is_table
        and values.shape == labels.shape
        and len(values) >= FEW_ROWS
        and values.dtype.kind in "fiub"
        and is_one_hot(values[:1])
        and is_one_hot(values)
        and not is_one_hot(labels)
    )
    if one_hot or (one_each and is_table):
        raise ArgumentError(
            f"{name} and labels look swapped, got shapes {values.shape} and "
            f"{labels.shape}",
            "Give the scores first.",
        )


def _refuse_flattened(values: NDArray[Any], labels: NDArray[Any], name: str) -> None:
    """Refuse a table of scores that has been flattened to one dimension."""
    if values.ndim != 1 or labels.ndim != 1 or len(labels) < 2:
        return
    columns, rest = divmod(len(values), len(labels))
    if columns > 1 and not rest:
        raise ArgumentError(
            f"{name} look flattened, got {len(values)} numbers for {len(labels)} "
            "labels",
            f"Give them in the shape ({len(labels)}, {columns}).",
        )


def _refuse_strangers(values: NDArray[Any], labels: NDArray[Any], name: str) -> None:
    """Refuse tables with rows that are not samples, or columns that are not classes."""
    check_filled(values, labels, name)
    refuse_label_column(values, labels, name)
    _refuse_summary(values, name)


def _refuse_summary(values: NDArray[Any], name: str) -> None:
    """Refuse scores whose first or last column summarises the others in every row."""
    found = summary_at_end(values)
    if found:
        column, reason = found
        raise ArgumentError(
            f"{name} have a column that is not a score: column {column} {reason}",
            f"Leave it out, as {'[:, 1:]' if column == 0 else f'[:, :{column}]'} does.",
        )


def _refuse_decisions(
    values: NDArray[Any], labels: NDArray[Any], name: str, *, fewest: int = FEW_ROWS
) -> None:
    """Refuse scores that are predicted classes, as numbers or as one-hot rows.

    Args:
        values: Scores, shape (n, classes) or (n, 1).
        labels: The user's labels.
        name: Name of the scores in messages.
        fewest: Minimum number of whole numbers needed for a judgement.
    """
    if values.shape[1] == 1:
        whole = bool((values == np.floor(values)).all())
        if whole and len(values) >= fewest and _may_be_classes(values, labels):
            raise predicted_classes(name)
    # Look at the first row first: if it has numbers other than 0 and 1, the rest of a
    # large table need not be read.
    elif np.isin(values[0], (0, 1)).all() and np.isin(values, (0, 1)).all():
        raise predicted_classes(name)


def _may_be_classes(values: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Whether whole numbers may be predicted classes instead of quantised logits.

    Classes are at least -1. They have at most `MOST_CLASSES` distinct values, unless
    the labels show that there are more than two classes.
    """
    if values.size and values.min() < -1:
        return False
    several = labels.dtype.kind in "iuf" and labels.size and labels.max() > 1
    return bool(several) or len(np.unique(values)) <= MOST_CLASSES


def _refuse_quantised(values: NDArray[Any], name: str, remedy: str) -> None:
    """Refuse the output of an int8 network's softmax, given as scores.

    Such a network stores a probability p as the whole number nearest to 256 p - 128.
    `values` has the shape (n, classes, ...).
    """
    classes = values.shape[1]
    # Look at the first row first: in almost every other table, this row already shows
    # that the table is not such an output.
    for rows in (values[:1], values):
        numbers = rows.astype(np.float64)
        if not (numbers == np.floor(numbers)).all() or numbers.max() > 127:
            return
        # Rounding changes a row's sum by at most half a unit per class, and p = 1 is
        # stored as 127 instead of 128.
        misses = np.abs(numbers.sum(axis=1) - (256 - 128 * classes))
        if numbers.min() < -128 or misses.max() > classes / 2 + 1:
            return
    # With two classes, the logits of a row may also be opposite whole numbers. Their
    # sum is then 0, as for a quantised softmax, but they are hardly ever as low as
    # -120.
    if len(values) >= FEW_ROWS and numbers.min() <= -120:
        raise ArgumentError(
            f"{name} must be logits or probabilities, but they look like a quantised "
            "softmax: whole numbers from -128 to 127 whose rows sum to about "
            f"{256 - 128 * classes}",
            remedy,
        )


def _refuse_label_zeros(
    values: NDArray[np.float64],
    labels: Tensor,
    least: NDArray[np.float64],
    name: str,
) -> None:
    """Refuse probabilities that are 0 for a row's label, unless only a few underflowed.

    The logarithm of such a 0 would dominate the fit of the temperature.

    Args:
        values: Probabilities, shape (n, classes).
        labels: Shape (n,), int64.
        least: The numbers that replace 0, of shape (1,) or (classes,); see
            `_least_probs`.
        name: Name of the argument in messages.
    """
    columns = labels.numpy()
    zeros = np.flatnonzero(values[np.arange(len(values)), columns] == 0)
    if not len(zeros):
        return
    decimals = rounded_decimals(torch.from_numpy(values))
    if decimals is not None:
        raise ArgumentError(
            f"{name} are rounded to {decimals} decimal{'s' if decimals > 1 else ''}, "
            f"so the label in row {zeros[0]} has probability 0",
            "Save them with all digits.",
        )
    if len(zeros) <= max(1, MOST_ZEROS * len(values)):
        # If some probabilities have underflowed to 0, others are close to the smallest
        # number of the dtype. If the zeros come from votes, or from rounding to a fixed
        # number of decimals, no other probability is close to that number.
        groups = [(values, least[0])]
        if len(least) > 1:
            groups = [
                (values[:, column], least[column]) for column in set(columns[zeros])
            ]
        if all(part[part > 0].min() <= math.sqrt(low) for part, low in groups):
            return
    raise ArgumentError(
        f"{name} of the label are 0 in {len(zeros)} of {len(values)} rows (row "
        f"{zeros[0]} is the first), and no temperature changes a probability of 0",
        "Give the logits, or probabilities that are not rounded to 0; for votes, add "
        "1 to each count first.",
    )


def _least_probs(probs: Any, *, single: bool) -> NDArray[np.float64]:
    """Return, for each column, the number that replaces a probability of 0.

    It is the smallest positive number of the dtype in which the probabilities were
    probably computed. If the probability of class 0 is computed as 1 - p, a 0 there is
    replaced by the largest difference that rounding p to 1 can hide.

    Args:
        probs: The user's probabilities.
        single: Whether `probs` holds only the probabilities of class 1 of two classes.
            The probabilities of class 0 are computed as one minus `probs`, and are 0
            where `probs` was rounded to 1.

    Returns:
        Shape (1,), or (2,) for a single column.
    """
    if isinstance(probs, Tensor) and probs.dtype.itemsize < 8:
        # Ask torch for the limits, because tensors have dtypes that NumPy lacks.
        dtype = probs.dtype if probs.is_floating_point() else torch.float64
        limits = torch.finfo(dtype)
        tiny, eps = limits.tiny * limits.eps, limits.eps
    else:
        array = as_numpy(probs)
        narrow = array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
        if narrow.itemsize >= 8:
            narrow = np.dtype(np.float32 if _were_float32(array) else np.float64)
        tiny = float(np.finfo(narrow).smallest_subnormal)
        eps = float(np.finfo(narrow).eps)
    # Just below 1, numbers are eps / 2 apart, so those above 1 - eps / 4 round to 1.
    return np.array([eps / 4, tiny] if single else [tiny])


def _were_float32(array: NDArray[Any]) -> bool:
    """Whether float32 can represent every number in `array` exactly.

    Such numbers were probably computed in float32, which may have rounded some to 0.
    """
    with np.errstate(over="ignore"):
        return all(
            bool((piece == piece.astype(np.float32)).all())
            # For most tables, the first row already gives the answer.
            for piece in (array[:1], array)
        )


def _may_be_cumulative(table: Tensor) -> bool:
    """Whether all rows fall, or all rise, in [0, 1], and sum to more than 1 in some.

    The sums of cumulative probabilities vary from 0 to the number of columns.
    """
    low, high = (bound.item() for bound in torch.aminmax(table))
    if low < 0 or high > 1 or not fall_or_rise(table):
        return False
    sums = table.sum(dim=1)
    return bool((sums.max() > 1 + SUM_TOLERANCE) & (sums.min() < sums.max()))


def _cumulative_remedy(table: Tensor) -> str:
    """The remedy for probabilities that are, or may be, cumulative; "" for others."""
    if end_at_one(table):
        return (
            "These are cumulative. Give one probability per class: "
            f"{probs_of_classes(table)}."
        )
    if _may_be_cumulative(table):
        return (
            "If these are cumulative, as those of an ordinal model, give one "
            f"probability per class: {probs_of_classes(table)}. Otherwise divide each "
            "row by its sum."
        )
    return ""


def _sum_remedy(table: Tensor) -> str:
    """The remedy to give if rows of non-negative numbers do not sum to one."""
    low, high = table.aminmax(dim=1)
    if sum_of_columns(table, low, high):
        return OVER_CLASSES
    if share_of_complements(table, low, high) > SUM_SHARE:
        return FROM_COMPLEMENTS
    if share_of_odds(table, low) > SUM_SHARE:
        return FROM_ODDS
    sums = table.sum(dim=1)
    if remedy := _cumulative_remedy(table):
        return remedy
    below = (sums < 1 - SUM_TOLERANCE).double().mean().item()
    # Rows of percentages or votes have equal sums. If a table lacks some classes, the
    # sums differ, and are at most 1.
    varies = bool(sums.max() - sums.min() > SUM_TOLERANCE)
    if varies and below > 0 and bool(sums.max() <= 1 + SUM_TOLERANCE):
        return (
            "Columns may be missing: give one for every class. If none is missing, "
            "divide each row by its sum."
        )
    return "Divide each row by its sum."


def _are_surprisals(table: NDArray[np.float64]) -> bool:
    """Whether all rows are -log p of probabilities p that sum to one."""
    if table.min() < 0:
        return False
    return bool((np.abs(np.exp(-table).sum(axis=1) - 1) < SUM_TOLERANCE).all())


def _prob_table(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Convert probabilities to a float64 table (n, classes), and check its rows.

    A single column, (n, 1), holds the probabilities of class 1 of two classes.
    """
    exact = values.astype(np.float64)
    slack = max(PROBABILITY_TOLERANCE, 2 * _rounding_unit(values))
    inside = (exact >= -slack) & (exact <= 1 + slack)
    # Rounding may move a probability that was computed from others out of [0, 1].
    np.clip(exact, 0, 1, out=exact, where=inside)
    single = exact.shape[1] == 1
    if single:
        exact = np.hstack([1 - exact, exact])
    table = torch.from_numpy(exact)
    misses = (table.sum(dim=1) - 1).abs()
    outside = torch.from_numpy(~inside.all(axis=1))
    wrong = outside | (misses > sum_tolerance(table, len(table)))
    if not bool(wrong.any()):
        bounds = (float(exact.min()), float(exact.max()))
        check_not_double(table, bounds, unit=_rounding_unit(values), name=name)
        return exact
    # Do not suggest that the table holds logits if most of its rows are probabilities,
    # because it would be refused as logits, too.
    share = wrong.double().mean().item()
    if share < 1 - SUM_SHARE and bool(outside.any()):
        row = int(outside.int().argmax())
        column = int((~inside[row]).argmax())
        place = "" if single else f", class {column}"
        raise ArgumentError(
            f"{name} must be rows of numbers in [0, 1] that sum to one, got "
            f"{values[row, column]:.6g} in row {row}{place}",
            "Correct such rows, or remove them.",
        )
    row = int(wrong.int().argmax())
    remedies = _prob_remedies(values, exact[row], table)
    if share >= 1 - SUM_SHARE:
        remedies.append("If these are logits, omit kind='probs'.")
    if single:
        what = f"numbers in [0, 1], got {values[row, 0]:.6g} in row {row}"
    else:
        what = (
            "rows of numbers in [0, 1] that sum to one, got a minimum of "
            f"{exact[row].min():.6g} and a sum of {exact[row].sum():.6g} in row {row}"
        )
    raise ArgumentError(f"{name} must be {what}", " ".join(remedies))


def _prob_remedies(
    values: NDArray[Any], row: NDArray[np.float64], table: Tensor
) -> list[str]:
    """Remedies for `values` that are no probabilities, of which `row` is one.

    `table` holds the values with a column per class.
    """
    if values.shape[1] == 1:
        are_percentages = values.min() >= 0 and values.max() <= 100
        return ["Divide percentages by 100."] if are_percentages else []
    if _are_surprisals(table.numpy()):
        return ["If these are negated log-probabilities, give exp(-x)."]
    return [_sum_remedy(table)] if row.min() >= 0 else []


def _rounding_unit(values: NDArray[Any]) -> float:
    """The rounding unit of the narrowest type that may have held all the `values`."""
    for dtype in (torch.bfloat16, torch.float16):
        if all(
            bool((part == part.to(dtype).to(part.dtype)).all())
            # For most tables, the first row already gives the answer.
            for part in map(torch.from_numpy, (values[:1], values))
        ):
            return torch.finfo(dtype).eps
    return float(torch.finfo(torch.float32).eps)
