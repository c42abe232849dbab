"""What became of a training: it learned something and kept it, or it diverged, or it got stuck.

One that diverged or got stuck is *lost*: it has no metrics. Where numbers are shown, in tables, figures and findings,
it is in no mean; where gains are judged, in claims and in the gain that the paper's text gives, it counts as guessing.
What is lost is named beside the number either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

DIVERGED, STUCK = "diverged", "stuck"

# Deviation: the paper prints "divergence" and does not say how it is told (section 4.2, Table 2). Here a training has
# diverged when its loss, a logit, a weight, the norm of its gradients or a temperature is no longer finite, and also
# when its last accuracy on training images is at most so many times that of guessing although it was once above: the
# paper sets "diverged" against "converged". One that never was above, after any epoch, did not diverge from anything:
# it is called stuck.
CHANCE = 1.5


class Outcome(NamedTuple):
    """What became of one training; both false if it trained."""

    diverged: bool
    stuck: bool


def outcome(accuracies: Sequence[float], classes: int, *, is_finite: bool) -> Outcome:
    """What became of a training."""
    if not is_finite:
        return Outcome(diverged=True, stuck=False)
    limit = CHANCE / classes
    is_stuck = max(accuracies) <= limit
    return Outcome(diverged=accuracies[-1] <= limit and not is_stuck, stuck=is_stuck)


def is_lost(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which trainings are lost."""
    lost: pd.Series[bool] = rows[DIVERGED] | rows[STUCK]
    return lost


def finished(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that are not lost."""
    return rows[~is_lost(rows)]


def counted(diverged: int, stuck: int, runs: int) -> str:
    """How many of some trainings are lost, for instance "1 of 3 diverged, 2 of 3 stuck"; nothing if none is."""
    numbers = ((DIVERGED, diverged), (STUCK, stuck))
    return ", ".join(f"{number} of {runs} {name}" for name, number in numbers if number)


def lost_in(rows: pd.DataFrame) -> str:
    """The same of the trainings in a table."""
    return counted(int(rows[DIVERGED].sum()), int(rows[STUCK].sum()), len(rows))


def in_a_word(diverged: int, stuck: int, runs: int) -> str:
    """As `counted`, but "diverged" or "stuck" alone if all of them are."""
    return {(runs, 0): DIVERGED, (0, runs): STUCK}.get((diverged, stuck), counted(diverged, stuck, runs))
