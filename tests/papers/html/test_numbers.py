"""Numbers as a reader sees them."""

from __future__ import annotations

import pytest

from softmax_temperature.papers.html.numbers import as_printed, number, signed, with_deviation


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.2500"), (-0.00001, "0.0000"), (1, "1.0000"), (56, "56"), (123.456, "123.46"), (None, "–")],
)
def test_a_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_number_of_a_paper_has_its_own_digits() -> None:
    assert [as_printed(value) for value in (-0.0287, 2.5, float("nan"))] == ["−0.0287", "2.5", "–"]


def test_a_mean_without_a_deviation_stands_alone() -> None:
    assert [with_deviation(0.5, sd) for sd in (0.125, None)] == ["0.5000 ± 0.1250", "0.5000"]


def test_a_difference_has_its_sign() -> None:
    assert [signed(value) for value in (1.25, -3)] == ["+1.2", "−3.0"]
