"""Outcomes, last-layer temperatures and factors of runs are read correctly."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

from softmax_temperature.cooling import Cooling
from softmax_temperature.papers.cooling.collect import (
    cooling_factors,
    schedule_factor,
)
from softmax_temperature.papers.cooling.heating import FIRST, SECOND, crossing_pairs
from softmax_temperature.papers.cooling.outcome import outcome
from softmax_temperature.papers.cooling.study import arms, experiments, growth
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.params.cooling import Arm
from softmax_temperature.params.recipe import Schedule
from tests.papers.cooling.conftest import (
    Rows,
    Run,
    changed,
    cooling,
    study_of,
)

HEAT = (8, 1.5, 2, 3, 0.5, 2)
"""Factors by which the last layer is multiplied before each Cooling step."""


LN_10 = 2.302585
NEVER = float("nan")


@pytest.mark.parametrize(
    ("accuracies", "nll", "diverged", "stuck"),
    [
        ([0.1, 0.4, 0.9], 0.5, False, False),
        # The accuracy ends far above chance level, but below half of its peak, as with
        # factor 1.25.
        ([0.1, 0.8, 0.24], NEVER, True, False),
        ([0.1, 0.8, 0.41], NEVER, False, False),
        # By the registered rule, an NLL within 2 % of that at chance level means
        # divergence, whatever the accuracy.
        ([0.1, 0.3, 0.2], LN_10 * 1.019, True, False),
        ([0.1, 0.3, 0.2], LN_10 * 0.981, True, False),
        ([0.1, 0.3, 0.2], LN_10 * 1.021, False, False),
        ([0.1, 0.3, 0.2], LN_10 * 0.979, False, False),
        ([0.1, 0.13, 0.15], 4.0, False, True),
        ([0.1, 0.1, 0.16], 4.0, False, False),
        ([], NEVER, False, False),
    ],
)
def test_the_outcome_of_a_training_on_ten_classes(
    accuracies: list[float], nll: float, diverged: bool, stuck: bool
) -> None:
    expected = {"diverged": diverged, "stuck": stuck}
    assert outcome(accuracies, 10, nll=nll) == expected
    lost = {"diverged": True, "stuck": False}
    assert outcome(accuracies, 10, nll=nll, is_finite=False) == lost


@pytest.mark.parametrize(
    ("periodic", "slow", "difference", "never"),
    [
        ((9, 50), (19, 50), -10, ""),
        ((9, 50), (NEVER, 50), 9 - 51, "slow"),
        ((NEVER, 50), (30, 50), 51 - 30, "periodic"),
    ],
)
def test_a_pair_counts_where_it_tells_which_was_first(
    periodic: tuple[float, int],
    slow: tuple[float, int],
    difference: float,
    never: str,
) -> None:
    [pair] = crossing_pairs(crossed(periodic, slow)).to_dict("records")
    assert pair == {"difference": difference, "never": never}


@pytest.mark.parametrize(
    "sides",
    [
        ((NEVER, 50), (NEVER, 50)),  # Neither temperature crossed the limit.
        ((9, 50), (NEVER, 4)),  # The slow run ended before epoch 9.
        ((9, 50),),
    ],
)
def test_a_pair_that_does_not_tell_which_was_first_is_left_out(
    sides: tuple[tuple[float, int], ...],
) -> None:
    assert crossing_pairs(crossed(*sides)).empty


def crossed(*sides: tuple[float, int]) -> pd.DataFrame:
    """One row per run, periodic then slow, with its crossing epoch and last epoch."""
    names = ((FIRST, "periodic"), (SECOND, "slow"))
    rows = [
        {"side": side, "arm": arm, "crossed": epoch, "last": last}
        for (side, arm), (epoch, last) in zip(names, sides, strict=False)
    ]
    return pd.DataFrame(rows).assign(dataset="cifar10", network="vgg", seed=0)


@pytest.mark.parametrize(
    ("limit", "never"),
    [
        (100.0, set()),  # The periodic run's products reach 320.
        (200.0, {"periodic"}),  # Only the last product exceeds 200.
        (1000.0, {"periodic"}),
    ],
)
def test_periodic_cooling_that_never_redistributes_is_reported(
    runs: Runs, limit: float, never: set[str]
) -> None:
    changed_runs = changed(runs, where(mode="periodic"), max_temperature=limit)
    table = changed_runs.table
    assert set(table[table["never_redistributed"]]["mode"]) == never
    if never:
        assert table[table["mode"] == "periodic"]["never_redistributed"].all()


def test_the_temperature_is_the_one_that_the_method_keeps_in_the_last_layer() -> None:
    torch.manual_seed(0)
    kept: list[float] = []
    applied: list[float] = []
    for correction, temperature in coolings_of_a_network(limit=2.0, reset=1.5):
        applied.append(correction)
        kept.append(temperature)

    def values(_: Run) -> Rows:
        return [cooling(place, one, 1.0) for place, one in enumerate(applied, 1)]

    study = study_of([Run("vgg", "none", "periodic", 0)], [], values, [])
    study = changed(study, max_temperature=2.0, reset_temperature=1.5)
    followed = growth(study)
    assert followed["kept"].tolist() == pytest.approx(kept)
    assert followed["reset"].any()
    assert not followed["reset"].all()


def test_a_temperature_at_the_limit_stays_in_the_last_layer() -> None:
    """By Definition 3.4, only a temperature above the limit is redistributed."""

    def values(_: Run) -> Rows:
        return [cooling(epoch, 2.0, 2.0**epoch) for epoch in (1, 2)]

    study = study_of([Run("vgg", "none", "periodic", 0)], [], values, [])
    study = changed(study, max_temperature=2.0, reset_temperature=1.5)
    followed = growth(study)
    assert followed["reached"].tolist() == [2.0, 4.0]
    assert followed["kept"].tolist() == [2.0, 1.5]
    assert followed["reset"].tolist() == [False, True]


def coolings_of_a_network(limit: float, reset: float) -> Iterator[tuple[float, float]]:
    """Yield each Cooling step's correction and the last layer's new temperature."""
    images = torch.randn(256, 5, dtype=torch.float64)
    network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).double().eval()
    labels = torch.distributions.Categorical(logits=8 * network(images)).sample()
    method = Cooling(
        network, mode="periodic", max_temperature=limit, reset_temperature=reset
    )
    for heat in HEAT:
        with torch.no_grad():
            network[2].weight *= heat
            network[2].bias *= heat
            correction = method.cool(network(images), labels)
        yield correction, method.temperature


def test_without_periodic_cooling_the_limit_is_the_papers(runs: Runs) -> None:
    followed = growth(runs.only(~where(mode="periodic")))
    assert set(followed["limit"]) == {100.0}


@pytest.mark.parametrize(("images", "is_printed"), [(45_000, True), (44_999, False)])
def test_the_papers_setting_has_at_least_45000_training_images(
    images: int, is_printed: bool
) -> None:
    def values(_: Run) -> Rows:
        return [{"split": "test", "epoch": 1, "accuracy": 0.5}]

    study = study_of([Run("vgg", "none", "none", 0)], [], values, [])
    table = changed(study, train_images=images).table
    assert table["is_printed"].tolist() == [is_printed]


def test_nothing_grows_where_nothing_was_cooled(runs: Runs) -> None:
    assert growth(runs.only(where(mode="none"))).empty


def test_the_factors_of_an_arm_are_its_values() -> None:
    factors = cooling_factors(Arm(mode="last_layer", factor=0.5))
    assert factors["factor"] == 0.5
    assert factors["mode"] == "last_layer"
    assert factors["max_temperature"] is None, "max_temperature belongs to periodic"
    assert cooling_factors(Arm(mode="none", factor=0.5))["factor"] is None
    focal = cooling_factors(Arm(mode="none", loss="focal", options={"gamma": 5}))
    assert (focal["loss"], focal["gamma"]) == ("focal", "5")


@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        ({"name": "constant"}, "none"),
        ({"name": "steps", "milestones": [30], "factor": 0.1}, "piecewise"),
        ({"name": "exponential", "factor": 0.01}, "exponential_slow"),
        ({"name": "exponential", "factor": 0.001}, "exponential_fast"),
        ({"name": "exponential", "factor": 0.5}, "exponential-0.5"),
        ({"name": "cosine"}, "cosine"),
    ],
)
def test_a_schedule_is_named_after_its_shape(
    schedule: dict[str, Any], name: str
) -> None:
    assert schedule_factor(Schedule.model_validate(schedule)) == name


def test_experiments_and_arms_are_listed_once_for_a_reader(runs: Runs) -> None:
    names = experiments(runs)["experiment"].tolist()
    assert names == list(
        dict.fromkeys(runs.select(where(task="classification"))["experiment"])
    )
    settings = arms(runs)
    assert not settings.duplicated().any()
    assert set(settings["factor"].dropna()) == {0.5, 0.75, 1.0, 1.25}
