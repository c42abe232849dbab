"""The name of an array beside logits and labels decides how the array is treated.

The array is used, ignored or refused.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature import CosineClassifier, TemperatureScaler, calibrate
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.tools.arrays import read_rows
from softmax_temperature.tools.calibrate import calibrate_files


def drawn(seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    logits = 3 * generator.normal(size=(300, 4))
    noise = generator.gumbel(size=logits.shape)
    return logits, (logits / 1.5 + noise).argmax(axis=1)


@pytest.mark.parametrize("name", ["val", "valid", "validation", "cal", "calibration"])
@pytest.mark.usefixtures("undrawn")
def test_validation_rows_in_a_file_are_fitted_under_each_of_their_names(
    name: str, tmp_path: Path
) -> None:
    (logits, labels), (others, other_labels) = drawn(0), drawn(1)
    arrays = {f"{name}_logits": others, f"{name}_labels": other_labels}
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels, **arrays)

    report = calibrate_files(tmp_path / "a.npz", output=tmp_path, bootstrap=0)

    expected = fit_temperature(torch.tensor(others), torch.tensor(other_labels))
    assert report.temperature == pytest.approx(expected.temperature, rel=1e-6)
    assert report.data["rows"] == {"fitted": 300, "reported": 300}


@pytest.mark.parametrize(
    ("names", "message"),
    [(["val", "cal"], "val and of cal"), (["test"], "test_logits and test_labels")],
)
def test_ambiguous_rows_in_a_file_are_refused(
    names: list[str], message: str, tmp_path: Path
) -> None:
    logits, labels = drawn(0)
    arrays: dict[str, Any] = {}
    for name in names:
        arrays |= {f"{name}_logits": logits, f"{name}_labels": labels}
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels, **arrays)

    with pytest.raises(InputError, match=message):
        calibrate_files(tmp_path / "a.npz", output=tmp_path, bootstrap=0)


@pytest.mark.parametrize(
    "names",
    [
        ("val_logits", "val_labels"),
        ("logits_val", "labels_val"),
        ("val_outputs", "y_val"),
        ("cal_scores", "target_cal"),
    ],
)
def test_validation_rows_have_the_same_other_names_as_logits_and_labels(
    names: tuple[str, str], tmp_path: Path
) -> None:
    (logits, labels), (others, other_labels) = drawn(0), drawn(1)
    np.savez(
        tmp_path / "a.npz",
        outputs=logits,
        y=labels,
        **dict(zip(names, (others, other_labels), strict=True)),
    )
    arrays, held_out = read_rows(
        "logits", tmp_path / "a.npz", None, "validation", None, None
    )
    assert held_out is not None
    np.testing.assert_array_equal(arrays["logits"], logits)
    np.testing.assert_array_equal(held_out["logits"], others)
    np.testing.assert_array_equal(held_out["labels"], other_labels)


def test_probabilities_of_validation_rows_come_before_their_logits(
    tmp_path: Path,
) -> None:
    logits, labels = drawn(0)
    probs = torch.softmax(torch.tensor(logits), 1).numpy()
    np.savez(
        tmp_path / "a.npz",
        logits=logits,
        probs=probs,
        labels=labels,
        val_logits=logits[::2],
        val_probs=probs[::2],
        val_y=labels[::2],
    )
    for matrix, values in (("logits", logits), ("probs", probs)):
        path = tmp_path / "a.npz"
        arrays, held_out = read_rows(matrix, path, None, "validation", None, None)
        assert held_out is not None
        np.testing.assert_array_equal(arrays[matrix], values)
        np.testing.assert_array_equal(held_out[matrix], values[::2])


@pytest.mark.parametrize("ending", ["npz", "pt"])
@pytest.mark.parametrize("words", [["val"], ["test"], ["validation", "test"]])
@pytest.mark.parametrize(
    ("matrix", "other", "purposes"),
    [
        ("logits", "validation", ("report", "fit")),
        ("embeddings", "test", ("train", "test")),
    ],
)
def test_for_a_file_of_only_other_rows_the_error_lists_its_arrays_and_the_needed_ones(
    matrix: str,
    other: str,
    purposes: tuple[str, str],
    words: list[str],
    ending: str,
    tmp_path: Path,
) -> None:
    values, labels = drawn(0)
    arrays: dict[str, Any] = {}
    for word in words:
        arrays |= {f"{word}_{matrix}": values, f"{word}_labels": labels}
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        np.savez(path, **arrays)
    else:
        torch.save({name: torch.tensor(array) for name, array in arrays.items()}, path)

    with pytest.raises(InputError) as error:
        read_rows(matrix, path, None, other, None, None)

    held = ", ".join(arrays)
    assert error.value.what == f"has no {matrix} and no labels (it holds: {held})"
    assert error.value.remedy == (
        f"Save the rows to {purposes[0]} on as {matrix} and labels, those to "
        f"{purposes[1]} on as {other}_{matrix} and {other}_labels, and no others."
    )


def test_validation_rows_without_labels_are_named_as_they_are_called(
    tmp_path: Path,
) -> None:
    logits, labels = drawn(0)
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels, val_scores=np.ones(9))
    message = r"rows have no labels \(it holds: val_scores\).* or neither"
    with pytest.raises(InputError, match=message):
        read_rows("logits", tmp_path / "a.npz", None, "validation", None, None)


@pytest.mark.parametrize("word", ["val", "valid", "validation", "cal", "calibration"])
def test_a_classifier_of_embeddings_is_not_tested_on_validation_rows(
    word: str, tmp_path: Path
) -> None:
    values, labels = drawn(0)
    rows = {f"{word}_embeddings": values, f"{word}_labels": labels}
    np.savez(tmp_path / "a.npz", embeddings=values, labels=labels, **rows)
    message = f"holds {word}_embeddings and {word}_labels beside embeddings"
    with pytest.raises(InputError, match=message) as error:
        read_rows("embeddings", tmp_path / "a.npz", None, "test", None, None)
    assert "test_embeddings and test_labels" in error.value.remedy


@pytest.mark.parametrize("matrix", ["logits", "embeddings"])
def test_numbers_and_texts_beside_the_arrays_are_ignored(
    matrix: str, tmp_path: Path
) -> None:
    values, labels = drawn(0)
    np.savez(tmp_path / "a.npz", **{matrix: values}, labels=labels, epoch=3, model="r")
    content = {matrix: torch.tensor(values), "labels": torch.tensor(labels)}
    torch.save(content | {"accuracy": torch.tensor(0.5)}, tmp_path / "a.pt")

    for ending in ("npz", "pt"):
        path = tmp_path / f"a.{ending}"
        arrays, _ = read_rows(matrix, path, None, "test", None, None)
        np.testing.assert_array_equal(arrays[matrix], values)


def test_the_scaler_names_only_remedies_that_it_has() -> None:
    logits, labels = drawn(0)
    probs = torch.softmax(torch.tensor(logits), 1).numpy()
    with pytest.raises(ArgumentError, match="logarithms") as error:
        TemperatureScaler().fit(probs, labels)
    assert "kind=" not in str(error.value)
    scaler = TemperatureScaler().fit(logits, labels)
    expected = TemperatureScaler().fit(np.log(probs), labels).temperature_
    assert scaler.temperature_ == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ArgumentError, match=r"X\[None\]"):
        scaler.predict_proba(logits[0])
    assert scaler.predict_proba(logits[0][None]).shape == (1, 4)


def test_messages_about_validation_rows_say_so() -> None:
    logits, labels = drawn(0)
    others, other_labels = drawn(1)
    with pytest.raises(ArgumentError, match="only 5 validation rows to fit"):
        calibrate(logits, labels, validation=(others[:5], other_labels[:5]))
    with pytest.raises(ArgumentError, match="omit the validation rows") as error:
        calibrate(logits, labels, validation=(logits, labels))
    assert "fit_on" not in str(error.value)
    separable = others + 50 * np.eye(4)[other_labels]
    report = calibrate(logits, labels, validation=(separable, other_labels))
    assert "the validation logits separate" in report.data["verdict"]


def test_a_learned_inverse_temperature_and_a_single_grid_number_are_refused() -> None:
    parameter = torch.nn.Parameter(torch.tensor(16.0))
    with pytest.raises(ArgumentError, match="Give a plain number"):
        CosineClassifier(4, 3, parameter)  # type: ignore[arg-type]
    assert CosineClassifier(4, 3, 16.0).inverse_temperature == 16
    logits, labels = map(torch.tensor, drawn(0))
    for grid in (2.0, torch.tensor(2.0), "12"):
        with pytest.raises(ArgumentError, match="sequence of temperatures"):
            fit_temperature(logits, labels, criterion="ece", grid=grid)  # type: ignore[arg-type]


@pytest.mark.parametrize("shared", [0, 3, 120])
def test_the_report_says_how_many_validation_rows_it_also_reports(shared: int) -> None:
    (logits, labels), (others, other_labels) = drawn(0), drawn(1)
    others[:shared], other_labels[:shared] = logits[:shared], labels[:shared]

    report = calibrate(logits, labels, validation=(others, other_labels), bootstrap=0)

    assert report.data["rows"].get("shared", 0) == shared
    sentence = f"{shared} of these rows are also validation rows"
    assert (sentence in str(report)) == (shared > 0)
