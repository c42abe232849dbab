"""The propositions' values equal the printed formulas and the minima that a search
finds.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from softmax_temperature.losses import gamma_star
from softmax_temperature.losses.propositions import (
    optimal_probability,
    theory_checks,
    threshold,
)

THRESHOLDS = {
    1: 0.3679,
    2: 0.2976,
    3: 0.2526,
    5: 0.1968,
    7: 0.1629,
    8: 0.1504,
    9: 0.1398,
}
GRID = np.linspace(0, 1, 20001)[1:-1]


@pytest.mark.parametrize("gamma", THRESHOLDS)
def test_thresholds_equal_those_of_figure_3a(gamma: int) -> None:
    assert threshold(gamma) == pytest.approx(THRESHOLDS[gamma], abs=5e-5)


@given(st.floats(-3, 2))
def test_threshold_is_the_inverse_of_gamma_star(exponent: float) -> None:
    gamma = 10**exponent
    assert gamma_star(threshold(gamma)).item() == pytest.approx(gamma, rel=1e-7)


@given(st.floats(0, 1), st.floats(0, 9))
def test_optimal_probability_is_the_best_of_a_fine_grid(q: float, gamma: float) -> None:
    losses = -((1 - GRID) ** gamma) * q * np.log(GRID) - GRID**gamma * (1 - q) * np.log(
        1 - GRID
    )
    assert optimal_probability(q, gamma) == pytest.approx(
        GRID[losses.argmin()], abs=1e-4
    )


def test_the_propositions_and_the_bound_hold_to_rounding() -> None:
    table = theory_checks().set_index("what")
    assert len(table) == 9
    assert table["largest_difference"].between(0, 1e-11).all()
    equalities, at_most, bounds = (
        table.filter(regex=words, axis=0) for words in ("mean$", "at most$", "^Bound")
    )
    assert equalities["measured"].tolist() == pytest.approx(
        equalities["predicted"].tolist(), rel=1e-12
    )
    # The measured values come close to their bounds, so no bound could be much tighter.
    assert 0.999 < at_most["measured"].item() <= 1
    assert (len(equalities), len(bounds)) == (4, 4)
    assert bounds["measured"].between(0, 0.001).all()
