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
NAMED = FRAME.set_axis(NAMES, axis=1)
ONE_HOT = pd.DataFrame(np.eye(10, dtype=int)[LABELS], columns=NAMES)
SCORES: dict[str, Any] = {name: ENTRIES[name] for name in ENTRIES if name != "suggest"}


@pytest.mark.parametrize("entry", SCORES)
@pytest.mark.parametrize(
    ("frame", "one_hot", "fault"),
    [
        (NAMED, ONE_HOT[sorted(NAMES)], "but the one-hot labels have a, b, c, d, e"),
        (
            NAMED.add_prefix("logit_"),
            ONE_HOT[sorted(NAMES)].add_prefix("is_"),
            "has the columns logit_j, .* but the one-hot labels have is_a",
        ),
        (
            pa.Table.from_pandas(NAMED),
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
        (NAMED, ONE_HOT),
        (NAMED.add_prefix("logit_"), ONE_HOT),
        (FRAME, ONE_HOT),
        (LOGITS, pd.get_dummies(pd.Series(LABELS))),
    ):
        assert TemperatureScaler().fit(frame, one_hot).temperature_ == expected
        report = calibrate(frame, one_hot, fit_on="all", bootstrap=0)
        assert report.temperature == expected


@pytest.mark.parametrize("prefix", ["", "logit_"])
def test_columns_that_are_named_after_the_labels_give_their_order(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"order .*j, .*i, .* in the order a, b, c"):
        TemperatureScaler().fit(NAMED.add_prefix(prefix), NAMES[LABELS])
    ordered = NAMED[sorted(NAMES)].add_prefix(prefix)
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
