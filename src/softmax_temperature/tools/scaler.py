"""Temperature scaling as a scikit-learn estimator, for arrays and tensors."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor, nn

from softmax_temperature.metrics.checks import (
    CLEAR_DIFFERENCE,
    ArgumentError,
    all_finite,
    check_count,
    check_not_wrapped,
    check_one_tensor,
    check_positive,
    is_transformed,
    label_shape_remedy,
)
from softmax_temperature.metrics.class_order import (
    CHECK_ORDER,
    no_better_than_chance,
    predictions_without_labels,
    threshold_hint,
)
from softmax_temperature.metrics.pair_columns import pair_classes
from softmax_temperature.metrics.probability_check import (
    FEW_ROWS,
    NO_SOFTMAX,
    check_no_softmax_at_end,
    check_not_of_sigmoid,
    check_not_probs,
    with_earlier,
)
from softmax_temperature.scaling import (
    TemperatureFit,
    check_two_classes,
    search_temperature,
)
from softmax_temperature.tools.advice import CHECK_COLUMNS
from softmax_temperature.tools.arrays import (
    NESTED_REMEDY,
    OVERFLOWED,
    Rows,
    are_reordered,
    around_reordered,
    as_numpy,
    check_dense,
    check_given,
    check_label_dimensions,
    check_some_class,
    check_unmasked_entries,
    checked_logits,
    column_names,
    hold_integers,
    refuse_label_column,
)
from softmax_temperature.tools.columns import is_nested
from softmax_temperature.tools.decisive_rows import (
    decisive_rows,
    explained_rows,
    place_of,
)
from softmax_temperature.tools.label_leaks import CHECK_TRUE_LABELS
from softmax_temperature.tools.label_maps import IGNORE_INDEX, labelled_rows
from softmax_temperature.tools.ordinal_scores import are_ordinal, logits_of_classes
from softmax_temperature.tools.oversampled_rows import oversampled
from softmax_temperature.tools.softmax_outputs import (
    check_not_of_softmax,
    check_not_softmax_row,
)
from softmax_temperature.tools.tables import (
    around,
    around_difference,
    label_text,
    numbered_key,
)

TAKE_LOGITS = (
    "Give the scores before the softmax, or the logarithms of the probabilities."
)
TAKE_DEQUANTISED = (
    "Give the scores before the softmax; or add 128, divide by 256, and give the "
    "logarithms."
)
TAKE_LOG_SIGMOID = "Give log(sigmoid(x)) of each number x."
# scikit-learn would refuse masked classes, whose logits are infinite, so its check of
# values is off. `_check_values` checks the values instead.
ARRAYS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "allow_nd": True,
    "ensure_all_finite": False,
}


# scikit-learn ships no annotations, so mypy does not know these base classes.
class TemperatureScaler(
    ClassifierMixin,  # type: ignore[misc]
    OneToOneFeatureMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Temperature scaling, fitted on held-out logits (focal paper, section 5).

    The estimator is both a classifier and a transformer of logits: it can end a
    pipeline whose other steps return logits. Results are arrays if the logits are an
    array; for a tensor they are tensors on its device. Logits have shape (n, classes),
    or (n, classes, height, width) if every pixel has a label. A masked class has the
    logit -inf.

    Args:
        criterion: "nll" minimises the negative log-likelihood; "ece" minimises the
            calibration error over a grid that is relative to the scale of the logits
            (see `fit_temperature`), unlike the paper's grid.
        bins: Number of bins of the calibration error.
        ignore_index: Rows and pixels with this label are left out of the fit.

    Attributes:
        temperature_: The temperature, by which logits are divided.
        at_bound_: Whether no temperature fits, because the logits separate the labels
            or carry no information about them. If so, `temperature_` is 1, and `fit`
            warns.
        classes_: The label of each class, in the order of the columns of logits.

    Examples:
        >>> from softmax_temperature import sample_logits
        >>> logits, labels = sample_logits()
        >>> scaler = TemperatureScaler().fit(logits[:700], labels[:700])
        >>> round(scaler.temperature_, 2)
        2.73
        >>> scaler.predict_proba(logits[700:]).shape
        (800, 10)
    """

    def __init__(
        self,
        *,
        criterion: str = "nll",
        bins: int = 15,
        ignore_index: int = IGNORE_INDEX,
    ) -> None:
        self.criterion = criterion
        self.bins = bins
        self.ignore_index = ignore_index

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's names
        """Fit the temperature.

        Args:
            X: Held-out logits of shape (n, classes) or (n, classes, height, width), or
                of shape (n, 1) with the logit of class 1 of two classes.
            y: Labels of shape (n,) or (n, height, width), or one-hot rows. Whole
                numbers from 0 are indices of the columns of X. Other labels are sorted
                and numbered, as in scikit-learn's classifiers, and every class must
                occur; such labels are refused if X is a tensor or holds the logits of
                pixels.

        Raises:
            ValueError: If an argument is malformed, or all labels are of one class.
        """
        _check_scores(X)
        _check_real(y, "y")
        _check_two_dimensions(X)
        check_given(X, y, "X", "y")
        columns = column_names(X)
        categories = getattr(getattr(y, "dtype", None), "categories", ())
        void = check_count(self.ignore_index, "ignore_index", least=-(2**63))
        as_columns = isinstance(X, Tensor) or getattr(X, "ndim", 2) > 2
        if isinstance(X, Tensor):
            self.n_features_in_ = X.shape[1]
        else:
            X, y = self._validated(X, y)  # noqa: N806
        logits, labels = labelled_rows(X, y, void)
        # Compare the labels with the columns before they are numbered, because a column
        # may hold labels that count from 1, or are -1 and 1.
        refuse_label_column(logits, labels, "X")
        # If there is a single column, it is the logit of class 1 of two classes.
        self.classes_ = np.arange(max(2, self.n_features_in_))
        _check_not_wrapped(y, labels, len(self.classes_))
        if not as_columns and not _are_columns(labels, len(self.classes_)):
            _check_grades(logits, labels)
            self.classes_, labels = _numbered(labels, len(self.classes_))
            _check_columns_of_labels(columns, self.classes_)
            _check_sorted_names(logits, labels, self.classes_, categories)
        rows = checked_logits(
            logits,
            labels,
            remedy=TAKE_LOGITS,
            dequantised=TAKE_DEQUANTISED,
            log_sigmoid=TAKE_LOG_SIGMOID,
            tokens=getattr(X, "ndim", 2) == 3,
        )
        check_two_classes(rows[1])
        fit = search_temperature(*rows, criterion=self.criterion, bins=self.bins)
        self.at_bound_ = fit.at_bound
        self.temperature_ = 1.0 if fit.at_bound else fit.temperature
        if doubt := _copied(rows, X) or self._doubt(fit, rows, X):
            warnings.warn(doubt, ConvergenceWarning, stacklevel=2)
        return self

    def _doubt(self, fit: TemperatureFit, rows: Rows, logits: Any) -> str:
        """Return a warning about the fit, or an empty text."""
        decided = _decided(fit, rows, logits) if self.criterion == "nll" else ""
        return decided or _doubt(fit, *rows)

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The logits X divided by the temperature, in the same shape.

        Logits in float32 or float64 keep their type; others become float32, because
        half precision would round the quotients.
        """
        logits = self._checked(X)
        scaled = _wide(torch.as_tensor(logits * 1)) / self.temperature_
        scaled = scaled.to(_type_of_results(logits))
        return scaled if isinstance(X, Tensor) else scaled.numpy()

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return calibrated probabilities, shaped like X but with a column per class.

        They are computed in float64. The result is float64 for float64 logits, and
        float32 for all others.
        """
        logits = self._checked(X)
        columns = _wide(self._columns(logits))
        # A GPU without float64 divides in float32, so make the numbers small first.
        from_largest = columns - columns.amax(1, keepdim=True)
        probs = torch.softmax(from_largest / self.temperature_, 1)
        probs = probs.to(_type_of_results(logits))
        return probs if isinstance(X, Tensor) else probs.numpy()

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The labels with the largest logits, of shape (n,) or (n, height, width).

        If X is a tensor, the column index is returned instead of the label.
        """
        columns = self._columns(self._checked(X)).argmax(1)
        return columns if isinstance(X, Tensor) else self.classes_[columns.numpy()]

    def wrap(self, network: nn.Module) -> "TemperatureScaled":
        """Create a network that divides the logits of `network` by the temperature.

        The new network divides in the type of these logits, as layers do. For exact
        probabilities of logits in half precision, use `predict_proba`.

        The temperature is part of the new network's `state_dict`. If `network` returns
        log-probabilities, apply `log_softmax` to the new network's output, because
        log-probabilities are no longer normalised once they have been divided.

        Raises:
            TypeError: If `network` is not a torch module.
            ValueError: If `network` ends in a softmax or sigmoid.
        """
        check_is_fitted(self)
        if not isinstance(network, nn.Module):
            raise TypeError(
                f"network must be a torch module, got {type(network).__name__}"
            )
        check_no_softmax_at_end(network, "network")
        if isinstance(network, TemperatureScaled) and network.is_divided_by(
            self.temperature_
        ):
            raise ArgumentError(
                "network already divides its logits by this temperature, "
                f"{self.temperature_:.6g}",
                "Wrap the network inside it, or use it as it is.",
            )
        return TemperatureScaled(
            network, self.temperature_, classes=self.n_features_in_
        )

    def _validated(self, logits: Any, labels: Any) -> tuple[Any, Any]:
        """Apply scikit-learn's checks and ours; return logits and labels as arrays.

        Our checks come first where scikit-learn's errors name neither the row nor a
        remedy.
        """
        logits = _as_array(logits)
        labels = _as_array(labels)
        _check_lengths(logits, labels)
        _check_classes_known(labels)
        if getattr(logits, "ndim", 2) > 2:
            logits = validate_data(self, logits, **ARRAYS)
            _check_values(logits)
            return logits, np.asarray(labels)
        logits, labels = validate_data(
            self, logits, labels, multi_output=True, **ARRAYS
        )
        _check_values(logits)
        _check_targets(labels)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
        return logits, labels

    def _checked(self, logits: Any) -> Any:
        """Check the logits to scale, and return them.

        They must have as many columns as the logits in `fit`.
        """
        check_is_fitted(self)
        _check_scores(logits)
        _check_two_dimensions(logits, self.n_features_in_)
        if not isinstance(logits, Tensor):
            logits = validate_data(self, _as_array(logits), reset=False, **ARRAYS)
        elif not len(logits) or logits.shape[1] != self.n_features_in_:
            shape = tuple(logits.shape)
            raise ArgumentError(
                f"X must have shape (n, {self.n_features_in_}, ...), got {shape}",
                "Give logits of the same classes as in fit.",
            )
        _check_values(logits)
        # Multiply by 1 to make a copy, because torch warns about read-only arrays.
        rows = torch.as_tensor(logits * 1).movedim(1, -1).flatten(0, -2)
        check_not_softmax_row(rows, "X")
        check_not_probs(rows, name="X")
        return logits

    def _columns(self, logits: Any) -> Tensor:
        """Checked logits as a tensor, with one column per class."""
        # Multiply by 1 to make a copy, because torch warns about read-only arrays.
        columns = torch.as_tensor(logits * 1)
        if columns.shape[1] == 1:
            columns = torch.cat([torch.zeros_like(columns), columns], 1)
        return columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.requires_fit = True
        return tags


def _wide(logits: Tensor) -> Tensor:
    """The logits in float64, or in float32 on Apple's GPUs, which lack float64."""
    return logits.to(torch.float32 if logits.device.type == "mps" else torch.float64)


def _type_of_results(logits: Any) -> torch.dtype:
    """The type of results: float64 for float64 `logits`, and float32 for all others."""
    is_double = str(logits.dtype) in ("float64", "torch.float64")
    return torch.float64 if is_double else torch.float32


def _copied(rows: Rows, logits: Any) -> str:
    """Return a warning that rows were drawn with replacement, or an empty text.

    Pixels are not judged, because those of the same colour have the same scores.
    """
    return oversampled([rows]) if getattr(logits, "ndim", 2) == 2 else ""


def _decided(fit: TemperatureFit, rows: Rows, logits: Any) -> str:
    """A warning that a few rows alone decide the temperature; empty if they do not."""
    chosen, reason = decisive_rows(*rows, fit)
    if not len(chosen):
        return ""
    return explained_rows(chosen, reason, place_of(rows[0][chosen[0]], logits))


def _doubt(fit: TemperatureFit, logits: Tensor, labels: Tensor) -> str:
    """Return a warning if the fit may be meaningless, and otherwise an empty text."""
    if fit.separable:
        return (
            "No temperature fits: the logits separate the labels. They are left as "
            f"they are. {CHECK_TRUE_LABELS}"
        )
    if hint := threshold_hint(labels, logits):
        return hint
    if fit.at_bound:
        return (
            "No temperature fits: the logits say nothing about the labels. They are "
            f"left as they are. {CHECK_COLUMNS}"
        )
    if unlabelled := predictions_without_labels(labels, logits):
        return unlabelled
    if no_better_than_chance(labels, logits):
        return f"The logits are no better than chance: {CHECK_ORDER}."
    return ""


def _check_scores(values: Any) -> None:
    """Refuse logits that are complex, sparse or boolean."""
    _check_real(values, "X")
    if isinstance(values, Tensor):
        check_dense(values)
    if str(getattr(values, "dtype", "")) in ("bool", "torch.bool"):
        raise ArgumentError(
            f"X must be logits, got booleans of shape {tuple(values.shape)}",
            "Give the scores, not the result of comparing them.",
        )


def _check_real(values: Any, name: str) -> None:
    """Refuse complex numbers, and masked entries, which scikit-learn would not notice.

    scikit-learn's own error for complex numbers prints all of them.
    """
    check_unmasked_entries(values)
    dtype = getattr(values, "dtype", None)
    is_complex = getattr(dtype, "is_complex", getattr(dtype, "kind", "") == "c")
    if is_complex:
        # scikit-learn's estimator checks look for these first four words.
        raise ArgumentError(
            f"Complex data not supported: {name} must hold real numbers, got {dtype} "
            f"of shape {tuple(values.shape)}",
            "Give the real part, as .real does.",
        )


def _check_two_dimensions(values: Any, columns: int = 1) -> None:
    """Refuse a tensor or an array without columns.

    scikit-learn's own error prints the whole array.

    Args:
        values: The logits.
        columns: Number of columns that the estimator was fitted on.
    """
    if getattr(values, "ndim", 2) < 2 and is_nested(np.asarray(values)):
        raise ArgumentError(
            f"X must have shape (n, classes), got {tuple(values.shape)} lists",
            NESTED_REMEDY,
        )
    if getattr(values, "ndim", 2) < 2:
        # scikit-learn's estimator checks look for "Reshape your data".
        is_row = columns > 1 and tuple(values.shape) == (columns,)
        raise ArgumentError(
            f"X must have shape (n, classes), got {tuple(values.shape)}",
            "Reshape your data: "
            + (
                "X[None] for one row."
                if is_row
                else "X[:, None] for the logits of class 1 of two."
            ),
        )


def _as_array(values: Any) -> Any:
    """Convert a list or tuple to an array; return arrays and data frames unchanged.

    Other objects, such as dictionaries, are refused. scikit-learn refuses None itself.
    """
    unchanged = values is None or hasattr(values, "shape")
    return values if unchanged else as_numpy(values)


def _check_lengths(logits: Any, labels: Any) -> None:
    """Refuse a table and labels with different numbers of rows.

    Labels with dimensions of length 1 that only have to be dropped are refused, too.
    """
    table = tuple(getattr(logits, "shape", ()))
    label_shape = tuple(getattr(labels, "shape", ()))
    if len(table) != 2 or not table[0] or not label_shape:
        return
    check_label_dimensions(label_shape, table, "y")
    if label_shape[0] != table[0]:
        raise ArgumentError(
            f"labels must have shape ({table[0]},), one per row, got {label_shape}",
            label_shape_remedy(label_shape, table),
        )


def _check_classes_known(labels: Any) -> None:
    """Refuse labels with NaN or None, and those of types that cannot be sorted.

    scikit-learn's own errors do not name the row.
    """
    plain = None if labels is None else np.asarray(labels)
    if plain is None or plain.ndim not in (1, 2) or plain.dtype.kind not in "fO":
        return
    if plain.ndim == 2:
        _check_one_hot(plain)
        return
    if plain.dtype.kind == "O":
        _check_one_type(plain)
        return
    wrong = np.flatnonzero(np.isnan(plain))
    if len(wrong):
        raise _no_class("nan", wrong[0])


def _check_targets(labels: NDArray[Any]) -> None:
    """Let scikit-learn refuse labels that are no classes, such as fractions.

    Its warning of many classes for the number of rows is not shown: a language model
    has more classes than there are rows.
    """
    with warnings.catch_warnings():
        message = "The number of unique classes is greater than 50%"
        warnings.filterwarnings("ignore", message, UserWarning)
        check_classification_targets(labels)


def _no_class(label: object, row: int) -> ArgumentError:
    return ArgumentError(
        f"y must hold a class for each row, got {label} in row {row}",
        "Remove rows without a class.",
    )


def _check_one_type(labels: NDArray[Any]) -> None:
    """Refuse an array of objects as labels if it holds None, or both text and numbers.

    Whole numbers in such an array are refused, too, because scikit-learn does not
    recognise them.
    """
    for row, label in enumerate(labels):
        # NaN differs from itself, and pandas' NA is neither equal nor different.
        if label is None or str(label) == "<NA>" or bool(label != label):
            raise _no_class(label, row)
        if isinstance(label, str) != isinstance(labels[0], str):
            raise ArgumentError(
                f"y must hold labels of one type, got {labels[0]!r} in row 0 and "
                f"{label!r} in row {row}",
                "Give all of them as text, or number the columns from 0.",
            )
    if len(labels) and not isinstance(labels[0], str) and hold_integers(labels):
        raise ArgumentError(
            f"y must be whole numbers, got {labels[0]!r} (object)",
            "Convert them: y.astype(int).",
        )


def _check_one_hot(labels: NDArray[Any]) -> None:
    """Refuse a matrix of labels that is not one-hot, such as smoothed labels."""
    if labels.shape[1] < 2 or labels.dtype.kind != "f":
        return
    wrong = np.flatnonzero(~np.isin(labels, (0, 1)).all(axis=1))
    if not len(wrong):
        return
    row = labels[wrong[0]]
    if np.isnan(row).any():
        raise _no_class("nan", wrong[0])
    odd = row[~np.isin(row, (0, 1))].max()
    raise ArgumentError(
        f"y must hold one class for each row, or be one-hot, got {label_text(odd)} in "
        f"row {wrong[0]}",
        "Give the classes, such as y.argmax(axis=1).",
    )


def _check_values(logits: Any) -> None:
    """Refuse logits with NaN or inf, or with a row in which every class is masked."""
    # Multiply by 1 to make a copy, because torch warns about read-only arrays.
    table = torch.as_tensor(logits * 1)
    largest = table.amax(1)
    if all_finite(largest):
        return
    row, *pixel = torch.nonzero(~torch.isfinite(largest))[0].tolist()
    where = f"row {row}, pixel {tuple(pixel)}" if pixel else f"row {row}"
    value = largest[(row, *pixel)].item()
    if value == -math.inf:
        raise ArgumentError(
            f"X must be finite, got -inf (a masked class) in every column of {where}",
            "Give at least one class a finite logit, or remove such rows.",
        )
    column = int((table[(row, slice(None), *pixel)] == value).int().argmax())
    if math.isnan(value):
        column = int(table[(row, slice(None), *pixel)].isnan().int().argmax())
    raise ArgumentError(
        f"X must be finite, got {value} in {where}, column {column}",
        "Remove rows with NaN or inf." if math.isnan(value) else OVERFLOWED,
    )


def _check_not_wrapped(y: Any, labels: Any, classes: int) -> None:
    """Refuse labels `y` in a type too narrow for the classes.

    `labels` are those of `y` that have a class.
    """
    numbers = labels if isinstance(labels, Tensor) else np.asarray(labels)
    is_integer = getattr(getattr(y, "dtype", None), "kind", "") in ("i", "u")
    is_integer |= isinstance(y, Tensor) and not y.is_floating_point()
    if is_integer and numbers.ndim == 1 and len(numbers):
        bounds = (int(numbers.min()), int(numbers.max()))
        check_not_wrapped(y, bounds, classes, "y")


def _are_columns(labels: NDArray[Any], columns: int) -> bool:
    """Whether `labels` are one-hot with `columns` columns, or in [0, `columns`)."""
    if labels.ndim == 2 and labels.shape[1] == columns:
        return True
    if labels.dtype.kind not in "iufb":
        return False
    return bool(((labels >= 0) & (labels < columns)).all())


def _check_grades(logits: NDArray[Any], labels: NDArray[Any]) -> None:
    """Refuse logits of an ordinal model that lack a column for the highest grade."""
    columns = logits.shape[1]
    if labels.shape != (len(logits),) or labels.dtype.kind not in "iuf":
        return
    if columns < 2 or set(np.unique(labels)) != set(range(columns + 1)):
        return
    table, grades = torch.as_tensor(logits * 1), torch.from_numpy(labels.astype(int))
    if are_ordinal(grades, table):
        raise ArgumentError(
            f"y must hold a class for each of the {columns} columns of X, got the "
            f"grades 0 to {columns}: X are the scores of an ordinal model, without a "
            "column for the highest grade",
            logits_of_classes(table),
        )


def _numbered(labels: NDArray[Any], columns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sorted labels, one per column, and the column of each row's label.

    Numbers with gaps are refused, except -1 and 1, because one of the numbers may mean
    "no class", as 255 often does. Four or more classes that start at -1 are also
    refused; -1, 0 and 1 are three classes.
    """
    check_some_class(labels, "labels")
    classes, numbers = np.unique(labels, return_inverse=True)
    if columns > 3 and classes.tolist() == list(range(-1, columns - 1)):
        raise ArgumentError(
            f"labels are numbered from -1 to {columns - 2}, so that -1 would belong to "
            "the first column",
            "If -1 marks rows without a class, pass ignore_index=-1; otherwise number "
            "the labels from 0.",
        )
    gaps = np.empty(0, np.int64)
    if classes.dtype.kind in "iuf":
        gaps = np.flatnonzero(np.diff(classes) != 1)
    if len(classes) != columns or (len(gaps) and classes.tolist() != [-1, 1]):
        remedy = (
            "For labels of some classes, number the columns from 0, as "
            "np.searchsorted(classifier.classes_, y) does."
        )
        others = _no_columns(classes, columns)
        if len(others) == 1:
            other = label_text(others[0])
            remedy += (
                f" If {other} marks rows without a class, such as a background, pass "
                f"ignore_index={other}."
            )
        if pair_classes(columns) == len(classes) < columns:
            remedy += (
                " If the columns are pairs of classes, give one column per class, as "
                "SVC(decision_function_shape='ovr') does."
            )
        raise ArgumentError(
            f"y must hold a class for each of the {columns} columns of X, got "
            f"{len(classes)} different labels "
            f"({around(classes.tolist(), gaps[0] + 1 if len(gaps) else 0)})",
            remedy,
        )
    return classes, numbers.reshape(-1)


def _no_columns(classes: NDArray[Any], columns: int) -> NDArray[Any]:
    """Return the numbers in `classes` that are not indices of `columns` columns."""
    if classes.dtype.kind not in "iuf":
        return np.empty(0)
    return classes[(classes < 0) | (classes >= columns)]


def _check_columns_of_labels(
    columns: Sequence[str] | None, classes: NDArray[Any]
) -> None:
    """Refuse columns that are named after the labels, but are in a different order."""
    names = [str(label) for label in classes]
    if columns is not None and are_reordered(columns, names):
        shown, shown_names = around_reordered(columns, names)
        raise ArgumentError(
            f"X has its columns in the order {shown}, but its labels are numbered in "
            f"the order {shown_names}",
            "Number the labels from 0, in the order of the columns.",
        )


def _check_sorted_names(
    logits: NDArray[Any],
    labels: NDArray[Any],
    classes: NDArray[Any],
    categories: Sequence[Any],
) -> None:
    """Refuse labels that are names if the columns are evidently in a different order.

    Names are numbered in sorted order, and the columns must have this order. Users may
    have ordered the columns by the numbers in the names ("2" before "10"), or by the
    categories of a pandas series.
    """
    if isinstance(classes[0], str):
        for order in (sorted(classes, key=numbered_key), categories):
            _check_order(logits, labels, classes, order)


def _check_order(
    logits: NDArray[Any],
    labels: NDArray[Any],
    classes: NDArray[Any],
    order: Sequence[Any],
) -> None:
    """Refuse sorted labels if another order of them agrees better with the logits.

    Args:
        logits: Shape (n, classes), or (n, 1) for the logit of class 1 of two.
        labels: Indices of the labels in `classes`, shape (n,).
        classes: The sorted labels, text.
        order: The other order; labels that do not occur are left out.
    """
    names = classes.tolist()
    reordered = [label for label in order if label in names]
    if reordered == names or len(reordered) < len(names):
        return
    reordered_labels = np.array([reordered.index(name) for name in names])[labels]
    predicted = logits.argmax(axis=1)
    if logits.shape[1] == 1:
        predicted = (logits[:, 0] > 0).astype(np.int64)
    won = int(((predicted == reordered_labels) & (predicted != labels)).sum())
    lost = int(((predicted != reordered_labels) & (predicted == labels)).sum())
    if won - lost > CLEAR_DIFFERENCE * math.sqrt(won + lost):
        shown, shown_reordered = around_difference(names, reordered)
        raise ArgumentError(
            f"y is numbered in the order {shown}, but in the order {shown_reordered} "
            f"it agrees with {won - lost} more of the {len(labels)} predictions",
            "Number the labels from 0, in the order of the columns.",
        )


class TemperatureScaled(nn.Module):
    """A network whose logits are divided by a temperature, a scalar buffer.

    The network takes the wrapped network's arguments. It raises ValueError if neither
    the second nor the last dimension of the logits has as many classes as the logits on
    which the temperature was fitted, or if its first outputs look like probabilities.
    """

    temperature: Tensor

    def __init__(
        self,
        network: nn.Module,
        temperature: float = 1.0,
        *,
        classes: int | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self._classes = classes
        check_positive(temperature, "temperature", torch.get_default_dtype())
        # The logits of the first small batches, which are kept until there are enough
        # rows to tell logits from probabilities. `_is_judged` is True once they have
        # been told apart.
        self._first_rows: Tensor | None = None
        self._is_judged = False
        self.register_buffer("temperature", torch.tensor(float(temperature)))

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """The network's logits divided by the temperature."""
        logits = self.network(*arguments, **options)
        check_one_tensor(logits, "network", "scaled")
        _check_real(logits, "the network's logits")
        if not logits.is_floating_point():
            raise ArgumentError(
                f"the network's logits must be floating point, got {logits.dtype}",
                "Give the network that returns scores, not predicted classes.",
            )
        self._check_classes(tuple(logits.shape))
        self._check_first_logits(logits)
        return logits / self.temperature

    def is_divided_by(self, temperature: float) -> bool:
        """Whether the logits are divided by `temperature`; False if that is 1."""
        stored = self.temperature.new_tensor(temperature)
        return temperature != 1 and bool(self.temperature == stored)

    def _check_classes(self, shape: tuple[int, ...]) -> None:
        """Refuse logits unless they have as many classes as those in `fit`."""
        # A binary classifier may drop the dimension of its only logit; accept that.
        squeezed = self._classes == 1 and len(shape) < 2
        is_exempt = self._classes is None or squeezed
        if not is_exempt and self._classes not in (*shape[1:2], *shape[-1:]):
            raise ArgumentError(
                f"the network's logits have shape {shape}, but the temperature was "
                f"fitted on {self._classes} columns",
                "Fit the temperature on logits of this network.",
            )

    def _check_temperature(self) -> None:
        """Refuse a temperature that is too large or too small for its dtype.

        The dtype changes if the network is converted, for instance to half precision.
        """
        limits = torch.finfo(self.temperature.dtype)
        if not limits.tiny <= self.temperature.item() <= limits.max:
            raise ArgumentError(
                f"the fitted temperature does not fit {self.temperature.dtype}, in "
                f"which it is {self.temperature.item():g}",
                "Keep the wrapped network in float32, and use autocast.",
            )

    def _rows(self, logits: Tensor) -> Tensor:
        """Reshape the logits to one row per sample, pixel or token."""
        if logits.ndim >= 2:
            # Networks for tokens may return the classes in the last dimension.
            at_end = self._classes not in (None, logits.shape[1])
            return logits.movedim(-1 if at_end else 1, -1).flatten(0, -2)
        # One-dimensional logits of a binary classifier are one logit per sample. Those
        # of a network with several classes are the logits of one sample.
        is_sample = self._classes not in (None, 1)
        return logits.reshape((1, -1) if is_sample else (-1, 1))

    def _check_first_logits(self, logits: Tensor) -> None:
        """Refuse a network that returns probabilities, on its first calls."""
        if is_transformed(logits):
            return
        # Stop checking after some rows, because each check makes the CPU wait for a
        # GPU.
        if not self._is_judged:
            self._check_temperature()
            name = "the network's logits"
            is_not_sigmoid = check_not_of_sigmoid(logits, name)
            check_not_of_softmax(logits, name)
            check_not_softmax_row(self._rows(logits), name, NO_SOFTMAX)
            rows = with_earlier(self._rows(logits), self._first_rows)
            check_not_probs(
                rows,
                name=name,
                remedy=NO_SOFTMAX,
                sigmoids=not is_not_sigmoid,
                of_network=True,
            )
            self._is_judged = len(rows) >= FEW_ROWS
            self._first_rows = None if self._is_judged else rows
