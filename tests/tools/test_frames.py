"""Data frames, masked arrays and options: ambiguous or lossy input is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from softmax_temperature import (
    TemperatureScaler,
    calibrate,
    sample_logits,
    suggest_temperature,
)
from softmax_temperature.scaling import fit_temperature, temperature_interval

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
            fault = rf"not scores: '{column}'( \([a-z ]+\))?\. Drop"
            with pytest.raises(ValueError, match=fault):
                ENTRIES[entry](form, LABELS)


@every_entry
@pytest.mark.parametrize("name", ["species", "gt_label", "digit k", "y_val"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "uint8", "Int64"])
def test_a_column_that_equals_the_labels_is_refused(
    entry: str, name: str, dtype: str
) -> None:
    frame = NAMED.assign(**{name: pd.Series(LABELS).astype(dtype)})
    fault = rf"not scores: '{name}' \(equals the labels in every row\)\. Drop these"
    with pytest.raises(ValueError, match=fault) as refused:
        ENTRIES[entry](frame, LABELS)
    # A matrix without names would be refused, too.
    assert "to_numpy" not in str(refused.value)
    with pytest.raises(ValueError, match=fault):
        ENTRIES[entry](frame.iloc[:, ::-1], pd.DataFrame({"label": LABELS}))


@every_entry
@pytest.mark.parametrize("place", [0, 4, 10])
@pytest.mark.parametrize("kind", [np.array, torch.tensor, np.ndarray.tolist])
def test_a_column_of_an_array_that_equals_the_labels_is_refused(
    entry: str, place: int, kind: Any
) -> None:
    table = kind(np.insert(LOGITS, place, LABELS, axis=1))
    remedy = {0: r"\[:, 1:\]", 4: r"np\.delete\(\.\.\., 4, axis=1\)", 10: r"\[:, :10\]"}
    fault = f"hold the labels: column {place} equals them in every row.*{remedy[place]}"
    with pytest.raises(ValueError, match=fault):
        ENTRIES[entry](table, kind(LABELS))


def test_labels_of_any_numbering_and_unlabelled_rows_show_their_column() -> None:
    for labels in (LABELS + 1, np.where(LABELS == 4, -100, LABELS)):
        table = np.column_stack([LOGITS, LABELS if -100 in labels else labels])
        with pytest.raises(ValueError, match="column 10 equals them"):
            TemperatureScaler().fit(table, labels)
        with pytest.raises(ValueError, match="column 10 equals them"):
            calibrate(table, labels)
    signs = np.where(LABELS > 4, 1, -1)
    with pytest.raises(ValueError, match="column 1 equals them"):
        TemperatureScaler().fit(np.column_stack([LOGITS[:, 0], signs]), signs)
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    with pytest.raises(ValueError, match="probs hold the labels: column 10"):
        calibrate(np.column_stack([probs, LABELS]), LABELS, kind="probs")
    pair = (torch.tensor(np.column_stack([LOGITS, LABELS])), torch.tensor(LABELS))
    with pytest.raises(ValueError, match="logits hold the labels: column 10"):
        fit_temperature(*pair)
    with pytest.raises(ValueError, match="logits hold the labels: column 10"):
        temperature_interval(*pair, 2.0)


def test_a_column_is_not_taken_for_the_labels_of_few_rows_or_two_classes() -> None:
    few = np.column_stack([LOGITS[:19], LABELS[:19]])
    assert TemperatureScaler().fit(few, LABELS[:19]).temperature_ > 0
    with pytest.raises(ValueError, match="column 10 equals them"):
        TemperatureScaler().fit(
            np.column_stack([LOGITS[:20], LABELS[:20]]), LABELS[:20]
        )
    # Predicted classes of a binary classifier have a message of their own.
    bits = LABELS % 2
    with pytest.raises(ValueError, match="look like predicted classes"):
        calibrate(np.column_stack([1 - bits, bits]), bits)
    # All labels are 1, and so are all logits of class 1.
    constant = np.insert(LOGITS, 1, 1.0, axis=1)
    with pytest.raises(ValueError, match="one class"):
        TemperatureScaler().fit(constant, np.ones(len(LABELS), int))


@pytest.mark.parametrize("entry", ["calibrate", "validation", "fit"])
def test_whole_numbers_beside_fractions_are_not_a_class(entry: str) -> None:
    missing = pd.array(np.where(ROWS % 50, ROWS % 7, None), dtype="Int64")
    for column in (
        ROWS % 7,
        ROWS % 2,
        1.0 * (ROWS % 2),
        (ROWS % 7).astype(np.float32),
        missing,
    ):
        frame = NAMED.assign(patient=column)
        fault = r"not scores: 'patient' \(whole numbers beside fractions\)\. Drop"
        with pytest.raises(ValueError, match=fault):
            ENTRIES[entry](frame, LABELS)


@pytest.mark.parametrize(
    "values",
    [
        np.ones(len(ROWS), int),
        np.where(ROWS % 3, 10, -10),
        LOGITS[:, 9].round().astype(int),
        np.full(len(ROWS), -np.inf),
    ],
)
def test_saturated_rounded_and_constant_classes_are_scores(values: Any) -> None:
    frame = NAMED.assign(**{"digit a": values})
    if np.isneginf(values).all():
        frame.loc[LABELS == 9, "digit a"] = 0.0
    expected = TemperatureScaler().fit(frame.to_numpy(), LABELS).temperature_
    assert TemperatureScaler().fit(frame, LABELS).temperature_ == expected
    # Numbered columns are classes, whatever their values.
    numbered = FRAME.assign(logit_1=np.maximum(LOGITS[:, 1].round(), 0))
    expected = TemperatureScaler().fit(numbered.to_numpy(), LABELS).temperature_
    assert TemperatureScaler().fit(numbered, LABELS).temperature_ == expected


def test_probabilities_of_0_and_1_are_a_class() -> None:
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    sure = (ROWS % 50 == 0) & (LABELS != 9)
    probs[:, 9] = 0
    probs[sure] = np.eye(10)[9]
    probs /= probs.sum(1, keepdims=True)
    labels = np.where(sure, 9, LABELS % 9)
    frame = pd.DataFrame(probs, columns=NAMED.columns)
    report = calibrate(frame, labels, kind="probs", fit_on="all", bootstrap=0)
    matrix = calibrate(probs, labels, kind="probs", fit_on="all", bootstrap=0)
    assert report.temperature == matrix.temperature


def test_two_probabilities_beside_a_rare_class_are_classes() -> None:
    rng = np.random.default_rng(0)
    share = rng.uniform(0.05, 0.95, 400)
    probs = np.column_stack([share, 1 - share, np.full(400, 1e-4)])
    probs[:, 2] *= rng.uniform(0.5, 1, 400)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (rng.random(400) > share).astype(int)
    frame = pd.DataFrame(probs, columns=["cat", "dog", "eel"])
    report = calibrate(frame, labels, kind="probs", fit_on="all", bootstrap=0)
    matrix = calibrate(probs, labels, kind="probs", fit_on="all", bootstrap=0)
    assert report.temperature == matrix.temperature


def summaries(form: str) -> dict[str, Any]:
    """Logits and summaries of each row, rounded to the given format."""
    logits = np.array([[float(format(each, form)) for each in row] for row in LOGITS])
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    confidence = shares.max(1)
    entropy = -(shares * np.log(shares)).sum(1)
    columns = {
        "top": logits.max(1),
        "sure": confidence,
        "unsure": 1 - confidence,
        "doubt": entropy,
        "choices": np.exp(entropy),
        "energy": -np.log(np.exp(logits).sum(1)),
        "evidence": np.log(np.exp(logits).sum(1)),
    }
    return {"logits": logits} | {
        name: np.array([float(format(each, form)) for each in column])
        for name, column in columns.items()
    }


@pytest.mark.parametrize("entry", ["calibrate", "validation", "fit"])
@pytest.mark.parametrize("form", [".4g", ".6g", ".4f", ".17g"])
def test_columns_that_summarise_a_row_are_refused_whatever_their_name(
    entry: str, form: str
) -> None:
    values = summaries(form)
    frame = pd.DataFrame(values["logits"], columns=NAMED.columns)
    for name, what in (
        ("top", "equals the largest of the other scores in every row"),
        ("sure", "equals the largest probability of the others in every row"),
        ("unsure", "equals 1 minus the largest probability of the others in every row"),
        ("doubt", "equals the entropy of the others in every row"),
        ("choices", "equals the perplexity of the others in every row"),
        ("energy", "equals the energy of the others in every row"),
        ("evidence", "equals the energy of the others in every row"),
    ):
        for dtype in (np.float64, np.float32):
            given = frame.assign(**{name: values[name].astype(dtype)})
            with pytest.raises(ValueError, match=rf"not scores: '{name}' \({what}\)"):
                ENTRIES[entry](given, LABELS)
    # A large number that is added to a row does not hide its largest score.
    shifted = frame.add(1e4).assign(top=values["top"] + 1e4)
    with pytest.raises(ValueError, match="not scores: 'top'"):
        ENTRIES[entry](shifted, LABELS)


def test_logits_of_any_scale_and_dominant_classes_are_no_summaries() -> None:
    rng = np.random.default_rng(0)
    small = rng.normal(size=(400, 4))
    shifted = small + 1e4
    dominant = small + np.array([9, 0, 0, 0])
    masked = np.where(rng.random(small.shape) < 0.3, -np.inf, small)
    masked[:, 0] = small[:, 0]
    flat = np.tile([-1.0, -2.0, -1.5, -1.0], (400, 1)) + 1e-9 * small
    for logits in (1e-5 * small, shifted, dominant, masked, flat, -np.abs(small)):
        noise = np.nanstd(np.where(np.isfinite(logits), logits, np.nan))
        labels = (logits + noise * rng.gumbel(size=logits.shape)).argmax(axis=1)
        frame = pd.DataFrame(logits, columns=["cat", "dog", "eel", "fox"])
        found = TemperatureScaler().fit(frame, labels).temperature_
        assert found == TemperatureScaler().fit(logits, labels).temperature_


@pytest.mark.filterwarnings("error")
def test_a_masked_class_in_a_frame_causes_no_warning() -> None:
    masked = LOGITS.copy()
    masked[LABELS != 9, 9] = -np.inf
    frame = pd.DataFrame(masked)
    report = calibrate(frame, LABELS, fit_on="all", bootstrap=0)
    matrix = calibrate(masked, LABELS, fit_on="all", bootstrap=0)
    assert report.temperature == matrix.temperature


@pytest.mark.filterwarnings("error")
@every_entry
def test_complex_columns_of_a_frame_are_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"(must be numbers|data not supported)"):
        ENTRIES[entry](NAMED.assign(wave=1j * LABELS), LABELS)


@pytest.mark.parametrize("names", [["NonTarget", "Target"], ["class", "background"]])
def test_fractions_under_the_name_of_labels_are_a_class(names: list[str]) -> None:
    pair = np.column_stack([LOGITS[:, 1:].max(axis=1), LOGITS[:, 0]])
    labels = np.where(LABELS == 0, 1, 0)
    frame = pd.DataFrame(pair, columns=names)
    for form in (frame, pa.Table.from_pandas(frame)):
        found = TemperatureScaler().fit(form, labels).temperature_
        assert found == TemperatureScaler().fit(pair, labels).temperature_


@every_entry
@pytest.mark.parametrize(
    "names", [["W", "N1", "N2", "N3", "R"], ["normal", "CIN1", "CIN2", "CIN3"]]
)
def test_the_remedy_for_classes_of_which_some_are_numbered_keeps_them_all(
    entry: str, names: list[str]
) -> None:
    labels = LABELS % len(names)
    frame = pd.DataFrame(LOGITS[:, : len(names)], columns=names)
    fault = rf"others: '{names[0]}'.*If all are classes, .*frame\.to_numpy\(\).*drop"
    with pytest.raises(ValueError, match=fault):
        ENTRIES[entry](frame, labels)
    ENTRIES["fit"](frame.to_numpy(), labels)


@every_entry
def test_rows_that_are_lists_are_stacked(entry: str) -> None:
    nested = pd.DataFrame({"logits": LOGITS.tolist(), "label": LABELS})
    stack = r"np\.stack\((df|frame)\[[\"']logits[\"']\]\)"
    for form in (nested["logits"], nested[["logits"]], nested):
        with pytest.raises(ValueError, match=stack) as refused:
            ENTRIES[entry](form, LABELS)
        assert "None" not in str(refused.value)


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
    # A column with such a name is the logit of class 1 if it is the only column.
    column = frame[["score"]]
    TemperatureScaler().fit(column, LABELS == 0)
    with pytest.raises(ValueError, match="not scores: 'confidence'"):
        TemperatureScaler().fit(column.set_axis(["confidence"], axis=1), LABELS == 0)


@every_entry
def test_labels_whose_index_has_another_order_are_refused(entry: str) -> None:
    labels = pd.Series(LABELS).iloc[::-1]
    with pytest.raises(ValueError, match="the same index in different orders"):
        ENTRIES[entry](FRAME, labels)


def test_columns_numbered_by_fractions_are_in_numerical_order() -> None:
    frame = pd.DataFrame(np.c_[LOGITS, LOGITS[:, 0] - 9], columns=np.arange(11) * 1.0)
    expected = TemperatureScaler().fit(frame.to_numpy(), LABELS).temperature_
    assert TemperatureScaler().fit(frame, LABELS).temperature_ == expected
    by_text = frame[sorted(frame.columns, key=str)]  # 0.0, 1.0, 10.0, 2.0, ...
    with pytest.raises(ValueError, match="not in numerical order"):
        TemperatureScaler().fit(by_text, LABELS)


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


def test_validation_rows_equal_to_the_reported_rows_are_refused() -> None:
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


@pytest.mark.parametrize("entry", SCORES)
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor, pd.DataFrame])
def test_the_remedy_for_logits_that_overflowed_in_half_precision_is_float32(
    entry: str, kind: Any
) -> None:
    with np.errstate(over="ignore"):
        half = (LOGITS * 1e5).astype(np.float16)
    fault = "must be finite, got inf .* if float16 overflowed, compute the .* float32"
    with pytest.raises(ValueError, match=fault):
        SCORES[entry](kind(half), LABELS)
    half[np.isinf(half)] = np.nan
    with pytest.raises(ValueError, match="must be finite, got nan") as refused:
        SCORES[entry](kind(half), LABELS)
    assert "float16" not in str(refused.value)


@pytest.mark.parametrize("entry", SCORES)
def test_a_background_class_behind_the_columns_may_be_ignored(entry: str) -> None:
    with pytest.raises(ValueError, match="pass ignore_index=9"):
        SCORES[entry](LOGITS[:, :9], LABELS)
    scaler = TemperatureScaler(ignore_index=9).fit(LOGITS[:, :9], LABELS)
    kept = LABELS < 9
    expected = TemperatureScaler().fit(LOGITS[kept, :9], LABELS[kept])
    assert scaler.temperature_ == expected.temperature_
