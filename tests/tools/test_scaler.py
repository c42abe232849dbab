"""TemperatureScaler finds the same temperatures as other libraries; its outputs have
the inputs' types.

The class follows scikit-learn's conventions.
"""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_uncertainty import post_processing
from torch_uncertainty.metrics import (
    AdaptiveCalibrationError,
    BrierScore,
    CalibrationError,
)

from softmax_temperature import (
    CosineClassifier,
    TemperatureScaler,
    calibrate,
    metrics,
    sample_logits,
)
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.scaling import apply_temperature

LOGITS, LABELS = sample_logits()
WHY = "Columns of logits are the classes; this check has other columns or labels."
BEYOND = (
    "estimators_overwrite_params",
    "estimators_fit_returns_self",
    "readonly_memmap_input",
    "classifiers_classes",
    "classifiers_train",
)
NOISE = "Uniform noise in [0, 1] is refused: it looks like sigmoids."
IN_UNIT_INTERVAL = ("fit_score_takes_y", "dtype_object", "supervised_y_2d")
EXPECTED_TO_FAIL = {f"check_{name}": WHY for name in BEYOND} | {
    f"check_{name}": NOISE for name in IN_UNIT_INTERVAL
}


@parametrize_with_checks(
    [TemperatureScaler()],
    expected_failed_checks=lambda _: EXPECTED_TO_FAIL,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_probabilities_equal_scikit_learns_temperature_scaling() -> None:
    features, labels = load_iris(return_X_y=True)
    classifier = LogisticRegression(C=0.01, max_iter=1000).fit(
        features[::2], labels[::2]
    )
    held_out, theirs = (
        features[1::2],
        CalibratedClassifierCV(FrozenEstimator(classifier), method="temperature"),
    )
    theirs.fit(held_out, labels[1::2])
    logits = classifier.decision_function(held_out)
    ours = TemperatureScaler().fit(logits, labels[1::2])
    np.testing.assert_allclose(
        ours.predict_proba(logits), theirs.predict_proba(held_out), rtol=1e-5
    )


def test_numbers_and_temperature_equal_torch_uncertaintys() -> None:
    logits, labels = torch.from_numpy(LOGITS), torch.from_numpy(LABELS)
    probs, kind = (
        logits.softmax(dim=1),
        {"task": "multiclass", "num_classes": 10, "num_bins": 15},
    )
    for theirs, ours in (
        (CalibrationError(**kind), metrics.expected_calibration_error),
        (CalibrationError(**kind, norm="max"), metrics.maximum_calibration_error),
        (AdaptiveCalibrationError(**kind), metrics.adaptive_calibration_error),
        (BrierScore(num_classes=10), metrics.brier_score),
    ):
        assert ours(probs, labels).item() == pytest.approx(
            theirs(probs, labels).item(), rel=1e-4
        )
    scaler = post_processing.TemperatureScaler(
        nn.Identity()
    )  # torch-uncertainty's temperature is accurate to four digits.
    scaler.fit(
        DataLoader(TensorDataset(logits, labels), batch_size=500), progress=False
    )
    assert TemperatureScaler().fit(logits, labels).temperature_ == pytest.approx(
        scaler.temperature[0].item(), rel=1e-3
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_arrays_give_arrays_and_tensors_tensors_with_the_same_numbers(
    dtype: torch.dtype,
) -> None:
    tensor = torch.from_numpy(LOGITS).to(dtype)
    array, scaler = (
        tensor.numpy(),
        TemperatureScaler().fit(tensor, torch.from_numpy(LABELS)),
    )
    assert TemperatureScaler().fit(array, LABELS).temperature_ == scaler.temperature_
    for method in (scaler.transform, scaler.predict_proba):
        assert isinstance(method(array), np.ndarray)
        assert (method(tensor).dtype, method(array).dtype) == (dtype, array.dtype)
        np.testing.assert_array_equal(method(tensor).numpy(), method(array))


def test_one_column_is_the_logit_of_class_one() -> None:
    logits = np.array([[2.0], [-1.0], [0.5], [3.0]])
    scaler = TemperatureScaler().fit(logits[[0, 1, 2, 2]], [1, 0, 0, 1])
    probs = scaler.predict_proba(logits)
    np.testing.assert_allclose(
        probs[:, 1], 1 / (1 + np.exp(-logits[:, 0] / scaler.temperature_))
    )


def test_logits_that_separate_the_labels_are_left_as_they_are() -> None:
    with pytest.warns(ConvergenceWarning, match="separate the labels"):
        scaler = TemperatureScaler().fit(5 * np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0])
    assert (scaler.temperature_, scaler.at_bound_) == (1.0, True)
    # No temperature fits large logits of the opposite sign either.
    with pytest.warns(
        ConvergenceWarning, match="say nothing about the labels.*Check that column c"
    ):
        TemperatureScaler().fit(-5e6 * np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0])


def test_predictions_are_the_classes_of_the_largest_logits() -> None:
    names = np.array(list("abcdefghij"))
    scaler = TemperatureScaler().fit(LOGITS, names[LABELS])
    assert scaler.temperature_ == TemperatureScaler().fit(LOGITS, LABELS).temperature_
    assert scaler.classes_.tolist() == names.tolist()
    expected = names[LOGITS.argmax(axis=1)]
    np.testing.assert_array_equal(scaler.predict(LOGITS), expected)
    assert scaler.score(LOGITS, names[LABELS]) == (expected == names[LABELS]).mean()
    # Labels that count from 0 are column numbers, and a class may be missing from them.
    some = LABELS != 9
    absent = TemperatureScaler().fit(LOGITS[some], LABELS[some])
    assert absent.classes_.tolist() == list(range(10))
    column = TemperatureScaler().fit(LOGITS[:, :1], np.where(LABELS == 0, 1, -1))
    assert column.classes_.tolist() == [-1, 1]
    np.testing.assert_array_equal(
        column.predict(LOGITS[:, :1]), np.where(LOGITS[:, 0] > 0, 1, -1)
    )


def test_labels_that_do_not_identify_their_columns_are_refused() -> None:
    # In the first case there are ten different labels, but 255 may mean "no class". In
    # the second case there are nine names for ten columns.
    void = np.where(LABELS == 9, 255, LABELS)
    names = np.array(list("abcdefghii"))
    for labels in (void, names[LABELS]):
        with pytest.raises(ValueError, match="number the columns from 0"):
            TemperatureScaler().fit(LOGITS, labels)


@pytest.mark.parametrize("void", [-1, -7, 255, -9_999_999, 9_999_999, 2**32 - 100])
def test_labels_of_rows_without_a_class_can_be_ignored(void: int) -> None:
    with_void = np.where(LABELS == 4, void, LABELS)
    for labels in (with_void, with_void.astype(float)):
        with pytest.raises(ValueError, match=f"If {void} marks .*_index={void}\\."):
            TemperatureScaler().fit(LOGITS, labels)
    scaler = TemperatureScaler(ignore_index=void).fit(LOGITS, with_void)
    kept = LABELS != 4
    expected = TemperatureScaler().fit(LOGITS[kept], LABELS[kept])
    assert scaler.temperature_ == expected.temperature_


def test_labels_of_unsuitable_forms_are_named_with_a_remedy() -> None:
    one_hot = np.eye(10)[LABELS]
    for sparse in (csr_matrix(one_hot), coo_array(one_hot.astype(int))):
        for call, name in ((TemperatureScaler().fit, "y"), (calibrate, "labels")):
            message = rf"^{name} must be a dense array, got a sparse .*\.toarray\(\)"
            with pytest.raises(ValueError, match=message):
                call(LOGITS, sparse)
    with pytest.raises(ValueError, match=r"^validation labels must be a dense array"):
        calibrate(LOGITS, LABELS, validation=(LOGITS, csr_matrix(one_hot)))
    with pytest.raises(ValueError, match=r"^X must be a dense array, got a sparse"):
        TemperatureScaler().fit(csr_matrix(LOGITS), LABELS)
    expected = TemperatureScaler().fit(LOGITS, LABELS).temperature_
    for labels in (one_hot[:, :, None], one_hot[None], LABELS[:, None, None]):
        for call, name in ((TemperatureScaler().fit, "y"), (calibrate, "labels")):
            message = rf"^{name} must have shape \(1500,\), .*\.squeeze\(\) does"
            with pytest.raises(ValueError, match=message):
                call(LOGITS, labels)
        squeezed = TemperatureScaler().fit(LOGITS, labels.squeeze())
        assert squeezed.temperature_ == expected


@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_a_number_that_is_not_one_hot_is_named(dtype: type) -> None:
    signs: NDArray[Any] = (2 * np.eye(10)[LABELS] - 1).astype(dtype)
    for call in (TemperatureScaler().fit, calibrate):
        with pytest.raises(ValueError, match=r"-1 in row 0\. Give .*argmax\(axis=1\)"):
            call(LOGITS, signs)


@pytest.mark.filterwarnings("error")
def test_many_classes_for_the_number_of_rows_cause_no_warning() -> None:
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(400, 5000))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    assert len(np.unique(labels)) > len(labels) / 2
    scaler = TemperatureScaler().fit(logits, labels)
    assert scaler.temperature_ == pytest.approx(1, abs=0.1)


def test_a_test_split_without_labels_is_refused_as_such() -> None:
    nothing = np.full(len(LABELS), -1)
    for call in (TemperatureScaler().fit, calibrate):
        for labels in (nothing, nothing.astype(float)):
            with pytest.raises(ValueError, match=r"are all -1, so no row .*validation"):
                call(LOGITS, labels)
    with pytest.raises(ValueError, match="are all -1, so no row has a class"):
        TemperatureScaler().fit(torch.tensor(LOGITS), torch.tensor(nothing))
    with pytest.raises(ValueError, match="are all -1, so no row has a class"):
        calibrate(LOGITS[:, :1], nothing)
    with pytest.raises(ValueError, match="are all -1234567, so no row has a class"):
        calibrate(LOGITS, 1234567.0 * nothing)


@pytest.mark.parametrize(
    ("labels", "columns", "shown"),
    [
        (list("abde"), 5, r"4 different labels \(a, b, d, e\)"),
        ([3, 4, 6, 7], 5, r"4 different labels \(3, 4, 6, 7\)"),
        ([*range(21), 255], 21, r"22 different labels \(..., 17, 18, 19, 20, 255\)"),
        ([*range(9), *range(11, 15)], 12, r"labels \(..., 8, 11, 12, 13, 14\)"),
        (list("abcdefgh"), 9, r"8 different labels \(a, b, c, d, e, ...\)"),
    ],
)
def test_the_labels_around_a_gap_are_shown(
    labels: list[Any], columns: int, shown: str
) -> None:
    logits = np.random.default_rng(0).normal(size=(10 * len(labels), columns))
    with pytest.raises(ValueError, match=shown):
        TemperatureScaler().fit(logits, np.array(labels * 10))


def test_columns_in_another_order_are_shown_where_they_differ() -> None:
    names = [f"class {letter}" for letter in "abcdefghij"]
    swapped = [*names[:8], names[9], names[8]]
    logits = np.random.default_rng(0).normal(size=(200, 10))
    labels = np.array(names)[np.arange(200) % 10]
    frame = pd.DataFrame(logits, columns=swapped)
    with pytest.raises(ValueError, match=r"class j, class i, but .*class i, class j\."):
        TemperatureScaler().fit(frame, labels)
    one_hot = pd.DataFrame(np.eye(10, dtype=int)[np.arange(200) % 10], columns=names)
    with pytest.raises(ValueError, match=r"class j, class i, but .*class i, class j\."):
        calibrate(frame, one_hot)
    right = pd.DataFrame(logits, columns=names)
    with pytest.raises(ValueError, match=r"class j, class i, but .*class i, class j\."):
        calibrate(right, np.arange(200) % 10, validation=(frame, np.arange(200) % 10))
    numbered = [f"logit_{place}" for place in (0, 1, 2, 3, 4, 5, 6, 7, 9, 8)]
    with pytest.raises(ValueError, match=r"logit_5, logit_6, logit_7, logit_9, lo"):
        calibrate(pd.DataFrame(logits, columns=numbered), np.arange(200) % 10)


def twelve(rows: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Logits of twelve classes, and labels drawn from them at temperature 2."""
    generator = np.random.default_rng(0)
    logits = 6 * generator.standard_normal((rows, 12))
    return logits, (logits / 2 + generator.gumbel(size=logits.shape)).argmax(axis=1)


@pytest.mark.parametrize("prefix", ["", "class_"])
def test_names_with_numbers_are_refused_if_columns_have_the_numbers_order(
    prefix: str,
) -> None:
    logits, labels = twelve()
    expected = TemperatureScaler().fit(logits, labels).temperature_
    names = np.array([f"{prefix}{number}" for number in range(12)])
    with pytest.raises(ValueError, match=r"the order .*0, .*1, .*10, .*agrees with"):
        TemperatureScaler().fit(logits, names[labels])
    # The columns of scikit-learn's classifiers are in the order of the sorted names.
    scaler = TemperatureScaler().fit(logits[:, np.argsort(names)], names[labels])
    assert scaler.temperature_ == pytest.approx(expected, rel=1e-6)
    assert scaler.classes_.tolist() == sorted(names)


def test_categories_in_the_order_of_the_columns_are_refused_unless_sorted() -> None:
    logits, labels = (LOGITS[LABELS < 3, :3], LABELS[LABELS < 3])
    expected = TemperatureScaler().fit(logits, labels).temperature_
    names = np.array(["low", "mid", "high"])
    series = pd.Series(pd.Categorical(names[labels], categories=names))
    with pytest.raises(ValueError, match="in the order low, mid, high it agrees with"):
        TemperatureScaler().fit(logits, series)
    scaler = TemperatureScaler().fit(logits[:, np.argsort(names)], series)
    assert scaler.temperature_ == pytest.approx(expected, rel=1e-6)


def test_one_number_per_row_is_refused_in_one_line() -> None:
    scaler = TemperatureScaler().fit(LOGITS[:, :1], LABELS == 0)
    for values in (LOGITS[:, 0], pd.Series(LOGITS[:, 0]), torch.tensor(LOGITS[:, 0])):
        with pytest.raises(ValueError, match=r"^X must have shape .* X\[:, None\] for"):
            scaler.fit(values, LABELS == 0)
        with pytest.raises(ValueError, match=r"^X must have shape .* X\[:, None\] for"):
            scaler.predict(values)


def test_it_ends_a_pipeline_behind_a_classifiers_logits() -> None:
    features, labels = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[labels]
    classifier = LogisticRegression(C=0.01, max_iter=1000)
    classifier.fit(features[::2], names[::2])
    calibrated = make_pipeline(
        FunctionTransformer(classifier.decision_function), TemperatureScaler()
    )
    calibrated.fit(features[1::2], names[1::2])
    logits = classifier.decision_function(features[1::2])
    scaler = TemperatureScaler().fit(logits, names[1::2])
    probs = calibrated.predict_proba(features[1::2])
    np.testing.assert_array_equal(probs, scaler.predict_proba(logits))
    assert calibrated.classes_.tolist() == classifier.classes_.tolist()
    predicted = calibrated.predict(features)
    np.testing.assert_array_equal(predicted, classifier.predict(features))


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_cross_validation_fits_on_the_other_folds(method: str) -> None:
    folds = StratifiedKFold(3)
    whole = cross_val_predict(
        TemperatureScaler(), LOGITS, LABELS, cv=folds, method=method
    )
    for rest, fold in folds.split(LOGITS, LABELS):
        scaler = TemperatureScaler().fit(LOGITS[rest], LABELS[rest])
        np.testing.assert_array_equal(
            whole[fold], getattr(scaler, method)(LOGITS[fold])
        )


def test_transform_returns_data_frames_if_asked_to() -> None:
    columns = [f"digit {digit}" for digit in range(10)]
    frame = pd.DataFrame(LOGITS, columns=columns)
    scaler = TemperatureScaler().set_output(transform="pandas").fit(frame, LABELS)
    pd.testing.assert_frame_equal(scaler.transform(frame), frame / scaler.temperature_)
    assert isinstance(scaler.predict_proba(frame), np.ndarray)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_maps_are_fitted_on_the_pixels_that_have_a_class(make: Any) -> None:
    rows, void = LOGITS[:1500].reshape(5, 20, 15, 10), LABELS.reshape(5, 20, 15).copy()
    maps = np.ascontiguousarray(np.moveaxis(rows, -1, 1))
    void[:, :3] = 255
    scaler = TemperatureScaler(ignore_index=255).fit(make(maps), make(void))
    some = void.reshape(-1) != 255
    expected = TemperatureScaler().fit(LOGITS[some], LABELS[some])
    assert scaler.temperature_ == expected.temperature_
    probs = scaler.predict_proba(make(maps))
    assert probs.shape == maps.shape
    pixel = expected.predict_proba(rows[2, 4, 5][None])[0]
    np.testing.assert_allclose(np.asarray(probs[2, :, 4, 5]), pixel, rtol=1e-14)
    predicted = np.asarray(scaler.predict(make(maps)))
    np.testing.assert_array_equal(predicted, rows.argmax(axis=-1))


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_a_masked_class_has_probability_zero(make: Any) -> None:
    masked = np.where(np.arange(10) == (LABELS[:, None] + 1) % 10, -np.inf, LOGITS)
    scaler = TemperatureScaler().fit(make(masked), make(LABELS))
    finite = TemperatureScaler().fit(np.maximum(masked, -1e6), LABELS)
    assert scaler.temperature_ == finite.temperature_
    probs = np.asarray(scaler.predict_proba(make(masked)))
    assert (probs[np.isinf(masked)] == 0).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    with pytest.raises(ValueError, match="in every column"):
        scaler.transform(make(np.full((1, 10), -np.inf)))
    with pytest.raises(ValueError, match="labels must not be a masked class"):
        scaler.fit(make(masked), make((LABELS + 1) % 10))


def test_a_wrapped_network_divides_its_logits_and_saves_the_temperature() -> None:
    network, scaler = (
        nn.Linear(4, 10),
        TemperatureScaler(criterion="ece").fit(LOGITS, LABELS),
    )
    wrapped, inputs = (
        scaler.wrap(network),
        torch.randn(3, 4, generator=torch.manual_seed(0)),
    )
    torch.testing.assert_close(wrapped(inputs), network(inputs) / scaler.temperature_)
    other = copy.deepcopy(wrapped)
    other.temperature.fill_(1.0)
    other.load_state_dict(wrapped.state_dict())
    torch.testing.assert_close(other(inputs), wrapped(inputs))


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_complex_numbers_are_refused_in_one_line(make: Any) -> None:
    scaler = TemperatureScaler().fit(LOGITS, LABELS)
    numbers = make(LOGITS.astype(np.complex128))
    for call in (
        lambda: scaler.fit(numbers, make(LABELS)),
        lambda: scaler.fit(make(LOGITS), make(LABELS.astype(np.complex128))),
        lambda: scaler.transform(numbers),
        lambda: scaler.predict(numbers),
        lambda: scaler.wrap(nn.Identity())(torch.as_tensor(numbers)),
    ):
        with pytest.raises(ValueError, match=r"^Complex data not .* \.real does\.$"):
            call()


@pytest.mark.parametrize("output", [torch.arange(20) % 3, torch.ones(4, 3).bool()])
def test_a_wrapped_network_of_predicted_classes_is_refused(
    output: torch.Tensor,
) -> None:
    wrapped = TemperatureScaler().fit(LOGITS, LABELS).wrap(nn.Identity())
    with pytest.raises(ValueError, match=r"floating point.*not predicted classes"):
        wrapped(output)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_true_and_false_are_not_logits(make: Any) -> None:
    scaler = TemperatureScaler().fit(LOGITS, LABELS)
    decisions = make(LOGITS > 0)
    for call in (
        lambda: scaler.fit(decisions, make(LABELS)),
        lambda: scaler.transform(decisions),
        lambda: scaler.predict(decisions),
        lambda: scaler.predict_proba(decisions),
    ):
        with pytest.raises(ValueError, match="X must be logits, got booleans"):
            call()


@pytest.mark.parametrize("shape", [(8, 5), (8, 20), (8, 20, 7, 7), (8,), (8, 1)])
def test_a_wrapped_network_has_the_classes_of_the_fit(shape: tuple[int, ...]) -> None:
    wrapped = TemperatureScaler().fit(LOGITS, LABELS).wrap(nn.Identity())
    with pytest.raises(ValueError, match="the temperature was fitted on 10 columns"):
        wrapped(torch.randn(shape))


@pytest.mark.parametrize(
    ("columns", "shape"),
    [(10, (8, 10)), (10, (8, 10, 7, 7)), (10, (8, 30, 10)), (1, (8, 1)), (1, (8,))],
)
def test_a_wrapped_network_may_give_maps_sequences_and_single_logits(
    columns: int, shape: tuple[int, ...]
) -> None:
    labels = LABELS if columns > 1 else (LABELS == 0)
    scaler = TemperatureScaler().fit(LOGITS[:, :columns], labels)
    logits = torch.randn(shape, generator=torch.manual_seed(0))
    expected = logits / scaler.temperature_
    torch.testing.assert_close(scaler.wrap(nn.Identity())(logits), expected)


@pytest.mark.parametrize("temperature", [1e-50, 1e50])
def test_a_temperature_that_float32_does_not_hold_is_refused(
    temperature: float,
) -> None:
    scaler = TemperatureScaler().fit(temperature * LOGITS, LABELS)
    with pytest.raises(ValueError, match=r"in the range of torch\.float32"):
        scaler.wrap(nn.Identity())
    with pytest.raises(ValueError, match=r"in the range of torch\.float32"):
        apply_temperature(torch.as_tensor(LOGITS).float(), temperature)
    with pytest.raises(ValueError, match=r"in the range of torch\.float32"):
        CosineClassifier(4, 3, temperature)


def test_tensors_without_rows_or_plain_numbers_are_refused() -> None:
    scaler = TemperatureScaler().fit(LOGITS, LABELS)
    with pytest.raises(ValueError, match=r"shape \(n, 10, \.\.\.\), got \(0, 10\)"):
        scaler.transform(torch.zeros(0, 10))
    with pytest.raises(ValueError, match=r"\(1500, 10\) is sparse"):
        scaler.predict(torch.as_tensor(LOGITS).to_sparse())


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_a_wrapped_network_in_half_precision_holds_its_temperature(
    scale: float,
) -> None:
    scaler = TemperatureScaler().fit(scale * LOGITS, LABELS)
    wrapped = scaler.wrap(nn.Linear(4, 10)).half()
    with pytest.raises(ValueError, match=r"temperature does not fit torch\.float16"):
        wrapped(torch.randn(3, 4).half())
    fits = TemperatureScaler().fit(LOGITS, LABELS).wrap(nn.Linear(4, 10)).half()
    inputs = torch.randn(3, 4, generator=torch.manual_seed(0)).half()
    expected = fits.network(inputs) / fits.temperature
    torch.testing.assert_close(fits(inputs), expected)


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_faults_of_arrays_lists_and_frames_have_remedies(make: Any) -> None:
    scaler = TemperatureScaler().fit(LOGITS, LABELS)
    labels = LABELS.tolist() if make == np.ndarray.tolist else LABELS
    with pytest.raises(ValueError, match=r"\(10, 1500\), look transposed: give"):
        scaler.fit(make(LOGITS.T), labels)
    with pytest.raises(ValueError, match=r"per row, got \(1497,\)\. Give one class"):
        scaler.fit(make(LOGITS), labels[:-3])
    for value, column in ((np.nan, 3), (np.inf, 0)):
        broken = LOGITS.copy()
        broken[7, column] = value
        fault = rf"^X must be finite, got {value} in row 7, column {column}\. Remove"
        for call in (
            lambda table: scaler.fit(table, labels),
            scaler.transform,
            scaler.predict,
            scaler.predict_proba,
        ):
            with pytest.raises(ValueError, match=fault):
                call(make(broken))
    some = np.where(LABELS == 3, np.nan, LABELS)
    with pytest.raises(ValueError, match=r"got nan in row 4\. Remove rows without"):
        scaler.fit(make(LOGITS), some.tolist() if isinstance(labels, list) else some)


def test_a_pixel_without_a_number_is_named() -> None:
    maps = np.ascontiguousarray(np.moveaxis(LOGITS.reshape(5, 20, 15, 10), -1, 1))
    maps[2, 4, 3, 1] = np.nan
    for make in (np.asarray, torch.as_tensor):
        with pytest.raises(ValueError, match=r"in row 2, pixel \(3, 1\), column 4\."):
            TemperatureScaler().fit(LOGITS, LABELS).transform(make(maps))


def test_lists_of_rows_and_of_tensors_are_matrices() -> None:
    expected = TemperatureScaler().fit(LOGITS, LABELS)
    for rows in (LOGITS.tolist(), list(LOGITS), list(torch.as_tensor(LOGITS))):
        scaler = TemperatureScaler().fit(rows, LABELS.tolist())
        assert scaler.temperature_ == expected.temperature_
        np.testing.assert_array_equal(scaler.predict(rows), expected.predict(LOGITS))
    with pytest.raises(
        ValueError, match=r"different shapes, such as \(2,\), \(1,\)\. Join batches"
    ):
        TemperatureScaler().fit([[1.0, 2.0], [3.0]], [0, 1])


@pytest.mark.parametrize("call", [calibrate, TemperatureScaler().fit])
def test_the_remedy_for_a_list_of_unequal_batches_is_to_join_them(call: Any) -> None:
    joined = r"torch.cat\(batches\) for tensors, np.concatenate\(batches\) for arrays"
    logits = torch.as_tensor(LOGITS).split(64)
    labels = torch.as_tensor(LABELS).split(64)
    for rows, classes in (
        (list(logits), list(labels)),
        ([each.numpy() for each in logits], [each.numpy() for each in labels]),
        (LOGITS, list(labels)),
    ):
        with pytest.raises(ValueError, match=joined):
            call(rows, classes)
    call(torch.cat(logits), torch.cat(labels))


@pytest.mark.parametrize(
    ("logits", "labels", "fault"),
    [
        ({"logits": torch.tensor(LOGITS)}, LABELS, "got one dict. Give one of its"),
        ((row for row in LOGITS), LABELS, "got one generator. Give a tensor, an array"),
        (LOGITS, dict(enumerate(LABELS)), "got one dict"),
        (LOGITS, None, "requires y to be passed, but the target y is None"),
    ],
)
def test_objects_without_rows_are_named_and_not_printed(
    logits: Any, labels: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault) as error:
        TemperatureScaler().fit(logits, labels)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("label", "fault"),
    [
        (3, "one type, got 'a' in row 0 and 3 in row 7. Give all of them as text"),
        (None, "got (None|nan) in row 7. Remove rows"),
        (np.nan, "got nan in row 7. Remove rows"),
        (pd.NaT, "got NaT in row 7. Remove rows"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, pd.Series])
def test_a_label_of_another_type_is_named(make: Any, label: Any, fault: str) -> None:
    names = np.array(list("abcdefghij"), dtype=object)[LABELS]
    names[0] = "a"
    names[7] = label
    with pytest.raises(ValueError, match=fault):
        TemperatureScaler().fit(LOGITS, make(names))


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        (0.9 * np.eye(10)[LABELS] + 0.01, r"got 0\.91 in row 0\. Give the classes"),
        (np.where(np.eye(10)[LABELS] > 0, np.nan, 0), "got nan in row 0. Remove rows"),
        (LABELS.astype(object), r"y must be whole numbers.*y\.astype\(int\)"),
        (
            pd.Series(LABELS, dtype="Int64").mask(LABELS == 4),
            r"got nan in row \d+\. Rem",
        ),
        (pd.Series([pd.NA, *LABELS[1:]], dtype=object), "got <NA> in row 0. Remove"),
    ],
)
def test_each_fault_of_labels_is_named_in_one_line(labels: Any, fault: str) -> None:
    with pytest.raises(ArgumentError, match=fault) as error:
        TemperatureScaler().fit(LOGITS, labels)
    assert "\n" not in str(error.value)


def test_the_remedies_for_labels_are_fitted() -> None:
    expected = TemperatureScaler().fit(LOGITS, LABELS).temperature_
    smooth = 0.9 * np.eye(10)[LABELS] + 0.01
    objects = LABELS.astype(object)
    for labels in (smooth.argmax(axis=1), objects.astype(int), np.eye(10)[LABELS]):
        assert TemperatureScaler().fit(LOGITS, labels).temperature_ == expected


def test_a_network_is_not_divided_twice_by_one_temperature() -> None:
    network, inputs = nn.Linear(4, 10), torch.randn(3, 4)
    scaler = TemperatureScaler().fit(LOGITS, LABELS)
    wrapped = scaler.wrap(network)
    with pytest.raises(ValueError, match="already divides its logits by this temp"):
        scaler.wrap(wrapped)
    # A second scaler may divide the logits once more, but a copy of the wrapped network
    # is recognised.
    other = TemperatureScaler().fit(LOGITS[:700], LABELS[:700])
    expected = network(inputs) / scaler.temperature_ / other.temperature_
    torch.testing.assert_close(other.wrap(wrapped)(inputs), expected)
    with pytest.raises(ValueError, match="already divides"):
        scaler.wrap(copy.deepcopy(wrapped).half())
    # Dividing by a temperature of 1 changes nothing, so it may be done repeatedly.
    scaler.temperature_ = 1.0
    torch.testing.assert_close(
        scaler.wrap(scaler.wrap(network))(inputs), network(inputs)
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("offset", [0, 2000])
def test_probabilities_equal_the_softmax_in_float64(
    dtype: torch.dtype, offset: float
) -> None:
    logits = (torch.tensor(LOGITS) + offset).to(dtype)
    check_exact(logits, torch.tensor(LABELS))


def test_probabilities_of_bfloat16_equal_the_softmax_in_float64() -> None:
    check_exact((torch.tensor(LOGITS) + 30).bfloat16(), torch.tensor(LABELS))


def test_probabilities_of_large_numbers_equal_the_softmax_in_float64() -> None:
    generator = torch.Generator().manual_seed(0)
    offsets = 1e6 * torch.rand(len(LOGITS), 1, generator=generator)
    check_exact((torch.tensor(LOGITS) + offsets).float(), torch.tensor(LABELS))


def check_exact(logits: torch.Tensor, labels: torch.Tensor) -> None:
    """Compare probabilities and predictions with those computed in float64."""
    scaler = TemperatureScaler().fit(logits, labels)
    exact = torch.softmax(logits.double() / scaler.temperature_, 1)
    probs = scaler.predict_proba(logits)
    assert (probs - exact).abs().max() < 1e-6
    assert (probs.double().sum(1) - 1).abs().max() < 1e-6
    assert torch.equal(scaler.predict(logits), logits.argmax(1))
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    assert probs.dtype == scaler.transform(logits).dtype == wide
    quotients = logits.double() / scaler.temperature_
    assert torch.equal(scaler.transform(logits), quotients.to(wide))


def test_probabilities_of_a_single_column_in_half_precision_are_exact() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = (8 * torch.randn(500, 1, generator=generator)).bfloat16()
    noise = torch.rand(500, generator=generator).logit()
    labels = (logits[:, 0].float() / 2 > noise).long()
    scaler = TemperatureScaler().fit(logits, labels)
    exact = torch.sigmoid(logits[:, 0].double() / scaler.temperature_)
    assert (scaler.predict_proba(logits)[:, 1] - exact).abs().max() < 1e-6


def test_a_wrapped_network_keeps_the_type_of_its_logits() -> None:
    scaler = TemperatureScaler().fit(LOGITS, LABELS)
    wrapped = scaler.wrap(nn.Identity())
    logits = torch.tensor(LOGITS).bfloat16()
    assert wrapped(logits).dtype == torch.bfloat16


def test_minus_one_is_no_class_beside_three_others() -> None:
    generator = np.random.default_rng(4)
    logits = generator.normal(size=(300, 6))
    drawn = logits + generator.gumbel(size=logits.shape)
    labels = drawn[:, :5].argmax(axis=1)
    unlabelled = labels.copy()
    unlabelled[::9] = -1
    with pytest.raises(ValueError, match=r"from -1 to 4, .*ignore_index=-1; otherwise"):
        TemperatureScaler().fit(logits, unlabelled)
    kept = unlabelled >= 0
    expected = TemperatureScaler().fit(logits[kept], labels[kept]).temperature_
    ignoring = TemperatureScaler(ignore_index=-1).fit(logits, unlabelled)
    assert ignoring.temperature_ == expected
    moods = drawn[:, :3].argmax(axis=1) - 1
    assert TemperatureScaler().fit(logits[:, :3], moods).classes_.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("classes", [129, 200])
def test_labels_that_wrapped_in_a_narrow_type_are_refused(
    kind: str, classes: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(3000, classes, generator=generator, dtype=torch.float64)
    labels = logits.argmax(1)
    labels[:1500] = torch.randint(classes, (1500,), generator=generator)
    narrow: Any = labels.to(torch.int8)
    given: Any = logits
    if kind == "array":
        narrow, given = narrow.numpy(), logits.numpy()
    with pytest.raises(ValueError, match="Convert the original labels to int64"):
        TemperatureScaler().fit(given, narrow)
    assert TemperatureScaler().fit(logits, labels).temperature_ > 0


def test_padding_in_a_narrow_type_is_ignored() -> None:
    logits = 3 * torch.randn(500, 10, generator=torch.Generator().manual_seed(0))
    labels = logits.argmax(1)
    labels[:250] = torch.arange(250) % 10
    labels[::10] = -100
    narrow = TemperatureScaler().fit(logits, labels.to(torch.int8))
    wide = TemperatureScaler().fit(logits, labels)
    assert narrow.temperature_ == wide.temperature_
