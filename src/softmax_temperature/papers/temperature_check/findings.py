"""What the study shows, in sentences made from its numbers, so that every profile's notebook speaks of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softmax_temperature.papers.temperature_check import tables
from softmax_temperature.papers.temperature_check.selection import UNTEMPERED, alone, best_temperatures, titles

if TYPE_CHECKING:
    from softmax_temperature.papers.temperature_check.records import Records

PERCENT = 100


def findings(records: Records) -> str:
    """Markdown: what ran, what diverged, and what the inverse temperature changes."""
    parts = (_coverage, _diverged, _best, _rates, _norms, _confidence, _three)
    return "\n".join(f"- {text}" for text in (part(records) for part in parts) if text)


def _coverage(records: Records) -> str:
    runs = records.runs
    if runs.empty:
        return "**Coverage.** No network was trained in this profile."
    parts = [
        f"{row.architecture} on {row.dataset} ({row.parameters:,} parameters, {row.train_samples:,} samples, "
        f"{row.epochs} epochs)"
        for row in records.sweeps.drop_duplicates(["architecture", "dataset"]).itertuples()
    ]
    return (
        f"**Coverage.** {len(runs)} trainings, {runs['inverse_temperature'].nunique()} inverse temperatures, "
        f"{runs['learning_rate'].nunique()} rescaled learning rates, {runs['seed'].nunique()} seeds. "
        f"They train {'; '.join(parts)}."
    )


def _diverged(records: Records) -> str:
    """Nothing, if nothing did."""
    lost = records.runs[records.runs["diverged"].astype(bool)]
    places = lost.groupby(["sweep", "inverse_temperature"], sort=True).size().rename("lost").reset_index()
    parts = [f"{row.sweep} at {row.inverse_temperature:g}: {row.lost}" for row in places.itertuples()]
    return f"**Diverged**, counted as guessing: {'; '.join(parts)}." if parts else ""


def _best(records: Records) -> str:
    rows = alone(records)
    table, known = tables.accuracies(records), titles(rows)
    parts = []
    for place in best_temperatures(rows):
        best = table[(table["sweep"] == place.sweep) & (table["inverse_temperature"] == place.best)]
        test, gain = (float(best[name].iloc[0]) for name in ("test", "gain"))
        text = f"{known[place.sweep]}: {place.best:g} ({PERCENT * test:.1f} %"
        if not math.isnan(gain) and place.best != UNTEMPERED:
            text += f", {PERCENT * gain:+.1f} points against 1"
        parts.append(f"{text}; as good from {place.low:g} to {place.high:g})")
    return f"**Best inverse temperature**, chosen on validation data. {'; '.join(parts)}." if parts else ""


def _rates(records: Records) -> str:
    """The learning rates that stand for each inverse temperature, where there was a choice."""
    table = tables.accuracies(records)
    offered = tables.learning_rates(records).groupby("sweep")["learning_rate"].agg(["min", "max"])
    parts, at_ends, places = [], 0, 0
    for sweep, some in table.groupby("sweep", sort=False):
        ends = set(offered.loc[sweep])
        if len(ends) > 1:
            pairs = (f"{row.learning_rate:g} at {row.inverse_temperature:g}" for row in some.itertuples())
            parts.append(f"{some['architecture'].iloc[0]}: {', '.join(pairs)}")
            at_ends, places = at_ends + int(some["learning_rate"].isin(ends).sum()), places + len(some)
    if not parts:
        return ""
    text = f"**Best rescaled learning rate** at each inverse temperature. {'; '.join(parts)}."
    beyond = f" {at_ends} of these {places} are ends of their grids: a wider one might find better."
    return text + (beyond if at_ends else "")


def _norms(records: Records) -> str:
    table = tables.logit_norms(records)
    parts = [
        f"{some['architecture'].iloc[0]}: norms {some['initial_logit_norm'].min():.2g} to "
        f"{some['initial_logit_norm'].max():.2g} end between {PERCENT * some['test'].min():.1f} and "
        f"{PERCENT * some['test'].max():.1f} %"
        for _, some in table.groupby("sweep", sort=False)
    ]
    return f"**Logit norm at the start**, one inverse temperature. {'; '.join(parts)}." if parts else ""


def _confidence(records: Records) -> str:
    table = tables.confidence(records)
    parts = [
        f"{some['architecture'].iloc[0]}: {some['scaled_nll'].min():.3f} to {some['scaled_nll'].max():.3f} nats"
        for _, some in table.groupby("sweep", sort=False)
    ]
    return f"**Test NLL after post-hoc scaling**, over all inverse temperatures. {'; '.join(parts)}." if parts else ""


def _three(records: Records) -> str:
    parts = []
    for _, row in tables.three_temperatures(records).iterrows():
        others = {"post-hoc": row["post_hoc"], "Cooling": row["cooling"], "heuristic": row["heuristic"]}
        known = [f"{name} {value:.2g}" for name, value in others.items() if not math.isnan(value)]
        if known:
            parts.append(f"{row['architecture']}: best {row['training_best']:g}, {', '.join(known)}")
    return f"**Three inverse temperatures of one network.** {'; '.join(parts)}." if parts else ""
