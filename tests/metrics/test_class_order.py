"""Labels that number the classes in a different order from the columns are refused;
poor models are not.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from torch import Tensor, nn

from softmax_temperature import Cooling, TemperatureScaler, calibrate, metrics
from softmax_temperature.metrics.class_order import (
    check_class_order,
    no_better_than_chance,
    predictions_without_labels,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import fit_temperature, temperature_interval
from softmax_temperature.tools.calibrate import calibrate_files

Numbers = NDArray[Any]
Drawn = tuple[Numbers, Numbers]


def drawn(rows: int, classes: int, temperature: float = 1.0, seed: int = 0) -> Drawn:
    """Logits of scale 3, and labels drawn from softmax(z / T)."""
    generator = np.random.default_rng(seed)
    logits = 3 * generator.normal(size=(rows, classes))
    noise = generator.gumbel(size=logits.shape)
    return logits, (logits / temperature + noise).argmax(axis=1)


def text_order(classes: int, first: int) -> Numbers:
    return np.array(sorted(range(first, first + classes), key=str)) - first


def refused(logits: Numbers, labels: Numbers, *, any_order: bool = False) -> bool:
    try:
        check_class_order(
            torch.tensor(labels), torch.tensor(logits), any_order=any_order
        )
    except ValueError:
        return True
    return False


def test_the_remedy_for_numbers_sorted_as_texts_reorders_the_columns() -> None:
    right, labels = drawn(600, 12)
    order = text_order(12, 0)
    for wrong, remedy in (
        (right[:, order], np.argsort(sorted(range(12), key=str))),
        (right[:, np.argsort(order)], np.array(sorted(range(12), key=str))),
    ):
        np.testing.assert_array_equal(wrong[:, remedy], right)
        with pytest.raises(ValueError, match=r"order of sorted texts, 0, 1, 10, 11, 2"):
            check_class_order(torch.tensor(labels), torch.tensor(wrong))
    with pytest.raises(ValueError, match=r"order = np.argsort\(sorted\(range\(0, 12\)"):
        calibrate(right[:, order], labels)
    with pytest.raises(ValueError, match=r"order = np.array\(sorted\(range\(0, 12\)"):
        calibrate(right[:, np.argsort(order)], labels)
    assert calibrate(right, labels, bootstrap=0).temperature == pytest.approx(
        1, abs=0.2
    )


@pytest.mark.parametrize("rows", [300, 4000])
@pytest.mark.parametrize(("classes", "first"), [(11, 0), (12, 1), (20, 0), (102, 1)])
def test_both_directions_of_the_order_are_recognised(
    rows: int, classes: int, first: int
) -> None:
    logits, labels = drawn(rows, classes)
    order = text_order(classes, first)
    assert not refused(logits, labels, any_order=True)
    assert refused(logits[:, order], labels)
    assert refused(logits[:, np.argsort(order)], labels)


@pytest.mark.parametrize(
    ("rows", "classes"), [(500, 3), (300, 5), (1000, 10), (4000, 100)]
)
def test_any_order_is_refused_where_a_temperature_is_fitted(
    rows: int, classes: int
) -> None:
    logits, labels = drawn(rows, classes)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(classes)
        same = (order == np.arange(classes)).all()
        assert refused(logits, order[labels], any_order=True) is not bool(same)
        # A model under attack may have any accuracy, so metrics accept any order.
        assert not refused(logits, order[labels])


def test_the_order_is_named_and_right() -> None:
    right, labels = drawn(1000, 4)
    order = [2, 0, 3, 1]
    wrong = right[:, np.argsort(order)]
    with pytest.raises(ValueError, match=r"order = \[2, 0, 3, 1\]"):
        fit_temperature(torch.tensor(wrong), torch.tensor(labels))
    np.testing.assert_array_equal(wrong[:, order], right)
    # If only two of ten classes are swapped, the accuracy stays high, but the wrong
    # order is still detected.
    right, labels = drawn(2000, 10)
    wrong = right[:, [1, 0, *range(2, 10)]]
    with pytest.raises(ValueError, match=r"order = \[1, 0, 2, 3, 4, 5, 6, 7, 8, 9\]"):
        fit_temperature(torch.tensor(wrong), torch.tensor(labels))


WRONG = drawn(400, 12)[0][:, text_order(12, 0)]
LABELS = drawn(400, 12)[1]
PROBS = torch.softmax(torch.tensor(WRONG), dim=1)


@pytest.mark.parametrize(
    "call",
    [
        calibrate,
        lambda _, labels: calibrate(PROBS.numpy(), labels, kind="probs"),
        lambda logits, labels: calibrate(*drawn(99, 12), validation=(logits, labels)),
        TemperatureScaler().fit,
        lambda logits, labels: TemperatureScaler().fit(
            torch.tensor(logits), torch.tensor(labels)
        ),
    ],
)
def test_functions_of_arrays_refuse_the_order(
    call: Callable[[Numbers, Numbers], Any],
) -> None:
    with pytest.raises(ValueError, match="order of sorted texts"):
        call(WRONG, LABELS)


@pytest.mark.parametrize(
    "call",
    [
        fit_temperature,
        lambda logits, labels: temperature_interval(logits, labels, 1.5),
        lambda logits, labels: Cooling(nn.Linear(2, 12)).cool(logits, labels),
        metrics.top_accuracy,
        metrics.negative_log_likelihood,
        metrics.calibration_report,
        lambda logits, labels: metrics.paired_difference(logits, 2 * logits, labels),
        lambda _, labels: metrics.brier_score(PROBS, labels),
        lambda _, labels: metrics.expected_calibration_error(PROBS, labels),
        lambda _, labels: metrics.classwise_calibration_error(PROBS, labels),
    ],
)
def test_functions_of_tensors_refuse_the_order(
    call: Callable[[Tensor, Tensor], Any],
) -> None:
    with pytest.raises(ValueError, match="order of sorted texts"):
        call(torch.tensor(WRONG), torch.tensor(LABELS))


def test_the_command_refuses_the_order_in_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "wrong.npz", logits=WRONG, labels=LABELS)
    with pytest.raises(InputError, match="order of sorted texts") as caught:
        calibrate_files(tmp_path / "wrong.npz", output=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def ordinal(guess: Callable[[Numbers, int], Numbers]) -> Callable[..., Drawn]:
    """A model of ordered classes, whose predictions are `guess(label, classes)` plus
    noise.
    """

    def draw(rows: int, classes: int, generator: np.random.Generator) -> Drawn:
        labels = generator.integers(classes, size=rows)
        guesses = guess(labels, classes) + 0.7 * generator.normal(size=rows)
        predicted = np.clip(np.round(guesses), 0, classes - 1).astype(int)
        noise = 0.01 * generator.normal(size=(rows, classes))
        return np.eye(classes)[predicted] + noise, labels

    return draw


def shuffled(rows: int, classes: int, generator: np.random.Generator) -> Drawn:
    logits, labels = drawn(rows, classes, 1, int(generator.integers(1000)))
    return logits, generator.permutation(labels)


def collapsed(rows: int, classes: int, generator: np.random.Generator) -> Drawn:
    logits, labels = drawn(rows, classes, 1, int(generator.integers(1000)))
    logits[:, :2] += 4
    return logits, labels


def long_tailed(rows: int, classes: int, generator: np.random.Generator) -> Drawn:
    shares = 1 / np.arange(1, classes + 1) ** 1.5
    labels = generator.choice(classes, rows, p=shares / shares.sum())
    noise = generator.normal(size=(rows, classes))
    return 3 * np.log(shares) + noise + np.eye(classes)[labels], labels


def mistaken(rows: int, classes: int, generator: np.random.Generator) -> Drawn:
    """A model that assigns half of each class's samples to one random class."""
    favourites = generator.integers(classes, size=classes)
    labels = generator.integers(classes, size=rows)
    predicted = generator.integers(classes, size=rows)
    fate = generator.random(rows)
    predicted = np.where(fate < 0.6, labels, predicted)
    predicted = np.where(fate < 0.5, favourites[labels], predicted)
    return np.eye(classes)[predicted] + 0.01 * generator.normal(
        size=(rows, classes)
    ), labels


@pytest.mark.parametrize("rows", [60, 200, 1000])
@pytest.mark.parametrize("classes", [2, 3, 10, 11, 20, 100])
@pytest.mark.parametrize(
    "model",
    [
        shuffled,
        collapsed,
        long_tailed,
        mistaken,
        ordinal(lambda labels, _: labels + 1.0),
        ordinal(lambda labels, _: labels - 2.0),
        ordinal(lambda labels, classes: 0.3 * labels + 0.35 * classes),
    ],
)
def test_a_bad_model_is_not_refused(model: Any, classes: int, rows: int) -> None:
    for seed in range(8):
        logits, labels = model(rows, classes, np.random.default_rng(seed))
        # Labels without class 0 would seem to count from 1, which another check
        # refuses.
        labels[0] = 0
        assert not refused(logits, labels, any_order=True)


def test_two_classes_are_never_refused() -> None:
    logits, labels = drawn(1000, 2)
    assert not refused(logits, 1 - labels, any_order=True)
    verdict = calibrate(logits, 1 - labels, bootstrap=0).data["verdict"]
    assert "Check that column c holds class c" in verdict


def test_an_accuracy_like_that_of_chance_is_named_in_the_verdict() -> None:
    hint = "is no better than chance: check that labels and columns are in the same"
    logits, labels = drawn(400, 200)
    order = np.random.default_rng(0).permutation(200)
    said = 0
    for seed in range(6):
        # There are too few rows of each class to find the right order.
        verdict = calibrate(
            logits, order[labels], seed=seed, fit_on="all", bootstrap=0
        ).data["verdict"]
        said += hint in verdict or "Check that column c holds class c" in verdict
    assert said == 6
    assert hint not in calibrate(logits, labels, bootstrap=0).data["verdict"]


def test_chance_is_the_agreement_of_predictions_in_random_order() -> None:
    # Three quarters of the labels and of the predictions are 0, so random predictions
    # are right in 9/16 + 1/16 = 62.5 % of the rows, more than one half.
    labels = torch.tensor([0, 0, 0, 1] * 25)
    always = torch.tensor([[1.0, 0.0]]).repeat(100, 1)
    assert not no_better_than_chance(labels, always)
    ten = torch.arange(200) % 10
    scores = torch.eye(10)
    # Each class is predicted as often as it occurs: chance is 10 %.
    assert no_better_than_chance(ten, scores[ten.roll(3)])
    assert not no_better_than_chance(ten, scores[torch.where(ten < 3, ten, 0)])
    assert not no_better_than_chance(ten[:19], scores[ten[:19].roll(3)])


def test_the_scaler_warns_of_logits_no_better_than_chance() -> None:
    logits, labels = drawn(3000, 100, 30.0)
    logits = np.hstack([logits, np.zeros((3000, 1))])
    shuffled_labels = np.random.default_rng(5).permutation(labels)
    with pytest.warns(UserWarning, match="no better than chance|say nothing about"):
        TemperatureScaler().fit(logits, shuffled_labels)


@pytest.mark.parametrize("classes", [3, 10, 200])
def test_a_background_before_the_classes_is_refused(classes: int) -> None:
    logits, labels = drawn(3000, classes, 0.5)
    rare = np.random.default_rng(1).normal(size=(3000, 1)) - 6
    table = np.column_stack([rare, logits])
    with pytest.raises(
        ValueError, match=r"if column 0 belongs to none .*logits\[:, 1:"
    ):
        check_class_order(torch.tensor(labels), torch.tensor(table))
    with pytest.raises(ValueError, match=r"if column 0 belongs to none"):
        calibrate(table, labels, bootstrap=0)
    assert not refused(table, labels + 1)
    assert not refused(np.column_stack([logits, rare]), labels)


def test_bad_models_without_rows_of_the_last_class_are_not_refused() -> None:
    for seed in range(10):
        logits, labels = drawn(400, 6, seed=seed)
        generator = np.random.default_rng(seed)
        kept = labels < 5
        assert not refused(logits[kept], labels[kept])
        assert not refused(logits[kept], generator.permutation(labels[kept]))
        # The classes are ordered. For half of the rows, the model predicts the next
        # higher class.
        high = labels[kept] + (generator.random(kept.sum()) < 0.5)
        assert not refused(np.eye(6)[high] + 0.01 * logits[kept], labels[kept])


def test_predictions_of_classes_without_labels_are_named() -> None:
    logits, labels = drawn(600, 10)
    other = np.random.default_rng(1).permuted(logits, axis=0)
    two_heads = np.column_stack([logits, other])
    said = r"4\d % of the predictions are of classes that no label has, such as 1\d: "
    verdict = calibrate(two_heads, labels, bootstrap=0).data["verdict"]
    assert re.search(said, verdict)
    with pytest.warns(UserWarning, match=said):
        TemperatureScaler().fit(two_heads, labels)


@pytest.mark.parametrize(
    ("rows", "classes", "temperature"),
    [(500, 1000, 1.0), (300, 100, 1.0), (100, 100, 1.5), (2000, 1000, 1.5)],
)
def test_classes_that_are_missing_from_a_few_rows_are_not_named(
    rows: int, classes: int, temperature: float
) -> None:
    for seed in range(5):
        logits, labels = map(torch.tensor, drawn(rows, classes, temperature, seed))
        assert predictions_without_labels(labels, logits) == ""


@pytest.mark.parametrize("classes", [3, 10])
@pytest.mark.parametrize("first", [0, 1, -9])
def test_ranks_are_no_logits(classes: int, first: int) -> None:
    logits, labels = drawn(200, classes)
    ranks = logits.argsort(axis=1).argsort(axis=1).astype(float) + first
    table, numbers = torch.tensor(ranks), torch.tensor(labels)
    for call in (
        lambda: calibrate(ranks, labels),
        lambda: TemperatureScaler().fit(ranks, labels),
        lambda: Cooling(nn.Linear(2, classes)).cool(table, numbers),
        lambda: fit_temperature(table, numbers),
    ):
        with pytest.raises(ValueError, match="logits are ranks: every row holds each"):
            call()
    ranks[0, 0] += 0.5
    assert fit_temperature(torch.tensor(ranks), numbers).temperature > 0


COMPARISONS = {
    "differences": lambda *arms: metrics.paired_difference(*arms, bootstrap=19),
    "change": metrics.expected_calibration_error_change,
}


def arms(rows: int, classes: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of two similar models, and labels of which class 0 is frequent."""
    logits, labels = drawn(rows, classes, seed=seed)
    logits[:, 0] += 4 * (labels == 0)
    other = logits + np.random.default_rng(seed + 1).normal(size=logits.shape)
    kept = (labels == 0) | (np.arange(rows) % 3 == 0)
    first, second = torch.tensor(logits[kept]), torch.tensor(other[kept])
    return first, second, torch.tensor(labels[kept])


@pytest.mark.parametrize("classes", [2, 3, 100])
@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
def test_an_arm_from_a_shuffled_loader_is_warned_of(
    compare: Callable[..., object], classes: int
) -> None:
    first, second, labels = arms(2000, classes)
    # In nine of ten orders, as in this one, both agreements are within two standard
    # deviations of their means.
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(len(labels), generator=generator)
    with pytest.warns(UserWarning, match="logits_b agree .*logits_a .*shuffle=False"):
        compare(first, second[order], labels)
    with pytest.warns(UserWarning, match="logits_a agree .*logits_b .*shuffle=False"):
        compare(second[order], first, labels)


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
def test_bad_arms_in_the_same_order_are_not_warned_of(
    compare: Callable[..., object],
) -> None:
    first, second, labels = arms(2000, 5)
    compare(first, second, labels)
    # A collapsed arm predicts one class, an attacked arm hardly ever the label, and a
    # weak arm the label a little more often than chance.
    collapsed = torch.zeros_like(first)
    collapsed[:, 2] = 1
    attacked = first.clone()
    attacked[torch.arange(len(labels)), labels] -= 20
    noise = torch.randn(first.shape, generator=torch.Generator().manual_seed(3))
    weak = 0.1 * first + noise
    for bad in (collapsed, attacked, weak):
        compare(first, bad, labels)
        compare(bad, first, labels)
    compare(first[:30], noise[:30].double(), labels[:30])


def test_a_background_is_doubted_where_the_columns_may_be_features() -> None:
    features, species = load_iris(return_X_y=True)
    # The statistics are those of training rows, so the rows below are not exactly
    # standardised.
    training = features[::2]
    scaled = (features - training.mean(0)) / training.std(0)
    for call in (TemperatureScaler().fit, calibrate):
        with pytest.raises(ValueError, match=r"If column 0 is such .*are features"):
            call(scaled, species)
    logits, labels = drawn(3000, 10, 0.1)
    rare = np.random.default_rng(1).normal(size=(3000, 1)) - 9
    with pytest.raises(ValueError, match=r"\. Leave column 0 out") as found:
        calibrate(np.column_stack([rare, logits]), labels)
    assert "features" not in str(found.value)


def test_another_order_is_doubted_where_the_columns_may_be_features() -> None:
    for temperature, doubted in ((1.5, True), (0.05, False)):
        logits, labels = drawn(3000, 5, temperature)
        with pytest.raises(ValueError, match="Reorder the columns") as found:
            calibrate(logits[:, [3, 1, 4, 0, 2]], labels)
        assert ("If the columns are features" in str(found.value)) == doubted
