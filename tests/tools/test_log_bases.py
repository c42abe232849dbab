"""Logarithms of probabilities to base 10 or 2 are refused as logits."""

import numpy as np
import pytest
import torch

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.tools.log_bases import check_natural

GENERATOR = np.random.default_rng(0)
LOGITS = 3 * GENERATOR.normal(size=(500, 5))
LABELS = (LOGITS / 1.8 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
NATURAL = torch.log_softmax(torch.tensor(LOGITS) / 1.8, 1).numpy()


@pytest.mark.parametrize(("base", "factor"), [(10, "2.302585"), (2, "0.693147")])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_other_logarithms_are_refused(base: int, factor: str, dtype: str) -> None:
    table = torch.tensor(NATURAL / np.log(base)).to(getattr(torch, dtype))
    message = (
        f"are logarithms to base {base} of probabilities. Multiply them by ln {base} = "
        f"{factor}, or give natural logarithms."
    )
    with pytest.raises(ValueError, match=f"^logits {message}"):
        calibrate(table, LABELS)
    with pytest.raises(ValueError, match=message):
        TemperatureScaler().fit(table, torch.tensor(LABELS))
    with pytest.raises(ValueError, match=f"^validation logits {message}"):
        calibrate(LOGITS, LABELS, validation=(table, LABELS))


@pytest.mark.parametrize("base", [10, 2])
@pytest.mark.parametrize("scale", [0.6, 2, 8])
@pytest.mark.parametrize("classes", [2, 5, 300])
def test_other_logarithms_are_refused_at_any_confidence(
    base: int, scale: float, classes: int
) -> None:
    logits = scale * np.random.default_rng(1).normal(size=(600, classes))
    logits[::50, 0] = -np.inf
    natural = torch.log_softmax(torch.tensor(logits), 1)
    check_natural(natural, "logits")
    for decimals in (3, 8):
        table = (natural / np.log(base)).numpy().round(decimals)
        with pytest.raises(ValueError, match=f"base {base} "):
            check_natural(torch.tensor(table), "logits")


def test_a_few_rows_that_do_not_sum_to_one_make_no_difference() -> None:
    table = torch.tensor(NATURAL / np.log(10))
    table[::40] -= 1
    with pytest.raises(ValueError, match="base 10"):
        check_natural(table, "logits")
    table[::4] -= 1
    check_natural(table, "logits")


def test_multiplying_gives_the_temperature_of_natural_logarithms() -> None:
    expected = TemperatureScaler().fit(NATURAL, LABELS).temperature_
    other = TemperatureScaler().fit(NATURAL / np.log(10) * 2.302585, LABELS)
    assert other.temperature_ == pytest.approx(expected, rel=1e-5)


def test_honest_logits_are_accepted_and_left_unchanged() -> None:
    for seed in range(6):
        generator = np.random.default_rng(seed)
        for classes in (1, 2, 3, 10, 100):
            for scale in (0.01, 0.1, 0.3, 1, 3, 10, 50):
                logits = scale * generator.normal(size=(200, classes))
                largest = logits.max(axis=1, keepdims=True)
                for table in (
                    logits,
                    -np.abs(logits),
                    logits - largest,
                    logits - largest - np.log10(classes),
                    logits - 1,
                    np.round(logits),
                    np.tanh(logits) - 1,
                    torch.log_softmax(torch.tensor(logits), 1).numpy(),
                ):
                    before = table.copy()
                    check_natural(torch.from_numpy(table), "logits")
                    assert np.array_equal(table, before)


def test_sure_logits_minus_their_largest_are_accepted() -> None:
    # In every base, the powers of a row sum to nearly 1.
    table = -np.random.default_rng(0).uniform(4, 14, size=(200, 2))
    table[:, 0] = 0
    check_natural(torch.tensor(table), "logits")
