"""The U-Net's stage, from a folder of images to the table and the pictures of the paper, on the smallest parameters."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softmax_temperature.data.glyphs import downstream_pool, draw_scenes
from softmax_temperature.papers.cooling.collect import segmentation_pixels, segmentation_table
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.cooling import SEGMENTATION_ARMS, train_segmentation
from tests.pipeline.whole_runs import changed, finish, run, stored, weights, weights_are_finite, with_kills

LETTERS = Path("data/raw/letters")
SECTION = {"dataset": "letters", "classes": 4, "size": [32, 32], "train_limit": None, "test_limit": None, "panels": 3}
RECIPE = {"epochs": 3, "planned_epochs": 3, "batch_size": 4}
pytestmark = pytest.mark.usefixtures("in_project")


@pytest.fixture(scope="module")
def params(tiny: Params) -> Params:
    changes = {"data/root": "data/raw", "cooling/segmentation/": SECTION, "cooling/segmentation/recipe/": RECIPE}
    return changed(tiny, changes)


def write_data() -> None:
    images, labels = draw_scenes(downstream_pool()[:3], 26, seed=0)
    for part, rows in (("train", range(16)), ("test", range(16, 26))):
        for kind, pixels in (("images", images), ("labels", labels)):
            place = LETTERS / kind / part
            place.mkdir(parents=True)
            for row in rows:
                Image.fromarray(pixels[row]).save(place / f"{row:02}.png")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, params: Params) -> Path:
    return finish(tmp_path_factory.mktemp("segmentation"), lambda: (write_data(), run(params, train_segmentation)))


def test_a_row_for_every_epoch_of_every_training_and_the_first_is_before_the_first_cooling(params: Params) -> None:
    table = segmentation_table(params)
    assert list(table.columns[:3]) == ["arm", "seed", "epoch"]
    assert len(table) == 2 * 2 * 3
    assert not table.isna().any().any()
    assert table[["mean_iou", "pixel_accuracy"]].stack().between(0, 1).all()
    first, last = (table[(table["epoch"] == epoch) & (table["seed"] == 0)] for epoch in (1, 3))
    assert (first["mean_iou"].nunique(), last["mean_iou"].nunique()) == (1, 2)
    temperatures = table.groupby("arm")["temperature"]
    assert (temperatures.get_group("none") == 1).all()
    assert temperatures.get_group("last_layer").nunique() == 6
    last = table[(table["arm"] == "last_layer") & (table["seed"] == 1)].iloc[-1]
    assert weights(train_segmentation, "last_layer/1")["cooling_temperature"].item() == last["temperature"]
    assert "cooling_temperature" not in weights(train_segmentation, "none/1")


def test_records_say_what_was_trained() -> None:
    about, plain = (stored(train_segmentation, cell, "record") for cell in ("last_layer/1", "none/1"))
    assert about["images"] == {"train": 12, "validation": 4, "test": 10}
    assert (about["sides"], about["epochs_done"], about["diverged"]) == ([32, 32], 3, False)
    assert 0.9 * 4 * 32**2 < about["cooling_pixels"] < 4 * 32**2
    assert plain["cooling_pixels"] == 0


def test_pictures_show_test_images_and_every_arm(params: Params) -> None:
    pictures = segmentation_pixels(params)
    assert set(pictures) == {"images", "labels", *SEGMENTATION_ARMS}
    assert pictures["images"].shape == (3, 32, 32, 3)
    files = sorted((LETTERS / "labels/test").glob("*.png"))
    for row, place in enumerate(place * 10 // 8 for place in range(3)):
        image = Image.open(files[place]).resize((32, 32), Image.Resampling.NEAREST)
        assert np.array_equal(pictures["labels"][row], np.asarray(image))
    for arm in SEGMENTATION_ARMS:
        assert (pictures[arm].dtype, pictures[arm].shape) == (np.uint8, (3, 32, 32))
        assert pictures[arm].max() < 4
    assert segmentation_pixels(changed(params, {"cooling/segmentation/panels": 0})) == {}


@pytest.mark.parametrize("cell", ["none/0", "last_layer/0"])
def test_a_training_killed_between_two_coolings_gives_the_same_bytes(
    cell: str, params: Params, request: pytest.FixtureRequest
) -> None:
    expected = open_artifact(train_segmentation.output / cell).files
    request.getfixturevalue("fresh")
    assert with_kills(lambda: run(params, train_segmentation, [cell]), 2) == [1, 2, 3]
    assert open_artifact(train_segmentation.output / cell).files == expected


@pytest.mark.usefixtures("fresh")
def test_a_training_that_diverges_is_a_result(params: Params) -> None:
    explodes = {"name": "steps", "milestones": [1.0], "factor": 1e30}
    hot = changed(params, {"cooling/segmentation/recipe/": {"schedule": explodes}, "cooling/segmentation/seeds": 1})
    run(hot, train_segmentation)
    table = segmentation_table(hot)
    expected = [(arm, epoch) for arm in SEGMENTATION_ARMS for epoch in (1, 2)]
    assert [tuple(row) for row in table[["arm", "epoch"]].to_numpy()] == expected
    assert table[table["epoch"] == 2][["mean_iou", "pixel_accuracy", "temperature"]].isna().all().all()
    assert stored(train_segmentation, "none/0", "record")["diverged"]
    assert weights_are_finite(train_segmentation, "none/0")


@pytest.mark.usefixtures("fresh")
def test_a_changed_label_makes_the_trainings_stale_and_a_missing_one_is_refused(params: Params) -> None:
    before, path = train_segmentation.cells(params)[0].parameters, LETTERS / "labels/train/03.png"
    Image.fromarray(np.zeros((64, 64), dtype=np.uint8)).save(path)
    assert train_segmentation.cells(params)[0].parameters != before
    path.unlink()
    with pytest.raises(InputError, match="have no counterpart"):
        train_segmentation.cells(params)
