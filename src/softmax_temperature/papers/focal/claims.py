"""What the paper says, as criteria that were fixed before the runs.

Sections 3 and 4 with Figures 1 and 2 speak of training, section 5 with Tables 1 to 3 of calibration, appendices H and J
of confident predictions and of early stopping; appendix K, on translation, is in `translation_claims`. Every criterion
looks at the main recipe alone, not at its variants, and at the runs that did not diverge; at tasks on images and on
texts alike, unless it says which.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from softmax_temperature.papers.focal.effects import paired_difference, runs_of, side_by_side, why_untested
from softmax_temperature.papers.focal.selection import EVALUATION, REFERENCE, SCALED, TRAINING, text_tasks
from softmax_temperature.papers.focal.translation_claims import TRANSLATION_CLAIMS
from softmax_temperature.papers.shared.claims import Claim, Evidence, NotTested
from softmax_temperature.papers.shared.effects import Effect
from softmax_temperature.papers.shared.sources import cells_of

if TYPE_CHECKING:
    import pandas as pd

    from softmax_temperature.papers.focal.records import Records

PROPOSED, FIXED = "FLSD-53", "FL-3"
NEGLIGIBLE = 0.01  # A difference of accuracy or AUROC below one point is none.
NEAR_ONE = (0.9, 1.1)  # Section 5.
ROUNDING = 1e-6  # Of the grid of temperatures: what is on a bound of NEAR_ONE is inside it.
WELL_ABOVE_ONE = 1.5  # Between the range above and what is printed for cross-entropy, 2.0 to 2.8.
OVERFITTED = 1.05  # A test NLL that ends at less than this multiple of its minimum is not called overfitted.
EARLY = 150 / 350  # The share of the training before the learning rate first falls: "initially" in section 4.
RUN_OF_TASK = ["task", "seed"]


def _calibration_error(records: Records, *, arm: str, scaling: str) -> Evidence | NotTested:
    effect = paired_difference(records, "expected_calibration_error", arm, scaling)
    if isinstance(effect, NotTested):
        return effect
    return effect.evidence(holds=effect.below(0), unit="ECE", cells=_evaluations(records, arm, REFERENCE))


def _evaluations(records: Records, *arms: str) -> tuple[str, ...]:
    return cells_of(EVALUATION, runs_of(records, "runs", *arms), "task", "arm")


def _trainings(records: Records, *arms: str) -> tuple[str, ...]:
    return cells_of(TRAINING, runs_of(records, "history", *arms), "task", "arm")


def _calibration_error_on_texts(records: Records) -> Evidence | NotTested:
    tasks = text_tasks(records)
    if tasks.empty:
        return NotTested("no task of this profile is on texts")
    return _calibration_error(replace(records, tasks=tasks), arm=PROPOSED, scaling="none")


def _accuracy_is_kept(records: Records) -> Evidence | NotTested:
    effect = paired_difference(records, "accuracy", PROPOSED, "none")
    if isinstance(effect, NotTested):
        return effect
    holds = effect.above(-NEGLIGIBLE) and effect.below(NEGLIGIBLE)
    bounds, cells = (-NEGLIGIBLE, NEGLIGIBLE), _evaluations(records, PROPOSED, REFERENCE)
    return effect.evidence(holds=holds, unit="accuracy", cells=cells, bounds=bounds)


def _temperatures(records: Records, arm: str) -> pd.DataFrame | NotTested:
    rows = runs_of(records, "runs", arm)
    return rows[rows["scaling"] == SCALED] if len(rows) else why_untested(records, arm)


def _temperature_near_one(records: Records) -> Evidence | NotTested:
    rows = _temperatures(records, PROPOSED)
    if isinstance(rows, NotTested):
        return rows
    low, high = NEAR_ONE
    inside = rows["temperature"].between(low - ROUNDING, high + ROUNDING)
    note = f"{inside.sum()} of {len(rows)} runs inside"
    effect, holds = Effect.of(rows["temperature"]), bool(inside.mean() > 0.5)
    cells = _evaluations(records, PROPOSED)
    return effect.evidence(holds=holds, unit="temperature", cells=cells, note=note, bounds=())


def _temperature_well_above_one(records: Records) -> Evidence | NotTested:
    rows = _temperatures(records, REFERENCE)
    if isinstance(rows, NotTested):
        return rows
    effect, at_bound = Effect.of(rows["temperature"]), int(rows["at_bound"].sum())
    note = f"{at_bound} at the bound of the grid" if at_bound else ""
    cells = _evaluations(records, REFERENCE)
    holds, bounds = effect.above(WELL_ABOVE_ONE), (WELL_ABOVE_ONE,)
    return effect.evidence(holds=holds, unit="temperature", cells=cells, note=note, bounds=bounds)


def _overfitting_is_of_the_wrong(records: Records) -> Evidence | NotTested:
    history = runs_of(records, "history", REFERENCE)
    history = history[history["split"] == "test"]
    if history.empty:
        return why_untested(records, REFERENCE)
    runs = history.groupby(RUN_OF_TASK)
    best, last = (history.loc[rows].set_index(RUN_OF_TASK) for rows in (runs["nll"].idxmin(), runs["epoch"].idxmax()))
    overfitted = last["nll"] >= OVERFITTED * best["nll"]
    if not overfitted.any():
        return NotTested(f"no run's test NLL ends at {OVERFITTED} times its minimum: nothing is overfitted")
    wrong, right = ((last[name] - best[name])[overfitted].dropna() for name in ("nll_wrong", "nll_right"))
    if wrong.empty:
        return NotTested("no test sample is misclassified")
    effect, rise = Effect.of(wrong), float(right.mean())
    note = f"right samples {rise:+.3f} nats; {overfitted.sum()} of {len(overfitted)} runs overfit"
    holds = effect.above(0) and rise <= 0
    return effect.evidence(holds=holds, unit="nats", cells=_trainings(records, REFERENCE), note=note)


def _weight_norms_end_reversed(records: Records) -> Evidence | NotTested:
    history = runs_of(records, "history", REFERENCE, FIXED)
    norms = side_by_side(history[history["split"] == "test"], "weight_norm", [*RUN_OF_TASK, "epoch"], FIXED)
    if norms.empty:
        return why_untested(records, REFERENCE, FIXED)
    differences = (norms[FIXED] - norms[REFERENCE]).rename("difference").reset_index()
    epochs = differences.groupby(RUN_OF_TASK)["epoch"].transform("max")
    end = Effect.of(differences.loc[differences["epoch"] == epochs, "difference"])
    is_early = differences["epoch"] <= (EARLY * epochs).clip(lower=1)
    early = Effect.of(differences[is_early].groupby(RUN_OF_TASK)["difference"].mean())
    holds = end.below(0) and early.above(0)
    cells = _trainings(records, FIXED, REFERENCE)
    return end.evidence(holds=holds, unit="weight norm", cells=cells, note=f"early {early}")


def _outliers_stand_out(records: Records) -> Evidence | NotTested:
    rows = runs_of(records, "ood", PROPOSED, REFERENCE)
    pairs = side_by_side(rows[rows["scaling"] == "none"], "auroc", [*RUN_OF_TASK, "ood"], PROPOSED)
    effect = _over_outlier_sets(records, pairs, PROPOSED, REFERENCE)
    if isinstance(effect, NotTested):
        return effect
    return effect.evidence(holds=effect.above(0), unit="AUROC", cells=cells_of(EVALUATION, rows, "task", "arm"))


def _scaling_does_not_help_outliers(records: Records) -> Evidence | NotTested:
    rows = runs_of(records, "ood", REFERENCE)
    pairs = side_by_side(rows, "auroc", [*RUN_OF_TASK, "ood"], SCALED, "none", by="scaling")
    effect = _over_outlier_sets(records, pairs, REFERENCE)
    if isinstance(effect, NotTested):
        return effect
    cells = cells_of(EVALUATION, rows, "task", "arm")
    return effect.evidence(holds=effect.below(NEGLIGIBLE), unit="AUROC", cells=cells, bounds=(NEGLIGIBLE,))


def _over_outlier_sets(records: Records, pairs: pd.DataFrame, *arms: str) -> Effect | NotTested:
    """First column minus second, its mean over the out-of-distribution sets of a run."""
    if records.ood.empty:
        return NotTested("no task of this profile has an out-of-distribution set")
    if pairs.empty:
        return why_untested(records, *arms)
    return Effect.of((pairs.iloc[:, 0] - pairs.iloc[:, 1]).groupby(RUN_OF_TASK).mean())


def _confident_predictions(records: Records, *, scaling: str, more: bool) -> Evidence | NotTested:
    effect = paired_difference(records, "confident_share", PROPOSED, scaling)
    if isinstance(effect, NotTested):
        return effect
    holds, cells = effect.above(0) if more else effect.below(0), _evaluations(records, PROPOSED, REFERENCE)
    return effect.evidence(holds=holds, unit="share of predictions", cells=cells)


def _early_stopping(records: Records) -> Evidence | NotTested:
    rows = runs_of(records, "early_stopping", REFERENCE, PROPOSED)
    pairs = side_by_side(rows, "expected_calibration_error", [*RUN_OF_TASK, "criterion"], PROPOSED)
    if pairs.empty:
        return why_untested(records, REFERENCE, PROPOSED)
    differences = (pairs[PROPOSED] - pairs[REFERENCE]).groupby("criterion", sort=False)
    effects = {str(criterion): Effect.of(values) for criterion, values in differences}
    worst = max(effects, key=lambda criterion: effects[criterion].value)
    note = "; ".join(f"{criterion} {effect.value:+.3f}" for criterion, effect in effects.items())
    holds = all(effect.below(0) for effect in effects.values())
    cells = _trainings(records, PROPOSED, REFERENCE)
    return effects[worst].evidence(holds=holds, unit=f"ECE, criterion {worst}", cells=cells, note=note)


_PAIRS = "paired by task and seed (a single pair: over bootstrap resamples of its test samples)"
_RUNS = "over tasks and seeds (a single run: its value)"
_ECE_LOWER = "ECE of {} minus ECE of CE on test data{}: holds if the 90 % interval of the mean, {}, lies below 0. {}"
_PRINTED = "Printed: Table 1, CIFAR-10 with ResNet-50."

CLAIMS: tuple[Claim[Records], ...] = (
    Claim(
        "fl-3-calibrates",
        "section 5, Table 1",
        "Focal loss with gamma 3 trains better calibrated networks than cross-entropy.",
        _ECE_LOWER.format(FIXED, "", _PAIRS, _PRINTED),
        partial(_calibration_error, arm=FIXED, scaling="none"),
        published=-0.0287,
    ),
    Claim(
        "flsd-53-calibrates",
        "section 5, Table 1",
        "Focal loss with sample-dependent gamma (FLSD-53) trains better calibrated networks than cross-entropy.",
        _ECE_LOWER.format(PROPOSED, "", _PAIRS, _PRINTED),
        partial(_calibration_error, arm=PROPOSED, scaling="none"),
        published=-0.028,
    ),
    Claim(
        "fl-3-calibrates-after-scaling",
        "section 5, Table 1",
        "Focal loss with gamma 3 is better calibrated than cross-entropy even after temperature scaling.",
        _ECE_LOWER.format(FIXED, ", both with the temperature of least validation ECE", _PAIRS, _PRINTED),
        partial(_calibration_error, arm=FIXED, scaling=SCALED),
        published=0.0007,
    ),
    Claim(
        "flsd-53-calibrates-after-scaling",
        "section 5, Table 1",
        "FLSD-53 is better calibrated than cross-entropy even after temperature scaling.",
        _ECE_LOWER.format(PROPOSED, ", both with the temperature of least validation ECE", _PAIRS, _PRINTED),
        partial(_calibration_error, arm=PROPOSED, scaling=SCALED),
        published=-0.004,
    ),
    Claim(
        "flsd-53-calibrates-on-texts",
        "section 5, Table 1",
        "FLSD-53 trains better calibrated networks than cross-entropy on texts, too.",
        _ECE_LOWER.format(
            PROPOSED, ", tasks on texts alone", _PAIRS, "Printed: Table 1, mean of 20 Newsgroups and SST Binary."
        ),
        _calibration_error_on_texts,
        published=-0.0459,
    ),
    Claim(
        "accuracy-is-kept",
        "section 5, Table 2",
        "FLSD-53 keeps the accuracy of cross-entropy.",
        f"Accuracy of FLSD-53 minus accuracy of CE on test data: holds if the 90 % interval of the mean, {_PAIRS}, "
        "lies inside ±0.01, one point. Printed: Table 2, CIFAR-10 with ResNet-50.",
        _accuracy_is_kept,
        published=-0.0003,
    ),
    Claim(
        "flsd-53-temperature-near-one",
        "section 5, Table 1",
        "The optimal temperatures of FLSD-53 are very close to 1, mostly between 0.9 and 1.1.",
        f"Temperature of least validation ECE: holds if that of more than half of the runs is 0.9 to 1.1. {_PRINTED}",
        _temperature_near_one,
        published=1.1,
    ),
    Claim(
        "ce-temperature-well-above-one",
        "section 5, Table 1",
        "The optimal temperatures of cross-entropy are significantly higher than 1.",
        f"Temperature of least validation ECE: holds if the 90 % interval of the mean {_RUNS} lies above 1.5. "
        f"{_PRINTED}",
        _temperature_well_above_one,
        published=2.5,
    ),
    Claim(
        "overfitting-is-of-the-wrong",
        "section 3, Figure 1",
        "With cross-entropy, the test NLL overfits because of the misclassified samples alone.",
        "CE, from the epoch with the least test NLL to the last, in the runs whose test NLL rises by 5 % or more: "
        f"holds if the 90 % interval of the mean change of the misclassified samples' NLL {_RUNS} lies above 0, and "
        "the mean change of the correctly classified ones' does not.",
        _overfitting_is_of_the_wrong,
    ),
    Claim(
        "weight-norms-end-reversed",
        "section 4, Figure 2(e)",
        "The weight norm of the last layer is initially higher with focal loss than with cross-entropy; in the end the "
        "order is reversed.",
        f"Norm with FL-3 minus norm with CE: holds if the 90 % interval of the mean {_RUNS} lies below 0 at the last "
        "epoch, and above 0 for its mean over the first 150/350 of the epochs, before the learning rate first falls.",
        _weight_norms_end_reversed,
    ),
    Claim(
        "flsd-53-detects-outliers",
        "section 5, Table 3",
        "FLSD-53 is better at detecting out-of-distribution samples than cross-entropy.",
        "AUROC by entropy of FLSD-53 minus that of CE, not scaled, mean over the out-of-distribution sets: holds if "
        f"the 90 % interval of the mean {_RUNS} lies above 0.",
        _outliers_stand_out,
    ),
    Claim(
        "scaling-does-not-help-outliers",
        "section 5, Table 3",
        "Temperature scaling does not help cross-entropy to detect out-of-distribution samples.",
        "AUROC by entropy of CE with the temperature of least validation ECE minus that without, mean over the "
        f"out-of-distribution sets: holds if the 90 % interval of the mean {_RUNS} lies below 0.01, one point.",
        _scaling_does_not_help_outliers,
    ),
    Claim(
        "focal-is-less-confident-unscaled",
        "appendix H, Table H.1",
        "Before temperature scaling, far fewer predictions of FLSD-53 than of cross-entropy are above 99 % confidence.",
        "Share of test predictions with confidence 0.99 or more, FLSD-53 minus CE: holds if the 90 % interval of the "
        f"mean {_RUNS} lies below 0.",
        partial(_confident_predictions, scaling="none", more=False),
    ),
    Claim(
        "focal-is-more-confident-scaled",
        "appendix H, Table H.1",
        "After temperature scaling, more predictions of FLSD-53 than of cross-entropy are above 99 % confidence.",
        "The same share, both with the temperature of least validation ECE: holds if the 90 % interval of the mean "
        f"{_RUNS} lies above 0.",
        partial(_confident_predictions, scaling=SCALED, more=True),
    ),
    Claim(
        "early-stopping-does-not-save-ce",
        "appendix J, Table J.1",
        "Whatever the criterion of early stopping, focal loss is better calibrated than cross-entropy.",
        "ECE of FLSD-53 minus ECE of CE on test data, at the epochs that validation data choose: holds if for each "
        f"criterion (the last epoch, best accuracy, NLL, ECE) the 90 % interval of the mean {_RUNS} lies below 0. The "
        "value is that of the worst criterion.",
        _early_stopping,
    ),
    *TRANSLATION_CLAIMS,
)
