"""Arms share seeds in the declared cells; new cells leave the others unchanged."""

from typing import Any

import pytest

from softmax_temperature.papers.focal.collect import declared_runs
from softmax_temperature.params import Params
from softmax_temperature.stages import Stage
from softmax_temperature.stages.classifier_temperature import search
from softmax_temperature.stages.cooling import train_cooling, train_segmentation
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.stages.focal_appendices import focal_linear, train_translation
from softmax_temperature.stages.focal_evaluation import evaluate_focal
from softmax_temperature.stages.temperature_check import (
    confirm_temperature_check,
    optimizer_rate,
    train_temperature_check,
)
from tests.pipeline.whole_runs import changed
from tests.profiles import profile


@pytest.mark.parametrize(
    ("stage", "task"),
    [
        (train_cooling, ""),
        (train_segmentation, ""),
        (train_focal, "digits"),  # The task has a variant, "digits-as-written".
        (focal_linear, ""),
        (train_translation, ""),
        (train_temperature_check, "wrn/"),
    ],
)
def test_all_arms_of_a_seed_start_alike_and_seeds_differ(
    stage: Stage, task: str, tiny: Params
) -> None:
    seeds: dict[str, set[int]] = {"0": set(), "1": set()}
    which = "data_seed" if stage is focal_linear else "training_seed"
    for cell in stage.cells(tiny):
        if cell.name.startswith(task):
            given = cell.parameters
            seeds[cell.name.rpartition("/")[2]].add(given.get("plan", given)[which])
    assert [len(found) for found in seeds.values()] == [1, 1]
    assert seeds["0"] != seeds["1"]


def test_rates_are_rescaled_by_the_inverse_temperature(tiny: Params) -> None:
    cells = {cell.name: cell.parameters for cell in train_temperature_check.cells(tiny)}
    for at, expected in (("1", 0.1), ("0.1", 10.0)):
        given = cells[f"wrn/{at}/0.1/plain/0"]
        assert optimizer_rate(
            given["learning_rate"], given["inverse_temperature"]
        ) == pytest.approx(expected)


def test_a_confirmation_reads_the_runs_of_all_rates_and_seeds_but_its_own() -> None:
    params = profile("paper")
    paper = params.temperature_check
    (cell,) = [
        cell
        for cell in confirm_temperature_check.cells(params)
        if cell.name == "gru/1/plain/2"
    ]
    rates = paper.sweeps["gru"].rates(1.0)
    read = {name for name in cell.inputs if name != "data"}
    assert paper.seeds_of("gru") == 2
    assert len(rates) > 1
    assert read == {f"{rate:g}/{seed}" for rate in rates for seed in (0, 1)}


FL_9 = {
    "focal/arms/": {"FL-9": {"loss": "focal", "options": {"gamma": 9.0}}},
    "focal/tasks/digits/arms": ["CE", "FL-3", "FLSD-53", "FL-9"],
}
FEWER = {"classifier_temperature/backbones": ["untrained-16", "untrained-64"]}


@pytest.mark.parametrize(
    ("stage", "different", "changes"),
    [
        (train_focal, {"digits/FL-9/0", "digits/FL-9/1"}, FL_9),
        (evaluate_focal, {"digits/FL-9/0", "digits/FL-9/1"}, FL_9),
        (focal_linear, {"FL-9/0", "FL-9/1"}, {"focal/linear/gammas/": {"FL-9": 9.0}}),
        (train_translation, {"CE/2", "LS/2", "FL/2"}, {"focal/translation/seeds": 3}),
        (
            train_segmentation,
            {"none/2", "last_layer/2"},
            {"cooling/segmentation/seeds": 3},
        ),
        (
            train_cooling,
            {"digits-vgg-factors/none/periodic/0"},
            {
                "cooling/experiments/digits-vgg-factors/arms": [
                    "last_layer-0.75",
                    "last_layer-1.25",
                    "periodic",
                ]
            },
        ),
        (
            train_cooling,
            {
                f"digits-vgg/none/{arm}/2"
                for arm in ("none", "last_layer", "distributed", "periodic")
            },
            {"cooling/experiments/digits-vgg/schedule_seeds": {"none": 3}},
        ),
        (
            embed,
            {f"{data}/untrained-32" for data in ("digits", "glyphs-12", "glyphs-20")},
            FEWER,
        ),
        (
            search,
            {f"{data}/untrained-32" for data in ("digits", "glyphs-12", "glyphs-20")},
            FEWER,
        ),
    ],
)
def test_more_or_fewer_of_one_thing_change_no_other_cell(
    stage: Stage, different: set[str], changes: dict[str, Any], tiny: Params
) -> None:
    before, after = (
        {cell.name: (cell.parameters, cell.inputs) for cell in stage.cells(params)}
        for params in (tiny, changed(tiny, changes))
    )
    assert before.keys() ^ after.keys() == different
    assert all(before[name] == after[name] for name in before.keys() & after.keys())


@pytest.mark.parametrize("section", ["linear", "translation"])
def test_an_appendix_that_is_left_out_has_no_cell_and_no_run(
    section: str, tiny: Params
) -> None:
    stage = {"linear": focal_linear, "translation": train_translation}[section]
    without = changed(tiny, {f"focal/{section}": None})
    assert list(stage.cells(tiny))
    assert not list(stage.cells(without))
    tasks = {run.factors["task"] for run in declared_runs(without)}
    assert tasks == {"classification", "linear", "translation"} - {section}
