"""What the theory of early learning predicts, as claims about slopes.

The criteria were fixed before the runs; the points that slopes are fitted to were not, see `early_learning_slopes`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from softmax_temperature.papers.shared.claims import Claim, Evidence, NotTested
from softmax_temperature.papers.temperature_check.early_learning_slopes import (
    COLLAPSE,
    DRIFT,
    FIT_LARGE,
    FIT_SMALL,
    TENTH_LARGE,
    UNIT_SMALL,
    Prediction,
    early_slopes,
)

if TYPE_CHECKING:
    from softmax_temperature.papers.temperature_check.records import Records

MARGIN = 0.1
"""Of a slope: the predictions are limits, and what is measured is finite."""

LINE = 1.5
"""The largest factor by which a point may miss its line: otherwise there is no power law, whatever its slope."""


_WHERE = "theory behind the abstract, derived again"
_CRITERION = (
    "Slope of the logarithms, fitted seed by seed: holds if on every network its mean over seeds is within "
    f"{MARGIN:g} of the predicted slope, and no point off its line by more than a factor {LINE:g}. The value is "
    "that of the network farthest off."
)


def early_claims() -> tuple[Claim[Records], ...]:
    """The claims, judged on records with the tables `early_curves` and `early_norms`."""
    return (
        _claim(
            "early-collapse",
            "While the kernel keeps still, learning depends on the inverse temperature through rescaled time alone: "
            "that in which the tempered logits change by 1 has slope 0 in it.",
            COLLAPSE,
        ),
        _claim(
            "early-small-logits",
            "Small logits at the start make no difference: the times to change by 1 and to fit have slope 0 in their "
            "norm.",
            UNIT_SMALL,
            FIT_SMALL,
        ),
        _claim(
            "early-large-logits",
            "Large logits at the start slow learning in proportion: the times to change by a tenth of the norm and to "
            "fit have slope 1 in it.",
            TENTH_LARGE,
            FIT_LARGE,
        ),
        _claim(
            "early-drift",
            "For the same change of the tempered logits, the kernel of a smooth network drifts in inverse proportion "
            "to the inverse temperature: slope -1.",
            DRIFT,
            smooth=True,
        ),
        _claim(
            "early-drift-kinks",
            "So does the kernel of a network with ReLU, which the theory does not see as different: slope -1.",
            DRIFT,
            smooth=False,
        ),
    )


def _claim(name: str, statement: str, *predictions: Prediction, smooth: bool | None = None) -> Claim[Records]:
    return Claim(name, _WHERE, statement, _CRITERION, partial(_judge, predictions=predictions, smooth=smooth))


def _judge(records: Records, *, predictions: tuple[Prediction, ...], smooth: bool | None) -> Evidence | NotTested:
    table = early_slopes(records)
    keys = [(each.quantity, each.where, each.against) for each in predictions]
    asked = pd.MultiIndex.from_frame(table[["quantity", "where", "against"]]).isin(keys)
    rows = table[asked if smooth is None else asked & (table["smooth"] == smooth)]
    if rows.empty:
        return NotTested("no network of this profile has two points where the prediction speaks")
    misses = (rows["slope"] - rows["predicted"]).abs()
    worst = rows.iloc[int(misses.to_numpy().argmax())]
    return Evidence(
        bool((misses <= MARGIN).all() and (rows["misfit"] <= LINE).all()),
        float(worst["slope"]),
        int(worst["n"]),
        f"slope, predicted {worst['predicted']:g}, {worst['network']}",
        sd=_number(worst["sd"]),
        low=_number(worst["low"]),
        high=_number(worst["high"]),
        bounds=(),
        note="; ".join(
            f"{row.network}: {row.slope:+.3f} for {row.predicted:+g}, points within a factor {row.misfit:.2f} of a line"
            for row in rows.itertuples()
        ),
        cells=tuple(dict.fromkeys(rows["cells"])),
    )


def _number(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
