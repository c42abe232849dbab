"""What cells cost follows from their parameters and the sizes of their data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.cost.cells import cell_cost
from softmax_temperature.cost.data_sizes import data_size
from softmax_temperature.cost.networks import image_network_cost
from softmax_temperature.params import Params
from softmax_temperature.runner.cells import Cell
from softmax_temperature.stages import embed, search, train_cooling, train_focal, train_temperature_check
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"


@pytest.fixture(scope="module")
def paper() -> Params:
    return render_profile("paper", PROFILES)[1]


@pytest.fixture(autouse=True)
def _where_nothing_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cell(stage: Any, params: Params, name: str) -> Any:
    return next(each for each in stage.cells(params) if each.name == name)


def test_sizes_are_those_of_the_papers(paper: Params) -> None:
    size = data_size("cifar10", paper)
    assert size is not None
    assert (size.train, size.validation, size.test, size.classes, size.side) == (45_000, 5_000, 10_000, 10, 32)
    size = data_size("cifar100-99", paper)  # Cooling, section 4.1: 500 images are held out.
    assert size is not None
    assert (size.train, size.validation) == (49_500, 500)
    assert data_size("photoart", paper) is None


def test_an_epoch_is_its_steps_and_its_evaluations(paper: Params) -> None:
    name = "cifar10-resnet50/CE/0"
    cost = cell_cost("train_focal", cell(train_focal, paper, name), paper)
    network = image_network_cost(paper.networks["resnet50"], classes=10, side=32)
    steps = 45_000 // 128
    epoch = steps * 128 * network.training + (5_000 + 5_000 + 10_000) * network.forward
    assert cost is not None
    assert cost.operations == pytest.approx(350 * epoch)
    assert cost.kept_bytes == 350 * steps * 128 * network.kept_bytes
    # Weights and the logits of validation, test and SVHN's test images.
    logits = (5_000 + 10_000 + 26_032) * (10 * 4 + 16)
    assert cost.disk_bytes == pytest.approx(network.state_bytes + logits, rel=0.01)
    assert cost.gpu_bytes is not None
    # 5 numbers a parameter, the activations of 128 images in two bytes each, and the training images.
    assert cost.gpu_bytes == pytest.approx(20 * network.parameters + 64 * network.kept_bytes + 45_000 * 3072, rel=0.01)


def test_looks_that_are_left_out_cost_nothing(paper: Params) -> None:
    def operations(every: int, select: str) -> float:
        one = cell(train_focal, paper, "cifar10-resnet50/CE/0")
        parameters = one.parameters | {"watching": {**one.parameters["watching"], "every": every}, "select": select}
        cost = cell_cost("train_focal", replace(one, parameters=parameters), paper)
        assert cost is not None
        assert cost.operations is not None
        return cost.operations

    network = image_network_cost(paper.networks["resnet50"], classes=10, side=32)
    saved = operations(1, "last") - operations(4, "last")
    assert saved == pytest.approx(350 * (20_000 - 5_000) * network.forward)
    # The best epoch is one of all.
    assert operations(4, "best_validation") == operations(1, "best_validation")


def test_the_grid_is_two_products_a_step(paper: Params) -> None:
    cost = cell_cost("search", cell(search, paper, "cifar10/resnet18"), paper)
    assert cost is not None
    given = paper.classifier_temperature.search
    products = 2 * 512 * 10 * len(given.inverse_temperatures) * given.repeats
    assert cost.operations == pytest.approx(1000 * products * (2 * 45_000 + 15_000))
    assert cost.disk_bytes == 51 * given.repeats * 1000 * 2 * 4


def test_embeddings_are_numbers_labels_and_rows(paper: Params) -> None:
    parameters = {"backbone": "alexnet", "batch_size": 64, "precision": "float32"}
    made = Cell("mnist/alexnet", embed.run, parameters, {"images": Path("data/prepared/mnist")})
    cost = cell_cost("embed", made, paper)
    assert cost is not None
    assert cost.disk_bytes == 70_000 * (256 * 4 + 16)


def test_a_pair_computes_its_frozen_network_too(paper: Params) -> None:
    cells = train_temperature_check.cells(paper)
    pair, single = (
        next(each for each in cells if each.name.startswith(sweep)) for sweep in ("wrn-pairs", "wrn-unnormalised")
    )
    costs = [cell_cost("train_temperature_check", each, paper) for each in (pair, single)]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[0].operations is not None
    assert costs[1].operations is not None
    assert 1.25 < costs[0].operations / costs[1].operations < 1.4


def test_texts_have_a_disk_and_no_time(paper: Params) -> None:
    gru = next(each for each in train_temperature_check.cells(paper) if each.name.startswith("gru"))
    cost = cell_cost("train_temperature_check", gru, paper)
    assert cost is not None
    assert cost.operations is None
    assert cost.disk_bytes > 25_000 * (2 * 4 + 16)


def test_what_is_not_modelled_has_no_cost(paper: Params) -> None:
    assert cell_cost("heuristic", train_cooling.cells(paper)[0], paper) is None
