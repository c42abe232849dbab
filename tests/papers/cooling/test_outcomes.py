"""Divergence, collapse, and a training that never started are told apart, and said in the same words everywhere."""

from collections.abc import Sequence

import pandas as pd
import pytest

from softmax_temperature.papers.cooling.selection import Outcome, lost_by_mode, outcome


@pytest.mark.parametrize(
    ("accuracies", "is_finite", "became"),
    [
        ([0.1, 0.4, 0.9], True, Outcome(diverged=False, stuck=False)),
        ([0.1, 0.4, 0.1], True, Outcome(diverged=True, stuck=False)),
        ([0.1, 0.13, 0.15], True, Outcome(diverged=False, stuck=True)),
        ([0.1, 0.1, 0.16], True, Outcome(diverged=False, stuck=False)),
        ([0.1, 0.1], False, Outcome(diverged=True, stuck=False)),
        ([], False, Outcome(diverged=True, stuck=False)),
    ],
)
def test_what_became_of_a_training_on_ten_classes(
    accuracies: Sequence[float], is_finite: bool, became: Outcome
) -> None:
    assert outcome(accuracies, 10, is_finite=is_finite) == became


def test_losses_are_counted_by_kind() -> None:
    rows = pd.DataFrame({"diverged": [True, False, False], "stuck": [False, True, False], "mode": "none"})
    assert lost_by_mode(rows, "none", "periodic") == "No Cooling 1 of 3 diverged, 1 of 3 stuck"
