"""A row that alone decides the temperature, such as a diverged row, is named."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.scaling import search_temperature
from softmax_temperature.tools import cli
from softmax_temperature.tools.decisive_rows import decisive_rows

Drawn = tuple[NDArray[np.float64], NDArray[np.int64]]
SHAPE = np.array([1, -0.3, 0.2, -0.8, 0.4])


def drawn(rows: int, temperature: float = 1.6, seed: int = 0) -> Drawn:
    generator = np.random.default_rng(seed)
    logits = 3 * generator.normal(size=(rows, 5))
    noise = generator.gumbel(size=logits.shape)
    return logits, (logits / temperature + noise).argmax(axis=1)


def with_diverged(size: float, label: int = 1, row: int = 700) -> Drawn:
    logits, labels = drawn(1000)
    logits[row] = size * SHAPE
    labels[row] = label
    return logits, labels


@pytest.mark.parametrize("size", [1e3, 3e3, 1e6, 1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_diverged_row_among_a_thousand_is_named(size: float, dtype: type) -> None:
    logits, labels = with_diverged(size)
    report = calibrate(logits.astype(dtype), labels, fit_on="all", bootstrap=0)
    assert report.data["advice"] == "leave"
    assert report.data["verdict"] == (
        "Row 700 alone decides the temperature: the logit of its label is "
        f"{1.3 * size:.3g} below the largest of the row, and in other rows at most "
        f"{furthest(*drawn(1000)):.3g}. Check it, or leave it out."
    )
    with pytest.warns(ConvergenceWarning, match="Row 700 alone decides"):
        TemperatureScaler().fit(logits.astype(dtype), labels)


def furthest(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    rows = np.arange(len(labels)) != 700
    distances = logits.max(axis=1) - logits[np.arange(len(labels)), labels]
    return float(distances[rows].max())


def test_a_diverged_row_that_is_right_is_no_fault() -> None:
    logits, labels = with_diverged(1e6, label=0)
    expected = calibrate(*with_diverged(1, 0), fit_on="all", bootstrap=0).temperature
    report = calibrate(logits, labels, fit_on="all", bootstrap=0)
    assert report.data["verdict"].startswith("Overconfident")
    assert report.temperature == pytest.approx(expected, rel=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperatureScaler().fit(logits, labels)


def test_the_place_of_the_row_is_the_users() -> None:
    logits, labels = with_diverged(1e6)
    void = np.where(np.arange(1000) < 300, -100, labels)
    report = calibrate(logits, void, bootstrap=0, fit_on="all")
    assert report.data["verdict"].startswith("Row 700 alone")
    # With seed 0 the row is in the fitted half, with seed 1 it is in the other half.
    for seed, is_fitted in ((0, True), (1, False)):
        report = calibrate(logits, void, bootstrap=0, seed=seed)
        assert report.data["verdict"].startswith("Row 700 alone") is is_fitted
    report = calibrate(*drawn(400, seed=1), validation=(logits, labels), bootstrap=0)
    assert report.data["verdict"].startswith("Validation row 700 alone")
    maps = np.moveaxis(logits.reshape(20, 5, 10, 5), -1, 1)
    pixels = labels.reshape(20, 5, 10)
    with pytest.warns(ConvergenceWarning, match=r"Row 14, pixel \(0, 0\) alone"):
        TemperatureScaler().fit(maps, pixels)
    with pytest.warns(ConvergenceWarning, match=r"Row 14, pixel \(0, 0\) alone"):
        TemperatureScaler().fit(torch.tensor(maps), torch.tensor(pixels))
    margins = logits[:, :1] - logits[:, 1:2]
    sides = (margins[:, 0] > 0).astype(int)
    sides[::7] = 1 - sides[::7]
    sides[700] = 0
    with pytest.warns(ConvergenceWarning, match="Row 700 alone"):
        TemperatureScaler().fit(margins, sides)


def test_several_diverged_rows_are_counted() -> None:
    logits, labels = with_diverged(1e6)
    logits[100:103] = 1e5 * SHAPE
    labels[100:103] = 3
    with pytest.warns(
        ConvergenceWarning, match=r"4 rows alone decide .* The first is row 700: "
    ):
        TemperatureScaler().fit(logits, labels)


@pytest.mark.usefixtures("undrawn")
def test_the_command_names_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logits, labels = with_diverged(1e6)
    np.savez("a.npz", logits=logits, labels=labels)
    done = CliRunner().invoke(cli.app, ["calibrate", "a.npz", "--fit-on", "all"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Row 700 alone decides the temperature")


@pytest.mark.parametrize("kind", ["normal", "scales", "heavy tails", "few errors"])
def test_rows_of_honest_models_do_not_decide_alone(kind: str) -> None:
    for seed in range(10):
        generator = np.random.default_rng(seed)
        for rows in (60, 1000):
            logits = 3 * generator.normal(size=(rows, 5))
            if kind == "scales":
                logits *= np.exp(1.5 * generator.normal(size=(rows, 1)))
            if kind == "heavy tails":
                logits = generator.standard_t(2, size=(rows, 5))
            labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
            if kind == "few errors":
                # One of the two wrong predictions may have a far smaller margin than
                # the other.
                predicted = logits.argmax(axis=1)
                errors = np.flatnonzero(labels != predicted)
                labels[errors[2:]] = predicted[errors[2:]]
            assert decided(logits, labels) == []


def decided(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> list[int]:
    table, classes = torch.tensor(logits), torch.tensor(labels)
    rows, _ = decisive_rows(table, classes, search_temperature(table, classes))
    found: list[int] = rows.tolist()
    return found


def test_a_far_row_that_does_not_change_the_temperature_clearly_is_not_named() -> None:
    assert decided(*with_diverged(100)) == []
    assert decided(*with_diverged(1000)) == [700]


def test_a_diverged_row_is_not_named_if_the_other_rows_have_no_temperature() -> None:
    logits, labels = with_diverged(1e6)
    other = np.arange(1000) != 700
    wrong = np.where(other, logits.argmin(axis=1), labels)
    assert decided(logits, wrong) == []
    # All other labels are of one class.
    logits[other, 0] += 4
    assert decided(logits, np.where(other, 0, labels)) == []
