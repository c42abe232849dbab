"""Logits whose columns were standardised are refused; other logits are not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli
from softmax_temperature.tools.standardised_columns import check_not_standardised

GENERATOR = np.random.default_rng(1)
LOGITS = 3 * GENERATOR.normal(size=(800, 4)) + np.log([0.7, 0.15, 0.1, 0.05])
LABELS = (LOGITS / 1.8 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
STANDARDISED = StandardScaler().fit_transform(LOGITS)
SCORES = (LOGITS[:, 1] - LOGITS[:, 0])[:, None]
BINARY = (SCORES[:, 0] / 1.8 + GENERATOR.logistic(size=800) > 0).astype(int)
MESSAGE = (
    "the columns of {} were standardised: each has mean 0 and standard deviation 1. "
    "Give the logits before the scaling."
)


def test_standardised_logits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^{MESSAGE.format('logits')}$"):
        calibrate(STANDARDISED, LABELS)
    with pytest.raises(ValueError, match=MESSAGE.format("validation logits")):
        calibrate(LOGITS, LABELS, validation=(STANDARDISED, LABELS))
    with pytest.raises(ValueError, match=MESSAGE.format("logits")):
        make_pipeline(StandardScaler(), TemperatureScaler()).fit(LOGITS, LABELS)
    file = tmp_path / "logits.csv"
    names = ",".join([*(f"logit_{number}" for number in range(4)), "label"])
    table = np.column_stack([STANDARDISED, LABELS])
    np.savetxt(file, table, delimiter=",", header=names, comments="")
    done = CliRunner().invoke(cli.app, ["calibrate", str(file)])
    assert isinstance(done.exception, InputError)
    assert MESSAGE.format("logits") in str(done.exception)
    assert [*tmp_path.iterdir()] == [file]


def test_standardised_scores_of_a_binary_classifier_are_refused() -> None:
    scores = StandardScaler().fit_transform(SCORES)
    for table in (
        scores,
        scores[:, 0],
        np.hstack([np.zeros_like(scores), scores]),
        np.hstack([-scores, scores]),
    ):
        with pytest.raises(ValueError, match=MESSAGE.format("logits")):
            calibrate(table, BINARY)


@pytest.mark.parametrize(
    ("dtype", "rows"),
    [
        *(("float64", 50), ("float64", 800)),
        *(("float32", 50), ("float32", 800), ("float16", 800)),
    ],
)
@pytest.mark.parametrize("correction", [0, 1])
def test_either_standard_deviation_is_recognised(
    dtype: str, rows: int, correction: int
) -> None:
    table = torch.tensor(LOGITS[:rows]).float()
    if dtype == "float64":
        table = table.double()
    table = (table - table.mean(0)) / table.std(0, correction=correction)
    values = table.to(getattr(torch, dtype)).to(table.dtype).numpy()
    with pytest.raises(ValueError, match="standardised"):
        check_not_standardised(values, "logits")


def test_columns_from_zero_to_one_are_refused() -> None:
    message = (
        "^the columns of logits were standardised: each has minimum 0 and maximum 1. "
        "Give the logits before the scaling.$"
    )
    for scores, labels in [(LOGITS, LABELS), (SCORES, BINARY)]:
        scaled = MinMaxScaler().fit_transform(scores)
        for table in (scaled, scaled.astype(np.float32)):
            with pytest.raises(ValueError, match=message):
                calibrate(table, labels)
            with pytest.raises(ValueError, match=message):
                TemperatureScaler().fit(table, labels)


def test_probabilities_that_reach_0_and_1_are_called_probabilities() -> None:
    saturated = torch.softmax(torch.tensor(60 * LOGITS), 1).half()
    with pytest.raises(ValueError, match="logits are probabilities"):
        calibrate(saturated, LABELS)


def accepted() -> dict[str, NDArray[np.floating]]:
    one_centred = STANDARDISED.copy()
    one_centred[:, 2] = LOGITS[:, 2]
    rows = LOGITS - LOGITS.mean(axis=1, keepdims=True)
    signs = np.where(np.arange(800)[:, None] % 2, [[1.0, -1.0]], [[-1.0, 1.0]])
    masked = STANDARDISED.copy()
    masked[::9, 3] = -np.inf
    normal = np.random.default_rng(0).normal(size=(200_000, 1))
    return {
        "as they are": LOGITS,
        "columns with mean 0": LOGITS - LOGITS.mean(axis=0),
        "all columns but one": one_centred,
        "rows": rows / rows.std(axis=1, keepdims=True),
        "few rows": StandardScaler().fit_transform(LOGITS[:49]),
        "a part of the rows": STANDARDISED[::2],
        "scaled further": 1.8 * STANDARDISED,
        "signs": signs,
        "masked": masked,
        "normal": normal,
        "normal in float32": normal.astype(np.float32),
        "huge": np.full((60, 2), 1e308),
        "zeros": np.zeros((60, 3)),
    }


@pytest.mark.parametrize("case", accepted())
def test_other_columns_are_accepted(case: str) -> None:
    check_not_standardised(accepted()[case], "logits")
