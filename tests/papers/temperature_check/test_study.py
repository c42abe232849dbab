"""The judged runs have the learning rate with the best validation accuracy."""

import pytest

from softmax_temperature.papers.shared.display import architecture_label
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.temperature_check.study import (
    AT_1,
    CHOSEN_RATE,
    INSIDE,
    NORMS,
    OWN_START,
    SAME_START,
    numbers,
    sweeps,
)

from .conftest import SEEDS, confirmed, make_runs, pair, training


def test_the_lowest_learning_rate_that_is_best_on_validation_data_is_chosen() -> None:
    rows = [training("wrn", 1.0, 0.1, seed, 0.7) for seed in SEEDS]
    rows = [{**row, "test": {"accuracy": 0.9}} for row in rows]
    better = [
        training("wrn", 1.0, rate, seed, 0.8) for rate in (3.0, 1.0) for seed in SEEDS
    ]
    judged = make_runs(rows, better).select(CHOSEN_RATE)
    assert judged["learning_rate"].tolist() == [1.0] * len(SEEDS)


def confirmed_runs() -> Runs:
    """Runs at inverse temperatures 0.1 and 1, with three learning rates at each.

    There are confirmation runs at inverse temperature 1 only.
    """
    tuned = [
        training("wrn", place, rate, seed, 0.7 + rate * (rate < 1))
        for place in (0.1, 1.0)
        for rate in (0.01, 0.1, 1.0)
        for seed in SEEDS
    ]
    fresh = [confirmed(training("wrn", 1.0, 0.1, 0, 0.4), seed) for seed in (10, 11)]
    return make_runs(tuned, fresh)


def test_confirmations_are_judged_instead_of_what_their_rate_was_chosen_on() -> None:
    runs = confirmed_runs()
    at_1 = runs.select(CHOSEN_RATE & AT_1)
    assert set(at_1["seed"]) == {10, 11}
    assert set(at_1["role"]) == {"confirmation"}
    assert set(runs.select(CHOSEN_RATE & ~AT_1)["seed"]) == set(SEEDS)


def test_a_rate_is_inside_its_grid_if_a_lower_and_a_higher_one_were_tried() -> None:
    inside = confirmed_runs().select(INSIDE)
    assert set(inside["learning_rate"]) == {0.1}
    assert len(inside) == 2 * len(SEEDS) + 2


def test_the_kind_of_a_sweep_follows_from_the_starts_of_its_runs() -> None:
    one_start = {"start": "norm", "start_norm": 1.0}
    same = [training("a", beta, 0.1, 0, 0.7, **one_start) for beta in (0.1, 1.0)]
    norms = [
        training("b", 1.0, 0.1, 0, 0.7, start="norm", start_norm=norm)
        for norm in (1.0, 10.0)
    ]
    pairs = [training("c", 1.0, 0.1, 0, 0.7, **pair(c, norm=1.0)) for c in (0.0, 1.0)]
    plain = [training("d", beta, 0.1, 0, 0.7) for beta in (0.1, 1.0)]
    runs = make_runs(same, norms, pairs, plain)
    assert set(runs.select(SAME_START)["sweep"]) == {"a"}
    assert set(runs.select(NORMS)["sweep"]) == {"b", "c"}
    assert set(runs.select(OWN_START)["sweep"]) == {"d"}


def test_numbers_have_the_cell_without_its_seed(runs: Runs) -> None:
    rows = numbers(runs, CHOSEN_RATE & OWN_START & AT_1)
    assert set(rows["cells"]) == {
        "temperature_check/training/wrn/1/own",
        "temperature_check/training/gru/1/own",
    }
    assert rows["heuristic"].dropna().unique().tolist() == [20]


def test_a_reader_sees_each_sweep_once(runs: Runs) -> None:
    runs = Runs(
        runs.table.assign(
            parameters=1, epochs=5, validation_samples=10, test_samples=10
        ),
        runs.measurements,
    )
    table = sweeps(runs)
    assert table["sweep"].tolist() == ["wrn", "gru", "wrn-pairs"]
    assert table["cells"].iloc[0] == "temperature_check/training/wrn"


@pytest.mark.parametrize(
    ("architecture", "batch_norm", "label"),
    [
        ("gru", False, "GRU"),
        ("vgg", False, "VGG without batch norm"),
        ("wide_resnet", True, "Wide-ResNet with batch norm"),
        ("unheard_of", True, "unheard_of"),
    ],
)
def test_a_kind_of_network_is_named_after_its_factors(
    architecture: str, batch_norm: bool, label: str
) -> None:
    run = {"architecture": architecture, "batch_norm": batch_norm}
    assert architecture_label(run) == label
