"""The stages fetch, pretrain and embed turn drawn glyphs into embeddings."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from softmax_temperature.networks.backbone_networks import build_classifier
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import open_artifact, write_json
from softmax_temperature.runner.cells import CellsFailed, fingerprint, run_cells
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.pretraining import pretrain
from softmax_temperature.tools.programs import stage_program
from tests.pipeline.whole_runs import changed, run, with_kills

CIFAR = {
    "library": "project",
    "architecture": "cifar_resnet",
    "arguments": {"blocks": 1},
    "embedding": 64,
}
GREY = {"input_size": 8, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
DATASETS = ["digits", "glyphs-4"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def params_with(tiny: Params, **backbones: dict[str, Any]) -> Params:
    """Parameters with only these backbones, each described by a keyword argument."""
    own: dict[str, Any] = {
        name: {"weights": "untrained", **CIFAR, **GREY, **own}
        for name, own in backbones.items()
    }
    changes = {
        "papers": ["classifier_temperature"],
        "data/root": "raw",
        "datasets": {"digits": {"train_limit": 60, "test_limit": 20}, "glyphs-4": {}},
        "backbones": own,
        "classifier_temperature/": {"datasets": DATASETS, "backbones": list(own)},
        "classifier_temperature/rescaling/": {
            "dataset": "digits",
            "backbone": next(iter(own)),
        },
        "pretrain/": {
            "classes": 4,
            "images_per_class": 20,
            "epochs": 3,
            "batch_size": 16,
            "lr": 0.1,
        },
    }
    return changed(tiny, changes)


def embed_all(params: Params) -> Path:
    run(params, fetch)
    run(params, embed)
    return embed.output


def test_an_untrained_backbone_is_one_network_for_all_data_sets_unlike_its_neighbour(
    tiny: Params,
) -> None:
    output = embed_all(params_with(tiny, floor={}, other={}))
    folders = [
        output / name for name in ("digits/floor", "glyphs-4/floor", "digits/other")
    ]
    digests = [
        open_artifact(folder).json("provenance.json")["weights_sha256"]
        for folder in folders
    ]
    assert digests[0] == digests[1] != digests[2]


def test_changed_weights_change_the_cell(tiny: Params) -> None:
    params = params_with(tiny, small={"weights": "file", "file": "small.safetensors"})

    def write_weights(seed: int, spec: Backbone = params.backbones["small"]) -> None:
        torch.manual_seed(seed)
        save_file(
            build_classifier(spec, num_classes=3).state_dict(), "raw/small.safetensors"
        )

    Path("raw").mkdir()
    run(params, fetch, ["digits"])
    prints = []
    for seed in (0, 1):
        write_weights(seed)
        cell = embed.cells(params)[0]
        prints.append(fingerprint(cell, 0))
    assert prints[0] != prints[1]
    write_weights(2)
    with pytest.raises(CellsFailed, match="the backbone's weights changed"):
        run_cells([cell], output=embed.output, compute=params.compute, seed=0)


def test_an_interrupted_pretraining_resumes_and_writes_the_same_bytes(
    tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = {
        "library": "timm",
        "architecture": "resnet10t",
        "arguments": {"channels": [4, 8, 8, 16], "stem_width": 4},
    }
    params = params_with(
        tiny, small={**narrow, "weights": "pretrain", "embedding": 16, "input_size": 32}
    )
    run(params, pretrain)
    whole = open_artifact(pretrain.output / "small")
    assert set(whole.files) == {"weights.safetensors", "record.json"}
    record = whole.json("record.json")
    assert record["images"] == {"train": 72, "held_out": 8}
    assert 0 < record["final_train_loss"] < math.log(4)
    embedded = open_artifact(embed_all(params) / "digits/small")
    assert (
        embedded.json("provenance.json")["weights_sha256"]
        == whole.files["weights.safetensors"]
    )
    assert open_embeddings(embedded)["train"].data.shape[1:] == (16,)
    (tmp_path / "killed").mkdir()
    monkeypatch.chdir(tmp_path / "killed")
    assert with_kills(lambda: run(params, pretrain), 1) == [1, 2, 3]
    assert open_artifact(pretrain.output / "small").files == whole.files


def test_a_stages_program_runs_its_cells_removes_others_and_names_those_that_failed(
    tiny: Params, capsys: pytest.CaptureFixture[str]
) -> None:
    content = tiny.model_dump(mode="json")
    write_json(Path("params.yaml"), content)  # JSON is valid YAML.
    (fetch.output / "yesterday").mkdir(parents=True)
    assert stage_program("fetch", None, ()) == 0
    assert {path.name for path in fetch.output.iterdir()} == set(content["datasets"])
    damaged = Path(content["data"]["root"]) / "birds.npz"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"no archive")
    content["datasets"]["birds"] = {}
    write_json(Path("params.yaml"), content)
    assert stage_program("fetch", None, ()) == 1
    said = capsys.readouterr().err
    assert f"1 of {len(content['datasets'])} cells failed" in said
    assert f"  birds: {damaged}: " in said
