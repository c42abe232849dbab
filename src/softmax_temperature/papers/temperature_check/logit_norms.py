"""Contrasts that measure the effect of the initial logits' norm."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.contrasts import Evidence
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import SEED, Runs
from softmax_temperature.papers.shared.statistics import (
    CORRECTED,
    SEEDS_SHARED,
    Fitted,
    Values,
)
from softmax_temperature.papers.shared.sweeps import ChosenDifference

SMALLEST = 1.0
LARGEST = 10.0
"""A comparison of norms must include a norm of at most `SMALLEST` and one of at least
`LARGEST`, so that it covers both limits of the theory.
"""


@dataclass(frozen=True, kw_only=True)
class OfNorm(ChosenDifference):
    """The effect of the initial logits' norm on accuracy, with one part per network.

    A norm without comparable runs is listed as a missing part, because it might be the
    best or the worst.
    """

    over: str = "start_value"

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        if chosen.empty:
            return super()._whole(runs)
        if reason := why_one_regime(chosen, self.over):
            return Evidence({}, {"": reason}, chosen)
        evidence = super()._whole(runs)
        if not evidence.parts:
            return evidence
        norms = set(chosen[self.over]) - set(self.compared.select(chosen)[self.over])
        lacking = {f"norm {norm:g}": f"no {self.compared}" for norm in sorted(norms)}
        return replace(evidence, missing=lacking)


@dataclass(frozen=True, kw_only=True)
class MinusHalf(ChosenDifference):
    """The effect of the initial logits' norm minus half of `effect`, per network.

    Attributes:
        effect: The effect of the inverse temperature.
    """

    effect: ChosenDifference

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        if chosen.empty:
            return super()._whole(runs)
        if reason := why_one_regime(chosen, self.over):
            return Evidence({}, {"": reason}, chosen)
        rows = runs.select(
            self.effect.among
            & where(network_and_data=chosen["network_and_data"].iloc[0])
        )
        compared = self.effect.compared.select(rows)
        temperatures = self.effect.differences(runs, compared)
        if not temperatures or chosen[SEED].nunique() < 2:
            reason = (
                "no sweep of inverse temperatures to compare with, or one seed only"
            )
            return Evidence({}, {"": reason}, chosen)
        differences = self.differences(runs, self.compared.select(chosen))
        part = minus_half(np.array(differences), np.array(temperatures))
        return Evidence({"": part}, {}, chosen)


def why_one_regime(chosen: pd.DataFrame, over: str) -> str:
    """The reason why the norms in `chosen` show only one regime of the theory.

    The reason is "" if the norms show two regimes. `over` is the column that
    distinguishes the norms.
    """
    norms = chosen.groupby(over)["initial_logit_norm"].mean()
    if norms.min() <= SMALLEST and norms.max() >= LARGEST:
        return ""
    return (
        f"norms from {norms.min():.2g} to {norms.max():.2g} cannot show more than one "
        "regime"
    )


def minus_half(values: Values, others: Values) -> Fitted:
    """The mean of `values` minus half of the mean of `others`, with Welch's interval.

    Each value in both means is measured at a setting that was chosen on the other
    seeds. Therefore the variances are corrected as in `OverTasks`.
    """
    counts = np.array([len(values), len(others)])
    variances = np.array([values.var(ddof=1), others.var(ddof=1) / 4])
    squares = variances * (1 / counts + 1 / (counts - 1))
    below = (squares**2 / (counts - 1)).sum()
    degrees = squares.sum() ** 2 / below if below else counts.min() - 1
    return Fitted(
        values.mean() - others.mean() / 2,
        float(np.sqrt(squares.sum())),
        int(degrees),
        len(values),
        corrected=f"Welch's interval, {CORRECTED} {SEEDS_SHARED}",
    )
