"""Divergence, collapse, and a training that never started are told apart, and said in the same words everywhere."""

import pandas as pd
import pytest

from softmax_temperature.papers.cooling.selection import lost_by_mode, outcome


@pytest.mark.parametrize(
    ("accuracies", "is_finite", "became"),
    [
        ([0.1, 0.4, 0.9], True, (False, False)),
        ([0.1, 0.4, 0.1], True, (True, False)),
        ([0.1, 0.13, 0.15], True, (False, True)),
        ([0.1, 0.1, 0.16], True, (False, False)),
        ([0.1, 0.1], False, (True, False)),
        ([], False, (True, False)),
    ],
)
def test_what_became_of_a_training_on_ten_classes(
    accuracies: list[float], is_finite: bool, became: tuple[bool, bool]
) -> None:
    found = outcome(accuracies, 10, is_finite=is_finite)
    assert (found["diverged"], found["stuck"]) == became


def test_losses_are_counted_by_kind() -> None:
    rows = pd.DataFrame({"diverged": [True, False, False], "stuck": [False, True, False], "mode": "none"})
    assert lost_by_mode(rows, "none", "periodic") == "No Cooling 1 of 3 diverged, 1 of 3 stuck"
