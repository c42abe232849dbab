"""A table of classes that was flattened with its one-hot labels is refused."""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli
from softmax_temperature.tools.flattened_classes import check_not_one_column

CLASSES = 5
GENERATOR = np.random.default_rng(2)
LOGITS = 3 * GENERATOR.normal(size=(600, CLASSES))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
LABELS = (LOGITS / 1.8 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
ONE_HOT = np.eye(CLASSES, dtype=np.int64)[LABELS]
LOOKS = (
    "{} and labels look like a table of 5 classes, flattened by {}: of 5 labels each, "
    r"exactly one is 1. Give the table, of shape \(600, 5\), with one label per row."
)


@pytest.mark.parametrize(("order", "by"), [("C", "row"), ("F", "column")])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float32])
def test_flattened_scores_are_refused(
    order: Literal["C", "F"], by: str, dtype: type
) -> None:
    labels = ONE_HOT.ravel(order).astype(dtype)
    tables: dict[Literal["logits", "probs"], NDArray[np.float64]] = {
        "logits": LOGITS,
        "probs": PROBS,
    }
    for kind, table in tables.items():
        scores = table.ravel(order)
        for column in (scores, scores[:, None]):
            with pytest.raises(ValueError, match=f"^{LOOKS.format(kind, by)}$"):
                calibrate(column, labels, kind=kind)
        with pytest.raises(ValueError, match=f"^{LOOKS.format(kind, by)}$"):
            calibrate(scores[:, None], labels[:, None], kind=kind)
    scores = LOGITS.ravel(order)
    with pytest.raises(ValueError, match=LOOKS.format("logits", by)):
        TemperatureScaler().fit(scores[:, None], labels)


def test_two_columns_of_each_class_and_the_rest_are_refused() -> None:
    probs = PROBS.ravel()
    pairs = np.column_stack([1 - probs, probs])
    with pytest.raises(ValueError, match=LOOKS.format("probs", "row")):
        calibrate(pairs, ONE_HOT.ravel(), kind="probs")
    with pytest.raises(ValueError, match=LOOKS.format("logits", "row")):
        calibrate(np.log(pairs), ONE_HOT.ravel())
    with pytest.raises(ValueError, match=LOOKS.format("logits", "row")):
        calibrate(np.log(probs / (1 - probs)), ONE_HOT.ravel())


def test_a_long_table_is_refused_by_the_command(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    frame = pd.DataFrame({"prob": PROBS.ravel(), "label": ONE_HOT.ravel()})
    frame.to_csv(file, index=False)
    done = CliRunner().invoke(cli.app, ["calibrate", str(file), "--probs"])
    assert isinstance(done.exception, InputError)
    assert "Give the table, of shape (600, 5)" in str(done.exception)
    assert [*tmp_path.iterdir()] == [file]


def test_the_remedy_gives_the_temperature() -> None:
    table = LOGITS.ravel().reshape(600, 5)
    report = calibrate(table, ONE_HOT.ravel().reshape(600, 5), bootstrap=0)
    assert report.temperature == pytest.approx(1.8, rel=0.15)


def draw(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores of a binary classifier, and labels of which a fifth are 1."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=3000)
    labels = np.zeros(3000, np.int64)
    labels[generator.permutation(3000)[:600]] = 1
    return scores, labels


def test_labels_of_two_classes_in_any_order_are_accepted() -> None:
    scores, labels = draw(0)
    period = (np.arange(3000) % 5 == 2).astype(np.int64)
    run = np.zeros(3000, np.int64)
    run[700:1300] = 1
    for classes in (labels, np.sort(labels), np.sort(labels)[::-1], period, run):
        check_not_one_column(scores[:, None], classes, "logits", "logits")
    for classes in range(3, 7):
        for seed in range(50):
            few = np.random.default_rng(seed).permutation(np.arange(20 * classes) < 20)
            check_not_one_column(scores[: len(few), None], few, "logits", "logits")


def test_a_table_with_its_own_labels_is_accepted() -> None:
    check_not_one_column(LOGITS, LABELS, "logits", "logits")
    first = LOGITS[:, :2]
    check_not_one_column(first, first.argmax(axis=1), "logits", "logits")
    for kind in ("logits", "probs"):
        # There are fewer than 20 rows.
        few = LOGITS[:19].reshape(-1, 1)
        check_not_one_column(few, ONE_HOT[:19].ravel(), kind, kind)


def test_candidates_that_are_judged_independently_are_accepted() -> None:
    # Exactly one candidate of each question is right.
    generator = np.random.default_rng(4)
    logits = 2 * (ONE_HOT + generator.normal(size=ONE_HOT.shape)) - 2.9
    probs = 1 / (1 + np.exp(-logits))
    assert probs.mean() == pytest.approx(1 / CLASSES, rel=0.1)
    labels = ONE_HOT.ravel()
    check_not_one_column(logits.reshape(-1, 1), labels, "logits", "logits")
    check_not_one_column(probs.reshape(-1, 1), labels, "probs", "probs")
