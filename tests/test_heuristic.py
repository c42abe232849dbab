import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
from sklearn.preprocessing import StandardScaler

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic import Heuristic, fit, leave_one_dataset_out
from softmax_temperature.heuristic.linear_model import Regression, best_penalty, ridge
from softmax_temperature.heuristic.pairs import correlations, identified, pearson
from softmax_temperature.heuristic.regression import PENALTIES
from softmax_temperature.heuristic.ridge import (
    Study,
    fit_ridge,
    inside_range_of_others,
)

Law = Callable[[pd.DataFrame, np.random.Generator], Any]


def make_pairs(
    law: Law, *, datasets: int = 6, backbones: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Pairs whose statistics differ between data sets and within a data set.

    `law` maps the table of statistics to the best inverse temperatures.
    """
    generator = np.random.default_rng(seed)
    of_dataset = np.repeat(
        generator.normal(size=(datasets, len(STATISTICS))), backbones, axis=0
    )
    values = of_dataset + generator.normal(size=of_dataset.shape)
    pairs = pd.DataFrame(values, columns=list(STATISTICS))
    pairs.insert(
        0, "dataset", [f"data{index // backbones:02d}" for index in range(len(pairs))]
    )
    pairs.insert(
        1, "backbone", [f"net{index % backbones}" for index in range(len(pairs))]
    )
    return pairs.assign(
        inverse_temperature=np.asarray(law(pairs, generator), dtype=float)
    )


def noisy_law(pairs: pd.DataFrame, generator: np.random.Generator) -> Any:
    return (
        100 + 15 * pairs["feats_corr"] + 5 * generator.normal(size=len(pairs))
    ).clip(1, 250)


def law_with_dataset_effects(
    pairs: pd.DataFrame, generator: np.random.Generator
) -> Any:
    effects = pairs["dataset"].map(
        {name: 12 * generator.normal() for name in pairs["dataset"].unique()}
    )
    optima = (
        120
        + 8 * pairs["feats_corr"]
        + 6 * pairs["dim"]
        + effects
        + 6 * generator.normal(size=len(pairs))
    )
    return optima.clip(1, 250)


def three_datasets(optima: tuple[float, ...] = (10.0, 20.0, 60.0)) -> pd.DataFrame:
    """One pair per data set, with constant statistics.

    Each prediction is therefore the mean of the other optima.
    """
    pairs = pd.DataFrame(1.0, index=range(3), columns=list(STATISTICS))
    return pairs.assign(
        dataset=["a", "b", "c"], backbone="net", inverse_temperature=optima
    )


def test_pearson_by_hand() -> None:
    # The deviations are (-1.5, -0.5, 0.5, 1.5) and (-15, 5, -5, 15), so r = 40 / sqrt(5
    # * 500) = 0.8. For n = 4 the density of r is flat, so p = 1 - 0.8. Fisher's
    # interval: atanh 0.8 = 1.0986, standard error 1 / sqrt(4 - 3) = 1.
    correlation = pearson(np.array([1.0, 2, 3, 4]), np.array([10.0, 30, 20, 40]))
    assert correlation is not None
    expected = (
        0.8,
        0.2,
        math.tanh(math.atanh(0.8) - 1.644854),
        math.tanh(math.atanh(0.8) + 1.644854),
    )
    assert correlation == pytest.approx(expected, abs=1e-6)


def test_correlations_equal_scipys_and_are_sorted() -> None:
    pairs = make_pairs(noisy_law)
    table = correlations(pairs)
    assert set(table["statistic"]) == set(STATISTICS)
    assert table["absolute_r"].is_monotonic_decreasing
    assert table["statistic"].iloc[0] == "feats_corr"
    for row in table.itertuples():
        expected = stats.pearsonr(pairs[row.statistic], pairs["inverse_temperature"])
        assert (row.r, row.p) == pytest.approx((expected.statistic, expected.pvalue))
        assert row.low < row.r < row.high
        assert row.absolute_r == abs(row.r)


def test_a_linear_law_is_recovered_out_of_fold_and_by_the_fit() -> None:
    pairs = make_pairs(lambda pairs, _: 100 + 8 * pairs["feats_corr"])
    result = leave_one_dataset_out(pairs)
    assert result.mean_absolute_error == pytest.approx(0, abs=1e-9)
    assert result.median_r == pytest.approx(1)
    heuristic = fit(pairs, statistics="best")
    assert heuristic.statistics == ("feats_corr",)
    assert (
        heuristic.regression.coefficients / heuristic.regression.scale
    ).tolist() == pytest.approx([8])


def test_ridge_penalty_is_the_best_for_data_sets_left_out() -> None:
    pairs = make_pairs(noisy_law)
    values = StandardScaler().fit_transform(pairs[list(STATISTICS)].to_numpy())
    optima = pairs["inverse_temperature"]
    search = GridSearchCV(
        Ridge(),
        {"alpha": PENALTIES},
        scoring="neg_mean_squared_error",
        cv=LeaveOneGroupOut(),
    )
    search.fit(values, optima - optima.mean(), groups=pairs["dataset"])
    heuristic = fit(pairs, statistics="all", method="ridge")
    np.testing.assert_allclose(
        heuristic.regression.coefficients, search.best_estimator_.coef_, rtol=1e-8
    )


def test_each_data_set_counts_once_in_the_choice_of_a_penalty() -> None:
    # With penalty 1 the errors are 0.2 on the three pairs of data set a, and 0.3 on the
    # pair of data set b: mean 0.25 over data sets, 0.225 over pairs. With penalty 3
    # they are 0.3 and 0.1: mean 0.2 over data sets, 0.25 over pairs.
    errors = {3: [0.2, 0.3], 1: [0.3, 0.1]}

    def errors_of(_: Any, test: Any) -> Any:
        return np.tile(np.array(errors[len(test)])[:, None], len(test))

    assert best_penalty((1.0, 3.0), np.array(["a", "a", "a", "b"]), errors_of) == 3.0


def test_each_fold_has_scipys_r_and_p_and_the_summary_summarises_them() -> None:
    pairs = make_pairs(noisy_law)
    result = leave_one_dataset_out(pairs, statistics="four_best")
    folds = [fold for _, fold in result.predictions.groupby("dataset")]
    by_scipy = [
        stats.pearsonr(fold["inverse_temperature"], fold["linear"]) for fold in folds
    ]
    r = [correlation.statistic for correlation in by_scipy]
    p = [correlation.pvalue for correlation in by_scipy]
    np.testing.assert_allclose(result.folds["r"], r)
    np.testing.assert_allclose(result.folds["p"], p)
    assert result.median_r == pytest.approx(np.median(r))
    assert result.mean_r == pytest.approx(np.mean(r))
    assert result.sd_r == pytest.approx(np.std(r, ddof=1))
    assert result.mean_p == pytest.approx(np.mean(p))
    assert result.folds["statistics"].str.split(", ").str.len().tolist() == [4] * 6


@pytest.mark.parametrize("method", ["least_squares", "ridge"])
def test_optima_of_the_held_out_data_set_do_not_touch_its_predictions(
    method: Any,
) -> None:
    pairs = make_pairs(noisy_law)
    held_out = pairs["dataset"] == "data03"
    changed = pairs.assign(
        inverse_temperature=pairs["inverse_temperature"].where(
            ~held_out, 250 - pairs["dim"].abs()
        )
    )
    linear = [
        leave_one_dataset_out(table, statistics="four_best", method=method)
        .predictions["linear"]
        .to_numpy()
        for table in (pairs, changed)
    ]
    rows = held_out.to_numpy()
    np.testing.assert_array_equal(linear[0][rows], linear[1][rows])
    assert not np.array_equal(linear[0][~rows], linear[1][~rows])


def test_folds_without_an_r_are_counted_and_named() -> None:
    pairs = make_pairs(noisy_law, datasets=5)
    pairs.loc[pairs["dataset"] == "data00", "inverse_temperature"] = 30.0
    pairs.loc[pairs["dataset"] == "data01", list(STATISTICS)] = 0.5
    pairs = pairs.drop(index=pairs.index[pairs["dataset"] == "data02"][2:])
    result = leave_one_dataset_out(pairs)
    reasons = ["constant optimum", "constant prediction", "fewer than 3 pairs", "", ""]
    assert result.folds["undefined"].tolist() == reasons
    assert result.undefined_folds == 3
    assert result.folds["r"].isna().tolist() == [bool(reason) for reason in reasons]
    assert result.mean_r == pytest.approx(result.folds["r"].iloc[3:].mean())
    assert len(result.predictions) == len(pairs)


def test_with_no_defined_fold_the_summary_says_none() -> None:
    summary = leave_one_dataset_out(three_datasets()).summary()
    assert [summary[name] for name in ("median_r", "mean_r", "sd_r", "mean_p")] == [
        None
    ] * 4
    assert (summary["undefined_folds"], summary["folds"], summary["pairs"]) == (3, 3, 3)
    # Each prediction is the mean of the other two optima. So the points (optimum,
    # prediction), which are (10, 40), (20, 35) and (60, 15), lie on a falling line.
    assert summary["pooled_r"] == pytest.approx(-1)
    assert summary["mean_absolute_error"] == pytest.approx((30 + 15 + 45) / 3)
    # Of the predictions 40, 35 and 15, only the first is on the plateau of its pair.
    pairs = three_datasets().assign(plateau_low=[5, 20, 20], plateau_high=[40, 30, 100])
    assert leave_one_dataset_out(pairs).share_on_plateau == pytest.approx(1 / 3)


def test_no_result_depends_on_the_order_or_form_of_the_pairs() -> None:
    pairs = make_pairs(noisy_law)
    shuffled = pairs.sample(frac=1, random_state=1).to_dict("records")
    assert fit(pairs).predict(shuffled[0]) == fit(shuffled).predict(shuffled[0])
    pd.testing.assert_frame_equal(correlations(pairs), correlations(shuffled))
    pd.testing.assert_frame_equal(
        leave_one_dataset_out(pairs).folds, leave_one_dataset_out(shuffled).folds
    )


def test_margin_by_hand_and_the_searched_range_with_too_few_data_sets() -> None:
    # Each of nine data sets has weight 0.1, so nine tenths of the weight are reached
    # only at the largest error, which is the margin. The mean of all optima except 10
    # is 440 / 8 = 55, so the error for 10 is 45.
    nine = pd.concat([three_datasets()] * 3, ignore_index=True)
    pairs = nine.assign(
        dataset=list("abcdefghi"), inverse_temperature=np.arange(10.0, 100.0, 10.0)
    )
    assert fit(pairs).margin == pytest.approx(45)
    assert fit(three_datasets()).predict(dict.fromkeys(STATISTICS, 1.0))[:3] == (
        30,
        1,
        250,
    )


def test_intervals_for_a_new_data_set_cover_as_promised() -> None:
    coverage = []
    widths = []
    for seed in range(60):
        pairs = make_pairs(
            law_with_dataset_effects, datasets=13, backbones=4, seed=seed
        )
        new = pairs["dataset"] == "data12"
        heuristic = fit(pairs[~new])
        covered = []
        for row in pairs[new].to_dict("records"):
            estimate = heuristic.predict(row)
            covered.append(estimate.low <= row["inverse_temperature"] <= estimate.high)
            widths.append(estimate.high - estimate.low)
        coverage.append(np.mean(covered))
    assert np.mean(coverage) > 0.9 - 2 * np.std(coverage) / math.sqrt(len(coverage))
    # The interval must not cover the optimum merely because it is huge: if the law were
    # known, the interval would be about 2 * 1.64 * sqrt(12² + 6²) = 44 wide.
    assert np.mean(widths) < 100


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (512, (100, 70, 130, 100, ())),
        (1025, (140.078125, 110.078125, 170.078125, 140.078125, ("dim",))),
        (4096, (250, 220, 250, 380, ("dim",))),
        (-2048, (1, 1, 31, -100, ("dim",))),
    ],
)
def test_estimate_by_hand(dim: float, expected: tuple[Any, ...]) -> None:
    numbers = (np.array([value]) for value in (512.0, 256.0, 256.0, 1024.0))
    heuristic = Heuristic(
        ("dim",), Regression(np.array([20.0]), 100.0, *numbers), margin=30.0
    )
    assert heuristic.predict({"dim": dim, "n_classes": 10}) == expected
    with pytest.raises(ValueError, match=r"'dim'.*nan"):
        heuristic.predict({"n_classes": 10})


def test_a_weight_of_two_is_a_row_given_twice() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=(6, 2))
    target = generator.normal(size=6)
    weighted = ridge(values, target, 1.5, np.array([2.0, 2, 1, 1, 1, 1]))
    twice = ridge(
        values[[0, 0, 1, 1, 2, 3, 4, 5]], target[[0, 0, 1, 1, 2, 3, 4, 5]], 1.5
    )
    np.testing.assert_allclose(weighted.coefficients, twice.coefficients)
    assert weighted.intercept == pytest.approx(twice.intercept)


def test_pairs_whose_searches_disagree_weigh_less() -> None:
    pairs = three_datasets()
    runs = pd.DataFrame(
        [{**row, "test_accuracy": 0.5} for row in pairs.to_dict("records")]
    )
    # The weights are 1 / 1, 1 / 1 and 1 / 4, divided by their mean, 3 / 4.
    assert Study.of(
        pairs.assign(log_variance=[0.0, 0, 3]), runs
    ).weights == pytest.approx([4 / 3, 4 / 3, 1 / 3])
    for alike in (
        pairs,
        pairs.assign(log_variance=0.0),
        pairs.assign(log_variance=2.0),
    ):
        assert Study.of(alike, runs).weights.tolist() == [1, 1, 1]


def test_identified_keeps_plateaus_up_to_the_share() -> None:
    # On the grid 1, 5, 10, 15, the plateaus contain 1, 2, 3 and 4 of the 4 values.
    pairs = pd.DataFrame(
        {
            "inverse_temperature": 5,
            "plateau_low": [5, 4, 1, 1],
            "plateau_high": [5, 10, 10, 15],
        }
    )
    grid = [1.0, 5.0, 10.0, 15.0]
    for max_share, count in [(0.25, 1), (0.5, 2), (0.75, 3), (1.0, 4)]:
        table = identified(pairs, max_share=max_share, grid=grid)
        pd.testing.assert_frame_equal(table, pairs.head(count))


def with_value(column: str, value: object) -> pd.DataFrame:
    pairs = make_pairs(noisy_law)
    return pairs.assign(**{column: [value, *pairs[column].tolist()[1:]]})


@pytest.mark.parametrize("call", [leave_one_dataset_out, fit])
@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            make_pairs(noisy_law).drop(columns="feats_corr"),
            "lacks the column 'feats_corr'",
        ),
        (with_value("silhouette", math.nan), "'silhouette'.*nan"),
        (
            with_value("inverse_temperature", 251.0),
            r"inverse_temperature'\] must be within .* got 251",
        ),
        (with_value("var", "wide"), "'var'.*wide"),
        (with_value("backbone", "net1"), "duplicate rows for data00 with net1"),
        (make_pairs(noisy_law, datasets=2), "at least 3 data sets, got 2"),
    ],
)
def test_bad_pairs_are_refused_by_name(
    call: Callable[[Any], object], pairs: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(pairs)


def test_bad_arguments_and_plateaus_are_refused_by_name() -> None:
    for call in (leave_one_dataset_out, fit):
        with pytest.raises(
            ValueError,
            match=r"unknown statistics 'five_best'. Did you mean 'four_best'",
        ):
            call(make_pairs(noisy_law), statistics="five_best")
        with pytest.raises(ValueError, match="1 to 23"):
            call(make_pairs(noisy_law), statistics=0)
    with pytest.raises(ValueError, match="must enclose the optimum 10"):
        identified(three_datasets().assign(plateau_low=60, plateau_high=70))


def test_a_pair_is_inside_where_the_heuristic_of_the_other_data_sets_says_so() -> None:
    pairs = make_pairs(noisy_law)
    # Without clipping, almost every pair would be outside the range of some statistic.
    pairs[list(STATISTICS)] = pairs[list(STATISTICS)].clip(-0.8, 0.8)
    pairs.loc[7, "dim"] = 0.81
    curves = pairs[["dataset", "backbone"]].merge(
        pd.DataFrame({"inverse_temperature": [1.0, 250.0]}), how="cross"
    )
    curves["test_accuracy"] = 0.5
    expected = []
    for _, pair in pairs.iterrows():
        others = pairs[pairs["dataset"] != pair["dataset"]].reset_index(drop=True)
        own = curves[curves["dataset"] != pair["dataset"]]
        statistics = pair[list(STATISTICS)].astype(float).to_dict()
        expected.append(fit_ridge(others, own).predict(statistics).inside)
    assert inside_range_of_others(pairs).tolist() == expected
    assert set(expected) == {True, False}
    assert not expected[7]
