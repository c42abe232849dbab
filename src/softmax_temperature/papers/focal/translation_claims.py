"""What appendix K says of translation, as criteria that were fixed before the runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from softmax_temperature.papers.focal.selection import TRANSLATION
from softmax_temperature.papers.shared.claims import Claim, Evidence, NotTested
from softmax_temperature.papers.shared.effects import Effect
from softmax_temperature.papers.shared.sources import cells_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from softmax_temperature.papers.focal.records import Records

CROSS_ENTROPY, SMOOTHING, FOCAL = "CE", "LS", "FL"
OPTIMAL = (0.95, 1.05)  # Around 1, nearer than the next temperatures of the grid.
AROUND = 0.2  # Between temperatures: "around the same".
POINTS = 100  # BLEU as it is printed.


def _near_one(records: Records, *, arms: Sequence[str], near: bool) -> Evidence | NotTested:
    runs = _finished(records, *arms)
    if isinstance(runs, NotTested):
        return runs
    counted = runs["temperature"].between(*OPTIMAL) == near
    shares = counted.groupby(runs["arm"], sort=False).mean()
    mean = runs.groupby("arm", sort=False)["temperature"].mean()
    note = ", ".join(f"{arm}: {temperature:.2f}" for arm, temperature in mean.items())
    first = Effect.of(runs.loc[runs["arm"] == arms[0], "temperature"])
    holds, cells = bool((shares > 0.5).all()), cells_of(TRANSLATION, runs, "arm")
    return first.evidence(holds=holds, unit=f"temperature, {arms[0]}", cells=cells, note=f"mean {note}")


def _against_both(records: Records, *, column: str, sign: int, unit: str, scale: float) -> Evidence | NotTested:
    """Focal loss minus each other loss, paired by seed; the value is that of the closer one."""
    runs = _finished(records, FOCAL, CROSS_ENTROPY, SMOOTHING)
    if isinstance(runs, NotTested):
        return runs
    table = scale * runs.pivot(index="seed", columns="arm", values=column)
    differences = {other: (table[FOCAL] - table[other]).dropna() for other in (CROSS_ENTROPY, SMOOTHING)}
    if any(values.empty for values in differences.values()):
        return NotTested("no seed has finished trainings of all three losses")
    effects = {other: Effect.of(values) for other, values in differences.items()}
    holds = all(effect.above(0) if sign > 0 else effect.below(0) for effect in effects.values())
    closest = min(effects, key=lambda other: sign * effects[other].value)
    note = ", ".join(f"against {other} {effect.value:+.3f}" for other, effect in effects.items())
    cells = cells_of(TRANSLATION, runs, "arm")
    return effects[closest].evidence(holds=holds, unit=f"{unit}, against {closest}", cells=cells, note=note)


def _calibrated_where_good(records: Records) -> Evidence | NotTested:
    curves = records.translation_curves
    if curves.empty:
        return _why_untested(records, CROSS_ENTROPY)
    runs = curves.groupby(["arm", "seed"], sort=False)
    best, calibrated = (
        curves.loc[rows].set_index(["arm", "seed"])["temperature"]
        for rows in (runs["bleu"].idxmax(), runs["validation_ece"].idxmin())
    )
    distances = (best - calibrated).abs()
    near = distances <= AROUND + 1e-9
    note = f"{near.sum()} of {len(near)} trainings within {AROUND:g}"
    holds, cells = bool(near.mean() > 0.5), cells_of(TRANSLATION, curves, "arm")
    return Effect.of(distances).evidence(holds=holds, unit="temperature", cells=cells, note=note)


def _finished(records: Records, *arms: str) -> pd.DataFrame | NotTested:
    """The trainings of some arms that did not diverge, each arm with at least one."""
    runs = records.translation_runs
    runs = runs[~runs["diverged"].astype(bool)]
    for arm in arms:
        if not (runs["arm"] == arm).any():
            return _why_untested(records, arm)
    return runs[runs["arm"].isin(arms)]


def _why_untested(records: Records, arm: str) -> NotTested:
    if records.translation_runs.empty:
        return NotTested("this profile does not translate")
    return NotTested(f"every translation model of {arm} diverged")


_WHERE = "appendix K, Table K.1"
_PAIRED = "the 90 % interval of the mean over seeds (one seed: its value)"
_GRID = "Temperature of least validation ECE on the grid of 0.1"

TRANSLATION_CLAIMS: tuple[Claim[Records], ...] = (
    Claim(
        "translation-focal-temperature-is-one",
        _WHERE,
        "The translation model trained with focal loss has an optimal temperature of 1, just like the one trained with "
        "label smoothing.",
        f"{_GRID}: holds if it is 1.0 for more than half of the trainings with focal loss, and likewise for label "
        "smoothing. The value is the mean of focal loss.",
        partial(_near_one, arms=(FOCAL, SMOOTHING), near=True),
        published=1.0,
    ),
    Claim(
        "translation-ce-temperature-is-not-one",
        "appendix K, Figure K.1",
        "The translation model trained with cross-entropy has another optimal temperature than 1.",
        f"{_GRID}: holds if it is not 1.0 for more than half of the trainings. The paper says so by leaving this model "
        "out of the sentence on the other two.",
        partial(_near_one, arms=(CROSS_ENTROPY,), near=False),
    ),
    Claim(
        "translation-focal-calibrates",
        _WHERE,
        "The translation model trained with focal loss outperforms its competitors on ECE.",
        "ECE of next-token predictions on test data, not scaled, focal loss minus each of cross-entropy and label "
        f"smoothing, paired by seed: holds if for both {_PAIRED} lies below 0. The value is that of the closer one.",
        partial(_against_both, column="ece", sign=-1, unit="ECE", scale=1),
    ),
    Claim(
        "translation-focal-bleu",
        _WHERE,
        "The translation model trained with focal loss has a competitive edge over the others on BLEU.",
        "Highest test BLEU over temperatures, focal loss minus each of the others, paired by seed: holds if for both "
        f"{_PAIRED} lies above 0. The value is that of the closer one, in points. Printed: against label smoothing.",
        partial(_against_both, column="best_bleu", sign=1, unit="BLEU", scale=POINTS),
        published=0.03,
    ),
    Claim(
        "translation-calibrated-where-good",
        "appendix K, Figure K.1",
        "Translation models obtain the highest BLEU at around the same temperatures at which they obtain low ECE.",
        "Distance between the temperature of highest test BLEU and that of least validation ECE, among those of Figure "
        "K.1: holds if it is at most 0.2 for more than half of the trainings of all losses. The value is its mean.",
        _calibrated_where_good,
    ),
)
