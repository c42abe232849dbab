"""The stages pretrain and embed, from drawn glyphs to embeddings."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from softmax_temperature.networks.backbones.networks import build_classifier
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.params import Data, Dataset, Embed, Fetch, Pretrain
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import new_artifact, open_artifact
from softmax_temperature.runner.cells import Cell, Job, fingerprint, run_cells
from softmax_temperature.runner.errors import CellsFailed
from softmax_temperature.stages import embed, fetch, pretrain
from tests.serial import SERIAL

RECIPE = {"epochs": 3, "batch_size": 16, "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0005}
DATASETS = ("digits", "glyphs-4")


class SomeParams:
    """The sections that the stages read."""

    def __init__(self, **backbones: Backbone) -> None:
        self.seed = 0
        self.data = Data(root="raw", download=False)
        self.datasets = {"digits": Dataset(train_limit=60, test_limit=20), "glyphs-4": Dataset()}
        self.fetch = Fetch.model_validate({"validation_fraction": 0.2, "image_size_limit": 512})
        self.embed = Embed.model_validate({"batch_size": 32, "precision": "float32"})
        self.pretrain = Pretrain.model_validate({"classes": 4, "images_per_class": 20, **RECIPE})
        self.backbones = backbones

    def embedded_pairs(self) -> list[tuple[str, str]]:
        return [(dataset, backbone) for dataset in DATASETS for backbone in self.backbones]


def backbone(**changes: Any) -> Backbone:
    cifar = {"library": "project", "architecture": "cifar_resnet", "arguments": {"blocks": 1}, "embedding": 64}
    grey = {"input_size": 8, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    return Backbone.model_validate({"weights": "untrained", **cifar, **grey, **changes})


def run_stage(cells: list[Cell], output: Path) -> None:
    run_cells(cells, output=output, compute=SERIAL, seed=0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with two prepared data sets."""
    monkeypatch.chdir(tmp_path)
    run_stage(fetch.cells(SomeParams()), embed.PREPARED)  # type: ignore[arg-type]
    return tmp_path


def embed_all(params: SomeParams, dataset: str = "digits") -> Path:
    run_stage(embed.cells(params), embed.OUTPUT)  # type: ignore[arg-type]
    return embed.OUTPUT / dataset


@pytest.mark.usefixtures("project")
def test_an_untrained_backbone_is_one_network_for_all_data_sets_and_differs_from_its_neighbour() -> None:
    params = SomeParams(floor=backbone(), other=backbone())
    folders = [embed_all(params, name) / "floor" for name in ("digits", "glyphs-4")]
    folders.append(embed.OUTPUT / "digits" / "other")
    digests = [open_artifact(folder).json("provenance.json")["weights_sha256"] for folder in folders]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.usefixtures("project")
def test_weights_of_the_pretrain_stage_are_an_input() -> None:
    spec = backbone(weights="pretrain")
    weights = build_classifier(spec, num_classes=3).state_dict()
    with new_artifact(embed.BACKBONES / "small", kind="backbones", about={}) as folder:
        save_file(weights, folder / embed.WEIGHTS)
    artifact = open_artifact(embed_all(SomeParams(small=spec)) / "small")
    recorded = open_artifact(embed.BACKBONES / "small").files[embed.WEIGHTS]
    assert artifact.json("provenance.json")["weights_sha256"] == recorded
    assert open_embeddings(artifact)["train"].data.shape == (50, 64)


@pytest.mark.usefixtures("project")
def test_changed_weights_change_the_cell() -> None:
    spec = backbone(weights="file", file="small.safetensors")
    Path("raw").mkdir()
    prints = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        save_file(build_classifier(spec, num_classes=3).state_dict(), "raw/small.safetensors")
        cell = embed.cells(SomeParams(small=spec))[0]  # type: ignore[arg-type]
        prints.append(fingerprint(cell, 0))
    assert prints[0] != prints[1]
    torch.manual_seed(2)
    save_file(build_classifier(spec, num_classes=3).state_dict(), "raw/small.safetensors")
    with pytest.raises(CellsFailed, match="the weights changed during the run"):
        run_stage([cell], embed.OUTPUT / "digits")


def pretrained(folder: Path) -> dict[str, bytes]:
    """Run a cell of the stage pretrain; returns the files it wrote."""
    tiny = {"library": "timm", "architecture": "resnet10t", "arguments": {"channels": [4, 8, 8, 16], "stem_width": 4}}
    params = SomeParams(small=backbone(**tiny, weights="pretrain", embedding=16, input_size=32))
    [cell] = pretrain.cells(params)  # type: ignore[arg-type]
    for name in ("output", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    job = Job(5, {}, folder / "output", folder / "work", "cpu", checkpoint_seconds=0.0)
    pretrain.run(job, cell.plan)
    return {path.name: path.read_bytes() for path in job.output.iterdir()}


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def test_an_interrupted_pretraining_resumes_and_writes_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_after_first(_: Job, done: int, __: int) -> None:
        epochs.append(done)
        if done == 1:
            raise Killed

    epochs: list[int] = []
    expected = pretrained(tmp_path / "whole")
    monkeypatch.setattr(Job, "progress", kill_after_first)
    with pytest.raises(Killed):
        pretrained(tmp_path / "killed")
    assert pretrained(tmp_path / "killed") == expected
    assert epochs == [1, 2, 3]
    assert set(expected) == {"weights.safetensors", "record.json"}
    record = json.loads(expected["record.json"])
    assert record["images"] == {"train": 72, "held_out": 8}
    assert 0 < record["final_train_loss"] < math.log(4)
