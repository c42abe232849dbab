"""Validation rows that are rounded copies of the reported rows are refused."""

from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature import calibrate
from softmax_temperature.tools.arrays import check_other_rows

GENERATOR = np.random.default_rng(14)
LOGITS = (3 * GENERATOR.normal(size=(400, 5))).astype(np.float32)
LABELS = (LOGITS / 1.8 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
ROUNDINGS: dict[str, Any] = {
    "float16": lambda table: np.asarray(table).astype(np.float16),
    "bfloat16": lambda table: torch.tensor(table).bfloat16(),
    "3 decimals": lambda table: np.asarray(table, np.float64).round(3),
    "2 decimals": lambda table: np.asarray(table, np.float64).round(2),
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_copies_in_any_order_are_refused(rounding: str, dtype: Any) -> None:
    logits = LOGITS.astype(dtype)
    if dtype == np.float64:
        logits += 1e-9
    copies = ROUNDINGS[rounding](logits[::-1].copy())
    labels = LABELS[::-1].copy()
    message = "have [34].. rows in common, up to rounding, which makes the result too"
    with pytest.raises(ValueError, match=message):
        calibrate(logits, LABELS, validation=(copies, labels))
    with pytest.raises(ValueError, match=message):
        calibrate(copies, labels, validation=(logits, LABELS))


@pytest.mark.parametrize("rounding", ["float16", "3 decimals"])
def test_rounded_copies_of_probabilities_are_refused(rounding: str) -> None:
    # Some of the smaller probabilities are 0 once they are rounded.
    for scale in (0.25, 1.5):
        probs = torch.softmax(scale * torch.tensor(LOGITS), 1).numpy()
        copies = ROUNDINGS[rounding](probs)
        labels = np.where(copies[np.arange(400), LABELS] > 0, LABELS, probs.argmax(1))
        with pytest.raises(ValueError, match="in common, up to rounding"):
            calibrate(probs, labels, kind="probs", validation=(copies, labels))


def test_rounded_copies_with_masked_classes_are_refused() -> None:
    logits = LOGITS.copy()
    logits[::3, 0] = -np.inf
    labels = np.where(LABELS == 0, 1, LABELS)
    with pytest.raises(ValueError, match="in common, up to rounding"):
        calibrate(logits, labels, validation=(logits.astype(np.float16), labels))


@pytest.mark.parametrize("columns", [1, 2, 5, 50])
@pytest.mark.parametrize("rows", [(60, 60), (100, 2000)])
def test_other_rows_are_accepted_although_one_table_is_rounded(
    columns: int, rows: tuple[int, int]
) -> None:
    for seed in range(4):
        generator = np.random.default_rng(seed)
        for scale in (0.1, 1, 10):
            first, second = (
                torch.tensor(scale * generator.normal(size=(number, columns)))
                for number in rows
            )
            for rounded in (
                first.half(),
                first.bfloat16(),
                *(torch.tensor(first.numpy().round(place)) for place in range(5)),
            ):
                check_other_rows(
                    rounded.float(), second, names=("a", "b"), remedy="Give others."
                )
