"""Missing data and weights are listed first and skipped; everything else runs."""

import json
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pandas as pd
import pytest
from ruamel.yaml import YAML

from softmax_temperature.data import torchvision_sets
from softmax_temperature.data.glyphs import read_glyphs
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.params import Params, read_params
from softmax_temperature.runner.errors import MissingInput
from softmax_temperature.stages import inputs
from softmax_temperature.stages.inputs import (
    download_missing,
    missing_lines,
    without_missing,
)
from softmax_temperature.tools import needed_data
from softmax_temperature.tools.programs import stage_program
from softmax_temperature.tools.project import plan, summary
from tests.conftest import ROOT
from tests.pipeline.whole_runs import changed
from tests.profiles import profile
from tests.programs import run_program

NAMES = ["birds", "svhn", "cifar10", "birds.pt", "glove.txt", "wmt14_en_de", "ade20k"]


def with_gaps(smoke: Params) -> Params:
    """Profile smoke, changed so that it needs a missing item of every kind."""
    content = smoke.model_dump()
    backbones = content["backbones"]
    tasks = content["focal"]["tasks"]
    experiments = content["cooling"]["experiments"]
    sweeps = content["temperature_check"]["sweeps"]
    arms = {"arms": ["CE"]}
    printed = {"printed_dataset": "CIFAR-10", "printed_network": "ResNet-50"}
    of_images = {"network": "resnet8-tiny", **arms}
    new_tasks = {
        "digits": tasks["digits"]
        | arms
        | {"out_of_distribution": ["glyphs-12", "svhn"]},
        "digits-birds": {"dataset": "birds", **of_images},
        "cifar10": {"dataset": "cifar10", **of_images, **printed},
        "phrases-glove": tasks["phrases"]
        | arms
        | {"embeddings": {"file": "glove.txt", "step": 0.0}},
    }
    vgg = experiments["digits-vgg"] | {"schedules": ["none"], "seeds": 1}
    wrn = sweeps["wrn"]
    return changed(
        smoke,
        {
            "compute/": {"engine": "serial", "workers": 1},
            "datasets/": {"birds": {}, "svhn": {}, "cifar10": {}},
            "backbones/": {
                "bird-net": backbones["untrained-16"]
                | {"weights": "file", "file": "birds.pt"}
            },
            "classifier_temperature/datasets": ["digits", "birds"],
            "classifier_temperature/backbones": ["untrained-16", "bird-net"],
            "classifier_temperature/rescaling/": {
                "dataset": "birds",
                "backbone": "bird-net",
            },
            "focal/tasks": new_tasks,
            "focal/seeds": 1,
            "focal/translation/dataset": "wmt14_en_de",
            "cooling/experiments": {
                "digits-vgg": vgg,
                "cifar10-vgg": vgg | {"dataset": "cifar10"},
            },
            "cooling/segmentation/dataset": "ade20k",
            "temperature_check/sweeps": {
                "wrn": wrn,
                "birds": wrn | {"dataset": "birds"},
            },
        },
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder with params.yaml, and with a profile of the same content."""
    folder = tmp_path_factory.mktemp("gaps")
    smoke = profile("smoke")
    content = with_gaps(smoke).model_dump(mode="json")
    content["profile"] = "gaps"
    content["notebooks"]["study"] = "gaps"
    (folder / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text())
    YAML().dump(content, folder / "params.yaml")
    (folder / "profiles").mkdir()
    YAML().dump({}, folder / "profiles" / "gaps.yaml")
    YAML().dump(content, folder / "profiles" / "defaults.yaml")
    return folder


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def test_the_stage_plan_and_make_data_print_the_same_list_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    params = read_params(Path("params.yaml"))
    lines = missing_lines(params)
    assert len(lines) == len(NAMES)
    for name in NAMES:
        assert sum(name in line.split(": ")[0] for line in lines) >= 1, name
    said = summary(plan(params), params).splitlines()
    assert said[: len(lines)] == [f"not run: data missing: {line}" for line in lines]
    assert needed_data.main(["gaps"]) == 1
    printed = capsys.readouterr().out
    absent = [line for line in printed.splitlines() if "MISSING" in line]
    assert len(absent) == len(lines)
    for line in lines:
        assert any(line in each for each in absent), line
    assert run_program(ROOT / "pipeline/inputs.py") == 0
    assert capsys.readouterr().err.splitlines() == said[: len(lines)]


def test_cells_that_need_no_missing_data_are_planned() -> None:
    plans = {stage.stage: stage for stage in plan(read_params(Path("params.yaml")))}
    assert not [stage.note for stage in plans.values() if stage.note]
    assert plans["fetch"].to_run == ("digits", "phrases", "glyphs-12", "glyphs-20")
    assert plans["embed"].to_run == ("digits/untrained-16",)
    assert plans["rescaling"].cells == 0
    assert plans["train_focal"].to_run == ("digits/CE/0",)
    assert plans["train_translation"].cells == plans["train_segmentation"].cells == 0
    names = {cell.split("/")[0] for cell in plans["train_cooling"].to_run}
    assert names == {"digits-vgg"}
    names = {cell.split("/")[0] for cell in plans["train_temperature_check"].to_run}
    assert names == {"wrn"}


@pytest.mark.parametrize(
    ("program", "made"),
    [
        ("fetch", ["prepared/digits", "prepared/glyphs-20"]),
        ("embed", ["embeddings/digits/untrained-16"]),
        ("train_focal", ["focal/training/digits/CE/0", "focal/evaluation/digits/CE/0"]),
        ("train_cooling", ["cooling/training/digits-vgg/none/none/0"]),
    ],
)
def test_a_program_runs_all_that_it_can(program: str, made: list[str]) -> None:
    assert stage_program(program, None, []) == 0
    for cell in made:
        assert (Path("data") / cell / "manifest.json").is_file()


class HalfANetwork:
    """A fake torchvision that downloads SVHN, but only one file of CIFAR-10."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def load(self, name: str, root: Path, *, download: bool) -> RawDataset:
        path = root / "test_32x32.mat"
        if name == "svhn" and path.is_file():
            return read_glyphs("glyphs-12", seed=0)
        if not download:
            raise RuntimeError("not found")
        self.tried.append(name)
        root.mkdir(parents=True, exist_ok=True)
        if name == "svhn":
            path.write_bytes(b"svhn")
            return self.load(name, root, download=False)
        part = root / "cifar-10-batches-py/data_batch_1"
        part.parent.mkdir()
        part.write_bytes(b"a part")
        raise URLError("no route to host")


def test_a_failed_download_is_listed_first_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    smoke = profile("smoke")
    params = changed(with_gaps(smoke), {"data/download": True})
    YAML().dump(params.model_dump(mode="json"), Path("params.yaml"))
    half_a_network = HalfANetwork()
    monkeypatch.setattr(torchvision_sets, "_load", half_a_network.load)
    assert not [line for line in missing_lines(params, to_come=True) if "svhn" in line]
    lines = download_missing(params)
    assert half_a_network.tried == ["svhn", "cifar10"]
    [line] = [line for line in lines if "cifar10" in line]
    assert line.startswith("data set cifar10: the download failed")
    assert not list(Path(params.data.root).glob("cifar-10-batches-py/*"))
    assert not [line for line in lines if "svhn" in line]
    # The stage fetch also reports the missing item, and prepares everything else.
    assert stage_program("fetch", None, []) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("not run: data missing: ")
    assert any("cifar10: the download failed" in each for each in said)
    prepared = {path.name for path in Path("data/prepared").iterdir()}
    assert prepared == {"digits", "phrases", "glyphs-12", "glyphs-20", "svhn"}
    kept = without_missing(params).focal.tasks
    assert "cifar10" not in kept
    assert "svhn" in kept["digits"].out_of_distribution


def collected(paper: str) -> Path:
    """Collect a paper's results without drawing figures, and return their folder."""
    folder = Path("results/gaps") / paper
    module: Any = __import__(
        f"softmax_temperature.papers.{paper}.collect", fromlist=["collect"]
    )
    (Path("data/published")).parent.mkdir(exist_ok=True)
    if not Path("data/published").exists():
        Path("data/published").symlink_to(ROOT / "data/published")
    module.collect(read_params(Path("params.yaml")), folder)
    return folder


def test_tables_say_that_data_are_missing() -> None:
    for program in ("fetch", "train_focal"):
        assert stage_program(program, None, []) == 0
    folder = collected("focal")
    runs = pd.read_csv(folder / "runs.csv")
    assert set(runs["dataset"]) == {"digits", "clusters"}
    table = read_csv(folder / "tables/table_1.csv").set_index("dataset")
    printed = table[table["published"].notna()]
    of_cifar = printed[printed.index == "CIFAR-10"].set_index("network")["status"]
    assert set(of_cifar["ResNet-50"]) == {"not run: data missing"}
    assert set(of_cifar["DenseNet-121"]) == {"not run: profile paper"}
    assert table.loc["birds", "status"] == "not run: data missing"
    assert (folder / "tables/not_run.csv").is_file()
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["verdict"] for claim in claims} >= {"not tested"}


@pytest.mark.parametrize("paper", ["cooling", "classifier_temperature"])
def test_a_paper_without_any_data_is_collected_too(
    paper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "missing_items", all_missing)
    folder = collected(paper)
    assert read_csv(folder / "runs.csv").empty
    assert len(read_csv(folder / "tables/not_run.csv"))
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["verdict"] for claim in claims} == {"not tested"}
    assert {claim["note"] for claim in claims} == {"data missing"}


def all_missing(params: Params, **_: bool) -> list[tuple[inputs.Item, MissingInput]]:
    fault = MissingInput("is not there", where="here", remedy="Put it there.")
    return [(item, fault) for item in inputs.input_items(params)]
