"""The U-Net's stage, from a folder of images to the table and the pictures of the paper, on the smallest parameters."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from softmax_temperature.data.glyphs import downstream_pool, draw_scenes
from softmax_temperature.papers.cooling.collect import segmentation_pixels, segmentation_table
from softmax_temperature.params.cooling import Segmentation
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import digest_of_file, open_artifact
from softmax_temperature.runner.cells import Job, run_cells
from softmax_temperature.stages import train_segmentation
from softmax_temperature.stages.train_segmentation import OUTPUT, cells
from tests.serial import SERIAL

RECIPE = {
    "epochs": 3,
    "planned_epochs": 3,
    "batch_size": 4,
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "epsilon": 1e-8,
    "schedule": {"name": "constant"},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "flip": False,
    "mean": [0.2, 0.2, 0.2],
    "std": [0.2, 0.2, 0.2],
    "precision": "float32",
}
SECTION = {
    "dataset": "letters",
    "classes": 4,
    "void": 255,
    "crop": None,
    "size": [32, 32],
    "train_limit": None,
    "test_limit": None,
    "cooling_images": 4,
    "width": 2,
    "factor": 1.0,
    "recipe": RECIPE,
    "seeds": 2,
    "panels": 3,
}


def parameters(**changes: Any) -> Any:
    """The sections that the stage reads; `recipe` changes values of the recipe."""
    recipe = Recipe.model_validate(RECIPE | changes.pop("recipe", {}))
    section = Segmentation.model_validate({**SECTION, "recipe": recipe, **changes})
    data, cooling = SimpleNamespace(root="data/raw"), SimpleNamespace(segmentation=section)
    return SimpleNamespace(seed=0, data=data, cooling=cooling, compute=SERIAL)


def run(params: Any) -> None:
    run_cells(cells(params), output=OUTPUT, compute=params.compute, seed=params.seed)


def write_letters(folder: Path) -> None:
    images, labels = draw_scenes(downstream_pool()[:3], 26, seed=0)
    for part, rows in (("train", range(16)), ("test", range(16, 26))):
        for kind, pixels in (("images", images), ("labels", labels)):
            place = folder / "data/raw/letters" / kind / part
            place.mkdir(parents=True)
            for row in rows:
                Image.fromarray(pixels[row]).save(place / f"{row:02}.png")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the stage has run."""
    folder = tmp_path_factory.mktemp("segmentation")
    write_letters(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        run(parameters())
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def weights(cell: str) -> dict[str, torch.Tensor]:
    return open_artifact(OUTPUT / cell).tensors("weights.safetensors")


def test_a_row_for_every_epoch_of_every_training() -> None:
    table = segmentation_table(parameters())
    assert list(table.columns[:3]) == ["arm", "seed", "epoch"]
    assert len(table) == 2 * 2 * 3
    assert not table.isna().any().any()
    assert table[["mean_iou", "pixel_accuracy"]].stack().between(0, 1).all()
    temperatures = table.groupby("arm")["temperature"]
    assert (temperatures.get_group("none") == 1).all()
    assert temperatures.get_group("last_layer").nunique() == 6


def test_records_say_what_was_trained() -> None:
    record = open_artifact(OUTPUT / "last_layer/1").json("record.json")
    assert record["images"] == {"train": 12, "validation": 4, "test": 10}
    assert record["sides"] == [32, 32]
    assert (record["epochs_done"], record["diverged"]) == (3, False)
    assert 0.9 * 4 * 32**2 < record["cooling_pixels"] < 4 * 32**2
    assert open_artifact(OUTPUT / "none/1").json("record.json")["cooling_pixels"] == 0


def test_the_stored_weights_carry_the_temperature_of_the_last_row() -> None:
    table = segmentation_table(parameters())
    last = table[(table["arm"] == "last_layer") & (table["seed"] == 1)].iloc[-1]
    assert weights("last_layer/1")["cooling_temperature"].item() == last["temperature"]
    assert "cooling_temperature" not in weights("none/1")


def test_arms_of_one_seed_are_paired() -> None:
    table = segmentation_table(parameters())
    losses = {
        cell: open_artifact(OUTPUT / cell).json("record.json")["history"][0]["loss"]
        for cell in ("none/0", "last_layer/0", "none/1")
    }
    # The first epoch is over before the first Cooling, which changes no prediction.
    assert losses["none/0"] == losses["last_layer/0"] != losses["none/1"]
    first = table[(table["epoch"] == 1) & (table["seed"] == 0)]
    assert first["mean_iou"].nunique() == first["pixel_accuracy"].nunique() == 1
    assert table[(table["epoch"] == 3) & (table["seed"] == 0)]["mean_iou"].nunique() == 2


def test_pictures_show_test_images_and_every_arm() -> None:
    pictures = segmentation_pixels(parameters())
    assert set(pictures) == {"images", "labels", "none", "last_layer"}
    assert pictures["images"].shape == (3, 32, 32, 3)
    files = sorted(Path("data/raw/letters/labels/test").glob("*.png"))
    chosen = [place * 10 // 8 for place in range(3)]
    for row, place in enumerate(chosen):
        stored = Image.open(files[place]).resize((32, 32), Image.Resampling.NEAREST)
        assert np.array_equal(pictures["labels"][row], np.asarray(stored))
    for arm in train_segmentation.ARMS:
        assert pictures[arm].dtype == np.uint8
        assert pictures[arm].shape == (3, 32, 32)
        assert pictures[arm].max() < 4
    assert segmentation_pixels(parameters(panels=0)) == {}


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def test_a_training_killed_between_two_coolings_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_letters(tmp_path)
    expected = {cell: open_artifact(OUTPUT / cell).files for cell in ("none/0", "last_layer/0")}
    monkeypatch.chdir(tmp_path)
    epochs: list[int] = []

    def kill_after_the_first_two(_: Job, done: int, __: int) -> None:
        epochs.append(done)
        if done < 3:
            raise Killed

    monkeypatch.setattr(Job, "progress", kill_after_the_first_two)
    for cell in expected:
        epochs.clear()
        [one] = [each for each in cells(parameters()) if each.name == cell]
        for _ in range(2):
            with pytest.raises(Killed):
                run_cells([one], output=OUTPUT, compute=SERIAL, seed=0)
        run_cells([one], output=OUTPUT, compute=SERIAL, seed=0)
        assert epochs == [1, 2, 3]
        assert open_artifact(OUTPUT / cell).files == expected[cell]


def test_a_training_that_diverges_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_letters(tmp_path)
    monkeypatch.chdir(tmp_path)
    explodes = {"name": "steps", "milestones": [1.0], "factor": 1e30}
    params = parameters(seeds=1, recipe={"schedule": explodes})
    run(params)
    table = segmentation_table(params)
    assert table[["arm", "epoch"]].to_numpy().tolist() == [
        ["none", 1],
        ["none", 2],
        ["last_layer", 1],
        ["last_layer", 2],
    ]
    ends = table[table["epoch"] == 2]
    assert ends[["mean_iou", "pixel_accuracy", "temperature"]].isna().all().all()
    assert open_artifact(OUTPUT / "none/0").json("record.json")["diverged"]
    assert all(bool(value.isfinite().all()) for value in weights("none/0").values())


def test_a_changed_label_makes_the_trainings_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_letters(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = cells(parameters())[0].parameters
    path = tmp_path / "data/raw/letters/labels/train/03.png"
    digest = digest_of_file(path)
    Image.fromarray(np.zeros((64, 64), dtype=np.uint8)).save(path)
    assert digest_of_file(path) != digest
    assert cells(parameters())[0].parameters != before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"void": 3}, "void: 3, is one of the 4 classes"),
        ({"crop": [30, 32]}, "multiple of 16"),
        ({"size": [32]}, "at least 2 items"),
        ({"recipe": {"flip": True}}, "labels do not move with images"),
        ({"panels": 9}, "less than or equal to 8"),
        ({"classes": 256}, "less than or equal to 255"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parameters(**changes)
