"""Data frames, masked arrays and options: ambiguous or lossy input is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from softmax_temperature import (
    TemperatureScaler,
    calibrate,
    sample_logits,
    suggest_temperature,
)

LOGITS, LABELS = sample_logits()
FRAME = pd.DataFrame(LOGITS, columns=[f"logit_{number}" for number in range(10)])
ENTRIES: dict[str, Any] = {
    "calibrate": lambda frame, labels: calibrate(frame, labels, bootstrap=0),
    "validation": lambda frame, labels: calibrate(
        LOGITS[:700], LABELS[:700], validation=(frame, labels), bootstrap=0
    ),
    "fit": lambda frame, labels: TemperatureScaler().fit(frame, labels),
    "suggest": suggest_temperature,
}
every_entry = pytest.mark.parametrize("entry", ENTRIES)


@every_entry
@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (FRAME.assign(label=LABELS), "columns that are not scores: 'label'"),
        (FRAME.assign(id=range(len(FRAME))), "columns that are not scores: 'id'"),
        (FRAME[sorted(FRAME, reverse=True)], "its columns in the order logit_9, logit"),
        (FRAME.rename(columns={"logit_3": "logit_2"}), "has two columns 'logit_2'"),
        (
            pa.Table.from_pandas(FRAME[sorted(FRAME, reverse=True)]),
            "its columns in the order logit_9, logit",
        ),
    ],
)
def test_a_frame_with_other_columns_or_another_order_is_refused(
    entry: str, frame: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        ENTRIES[entry](frame, LABELS)


ROWS = np.arange(len(LABELS))
NAMED = pd.DataFrame(LOGITS, columns=list("jihgfedcba")).add_prefix("digit ")
OTHERS: dict[str, Any] = {
    "id": ROWS[::-1],
    "row_id": 7 * ROWS,
    "imageId": 7.0 * ROWS,
    "index": ROWS,
    "Unnamed: 0": ROWS[::-1],
    "fold": ROWS % 5,
    "Split": np.zeros(len(ROWS)),
    "pred": LOGITS.argmax(axis=1),
    "Predicted Class": LOGITS.argmax(axis=1),
    "confidence": np.exp(-1 / (1 + ROWS)),
    "score": LOGITS.max(axis=1),
    "gt": LABELS,
    "y": LABELS,
    "number": 1.0 + ROWS,
    "name": [f"{row}.png" for row in ROWS],
    "right": LOGITS.argmax(axis=1) == LABELS,
}


@every_entry
@pytest.mark.parametrize("column", OTHERS)
def test_a_column_beside_classes_without_numbers_is_refused(
    entry: str, column: str
) -> None:
    for place in (0, 10):
        frame = NAMED.copy()
        frame.insert(place, column, OTHERS[column])
        for form in (frame, pa.Table.from_pandas(frame)):
            with pytest.raises(ValueError, match=rf"not scores: '{column}'\. Drop"):
                ENTRIES[entry](form, LABELS)


@pytest.mark.parametrize("entry", ["calibrate", "validation", "fit"])
def test_an_integer_column_beside_fractions_is_not_a_class(entry: str) -> None:
    for column in (ROWS % 7, ROWS % 2, np.full(len(ROWS), 3)):
        frame = NAMED.assign(patient=column)
        with pytest.raises(ValueError, match=r"not scores: 'patient'\. Drop"):
            ENTRIES[entry](frame, LABELS)


def test_every_column_that_is_not_a_score_is_named_in_one_line() -> None:
    frame = NAMED.assign(file="a.png", id=ROWS, fold=3, label=LABELS)
    with pytest.raises(ValueError, match="'file', 'id', 'fold', 'label'") as refused:
        calibrate(frame, LABELS)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "names",
    [
        ["en", "de", "fr", "id", "it", "es", "pt", "nl", "pl", "cs"],
        ["thumb", "index", "middle", "ring", "little", "palm", "row", "a", "b", "c"],
        ["A1", "A2", "B1", "B2", "C1", "C2", "D1", "D2", "E1", "E2"],
        ["cold", "flu", "covid19", "asthma", "none", "win", "draw", "loss", "p", "q"],
        list("rstuvwxyzk"),
        [f"logit_{name}" for name in ("id", *"abcdefghi")],
    ],
)
def test_fractions_under_the_name_of_a_key_are_a_class(names: list[str]) -> None:
    expected = TemperatureScaler().fit(LOGITS, LABELS).temperature_
    frame = NAMED.set_axis(names, axis=1)
    for form in (frame, pa.Table.from_pandas(frame)):
        assert TemperatureScaler().fit(form, LABELS).temperature_ == expected


def test_whole_numbers_float32_and_constant_classes_are_scores() -> None:
    whole = NAMED.mul(10).round()
    expected = TemperatureScaler().fit(whole.to_numpy(), LABELS).temperature_
    for dtype in ("int64", "int32", "float32", "Int64"):
        scaler = TemperatureScaler().fit(whole.astype(dtype), LABELS)
        assert scaler.temperature_ == pytest.approx(expected, rel=1e-6)
    # The logit of a reference class is 0. That of a class that never occurs is low.
    for constant in (0, 0.0, -1000):
        fixed = NAMED.assign(**{"digit a": constant})
        array = fixed.to_numpy()
        scaler = TemperatureScaler().fit(fixed, LABELS)
        assert (
            scaler.temperature_ == TemperatureScaler().fit(array, LABELS).temperature_
        )
    # A dimension of an embedding may hold whole numbers.
    assert suggest_temperature(NAMED.assign(age=ROWS % 80), LABELS)


def test_a_class_with_the_name_of_another_column_is_passed_as_an_array() -> None:
    frame = NAMED.rename(columns={"digit j": "score"})
    with pytest.raises(ValueError, match=r"'score'.*such as frame\.to_numpy\(\)"):
        TemperatureScaler().fit(frame, LABELS)
    scaler = TemperatureScaler().fit(frame.to_numpy(), LABELS)
    assert scaler.temperature_ == TemperatureScaler().fit(LOGITS, LABELS).temperature_
    # A column with such a name may be the only one: it is the logit of class 1.
    column = frame[["score"]]
    TemperatureScaler().fit(column, LABELS == 0)
    with pytest.raises(ValueError, match="not scores: 'confidence'"):
        TemperatureScaler().fit(column.set_axis(["confidence"], axis=1), LABELS == 0)


@every_entry
def test_labels_whose_index_has_another_order_are_refused(entry: str) -> None:
    labels = pd.Series(LABELS).iloc[::-1]
    with pytest.raises(ValueError, match="the same index in different orders"):
        ENTRIES[entry](FRAME, labels)


def test_a_frame_of_numbered_or_named_columns_is_a_matrix() -> None:
    expected = TemperatureScaler().fit(LOGITS, LABELS).temperature_
    named = FRAME.set_axis(list("abcdefghij"), axis=1)
    for frame in (FRAME, named, pa.Table.from_pandas(FRAME)):
        assert TemperatureScaler().fit(frame, LABELS).temperature_ == expected


@every_entry
def test_masked_entries_are_refused(entry: str) -> None:
    masked = np.ma.masked_array(LOGITS, LOGITS > 5)
    with pytest.raises(ValueError, match="masked entries"):
        ENTRIES[entry](masked, LABELS)
    with pytest.raises(ValueError, match="masked entries"):
        ENTRIES[entry](LOGITS, np.ma.masked_array(LABELS, LABELS == 2))


@pytest.mark.parametrize("value", ["255", 255.0, None])
def test_an_ignored_label_is_a_whole_number(value: Any) -> None:
    with pytest.raises(ValueError, match="ignore_index must be an integer"):
        calibrate(LOGITS, LABELS, ignore_index=value)
    with pytest.raises(ValueError, match="ignore_index must be an integer"):
        TemperatureScaler(ignore_index=value).fit(LOGITS, LABELS)


def test_validation_rows_that_are_those_to_report_on_are_refused() -> None:
    with pytest.raises(ValueError, match=r"validation logits .* rows in common"):
        calibrate(LOGITS, LABELS, validation=(LOGITS.copy(), LABELS), bootstrap=0)


@pytest.mark.parametrize("logits", [None, "logits.npz", {"a": 1}, iter([1.0])])
def test_anything_but_an_array_is_refused(logits: Any) -> None:
    with pytest.raises(ValueError, match="one row per sample, got one"):
        calibrate(logits, LABELS)


@pytest.mark.parametrize("void", [-1, -100])
def test_a_row_without_a_class_is_not_a_class_of_embeddings(void: int) -> None:
    labels = np.where(LABELS == 9, void, LABELS)
    with pytest.raises(ValueError, match=f"must not be negative, got {void}"):
        suggest_temperature(LOGITS, labels)
    suggest_temperature(LOGITS, np.where(LABELS == 9, -1, 1))


NAMES = np.array(list("jihgfedcba"))
LETTERS = FRAME.set_axis(NAMES, axis=1)
ONE_HOT = pd.DataFrame(np.eye(10, dtype=int)[LABELS], columns=NAMES)
SCORES: dict[str, Any] = {name: ENTRIES[name] for name in ENTRIES if name != "suggest"}


@pytest.mark.parametrize("entry", SCORES)
@pytest.mark.parametrize(
    ("frame", "one_hot", "fault"),
    [
        (LETTERS, ONE_HOT[sorted(NAMES)], "but the one-hot labels have a, b, c, d, e"),
        (
            LETTERS.add_prefix("logit_"),
            ONE_HOT[sorted(NAMES)].add_prefix("is_"),
            "has the columns logit_j, .* but the one-hot labels have is_a",
        ),
        (
            pa.Table.from_pandas(LETTERS),
            pa.Table.from_pandas(ONE_HOT[sorted(NAMES)]),
            "but the one-hot labels have a, b, c, d, e",
        ),
        (
            LOGITS,
            pd.get_dummies(pd.Series(LABELS))[[1, 0, *range(2, 10)]],
            "one-hot labels has its columns in the order 1, 0, 2",
        ),
    ],
)
def test_one_hot_frames_in_another_order_than_the_scores_are_refused(
    entry: str, frame: Any, one_hot: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        SCORES[entry](frame, one_hot)


def test_one_hot_frames_in_the_order_of_the_scores_are_labels() -> None:
    expected = TemperatureScaler().fit(LOGITS, LABELS).temperature_
    for frame, one_hot in (
        (LETTERS, ONE_HOT),
        (LETTERS.add_prefix("logit_"), ONE_HOT),
        (FRAME, ONE_HOT),
        (LOGITS, pd.get_dummies(pd.Series(LABELS))),
    ):
        assert TemperatureScaler().fit(frame, one_hot).temperature_ == expected
        report = calibrate(frame, one_hot, fit_on="all", bootstrap=0)
        assert report.temperature == expected


@pytest.mark.parametrize("prefix", ["", "logit_"])
def test_columns_that_are_named_after_the_labels_give_their_order(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"order .*j, .*i, .* in the order a, b, c"):
        TemperatureScaler().fit(LETTERS.add_prefix(prefix), NAMES[LABELS])
    ordered = LETTERS[sorted(NAMES)].add_prefix(prefix)
    scaler = TemperatureScaler().fit(ordered, NAMES[LABELS])
    assert scaler.temperature_ == TemperatureScaler().fit(LOGITS, LABELS).temperature_
    assert (scaler.predict(ordered) == NAMES[LOGITS.argmax(axis=1)]).all()


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]"])
def test_frames_of_nullable_numbers_are_matrices(dtype: str) -> None:
    expected = calibrate(LOGITS, LABELS, fit_on="all", bootstrap=0).temperature
    frame = FRAME.astype(dtype)
    labels = pd.Series(LABELS).astype("Int64")
    report = calibrate(frame, labels, fit_on="all", bootstrap=0)
    assert report.temperature == expected
    frame.iloc[7, 3] = pd.NA
    with pytest.raises(ValueError, match="must be finite, got nan in row 7, class 3"):
        calibrate(frame, labels)
    labels[4] = pd.NA
    with pytest.raises(ValueError, match="labels must be whole numbers, got nan"):
        calibrate(LOGITS, labels)
