"""A change to any user's file that a cell reads is noticed.

`test_clones.py` tests that `dvc repro` notices it too.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from softmax_temperature.params import Params
from softmax_temperature.stages import REGISTRY, stages_of
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.tools.inputs import MISSING, input_digests, write_inputs
from softmax_temperature.tools.project import plan
from tests.conftest import ROOT
from tests.pipeline.whole_runs import changed, run
from tests.profiles import profile

RAW = Path("data/raw")


@pytest.fixture(scope="module")
def params() -> Params:
    """Profile smoke, changed so that it reads every kind of user's file."""
    smoke = profile("smoke")
    backbones = smoke.model_dump()["backbones"]
    of_file = backbones["untrained-16"] | {"weights": "file", "file": "net.pt"}
    of_package = backbones["untrained-16"] | {"weights": "package", "package": "net"}
    changes = {
        "datasets/": {"birds": {}, "leaves": {}, "dtd": {}, "cifar10": {}},
        "backbones/": {"untrained-16": of_file, "untrained-64": of_package},
        "focal/tasks/phrases/": {"embeddings": {"file": "glove.txt", "step": 0.0}},
        "focal/tasks/digits/": {"dataset": "cifar10", "gaussian_noise": 0.1},
        "focal/tasks/digits-as-written/dataset": "cifar10",
        "focal/translation/dataset": "multi30k",
        "cooling/segmentation/dataset": "camvid",
    }
    return changed(smoke, changes)


@pytest.fixture(autouse=True)
def _with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_birds(0)
    monkeypatch.syspath_prepend(str(tmp_path / RAW))
    write("net-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: net\n")
    write("net-0.1.dist-info/RECORD", "net/weights.pth,,\nnet/__init__.py,,\n")
    for name in (
        "net.pt",
        "net/weights.pth",
        "glove.txt",
        "CIFAR-10-C/gaussian_noise.npy",
        "CIFAR-10-C/labels.npy",
        "cifar-10-batches-py/data_batch_1",
        "dtd/dtd/labels/test1.txt",
        "dtd/dtd/images/dotted/1.jpg",
    ):
        write(name)
    for split in ("train", "validation", "test"):
        write(f"multi30k/{split}.en")
        write(f"multi30k/{split}.de")
    for kind, ending in (("images", "jpg"), ("labels", "png")):
        write(f"camvid/{kind}/train/1.{ending}")
        write(f"camvid/{kind}/test/2.{ending}")
    for leaf in ("oak", "elm"):
        for number in range(12):
            path = RAW / "leaves" / "all" / leaf / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 8), number).save(path)


def write(name: str, text: str = "first\n") -> None:
    path = RAW / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_birds(pixel: int) -> None:
    RAW.mkdir(parents=True, exist_ok=True)
    images = np.full((24, 4, 4, 3), pixel, dtype=np.uint8)
    labels = np.arange(24) % 4
    np.savez(
        RAW / "birds.npz",
        x_train=images,
        y_train=labels,
        x_test=images,
        y_test=labels,
    )


@pytest.mark.parametrize(
    ("file", "program", "item"),
    [
        ("birds.npz", "fetch", "birds"),
        ("leaves/all/oak/3.png", "fetch", "leaves"),
        ("dtd/dtd/images/dotted/1.jpg", "fetch", "dtd"),
        ("cifar-10-batches-py/data_batch_1", "fetch", "cifar10"),
        ("net.pt", "embed", "untrained-16"),
        ("net/weights.pth", "embed", "untrained-64"),
        ("glove.txt", "train_focal", "glove.txt"),
        ("CIFAR-10-C/labels.npy", "train_focal", "CIFAR-10-C"),
        ("multi30k/test.de", "train_focal", "multi30k"),
        ("camvid/labels/test/2.png", "train_cooling", "camvid"),
    ],
)
def test_a_replaced_or_removed_file_changes_what_its_program_depends_on(
    params: Params, file: str, program: str, item: str
) -> None:
    assert write_inputs(params) == [], "the first call lists no change"
    first = input_digests(params)
    assert len(first[program][item]) == 64
    write(file, "second\n")
    assert write_inputs(params) == [item]
    second = input_digests(params)
    (RAW / file).unlink()
    assert write_inputs(params) == [item]
    third = input_digests(params)
    entries = {entry[program][item] for entry in (first, second, third)}
    assert len(entries) == 3
    for name in first.keys() - {program}:
        assert first[name] == second[name] == third[name]


def parameters_of_cells(params: Params) -> dict[str, dict[str, Any]]:
    """The parameters of all cells, keyed by the stage's output folder and the cell's
    name.
    """
    found: dict[str, dict[str, Any]] = {}
    for program in dict.fromkeys(entry.program for entry in REGISTRY):
        for stage in stages_of(program):
            cells = stage.cells(params)
            found |= {f"{stage.name}/{cell.name}": cell.parameters for cell in cells}
    return found


@pytest.mark.parametrize(
    ("file", "stage"),
    [
        ("birds.npz", "fetch/birds"),
        ("leaves/all/oak/3.png", "fetch/leaves"),
        ("dtd/dtd/images/dotted/1.jpg", "fetch/dtd"),
        ("cifar-10-batches-py/data_batch_1", "fetch/cifar10"),
        ("net.pt", "embed/"),
        ("net/weights.pth", "embed/"),
        ("glove.txt", "train_focal/phrases/"),
        ("CIFAR-10-C/labels.npy", "train_focal/digits"),
        ("multi30k/test.de", "train_translation/"),
        ("camvid/labels/test/2.png", "train_segmentation/"),
    ],
)
def test_cells_follow_the_content_of_a_file_and_not_its_folder(
    params: Params, file: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = parameters_of_cells(params)
    shutil.move(RAW, "other disk")
    monkeypatch.syspath_prepend(str(Path("other disk").resolve()))
    moved = changed(params, {"data/root": "other disk", "data/download": True})
    assert parameters_of_cells(moved) == before
    (Path("other disk") / file).write_text("second\n")
    after = parameters_of_cells(moved)
    different = {name for name in before if after[name] != before[name]}
    assert different
    assert all(name.startswith(stage) for name in different), different


def test_a_file_that_no_parameter_names_changes_nothing(params: Params) -> None:
    write_inputs(params)
    write("other.npz")
    write("leaves/README.txt")
    assert write_inputs(params) == []


def test_files_of_a_paper_that_is_left_out_are_not_read(params: Params) -> None:
    only_cooling = params.model_copy(update={"papers": ["cooling"]})
    digests = input_digests(only_cooling)
    assert digests["train_focal"] == digests["embed"] == {}
    assert set(digests["train_cooling"]) == {"camvid"}
    # The stage fetch needs the data sets of Cooling, and those that no paper names.
    assert set(digests["fetch"]) == {"digits", "birds", "leaves", "dtd"}
    assert {cell.name for cell in fetch.cells(only_cooling)} == set(digests["fetch"])


def test_an_absent_data_root_is_listed_as_missing(params: Params) -> None:
    shutil.rmtree(RAW)
    digests = input_digests(params)
    assert digests["fetch"]["birds"] == digests["embed"]["untrained-16"] == MISSING


def of_digits(**datasets: Any) -> Params:
    """Profile smoke with one paper, which reads digits, and with more data sets."""
    smoke = profile("smoke")
    vgg = smoke.cooling.model_dump()["experiments"]["digits-vgg"]
    changes = {
        "papers": ["cooling"],
        "datasets": {"digits": {}, **datasets},
        "compute/": {"engine": "serial"},
        "cooling/experiments": {"digits-vgg": vgg},
        "cooling/segmentation": None,
    }
    return changed(smoke, changes)


def replace_archive() -> None:
    write_birds(9)


def replace_image() -> None:
    Image.new("L", (8, 8), 200).save(RAW / "leaves/all/oak/3.png")


def remove_image() -> None:
    (RAW / "leaves/all/oak/3.png").unlink()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (replace_archive, "birds"),
        (replace_image, "leaves"),
        (remove_image, "leaves"),
    ],
)
def test_plan_and_fetch_notice_a_changed_file(
    change: Callable[[], None], name: str
) -> None:
    shutil.copy(ROOT / "dvc.yaml", ".")
    own = of_digits(birds={}, leaves={})
    run(own, fetch)
    before = fetch.result(name).digest
    assert planned(own) == ()
    change()
    assert planned(own) == (name,)
    run(own, fetch)
    assert fetch.result(name).digest != before
    assert planned(own) == ()


def planned(params: Params) -> tuple[str, ...]:
    [stage] = [stage for stage in plan(params) if stage.stage == "fetch"]
    return stage.to_run
