"""What the abstract says, as criteria that were fixed before the runs; the theory's as slopes that it predicts.

Only the abstract is at hand: each of its sentences about generalisation is a claim, and none has a printed number.
Trainings are compared in pairs of one seed, with the learning rate that validation data prefer; one that diverged
counts as guessing. Inverse temperatures are chosen on validation data and compared on test data, so that choosing the
best of many does not make it look better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy import stats

from softmax_temperature.papers.shared.claims import Claim, Evidence, NotTested
from softmax_temperature.papers.shared.effects import Effect
from softmax_temperature.papers.temperature_check.selection import (
    UNTEMPERED,
    alone,
    at,
    best_temperatures,
    pairs,
    spreads,
    titles,
)

if TYPE_CHECKING:
    import pandas as pd

    from softmax_temperature.papers.temperature_check.records import Records

STRONG = 0.02  # Two points of accuracy.
_NO_SWEEP = NotTested("no sweep of this profile has several inverse temperatures")
SIGNIFICANT = 0.1


def _depends_on_temperature(records: Records) -> Evidence | NotTested:
    effects = _best_against_worst(records, "test_accuracy")
    if not effects:
        return _NO_SWEEP
    weakest = min(effects, key=lambda name: effects[name].lowest)
    holds, cells = all(effect.above(STRONG) for effect in effects.values()), _swept(records)
    unit, note = f"accuracy, {weakest}", _each(effects)
    return effects[weakest].evidence(holds=holds, unit=unit, cells=cells, note=note, bounds=(STRONG,))


def _depends_weakly_on_the_norm(records: Records) -> Evidence | NotTested:
    rows, ranges = pairs(records), _best_against_worst(records, "test_accuracy")
    found, limits = {}, {}
    for _, some in rows.groupby("sweep", sort=False):
        name = _title(some)
        if len(set(some["correlation"])) > 1 and name in ranges:
            found[name], limits[name] = _widest_gap(some), ranges[name].value
    if not found:
        return NotTested("no network of this profile has both a sweep and pairs with logits of several norms")
    shares = {name: found[name].value / limits[name] if limits[name] > 0 else float("inf") for name in found}
    worst = max(shares, key=lambda name: shares[name])
    holds = all(found[name].below(limits[name] / 2) for name in found)
    note = ", ".join(f"{name}: {found[name].value:+.3f} of {limits[name]:+.3f}" for name in found)
    cells, bounds = _cells(rows) + _swept(records), (limits[worst] / 2,)
    return found[worst].evidence(holds=holds, unit=f"accuracy, {worst}", cells=cells, note=note, bounds=bounds)


def _is_no_matter_of_confidence(records: Records) -> Evidence | NotTested:
    effects = _best_against_worst(records, "scaled_nll", sign=-1)
    if not effects:
        return _NO_SWEEP
    weakest = min(effects, key=lambda name: effects[name].lowest)
    holds, cells = all(effect.above(0) for effect in effects.values()), _swept(records)
    # Guessing has an accuracy, but a network that diverged has no NLL.
    lost = [f"{name}: not measured, all diverged at the worst" for name, _ in _sweeps(records) if name not in effects]
    note = ", ".join([_each(effects), *lost])
    return effects[weakest].evidence(holds=holds, unit=f"nats, {weakest}", cells=cells, note=note)


def _tuning_helps_everywhere(records: Records) -> Evidence | NotTested:
    rows, effects = alone(records), {}
    for place in best_temperatures(rows):
        best, own = at(rows, place.sweep, place.best), at(rows, place.sweep, UNTEMPERED)
        gaps = (best["test_accuracy"] - own["test_accuracy"]).dropna()
        if len(gaps):
            effects[f"{_title(best.reset_index())} at {place.best:g}"] = Effect.over_seeds(gaps)
    if not effects:
        return _NO_SWEEP
    weakest = min(effects, key=lambda name: effects[name].lowest)
    holds, cells = all(effect.above(0) for effect in effects.values()), _cells(rows)
    return effects[weakest].evidence(holds=holds, unit=f"accuracy, {weakest}", cells=cells, note=_each(effects))


def _best_depends_on_architecture(records: Records) -> Evidence | NotTested:
    rows = alone(records)
    places = best_temperatures(rows)
    if len(places) < 2:
        return NotTested("this profile sweeps one architecture")
    known = titles(rows)
    apart = max(place.low for place in places) / min(place.high for place in places)
    parts = (f"{known[place.sweep]}: {place.best:g} ({place.low:g} to {place.high:g})" for place in places)
    unit, note = "highest lower end over lowest upper end", ", ".join(parts)
    return Evidence(apart > 1, apart, len(places), unit, note=note, cells=_cells(rows))


def _small_ones_peak_higher(records: Records) -> Evidence | NotTested:
    effects = {}
    for name, rows in _sweeps(records):
        means = rows.groupby("inverse_temperature")["test_accuracy"].max()
        small, large = means[means.index < UNTEMPERED], means[means.index >= UNTEMPERED]
        if len(small) and len(large):
            effects[name] = Effect(float(small.max() - large.max()), len(rows))
    if not effects:
        return NotTested("no sweep of this profile has inverse temperatures on both sides of 1")
    weakest = min(effects, key=lambda name: effects[name].value)
    holds = all(effect.value > 0 for effect in effects.values())
    note = f"{_each(effects)}; best of all seeds, no interval"
    effect, unit = effects[weakest], f"accuracy, {weakest}"
    return Evidence(holds, effect.value, effect.n, unit, note=note, cells=_swept(records))


def _small_ones_spread_more(records: Records) -> Evidence | NotTested:
    tables = {name: spreads(rows).set_index("inverse_temperature")["spread"] for name, rows in _sweeps(records)}
    enough = {name: spread for name, spread in tables.items() if len(spread) >= 3}
    if not enough:
        return NotTested("no sweep of this profile has three inverse temperatures with several seeds each")
    found = {name: stats.spearmanr(spread.index, spread) for name, spread in enough.items() if len(set(spread)) > 1}
    note = ", ".join(f"{name}: {value.statistic:+.2f} (p {value.pvalue:.2g})" for name, value in found.items())
    if not found:
        return NotTested("all seeds agree")
    weakest = max(found, key=lambda name: found[name].statistic)
    holds = all(value.statistic < 0 and value.pvalue < SIGNIFICANT for value in found.values())
    unit = f"rank correlation of spread and inverse temperature, {weakest}"
    value, count = float(found[weakest].statistic), len(enough[weakest])
    return Evidence(holds, value, count, unit, note=note, cells=_swept(records))


def _sweeps(records: Records) -> list[tuple[str, pd.DataFrame]]:
    """Title and chosen trainings of each sweep with several inverse temperatures."""
    groups = alone(records).groupby("sweep", sort=False)
    return [(_title(rows), rows) for _, rows in groups if len(set(rows["inverse_temperature"])) > 1]


def _swept(records: Records) -> tuple[str, ...]:
    """The trainings of `_sweeps`."""
    return tuple(cell for _, rows in _sweeps(records) for cell in _cells(rows))


def _cells(rows: pd.DataFrame) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rows["cells"]))


def _best_against_worst(records: Records, metric: str, *, sign: int = 1) -> dict[str, Effect]:
    """By sweep, how much better the best inverse temperature is than the worst, both chosen on validation data."""
    effects = {}
    for name, rows in _sweeps(records):
        (place,) = best_temperatures(rows)
        best, worst = at(rows, place.sweep, place.best), at(rows, place.sweep, place.worst)
        gaps = sign * (best[metric] - worst[metric]).dropna()
        if len(gaps):
            effects[name] = Effect.over_seeds(gaps)
    return effects


def _widest_gap(rows: pd.DataFrame) -> Effect:
    """Between the correlations with the best and the worst validation accuracy, seed by seed on test data."""
    means = rows.groupby("correlation")["validation_accuracy"].mean()
    table = rows.pivot_table(index="seed", columns="correlation", values="test_accuracy")
    return Effect.over_seeds((table[means.idxmax()] - table[means.idxmin()]).dropna())


def _title(rows: pd.DataFrame) -> str:
    return next(iter(titles(rows).values()))


def _each(effects: dict[str, Effect]) -> str:
    return ", ".join(f"{name}: {effect.value:+.3f}" for name, effect in effects.items())


CLAIMS: tuple[Claim[Records], ...] = (
    Claim(
        "accuracy-depends-on-temperature",
        "abstract",
        "Generalisation depends strongly on the inverse temperature.",
        "Test accuracy at the best minus that at the worst inverse temperature of each sweep, both chosen on "
        "validation data, paired by seed: holds if the 90 % interval is above two points in every sweep. The value is "
        "the smallest.",
        _depends_on_temperature,
    ),
    Claim(
        "accuracy-depends-weakly-on-logit-norm",
        "abstract",
        "Generalisation depends only weakly on the size of the logits at initialisation.",
        "Test accuracy of correlated pairs at one inverse temperature, best minus worst logit norm, chosen and paired "
        "as above: holds if the 90 % interval is below half of what the inverse temperature changes in the same "
        "network.",
        _depends_weakly_on_the_norm,
    ),
    Claim(
        "not-a-matter-of-confidence",
        "abstract",
        "The dependence of generalisation on the inverse temperature is not due to changes in confidence.",
        "Test NLL after post-hoc temperature scaling, at the worst minus at the best inverse temperature: holds if the "
        "90 % interval is above 0 in every sweep. Were it confidence alone, scaling would remove it.",
        _is_no_matter_of_confidence,
    ),
    Claim(
        "tuning-helps-every-architecture",
        "abstract",
        "Tuning the inverse temperature between 0.01 and 10 improves all architectures.",
        "Test accuracy at the best inverse temperature, chosen on validation data, minus that at 1, paired by seed: "
        "holds if the 90 % interval is above 0 in every sweep. The value is the smallest.",
        _tuning_helps_everywhere,
    ),
    Claim(
        "best-depends-on-architecture",
        "abstract",
        "The optimal inverse temperature is sensitive to the architecture.",
        "Two sweeps whose ranges of inverse temperatures that are as good as the best do not overlap: holds if the "
        "highest lower end is above the lowest upper end.",
        _best_depends_on_architecture,
    ),
    Claim(
        "small-peaks-higher",
        "abstract",
        "Smaller inverse temperatures may lead to better peak performance.",
        "Best test accuracy of any seed below 1 minus that at 1 and above: holds if positive in every sweep.",
        _small_ones_peak_higher,
    ),
    Claim(
        "small-spreads-more",
        "abstract",
        "Smaller inverse temperatures cost stability.",
        "Rank correlation, over inverse temperatures, of the standard deviation of test accuracy over seeds: holds if "
        "negative with p < 0.1 in every sweep. Where all seeds diverged there is no spread. The value is the highest.",
        _small_ones_spread_more,
    ),
)
