"""A second softmax is refused; probabilities that merely lie close together are not."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature import TemperatureScaler, calibrate, metrics, scaling
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.double_softmax import FEWEST_ROWS
from softmax_temperature.metrics.probability_check import check_not_probs, check_probs

ROWS = 400


def logits(classes: int = 5, scale: float = 4.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(ROWS, classes, generator=generator, dtype=torch.float64)


LOGITS = logits()
LABELS = torch.multinomial(
    LOGITS.softmax(dim=1), 1, generator=torch.Generator().manual_seed(1)
).squeeze(1)
PROBS = LOGITS.softmax(dim=1)
DOUBLE = PROBS.softmax(dim=1)
FORMS = {
    "float64": DOUBLE,
    "float32": DOUBLE.float(),
    "bfloat16": DOUBLE.bfloat16(),
    "three decimals": DOUBLE.mul(1e3).round() / 1e3,
    "six decimals": DOUBLE.mul(1e6).round() / 1e6,
}
TAKE_PROBS: dict[str, Callable[[Any], object]] = {
    "calibrate": lambda probs: calibrate(probs, LABELS, kind="probs"),
    "ece": lambda probs: metrics.expected_calibration_error(probs, LABELS),
    "classwise": lambda probs: metrics.classwise_calibration_error(probs, LABELS),
    "noise floor": metrics.noise_floor,
    "brier": lambda probs: metrics.brier_score(probs, LABELS),
}
TAKE_LOGITS: dict[str, Callable[[Any], object]] = {
    "calibrate": lambda logits: calibrate(logits, LABELS),
    "scaler": lambda logits: TemperatureScaler().fit(logits, LABELS),
    "fit": lambda logits: scaling.fit_temperature(logits, LABELS),
    "nll": lambda logits: metrics.negative_log_likelihood(logits, LABELS),
}


# Metrics require rows that sum to one within 1e-5, so only `calibrate` is tested with
# rounded rows.
CASES = [
    (entry, form)
    for entry in TAKE_PROBS
    for form in FORMS
    if entry == "calibrate" or "decimals" not in form
]


@pytest.mark.parametrize(("entry", "form"), CASES)
def test_a_softmax_of_probabilities_is_refused(entry: str, form: str) -> None:
    with pytest.raises(ArgumentError, match="probs are the softmax of probabilities"):
        TAKE_PROBS[entry](FORMS[form])


@pytest.mark.parametrize("shift", [0.0, 3.0])
@pytest.mark.parametrize("entry", TAKE_LOGITS)
def test_logarithms_of_such_a_softmax_are_refused(entry: str, shift: float) -> None:
    for given in (DOUBLE.log() - shift, DOUBLE.float().log() - shift):
        with pytest.raises(ArgumentError, match="probabilities plus a number"):
            TAKE_LOGITS[entry](given)


def test_the_remedies_give_the_temperature_of_the_logits() -> None:
    right = calibrate(LOGITS, LABELS).temperature
    logs = DOUBLE.log()
    undone = logs + (1 - logs.sum(dim=1, keepdim=True)) / logs.shape[1]
    for probs in (PROBS, undone.clamp(min=1e-300)):
        fitted = calibrate(probs, LABELS, kind="probs").temperature
        assert fitted == pytest.approx(right, rel=1e-3)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_sigmoid_of_a_sigmoid_is_refused(columns: int) -> None:
    raw = logits(2)[:, :1]
    labels = (raw[:, 0] > 0).long()
    labels[::7] = 1 - labels[::7]
    probs = raw.sigmoid().sigmoid()
    given = probs if columns == 1 else torch.cat([1 - probs, probs], dim=1)
    with pytest.raises(ArgumentError, match="probs are the sigmoid of probabilities"):
        calibrate(given, labels, kind="probs")
    once = calibrate(raw.sigmoid(), labels, kind="probs").temperature
    undone = calibrate(torch.logit(probs), labels, kind="probs").temperature
    assert undone == pytest.approx(once, rel=1e-6)


def test_a_softmax_of_two_probabilities_is_refused() -> None:
    with pytest.raises(ArgumentError, match="probs are the softmax of probabilities"):
        check_probs(logits(2).softmax(dim=1).softmax(dim=1))


def test_few_rows_are_not_judged() -> None:
    few = DOUBLE[: FEWEST_ROWS - 1]
    assert check_probs(few) is few
    check_not_probs(few.log())


def unsure(kind: str, classes: int, seed: int) -> Tensor:
    """Logits of a model, which the test divides so that they span about 1."""
    raw = logits(classes, 1.0, seed)
    top = raw.argmax(dim=1, keepdim=True)
    forms: dict[str, Tensor] = {
        "normal": raw,
        "uniform": torch.special.ndtr(raw),
        "relu": raw.relu(),
        "standing out": raw.scatter_add(1, top, 4 * torch.special.ndtr(raw[:, :1])),
        "saturated": raw.mul(0.1).scatter_add(1, top, torch.full_like(raw, 5.0)),
        "cosines": torch.nn.functional.normalize(raw, dim=1),
        "smoothed": (0.9 * (4 * raw).softmax(dim=1) + 0.1 / classes).log(),
    }
    return forms[kind]


@pytest.mark.parametrize(
    "kind",
    ["normal", "uniform", "relu", "standing out", "saturated", "cosines", "smoothed"],
)
def test_a_model_that_is_merely_unsure_is_accepted(kind: str) -> None:
    for seed in range(4):
        for classes in (2, 3, 10, 50):
            raw = unsure(kind, classes, seed)
            gaps = (raw - raw.amin(dim=1, keepdim=True)).sum(dim=1)
            # With the last divisor, inverting the softmax gives numbers in [0, 1] only.
            # If there are two bounded logits, they then look exactly like a softmax of
            # probabilities.
            divisors = (gaps.median(), gaps.mean() / 2, 30.0, gaps.max())
            bounded = classes == 2 and kind in ("saturated", "cosines", "smoothed")
            for divisor in divisors[: 3 if bounded else 4]:
                scores = raw / divisor
                probs = scores.softmax(dim=1)
                check_not_probs(probs.log())
                check_probs(probs)
                check_probs(probs.float())


def test_rounded_probabilities_of_an_unsure_model_are_accepted() -> None:
    raw = logits(10, 1.0)
    gaps = (raw - raw.amin(dim=1, keepdim=True)).sum(dim=1)
    for decimals in (3, 4, 6):
        probs = (raw / (1.01 * gaps.max())).softmax(dim=1).numpy().round(decimals)
        calibrate(probs, np.arange(ROWS) % 10, kind="probs")


@pytest.mark.parametrize("rows", [ROWS, FEWEST_ROWS])
def test_a_softmax_at_another_temperature_is_accepted(rows: int) -> None:
    for temperature in (0.5, 0.9, 1.1, 2.0, 10.0):
        check_probs((PROBS[:rows] / temperature).softmax(dim=1))


def test_the_message_says_how_many_rows_touch_a_bound() -> None:
    touching = int(((PROBS > 1 - 1e-3) | (5 * PROBS < 1e-3)).any(dim=1).sum())
    message = f"and {touching} of {ROWS} touch 0 or 1"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        check_probs(DOUBLE)
