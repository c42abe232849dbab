"""Contrasts along a swept factor choose, average and fit values as declared.

Values are chosen on the validation data of the other seeds; slopes and correlations
equal scipy's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.shared.factors import at_least, less_than, where
from softmax_temperature.papers.shared.metrics import Factor, Metric
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import Fitted
from softmax_temperature.papers.shared.sweeps import (
    DRAWS,
    Argmax,
    Choice,
    ChosenDifference,
    Correlation,
    MeanOverSweeps,
    Slope,
    SlopeOfSpread,
    argmax_draws,
    jackknife,
)
from softmax_temperature.runner.errors import InputError
from tests.papers.shared.made_runs import runs_of

ACCURACY = Metric("accuracy")
VALIDATION = Factor("validation")
BETA = "inverse_temperature"
INSIDE = where(inside=True).called("a learning rate inside its grid")


def swept(
    test: Mapping[float, Sequence[float]],
    validation: Mapping[float, Sequence[float]] | None = None,
    **factors: Any,
) -> list[dict[str, Any]]:
    """One row per inverse temperature and seed, with test and validation numbers."""
    chosen_by = validation or test
    return [
        {
            BETA: beta,
            "seed": seed,
            "value": value,
            "validation": chosen_by[beta][seed],
            "inside": True,
            **factors,
        }
        for beta, values in test.items()
        for seed, value in enumerate(values)
    ]


def only_part(contrast: Any, runs: Runs) -> Any:
    [part] = contrast.measure(runs).parts.values()
    return part


def numbers_of(contrast: Any, runs: Runs) -> list[float]:
    """The values of the only task in the only part of a contrast."""
    [task] = only_part(contrast, runs).tasks
    return list(vars(task)["values"])


# Chosen values. -----------------------------------------------------------------------

TEST = {0.1: (0.5, 0.6, 0.7), 1.0: (0.8, 0.8, 0.9), 10.0: (0.7, 0.9, 0.6)}
VALIDATION_NUMBERS = {0.1: (0.1, 0.1, 0.1), 1.0: (0.9, 0.5, 0.5), 10.0: (0.2, 0.8, 0.8)}
GAP = ChosenDifference(of=ACCURACY, over=BETA, chosen_by=VALIDATION)


def test_values_are_chosen_by_the_validation_data_of_the_other_seeds() -> None:
    runs = runs_of(swept(TEST, VALIDATION_NUMBERS))
    # By the validation numbers without seed 0, the best inverse temperature is 10 (0.8
    # against 0.5). Without seed 1, or without seed 2, the best is 1 (0.7 against 0.5).
    # Seed 0's own numbers would choose 1. The worst is always 0.1.
    assert numbers_of(GAP, runs) == pytest.approx([0.7 - 0.5, 0.8 - 0.6, 0.9 - 0.7])
    assert only_part(GAP, runs).tasks[0].name == "cifar10, vgg"


def test_a_choice_makes_the_interval_wider() -> None:
    runs = runs_of(swept({0.1: (0.5, 0.5, 0.5), 1.0: (0.6, 0.8, 0.7)}))
    sure = replace(GAP, left_out=False)
    wide = only_part(GAP, runs).estimate()
    narrow = only_part(sure, runs).estimate()
    assert wide.value == narrow.value == pytest.approx(0.2)
    assert wide.low < narrow.low
    # For three values, Nadeau and Bengio's variance is larger by a factor of 1 + 3 / 2.
    ratio = (wide.value - wide.low) / (narrow.value - narrow.low)
    assert ratio == pytest.approx(2.5**0.5)


def test_each_side_is_chosen_among_its_own_values() -> None:
    contrast = replace(
        GAP,
        first=Choice(where(inverse_temperature=less_than(1))),
        second=Choice(where(inverse_temperature=at_least(1))),
    )
    numbers = numbers_of(contrast, runs_of(swept(TEST, VALIDATION_NUMBERS)))
    assert numbers == pytest.approx([0.5 - 0.7, 0.6 - 0.8, 0.7 - 0.9])


def test_the_number_that_is_compared_need_not_be_the_one_that_chooses() -> None:
    contrast = replace(GAP, of=Factor("loss_on_test", label="nats"))
    rows = swept(TEST, VALIDATION_NUMBERS)
    rows = [row | {"loss_on_test": 1 - row["value"]} for row in rows]
    assert contrast.unit == "nats"
    assert numbers_of(contrast, runs_of(rows)) == pytest.approx([-0.2, -0.2, -0.2])


def test_runs_that_may_not_be_compared_are_not_chosen_and_are_named() -> None:
    rows = swept(TEST, VALIDATION_NUMBERS)
    rows = [row | {"inside": row[BETA] == 0.1} for row in rows]
    measurement = replace(GAP, compared=INSIDE).measure(runs_of(rows))
    inside = "a learning rate inside its grid"
    only = f"only the runs at inverse temperature 0.1 have {inside}"
    assert measurement.missing == {"": only}
    rows = [row | {"inside": False} for row in rows]
    measurement = replace(GAP, compared=INSIDE).measure(runs_of(rows))
    assert measurement.missing == {"": f"no run has {inside}"}


def test_one_seed_or_one_value_leaves_nothing_to_choose() -> None:
    for test in ({0.1: (0.5,), 1.0: (0.6,)}, {1.0: (0.5, 0.6)}):
        assert GAP.measure(runs_of(swept(test))).missing == {"": "too few runs"}
    none = replace(GAP, among=where(dataset="mnist")).measure(runs_of(swept(TEST)))
    assert none.missing == {"": "no run for dataset = mnist"}


def test_a_lost_run_neither_chooses_nor_counts() -> None:
    runs = runs_of(swept(TEST, VALIDATION_NUMBERS))
    lost = (runs.table[BETA] == 0.1) & (runs.table["seed"] == 1)
    runs = replace(runs, table=runs.table.assign(diverged=lost))
    numbers = numbers_of(replace(GAP, chosen_by=ACCURACY), runs)
    # If inverse temperatures are chosen on test data, the best is 1, whichever seed is
    # left out.
    assert numbers == pytest.approx([0.8 - 0.5, 0.9 - 0.7])


def test_a_value_that_was_lost_with_all_other_seeds_cannot_be_chosen() -> None:
    runs = runs_of(swept({0.1: (0.9, 0.5), 1.0: (0.6, 0.6), 10.0: (0.5, 0.7)}))
    lost = (runs.table[BETA] == 0.1) & (runs.table["seed"] == 1)
    runs = replace(runs, table=runs.table.assign(diverged=lost))
    numbers = numbers_of(replace(GAP, chosen_by=ACCURACY), runs)
    # For seed 0, the inverse temperatures are chosen on seed 1: best 10, worst 1. For
    # seed 1, the best is 0.1, where seed 1 has no number.
    assert numbers == pytest.approx([0.5 - 0.6])


def test_each_network_is_a_part_of_its_own() -> None:
    rows = swept(TEST, VALIDATION_NUMBERS)
    rows += swept({0.1: (0.5, 0.6), 1.0: (0.6, 0.8)}, network="gru", own=False)
    parts = replace(GAP, split_by="network").measure(runs_of(rows)).parts
    values = {name: part.estimate().value for name, part in parts.items()}
    assert values == pytest.approx({"gru": 0.15, "vgg": 0.2})
    assert parts["gru"].of_paper() is None


def test_runs_of_two_networks_are_not_one_sweep() -> None:
    rows = swept(TEST) + swept(TEST, network="gru")
    with pytest.raises(InputError, match="differ in network"):
        GAP.measure(runs_of(rows))


# The best value. ----------------------------------------------------------------------

PEAKS = Argmax(of=ACCURACY, over=BETA, groups="network", compared=INSIDE)
BETAS = (0.01, 0.1, 1.0, 10.0, 100.0)


def peak(best: float, **factors: Any) -> list[dict[str, Any]]:
    """Three seeds of a sweep with one clearly best inverse temperature."""
    noise = (0.0, 0.001, -0.001)
    test = {
        beta: [0.5 + 0.3 * (beta == best) + beta * step / 100 for step in noise]
        for beta in BETAS
    }
    return swept(test, **factors)


def test_best_values_are_decades_apart_in_either_order() -> None:
    runs = runs_of(peak(0.1) + peak(10.0, network="gru"))
    measurement = PEAKS.measure(runs)
    assert measurement.unit == "decades"
    values = {name: part.value for name, part in measurement.parts.items()}
    assert values == pytest.approx({"vgg over gru": -2, "gru over vgg": 2})
    # The noise is too small to move a peak, so every bootstrap draw has the same peak
    # as the estimate.
    part = measurement.parts["gru over vgg"]
    assert isinstance(part.draws, tuple)
    assert len(part.draws) == DRAWS
    assert set(part.draws) == {2.0}
    assert part.n == 3
    assert PEAKS.best_values(runs) == {"vgg": 0.1, "gru": 10.0}


def test_a_best_value_at_the_end_of_its_grid_or_beside_a_missing_one_is_not_known() -> (
    None
):
    at_end = peak(100.0, network="gru")
    beside = [row | {"inside": row[BETA] != 1.0} for row in peak(0.1, network="mlp")]
    runs = runs_of(peak(0.1) + at_end + beside)
    measurement = PEAKS.measure(runs)
    assert not measurement.parts
    reason = measurement.missing[""]
    assert "the best inverse temperature is at the end of its grid" in reason
    assert "or one next to it lacks a learning rate inside its grid" in reason


def test_groups_that_share_no_data_are_not_a_pair() -> None:
    shared = replace(PEAKS, sharing=("dataset",))
    apart = peak(0.1) + peak(10.0, network="gru", dataset="imdb")
    reason = "no two of these share the dataset: vgg; gru"
    assert shared.measure(runs_of(apart)).missing == {"": reason}
    third = apart + peak(1.0, network="mlp")
    parts = shared.measure(runs_of(third)).parts
    values = {name: part.estimate().value for name, part in parts.items()}
    assert values == pytest.approx({"vgg over mlp": -1, "mlp over vgg": 1})


def test_a_pair_has_the_seeds_of_the_smaller_of_its_two_groups() -> None:
    more = [row | {"seed": row["seed"] + 3} for row in peak(10.0, network="gru")]
    runs = runs_of(peak(0.1) + peak(10.0, network="gru") + more)
    assert {part.estimate().n for part in PEAKS.measure(runs).parts.values()} == {3}


def test_one_group_is_compared_with_nothing() -> None:
    missing = PEAKS.measure(runs_of(peak(0.1))).missing
    assert missing == {"": "fewer than two values of network"}


def test_a_value_that_one_seed_lost_is_not_the_best() -> None:
    runs = runs_of(peak(0.1) + peak(10.0, network="gru"))
    lost = (runs.table[BETA] == 100.0) & (runs.table["seed"] == 1)
    runs = replace(runs, table=runs.table.assign(diverged=lost))
    assert PEAKS.best_values(runs) == {"vgg": 0.1}
    assert PEAKS.without_best(runs) == {
        "gru": "the best inverse temperature or one next to it lacks a learning rate "
        "inside its grid"
    }


def test_draws_follow_the_residuals_of_a_table_by_hand() -> None:
    # Two inverse temperatures with equal means over two seeds are drawn equally often.
    table = pd.DataFrame({1.0: [0.0, 1.0], 10.0: [0.5, 0.5]})
    draws = argmax_draws(table)
    assert draws[0] == 0
    assert draws[1:].mean() == pytest.approx(0.5, abs=0.03)
    # The means differ by 1, and each has a standard error of 0.25 * sqrt(2). Their
    # difference is drawn from Student's t with one degree of freedom, times 0.5.
    apart = pd.DataFrame({1.0: [0.0, 1.0], 100.0: [1.5, 1.5]})
    draws = argmax_draws(apart)
    wrong = stats.t.sf(1 / 0.5, 1)
    assert (draws[1:] == 0).mean() == pytest.approx(wrong, abs=0.03)


# The mean over sweeps. ---------------------------------------------------------------


def test_sweeps_weigh_the_same_in_their_mean_whatever_their_seeds() -> None:
    flat = {0.1: (0.5,) * 5, 1.0: (0.6,) * 5}
    rows = swept(flat) + swept({0.1: (0.5, 0.5), 1.0: (0.9, 0.9)}, network="gru")
    whole = MeanOverSweeps(replace(GAP, split_by="network"))
    part = only_part(whole, runs_of(rows))
    # The gains of the two sweeps are 0.1 and 0.4; a mean over runs would give 0.19.
    assert part.estimate().value == pytest.approx(0.25)
    assert [len(task.values) for task in part.tasks] == [2, 5]
    assert part.left_out


def test_a_sweep_without_a_choice_is_missing_in_the_mean() -> None:
    rows = swept(TEST) + swept({1.0: (0.5, 0.6)}, network="gru")
    whole = MeanOverSweeps(replace(GAP, split_by="network"))
    assert whole.measure(runs_of(rows)).missing == {"gru": "too few runs"}
    (reason,) = whole.measure(runs_of(rows[9:])).missing.values()
    assert reason == "too few runs"


# Slopes. ------------------------------------------------------------------------------


def powers(slopes: Sequence[float], **factors: Any) -> list[dict[str, Any]]:
    """For each seed, values that follow a power law with the seed's exponent."""
    return [
        {BETA: beta, "seed": seed, "value": 2 * beta**slope, **factors}
        for seed, slope in enumerate(slopes)
        for beta in (0.1, 1.0, 10.0)
    ]


AGAINST_BETA = Slope(of=ACCURACY, against=Factor(BETA), predicted=-1.0, straight=1.5)


def test_a_slope_is_the_mean_of_the_seeds_minus_the_predicted_one() -> None:
    contrast = AGAINST_BETA
    part = only_part(contrast, runs_of(powers((-1.1, -1.0, -0.8))))
    slopes = np.array([-1.1, -1.0, -0.8])
    expected = stats.ttest_1samp(slopes, -1.0).confidence_interval(0.9)
    estimate = part.estimate()
    assert contrast.unit == "slope minus predicted"
    assert estimate.value == pytest.approx(slopes.mean() + 1)
    assert estimate.low == pytest.approx(expected.low + 1)
    assert estimate.high == pytest.approx(expected.high + 1)
    assert part.n == 3


def test_a_slope_of_one_seed_has_no_interval() -> None:
    part = only_part(AGAINST_BETA, runs_of(powers((-0.5,))))
    assert part.estimate().value == pytest.approx(0.5)
    assert part.estimate().ends is None


def test_points_off_a_line_leave_the_power_law_open() -> None:
    rows = powers((-1.0, -1.0))
    rows[1] |= {"value": 2 * 3.0}
    measurement = AGAINST_BETA.measure(runs_of(rows))
    # The middle of three points is off by a factor of 3. On a logarithmic scale, the
    # fitted line shifts by a third of this deviation and misses the point by a factor
    # of 3 ** (2 / 3).
    off = 3 ** (2 / 3)
    assert measurement.missing == {
        "as a line": f"points miss it by a factor of {off:.2f}"
    }
    assert list(measurement.parts) == [""]
    assert not replace(AGAINST_BETA, straight=2.2).measure(runs_of(rows)).missing


def test_a_slope_needs_two_values_of_the_factor_with_a_number() -> None:
    rows = [row for row in powers((-1.0, -1.0)) if row[BETA] == 1.0]
    reason = "no seed of this study has two points where the prediction speaks"
    assert AGAINST_BETA.measure(runs_of(rows)).missing == {"": reason}
    assert AGAINST_BETA.measure(runs_of(rows + rows)).missing == {"": reason}


def test_points_without_a_number_are_left_out() -> None:
    rows = powers((-1.0, -0.8))
    rows[0] |= {"norm": np.nan}
    rows = [{"norm": row[BETA], **row} for row in rows]
    contrast = replace(AGAINST_BETA, against=Factor("norm"))
    slopes, misfit = contrast.slopes(runs_of(rows))
    assert slopes == pytest.approx([-1.0, -0.8])
    assert misfit == pytest.approx(1.0)


def test_one_line_is_not_fitted_to_two_tasks() -> None:
    rows = powers((-1.0,)) + powers((-0.5,), network="gru")
    with pytest.raises(InputError, match="several tasks: cifar10/vgg, cifar10/gru"):
        AGAINST_BETA.measure(runs_of(rows))
    parts = replace(AGAINST_BETA, split_by="network").measure(runs_of(rows)).parts
    values = {name: part.estimate().value for name, part in parts.items()}
    assert values == pytest.approx({"gru": 0.5, "vgg": 0.0}, abs=1e-9)


# The slope of a spread. ---------------------------------------------------------------

SPREAD = SlopeOfSpread(of=ACCURACY, over=BETA, compared=INSIDE)
SPREAD_OF_EACH = replace(SPREAD, split_by="network")
SPREADS = {
    "vgg": {0.1: 0.04, 1.0: 0.02, 10.0: 0.02},
    "gru": {0.01: 0.3, 0.1: 0.1, 1.0: 0.05},
}


def spread_out(spreads: Mapping[str, Mapping[float, float]]) -> list[dict[str, Any]]:
    """Two seeds per value, whose numbers have the given standard deviations."""
    rows: list[dict[str, Any]] = []
    for network, by_value in spreads.items():
        test = {
            beta: (0.5 - sd / 2**0.5, 0.5 + sd / 2**0.5)
            for beta, sd in by_value.items()
        }
        rows += swept(test, network=network)
    return rows


def line_through(network: str) -> Fitted:
    """Slope of the least-squares line and its standard error, computed with numpy."""
    places = np.log10(list(SPREADS[network]))
    spreads = np.log(list(SPREADS[network].values()))
    inputs = np.column_stack([np.ones(3), places])
    coefficients, rest, *_ = np.linalg.lstsq(inputs, spreads)
    covariance = rest[0] * np.linalg.inv(inputs.T @ inputs)
    return Fitted(coefficients[1], covariance[1, 1] ** 0.5, 1, 2)


def test_each_sweep_has_a_slope_of_spreads_of_its_own() -> None:
    parts = SPREAD_OF_EACH.measure(runs_of(spread_out(SPREADS))).parts
    assert sorted(parts) == ["gru", "vgg"]
    for network, part in parts.items():
        assert vars(part) == pytest.approx(vars(line_through(network)))
    assert SPREAD.unit == "log spread per decade"


def test_spreads_of_two_sweeps_are_not_one_line() -> None:
    with pytest.raises(InputError, match="several tasks: cifar10/vgg, cifar10/gru"):
        SPREAD.measure(runs_of(spread_out(SPREADS)))


def test_a_spread_of_zero_does_not_count_and_two_spreads_are_too_few() -> None:
    more = {"vgg": SPREADS["vgg"] | {100.0: 0.0}, "mlp": {1.0: 0.5, 10.0: 0.4}}
    measurement = SPREAD_OF_EACH.measure(runs_of(spread_out(SPREADS | more)))
    assert vars(measurement.parts["vgg"]) == pytest.approx(vars(line_through("vgg")))
    assert list(measurement.missing) == ["mlp"]


def test_spreads_of_runs_that_do_not_count_leave_too_few() -> None:
    rows = spread_out({"vgg": SPREADS["vgg"]})
    rows = [row | {"inside": row[BETA] == 0.1} for row in rows]
    measurement = SPREAD.measure(runs_of(rows))
    reason = (
        "too few spreads over seeds among the runs with a learning rate inside its grid"
    )
    assert measurement.missing == {"": reason}


# Correlations. ------------------------------------------------------------------------

STATISTIC = Factor("statistic")
OTHER = Factor("other_statistic")
OPTIMUM = Factor("optimum")
STRENGTH = Correlation(of=STATISTIC, against=OPTIMUM)


def pairs_of_datasets(count: int = 5) -> list[dict[str, Any]]:
    """One row for each pair of a data set and one of two backbones."""
    generator = np.random.default_rng(0)
    return [
        {
            "dataset": f"set{number}",
            "network": network,
            "seed": 0,
            "value": 0.5,
            "statistic": generator.normal() + number,
            "other_statistic": generator.normal(),
            "optimum": generator.normal() + number,
        }
        for number in range(count)
        for network in ("vgg", "gru")
    ]


def pearson(rows: Sequence[Mapping[str, Any]], name: str = "statistic") -> float:
    x = [row[name] for row in rows]
    y = [row["optimum"] for row in rows]
    return float(stats.pearsonr(x, y).statistic)


def test_a_correlation_is_pearsons_with_a_data_set_left_out_in_turn() -> None:
    rows = pairs_of_datasets()
    part = only_part(STRENGTH, runs_of(rows))
    without = [
        pearson([row for row in rows if row["dataset"] != f"set{number}"])
        for number in range(5)
    ]
    pseudo = [5 * pearson(rows) - 4 * r for r in without]
    assert numbers_of(STRENGTH, runs_of(rows)) == pytest.approx(pseudo)
    assert (part.counted, STRENGTH.unit) == ("data sets", "r")


def test_a_difference_is_of_absolute_correlations() -> None:
    rows = [row | {"statistic": -row["statistic"]} for row in pairs_of_datasets()]
    contrast = replace(STRENGTH, minus=OTHER)
    first, *_ = numbers_of(contrast, runs_of(rows))

    def difference(some: Sequence[Mapping[str, Any]]) -> float:
        return abs(pearson(some)) - abs(pearson(some, "other_statistic"))

    without = difference([row for row in rows if row["dataset"] != "set0"])
    assert first == pytest.approx(5 * difference(rows) - 4 * without)
    assert contrast.unit == "difference of |r|"


def test_a_constant_statistic_has_no_correlation() -> None:
    rows = [row | {"statistic": 1.0} for row in pairs_of_datasets()]
    assert only_part(STRENGTH, runs_of(rows)).estimate().value == 0


def test_pairs_without_a_number_are_left_out_of_a_correlation() -> None:
    rows = pairs_of_datasets()
    whole = only_part(STRENGTH, runs_of(rows))
    more = [*rows, rows[0] | {"network": "mlp", "optimum": np.nan}]
    assert only_part(STRENGTH, runs_of(more)) == whole


def test_fewer_than_four_data_sets_are_not_jackknifed() -> None:
    measurement = STRENGTH.measure(runs_of(pairs_of_datasets(3)))
    assert measurement.missing == {"": "fewer than 4 data sets"}


def test_pseudo_values_of_a_mean_are_the_values() -> None:
    numbers = [1.0, 4.0, 7.0]
    assert jackknife(numbers, lambda some: float(np.mean(some))) == pytest.approx(
        numbers
    )
