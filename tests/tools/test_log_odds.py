"""Log-odds of a softmax's probabilities are refused as logits; logits are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch import Tensor
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli
from softmax_temperature.tools.log_odds import check_not_log_odds

Table = NDArray[Any]
FAULT = (
    r"logits are log-odds log\(p / \(1 - p\)\) of probabilities p: the sigmoids of "
    r"each row sum to 1"
)
LOG_SIGMOID = r"Give log\(sigmoid\(x\)\) of each number x"
GENERATOR = np.random.default_rng(0)
LOGITS = 3 * GENERATOR.normal(size=(1000, 3))
LABELS = (LOGITS + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
LOG_ODDS = logit(softmax(LOGITS, axis=1))


def is_refused(table: Table | Tensor) -> bool:
    numbers = torch.as_tensor(table)
    if numbers.dtype.itemsize < 4:
        numbers = numbers.float()
    try:
        check_not_log_odds(numbers, "logits", "")
    except ValueError:
        return True
    return False


def test_log_odds_are_refused_with_a_remedy() -> None:
    message = f"^{FAULT}. {LOG_SIGMOID}, or give .* as probabilities: kind='probs'.$"
    with pytest.raises(ValueError, match=message):
        calibrate(LOG_ODDS, LABELS)
    with pytest.raises(ValueError, match=f"^validation {FAULT}"):
        calibrate(LOGITS, LABELS, validation=(LOG_ODDS, LABELS))
    for table in (LOG_ODDS, torch.tensor(LOG_ODDS)):
        with pytest.raises(ValueError, match=f"^{FAULT}. {LOG_SIGMOID}.$"):
            TemperatureScaler().fit(table, LABELS)


@pytest.mark.parametrize("format_of_numbers", ["%.18e", "%.6g", "%.6f"])
def test_the_command_refuses_log_odds(tmp_path: Path, format_of_numbers: str) -> None:
    file = tmp_path / "logits.csv"
    table = np.column_stack([LOG_ODDS, LABELS])
    header = "logit_0,logit_1,logit_2,label"
    np.savetxt(
        file, table, format_of_numbers, delimiter=",", header=header, comments=""
    )
    done = CliRunner().invoke(cli.app, ["calibrate", str(file)])
    assert isinstance(done.exception, InputError)
    assert "give sigmoid(x) as probabilities: --probs." in str(done.exception)
    assert [*tmp_path.iterdir()] == [file]


def test_the_remedies_give_the_temperature_of_the_logits() -> None:
    expected = calibrate(LOGITS, LABELS, bootstrap=0).temperature
    remedied = calibrate(np.log(expit(LOG_ODDS)), LABELS, bootstrap=0)
    assert remedied.temperature == pytest.approx(expected, rel=1e-4)
    probs = calibrate(expit(LOG_ODDS), LABELS, kind="probs", bootstrap=0)
    assert probs.temperature == pytest.approx(expected, rel=1e-4)


def forms(logits: Table) -> dict[str, Table | Tensor]:
    probs = softmax(logits, axis=1)
    single = torch.softmax(torch.tensor(logits, dtype=torch.float32), 1)
    exact = logit(probs)
    return {
        "float64": exact,
        "float32": torch.logit(single),
        "clipped at 1e-7": torch.logit(single, eps=1e-7),
        "clipped at 1e-4": torch.logit(single, eps=1e-4),
        "six digits": exact.round(6),
        "two decimals": exact.round(2),
        "probabilities with four decimals": logit(probs.round(4).clip(1e-6, 1 - 1e-6)),
        "float16": torch.tensor(exact).half(),
        "probabilities in float16": torch.logit(single.half().float(), eps=1e-6),
        "probabilities in bfloat16": torch.logit(single.bfloat16().float(), eps=1e-6),
    }


@pytest.mark.parametrize("classes", [3, 10, 100])
@pytest.mark.parametrize("form", forms(LOGITS))
def test_rounded_and_clipped_log_odds_are_recognised(classes: int, form: str) -> None:
    logits = 3 * np.random.default_rng(1).normal(size=(1000, classes))
    assert is_refused(forms(logits)[form])


def test_confident_rows_beside_unsure_ones_change_nothing() -> None:
    logits = np.vstack([LOGITS[:100], 20 * np.eye(3)[LABELS]])
    assert is_refused(logit(softmax(logits, axis=1)))


def honest(logits: Table) -> dict[str, Table | Tensor]:
    """Tables whose softmax may be meant, computed from random numbers."""
    rows, classes = logits.shape
    largest = logits.argmax(axis=1)
    pairs = np.full_like(logits, -np.inf)
    pairs[np.arange(rows), largest] = logits[:, 0]
    pairs[np.arange(rows), largest - 1] = -logits[:, 0]
    return {
        "normal": logits,
        "float32": logits.astype(np.float32),
        "float16": torch.tensor(logits).half(),
        "bfloat16": torch.tensor(logits).bfloat16(),
        "two decimals": logits.round(2),
        "whole numbers": logits.round(),
        "centred": logits - logits.mean(axis=1, keepdims=True),
        "below their maximum": logits - logits.max(axis=1, keepdims=True),
        "log-probabilities": log_softmax(logits, axis=1),
        "rounded log-probabilities": log_softmax(logits, axis=1).round(3),
        "shifted so that zeros are the log-odds of 1 / classes": logits
        - np.log(classes - 1),
        "untrained": 1e-6 * logits - np.log(classes - 1),
        "confident": 30 * np.eye(classes)[largest] - 15 + 0.1 * logits,
        "centred pairs beside masked classes": pairs,
        "centred pairs beside unlikely classes": pairs.clip(-40),
    }


@pytest.mark.parametrize("kind", honest(LOGITS))
def test_simulated_logits_are_accepted(kind: str) -> None:
    generator = np.random.default_rng(0)
    refused = [
        is_refused(honest(scale * generator.normal(size=(rows, classes)))[kind])
        for classes in (3, 4, 10, 100)
        for rows in (25, 300, 1000)
        for scale in (0.1, 1, 3, 10)
    ]
    assert len(refused) == 48
    assert not any(refused)


def test_log_probabilities_of_many_classes_are_accepted() -> None:
    # They are nearly log-odds, because all probabilities are small.
    logits = 0.1 * np.random.default_rng(0).normal(size=(40, 50_000))
    assert not is_refused(log_softmax(logits, axis=1))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_logits_of_trained_classifiers_are_accepted(load: Any) -> None:
    inputs, labels = load(return_X_y=True)
    inputs = StandardScaler().fit_transform(inputs)
    inputs, held_out = inputs[::2], inputs[1::2]
    labels = labels[::2]
    for strength in (0.01, 1, 100):
        model = LogisticRegression(C=strength, max_iter=2000).fit(inputs, labels)
        assert not is_refused(model.decision_function(held_out))
        assert not is_refused(model.predict_log_proba(held_out))
        each = OneVsRestClassifier(model).fit(inputs, labels)
        assert not is_refused(each.decision_function(held_out))
    network = MLPClassifier((20,), alpha=1, max_iter=200, random_state=0)
    # One-hot labels train a sigmoid per class instead of a softmax.
    for targets in (labels, np.eye(labels.max() + 1)[labels]):
        probs = network.fit(inputs, targets).predict_proba(held_out)
        scores = np.log(probs) if targets.ndim == 1 else logit(probs)
        assert not is_refused(scores)


def test_a_scaler_fits_in_a_pipeline() -> None:
    direct = TemperatureScaler().fit(LOGITS, LABELS).temperature_
    for function in (None, lambda logits: log_softmax(logits, axis=1)):
        pipeline = make_pipeline(FunctionTransformer(function), TemperatureScaler())
        fitted = pipeline.fit(LOGITS, LABELS)
        assert fitted[-1].temperature_ == pytest.approx(direct, rel=1e-6)
    with pytest.raises(ValueError, match=f"^{FAULT}"):
        make_pipeline(FunctionTransformer(), TemperatureScaler()).fit(LOG_ODDS, LABELS)


def test_undecidable_tables_are_accepted() -> None:
    pairs = np.hstack([-LOGITS[:, :1], LOGITS[:, :1]])
    few = LOG_ODDS[:19]
    confident = logit(softmax(20 * np.eye(3)[LABELS] + LOGITS / 10, axis=1))
    toy = LOG_ODDS[np.arange(60) % 4]
    for table in (pairs, few, confident, toy):
        assert not is_refused(table)
