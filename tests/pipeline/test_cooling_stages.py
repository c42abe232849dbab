"""All stages of the Cooling paper, from raw data to results, with tiny parameters."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from softmax_temperature.cooling import Cooling
from softmax_temperature.data import segmentation
from softmax_temperature.data.glyphs import VOID
from softmax_temperature.data.segmentation import read_segmentation
from softmax_temperature.data.splits import Part
from softmax_temperature.networks.registry import build_network
from softmax_temperature.papers.cooling import collect
from softmax_temperature.papers.cooling.collect import segmentation_pixels
from softmax_temperature.papers.cooling.outcome import outcome
from softmax_temperature.papers.cooling.study import (
    ACCURACY_OF_FINISHED,
    ANY_FACTOR,
    CLASSIFICATION,
    SEGMENTATION,
    read,
)
from softmax_temperature.papers.shared.collecting import gather
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.files import rounded
from softmax_temperature.papers.shared.metrics import at_last_epoch
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import Segmentation
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.cooling import train_cooling, train_segmentation
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.training import prepared_sets
from softmax_temperature.training.prepared_sets import image_set
from tests.pipeline.whole_runs import (
    WholePaper,
    changed,
    collect_without_claims,
    fitted,
    run,
    run_stages,
    stored,
    weights,
    weights_are_finite,
    with_kills,
    with_other_test_data,
)

PAPER, RESULTS = collect, Path("results/tiny/cooling")
pytestmark = pytest.mark.usefixtures("in_project")


@pytest.fixture(scope="module", autouse=True)
def _scenes_drawn_once() -> Iterator[None]:
    """Draw the scenes only once; otherwise each training run would draw hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        drawn_once = cache(segmentation.read_glyph_scenes)
        patch.setattr(segmentation, "read_glyph_scenes", drawn_once)
        yield


class TestResults(WholePaper):
    pass


def test_arms_differ_after_the_first_cooling() -> None:
    found = {}
    for arm in ("none", "last_layer"):
        history = stored(train_cooling, f"digits-vgg/none/{arm}/0", "history")
        found[arm] = {
            (row["epoch"], row["split"]): (row["accuracy"], row["weight_norm"])
            for row in history
        }
        assert len(
            stored(train_cooling, f"digits-vgg/none/{arm}/0", "temperatures")
        ) == (0 if arm == "none" else 2)
    # In the first epoch all arms compute the same values, apart from the division of
    # the logits.
    for split in ("train", "validation", "test"):
        assert found["none"][1, split] == found["last_layer"][1, split]
    assert found["none"][2, "train"][1] != found["last_layer"][2, "train"][1]


def test_the_stored_temperature_is_in_the_stored_weights() -> None:
    for arm in ("last_layer", "distributed"):
        held = float(
            weights(train_cooling, f"digits-vgg/none/{arm}/1")["cooling_temperature"]
        )
        total = stored(train_cooling, f"digits-vgg/none/{arm}/1", "temperatures")[-1][
            "total"
        ]
        assert held == pytest.approx(total if arm == "last_layer" else 1.0, rel=1e-6)
        assert total != 1
    assert "cooling_temperature" not in weights(train_cooling, "digits-vgg/none/none/1")


def test_a_run_in_the_table_is_what_its_weights_say(tiny: Params) -> None:
    cell, recipe = "digits-vgg/none/last_layer/1", tiny.cooling.recipe
    network = build_network(tiny.networks["vgg-tiny"], classes=10, seed=1)
    Cooling(network)
    network.load_state_dict(weights(train_cooling, cell))
    test = image_set(open_artifact(fetch.output / "digits"), "test", ".")
    with torch.no_grad():
        logits = network.eval()(test.prepare(test.inputs, recipe)).double()
    [row] = [
        row
        for row in stored(train_cooling, cell, "history")
        if (row["epoch"], row["split"]) == (recipe.epochs, "test")
    ]
    assert row["nll"] == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits, test.labels)), rel=1e-4
    )
    assert row["accuracy"] == pytest.approx(
        float((logits.argmax(1) == test.labels).double().mean())
    )


def test_there_is_a_temperature_after_the_last_cooling_of_each_epoch() -> None:
    runs = read(RESULTS)
    temperatures = runs.measured("temperature", split="validation")
    trained = runs.select(CLASSIFICATION)
    cooled = trained[trained["mode"] != "none"].index
    of_classifiers = temperatures[temperatures["run"].isin(trained.index)]
    assert set(of_classifiers["run"]) == set(cooled)
    epochs = of_classifiers.groupby("run")["epoch"].apply(list)
    assert (epochs.map(tuple) == (1, 2)).all()


def test_a_cooling_after_each_batch_counts_all_of_an_epoch() -> None:
    runs = read(RESULTS)
    each_batch = runs.only(where(period="1"))
    cell = "digits-vgg-each-batch/none/last_layer-each-batch/0"
    rows = stored(train_cooling, cell, "temperatures")
    steps = stored(train_cooling, cell, "record")["images"]["train"] // 8
    coolings = each_batch.measured("coolings")["value"]
    assert coolings.tolist() == [steps, 2 * steps]
    assert len(rows) == 2 * steps
    total = each_batch.measured("temperature")["value"].iloc[-1]
    # Numbers in tables are rounded to six digits.
    assert total == pytest.approx(math.prod(row["applied"] for row in rows), rel=1e-5)


@pytest.mark.parametrize(
    "cell",
    [
        "digits-vgg/none/distributed/0",
        "digits-vgg-each-batch/none/last_layer-each-batch/0",
    ],
)
def test_no_fitted_number_of_a_training_moves_with_the_test_data(
    cell: str,
    project: Path,
    tiny: Params,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = ("weights.safetensors", "history.json", "norms.json", "temperatures.json")
    expected = fitted(train_cooling, cell, *files)
    monkeypatch.chdir(with_other_test_data(project, tmp_path))
    run(tiny, train_cooling, [cell])
    assert fitted(train_cooling, cell, *files) == expected
    changed_scores = stored(train_cooling, cell, "history")
    monkeypatch.chdir(project)
    assert stored(train_cooling, cell, "history") != changed_scores


def test_no_fitted_number_of_a_unet_moves_with_the_test_labels(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_with_other_labels(*arguments: Any, **options: Any) -> dict[str, Part]:
        parts = read_segmentation(*arguments, **options)
        labels = parts["test"].labels
        other = torch.where(labels == VOID, labels, (labels + 1) % 3)
        return parts | {"test": replace(parts["test"], labels=other)}

    cell = "last_layer/0"
    names = ("loss", "temperature")
    before = stored(train_segmentation, cell, "record")["history"]
    expected = weights(train_segmentation, cell)
    monkeypatch.setattr(prepared_sets, "read_segmentation", read_with_other_labels)
    monkeypatch.chdir(tmp_path)
    run(tiny, train_segmentation, [cell])
    after = stored(train_segmentation, cell, "record")["history"]
    assert [[row[name] for name in names] for row in after] == [
        [row[name] for name in names] for row in before
    ]
    assert [row["mean_iou"] for row in after] != [row["mean_iou"] for row in before]
    found = weights(train_segmentation, cell)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_runs_have_the_results_of_their_last_epoch() -> None:
    runs = read(RESULTS)
    trained = runs.select(CLASSIFICATION)
    accuracies = at_last_epoch(ACCURACY_OF_FINISHED).of(runs, trained)
    assert not (trained["diverged"] | trained["stuck"]).all()
    for number, row in trained.iterrows():
        cell = row["cell"].removeprefix("cooling/training/")
        history = stored(train_cooling, cell, "history")
        last = {one["split"]: one for one in history if one["epoch"] == 2}
        learned = [one["accuracy"] for one in history if one["split"] == "train"]
        expected = outcome(learned, 10, nll=last["test"]["nll"])
        assert row[["diverged", "stuck"]].to_dict() == expected
        if row["lost"]:
            assert math.isnan(accuracies[number])
        else:
            assert accuracies[number] == rounded(last["test"]["accuracy"])


def test_the_factors_of_a_run_are_those_of_the_parameters(tiny: Params) -> None:
    runs = read(RESULTS).table.set_index("cell")
    run = runs.loc[
        "cooling/training/digits-vgg-each-batch/none/last_layer-each-batch/0"
    ]
    assert run[["mode", "factor", "period", "schedule"]].tolist() == [
        "last_layer",
        1.0,
        "1",
        "none",
    ]
    assert run["learning_rate"] == tiny.cooling.recipe.lr


def test_an_arm_is_judged_by_its_factors_and_not_by_its_name(
    tiny: Params,
) -> None:
    arms = tiny.model_dump()["cooling"]["arms"]
    swapped = arms | {"last_layer": arms["none"], "none": arms["last_layer"]}
    other = changed(tiny, {"cooling/arms": swapped})
    factors = {run.cell: run.factors for run in collect.declared_runs(other)}
    assert factors["digits-vgg/none/none/0"]["mode"] == "last_layer"
    assert factors["digits-vgg/none/last_layer/0"]["mode"] == "none"


def test_the_theory_is_measured_as_predicted() -> None:
    checks = read(RESULTS).tables["theory_checks"]
    assert (
        checks["statement"]
        .str.extract(r"(Lemma 3.3|Proposition 3.5|Theorem 3.7|relative)")
        .notna()
        .all()
        .all()
    )
    assert (checks["largest_relative_difference"] < 1e-10).all()
    assert checks["measured"].to_numpy() == pytest.approx(
        checks["predicted"].to_numpy(), rel=1e-8
    )
    ratios = checks[~checks["statement"].str.contains("Proposition")]
    assert not (ratios["predicted"] == 1).any(), "a predicted ratio is 1"


def test_a_diverging_training_is_a_result(
    make_project: Callable[..., Path],
    project: Path,
    tiny: Params,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiments = tiny.model_dump()["cooling"]["experiments"]
    lost = {
        "digits-vgg-crelu": experiments["digits-vgg-crelu"]
        | {"recipe": {"lr": 1e30}},  # The weights overflow.
        "digits-vgg-factors": experiments["digits-vgg-factors"],
    }
    changes = {
        "cooling/experiments": lost,
        "cooling/arms/last_layer-1.25/factor": 1e6,
    }  # The temperature of this arm overflows.
    monkeypatch.chdir(make_project("diverging", cells_of=project))
    overflowing = changed(tiny, changes)
    run_stages(overflowing, PAPER)
    collect_without_claims(overflowing, PAPER)
    runs = read(RESULTS)
    is_lost = where(experiment="digits-vgg-crelu") | ANY_FACTOR & where(factor=1e6)
    lost_runs = runs.only(is_lost)
    assert (lost_runs.table["diverged"] & ~lost_runs.table["stuck"]).all()
    assert (lost_runs.table["epochs_done"] == 0).all()
    assert lost_runs.measurements.empty
    for cell in (
        "digits-vgg-crelu/none/none/0",
        "digits-vgg-factors/none/last_layer-1.25/0",
    ):
        assert weights_are_finite(train_cooling, cell)
    table = pd.read_csv(RESULTS / "tables" / "table_2.csv")
    assert set(table[table["experiment"] == "digits-vgg-crelu"]["status"]) == {
        "diverged"
    }


def test_every_epoch_of_a_unet_has_a_row_and_arms_differ_after_the_first_cooling() -> (
    None
):
    runs = read(RESULTS).only(SEGMENTATION)
    scores = runs.wide("mean_iou", "pixel_accuracy", split="test")
    assert len(scores) == 2 * 2 * 2
    unit = scores[["mean_iou", "pixel_accuracy"]]
    assert unit.apply(lambda column: column.between(0, 1)).all().all()
    temperatures = runs.measured("temperature").join(runs.table, on="run")
    by_mode = temperatures.groupby("mode")["value"]
    assert (by_mode.get_group("none") == 1).all()
    assert by_mode.get_group("last_layer").nunique() == 4
    cooled = temperatures[temperatures["mode"] == "last_layer"]
    last = cooled[cooled["seed"] == 1].iloc[-1]
    held = weights(train_segmentation, "last_layer/1")["cooling_temperature"].item()
    assert rounded(held) == last["value"]
    assert "cooling_temperature" not in weights(train_segmentation, "none/1")
    plain, cooled = (
        stored(train_segmentation, f"{arm}/1", "record") for arm in Segmentation.arms
    )
    losses = [[row["loss"] for row in record["history"]] for record in (plain, cooled)]
    assert losses[0][0] == losses[1][0]
    assert losses[0][1] != losses[1][1]
    assert cooled["images"] == {"train": 8, "validation": 4, "test": 4}
    assert (cooled["sides"], cooled["epochs_done"], cooled["diverged"]) == (
        [64, 64],
        2,
        False,
    )
    assert plain["cooling_pixels"] == 0 < cooled["cooling_pixels"] <= 4 * 64**2


def test_pictures_show_test_images_and_every_arm(tiny: Params) -> None:
    pictures = segmentation_pixels(tiny)
    assert set(pictures) == {"images", "labels", *Segmentation.arms}
    assert pictures["images"].shape == (2, 64, 64, 3)
    for name in ("labels", *Segmentation.arms):
        assert (pictures[name].dtype, pictures[name].shape) == ("uint8", (2, 64, 64))
        assert pictures[name][pictures[name] != 255].max() < 3
    assert segmentation_pixels(changed(tiny, {"cooling/segmentation/panels": 0})) == {}


@pytest.mark.parametrize("cell", ["none/0", "last_layer/0"])
def test_a_unet_killed_between_two_coolings_ends_with_the_same_bytes(
    cell: str, tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = open_artifact(train_segmentation.output / cell).files
    monkeypatch.chdir(tmp_path)
    assert with_kills(lambda: run(tiny, train_segmentation, [cell]), 1) == [1, 2]
    assert open_artifact(train_segmentation.output / cell).files == expected


def test_a_unet_that_diverges_is_a_result(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    explodes = {"name": "steps", "milestones": [1.0], "factor": 1e30}
    hot = changed(
        tiny,
        {
            "cooling/segmentation/recipe/": {"schedule": explodes},
            "cooling/segmentation/seeds": 1,
        },
    )
    run(hot, train_segmentation)
    declared = [
        one for one in collect.declared_runs(hot) if one.stage is train_segmentation
    ]
    runs = gather(tmp_path, declared, collect.read_run)
    assert runs.table["diverged"].tolist() == [True, True]
    assert runs.table["epochs_done"].tolist() == [1, 1]
    assert set(runs.measurements["epoch"]) == {1}
    assert stored(train_segmentation, "none/0", "record")["diverged"]
    assert weights_are_finite(train_segmentation, "none/0")
