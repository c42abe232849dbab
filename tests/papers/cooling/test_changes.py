"""The change that an ablation makes is read from the factors of its runs."""

from typing import Any

import pytest

from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import Runs
from tests.papers.cooling.conftest import changed


def change_of(runs: Runs, **factors: Any) -> set[str]:
    return set(runs.select(where(**factors))["change"])


@pytest.mark.parametrize(
    ("experiment", "change"),
    [
        ("vgg", ""),
        ("crelu", ""),
        ("factors", ""),
        ("adam", "Adam"),
        ("each-batch", "Cooling after each batch"),
        ("rate-0.1", "learning rate 0.1"),
        ("rescaled", "momentum rescaled with the weights"),
        ("focal", "focal loss, gamma 3"),
    ],
)
def test_runs_of_an_experiment_share_its_change(
    runs: Runs, experiment: str, change: str
) -> None:
    assert change_of(runs, experiment=experiment) == {change}


@pytest.mark.parametrize(
    ("factors", "change"),
    [
        ({"learning_rate": 0.05}, "learning rate 0.05"),
        ({"optimizer": "sgd", "warmup": 2.0}, "warm-up, 2 of 6 epochs"),
        ({"optimizer": "sgd", "weight_decay": 0.0005}, "weight decay 0.0005"),
        (
            {"optimizer": "sgd", "crop_padding": 4, "flip": True},
            "random crops and mirroring",
        ),
        ({"optimizer": "sgd", "flip": True}, "mirroring"),
        ({"optimizer": "sgd", "activation": "crelu"}, "CReLU"),
        ({"optimizer": "sgd", "loss": "brier"}, "brier loss"),
        ({"optimizer": "sgd", "schedule": "steep"}, "schedule steep"),
        ({"dataset": "mnist"}, "no main recipe to compare with"),
    ],
)
def test_another_value_is_another_change_whatever_the_experiment_is_called(
    runs: Runs, factors: dict[str, Any], change: str
) -> None:
    other = changed(runs, where(experiment="adam"), **factors)
    expected = f"Adam, {change}" if "learning_rate" in factors else change
    assert change_of(other, experiment="adam") == {expected}


def test_another_network_is_compared_with_the_main_recipe_on_the_same_data(
    runs: Runs,
) -> None:
    other = changed(runs, where(experiment="adam"), network="resnet")
    assert change_of(other, experiment="adam") == {"Adam"}


@pytest.mark.parametrize(
    ("factors", "change"),
    [
        ({"period": "10"}, "Cooling after every 10 batches"),
        ({"period": "epoch", "refit": "increment"}, "factor on each correction"),
        (
            {"optimizer_state": "rescale"},
            "Cooling after each batch, momentum rescaled with the weights",
        ),
    ],
)
def test_a_change_of_cooling_is_named_where_the_recipe_is_the_main_one(
    runs: Runs, factors: dict[str, Any], change: str
) -> None:
    other = changed(runs, where(experiment="each-batch"), **factors)
    assert change_of(other, experiment="each-batch") == {change}


def test_a_run_without_cooling_has_the_change_of_its_experiment(runs: Runs) -> None:
    moved = where(experiment="vgg", schedule="none", mode="none", seed=0)
    both = changed(runs, moved, experiment="each-batch", role="ablation")
    change = "Cooling after each batch"
    assert change_of(both, experiment="each-batch") == {change}
