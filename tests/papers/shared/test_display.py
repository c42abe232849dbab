"""Parameters' names are shown in words; unknown names are shown unchanged."""

import pandas as pd
import pytest

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.shared import display


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cifar10", "CIFAR-10"),
        ("cifar10-10000", "CIFAR-10, 10,000 images"),
        ("cifar10-99", "CIFAR-10, 99 % of the images"),
        ("imdb-9000", "IMDb, 9,000 texts"),
        ("glyphs-60", "60 glyphs"),
        ("cifar10-10000 vs svhn", "CIFAR-10, 10,000 images vs SVHN"),
        ("my-set", "my-set"),
        ("my-set-100", "my-set-100"),
    ],
)
def test_a_data_set_is_named_with_its_size(name: str, label: str) -> None:
    assert display.dataset_label(name) == label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("small-vgg-bn", "small VGG with batch norm"),
        ("small-vgg-crelu-quarter", "small VGG with CReLU, a quarter as wide"),
        ("wrn-16-4-unnormalised", "Wide-ResNet-16-4 without batch norm"),
        ("gru-64", "GRU, 64 wide"),
        ("my-net", "my-net"),
    ],
)
def test_a_network_is_named_with_what_it_has(name: str, label: str) -> None:
    assert display.network_label(name) == label


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("ece", "ECE"),
        ("classwise_ece_after_scaling", "Classwise-ECE after scaling"),
        ("mean_iou_last_epoch", "mean IoU, last epoch"),
        ("pixel_accuracy", "pixel accuracy"),
        ("ECE% pre T (15 bins)", "ECE% pre T (15 bins)"),
    ],
)
def test_a_metric_is_named_with_when_it_was_measured(metric: str, label: str) -> None:
    assert display.metric_label(metric) == label


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "0.11 points, GRU, imdb-9000 (n = 5)",
            "0.11 points, GRU, IMDb, 9,000 texts (n = 5)",
        ),
        (
            "sw_trace +0.1, mlp-tiny −0.2",
            "trace between classes +0.1, multilayer perceptron, tiny −0.2",
        ),
        ("linear, log-likelihood, my-net-3", "linear, log-likelihood, my-net-3"),
        (
            "study cifar10 would test it",
            "study cifar10 would test it",
        ),
        ("prepared/cifar10", "prepared/cifar10"),
        ("imdb-cnn +2.7, cifar10-vgg", "CNN on IMDb +2.7, small VGG on CIFAR-10"),
    ],
)
def test_names_in_a_sentence_are_put_in_words_and_words_stay(
    text: str, said: str
) -> None:
    assert display.in_sentence(text) == said


def test_every_statistic_has_words_of_its_own() -> None:
    assert display.statistic_label("david_bouldin") == "Davies–Bouldin"
    assert set(display.STATISTICS) == set(STATISTICS)
    assert len(set(display.STATISTICS.values())) == len(STATISTICS)


def test_a_table_keeps_its_numbers_and_missing_names() -> None:
    table = pd.DataFrame(
        {"dataset": ["cifar10", None], "backbone": ["untrained-64"] * 2, "n": [1, 2]}
    )
    named = display.with_names(table)
    assert named["dataset"][0] == "CIFAR-10"
    assert pd.isna(named["dataset"][1])
    assert named["backbone"].tolist() == ["untrained ResNet, 64"] * 2
    assert named["n"].tolist() == [1, 2]
