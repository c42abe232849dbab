"""Embeddings: the same in a stream as at once, stored with their rows, and refused when they point nowhere."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from softmax_temperature.data.splits import LeakError
from softmax_temperature.networks.backbones.networks import build_classifier
from softmax_temperature.networks.backbones.preprocessing import Preprocess
from softmax_temperature.networks.embeddings import EMBEDDINGS, extract, open_embeddings, write_embeddings
from softmax_temperature.params import Compute, Data, Dataset, Embed, Fetch
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import new_artifact, open_artifact
from softmax_temperature.runner.cells import CellsFailed, fingerprint, run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.fingerprint import import_closure
from softmax_temperature.stages import embed, fetch

PREPROCESS = Preprocess(16, 16, "bilinear", (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
DIM = 6


def tiny_network() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, DIM, 5, stride=3), nn.BatchNorm2d(DIM), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers).eval().requires_grad_(False)


def images(count: int = 23) -> Tensor:
    return torch.randint(0, 256, (count, 1, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def in_batches(size: int, **options: Any) -> Tensor:
    return torch.cat(list(extract(tiny_network(), PREPROCESS, images().split(size), **options)))


# ---- extraction


def test_a_stream_gives_what_one_batch_gives() -> None:
    at_once = tiny_network()(PREPROCESS(images()))
    assert in_batches(23).dtype == torch.float32
    for size in (1, 4, 23):
        torch.testing.assert_close(in_batches(size), at_once, rtol=1e-5, atol=1e-6)


def test_batches_are_taken_one_at_a_time() -> None:
    taken: list[int] = []

    def counted() -> Any:
        for batch in images().split(5):
            taken.append(len(batch))
            yield batch

    stream = extract(tiny_network(), PREPROCESS, counted())
    next(stream)
    assert taken == [5]


def test_half_precision_changes_the_direction_little_and_is_stored_in_full() -> None:
    half, full = in_batches(8, precision="bfloat16"), in_batches(8)
    assert half.dtype == torch.float32
    assert not torch.equal(half, full)
    assert torch.cosine_similarity(half, full).min() > 0.999


def test_the_caller_keeps_its_gradients() -> None:
    stream = extract(tiny_network(), PREPROCESS, images().split(5))
    next(stream)
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


class Spoiled(nn.Module):
    """Gives one row of the third batch a value of choice."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value, self.calls = value, 0

    def forward(self, batch: Tensor) -> Tensor:
        self.calls += 1
        embeddings = torch.ones(len(batch), DIM)
        if self.calls == 3:
            embeddings[1] = self.value
        return embeddings


@pytest.mark.parametrize(("value", "fault"), [(math.nan, "not finite"), (-math.inf, "not finite"), (0.0, "all zero")])
def test_an_embedding_without_direction_is_named_by_its_row(value: float, fault: str) -> None:
    # Batches of 5: the second row of the third batch is row 11.
    with pytest.raises(InputError, match=f"birds/train with tiny: the embedding of row 11 is {fault}"):
        list(extract(Spoiled(value), PREPROCESS, images().split(5), where="birds/train with tiny"))


# ---- storage


def test_embeddings_are_read_back_with_their_split(tmp_path: Path) -> None:
    sizes = {"train": 7, "validation": 2, "test": 3}
    stored = {split: torch.randn(size, DIM) for split, size in sizes.items()}
    rows = {split: (torch.arange(size) % 2, torch.arange(size) * 10) for split, size in sizes.items()}
    with new_artifact(tmp_path / "birds", kind="embed", about={}) as folder:
        about = {"dataset": "birds", "embedding": DIM}
        write_embeddings(folder, rows, lambda split: stored[split].split(2), about)  # type: ignore[arg-type]
    parts = open_embeddings(open_artifact(tmp_path / "birds"))
    assert list(parts) == ["train", "validation", "test"]
    for split, part in parts.items():
        assert (part.dataset, part.split) == ("birds", split)
        assert torch.equal(part.data, stored[split])
        assert torch.equal(part.labels, rows[split][0])
        assert torch.equal(part.index, rows[split][1])
    with pytest.raises(LeakError):
        parts["test"].for_fitting()


def test_too_few_embeddings_are_an_error(tmp_path: Path) -> None:
    rows = {"train": (torch.arange(3), torch.arange(3))}
    with pytest.raises(ValueError, match=r"embed must give \(n, 6\) embeddings for each split"):
        write_embeddings(tmp_path, rows, lambda _: [torch.ones(2, DIM)], {"dataset": "birds", "embedding": DIM})  # type: ignore[arg-type]


# ---- the stage


DATASETS = ("digits", "glyphs-4")


class SomeParams:
    """The sections that the stages read."""

    def __init__(self, **backbones: Backbone) -> None:
        self.seed = 0
        self.data = Data(root="raw", download=False)
        self.datasets = {"digits": Dataset(train_limit=60, test_limit=20), "glyphs-4": Dataset()}
        self.fetch = Fetch.model_validate({"validation_fraction": 0.2, "image_size_limit": 512})
        self.embed = Embed.model_validate({"batch_size": 32, "precision": "float32"})
        self.backbones = backbones

    def embedded_pairs(self) -> list[tuple[str, str]]:
        return [(dataset, backbone) for dataset in DATASETS for backbone in self.backbones]


def backbone(**changes: Any) -> Backbone:
    cifar = {"library": "project", "architecture": "cifar_resnet", "arguments": {"blocks": 1}, "embedding": 64}
    grey = {"input_size": 8, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    return Backbone.model_validate({"weights": "untrained", **cifar, **grey, **changes})


def planned(params: SomeParams, dataset: str = "digits") -> list[Cell]:
    cells = embed.cells(params)  # type: ignore[arg-type]
    return [cell for cell in cells if cell.name.startswith(f"{dataset}/")]


def run_stage(cells: list[Cell], output: Path) -> None:
    options = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu"}
    compute = Compute.model_validate({**options, "checkpoint_seconds": 0, "ray_address": None, "gpus_per_cell": 0})
    run_cells(cells, output=output, compute=compute, seed=0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with two prepared data sets."""
    monkeypatch.chdir(tmp_path)
    for name in DATASETS:
        run_stage(fetch.cells(SomeParams(), name), embed.PREPARED / name)  # type: ignore[arg-type]
    return tmp_path


def embed_all(params: SomeParams, dataset: str = "digits") -> Path:
    run_stage(embed.cells(params), embed.OUTPUT)  # type: ignore[arg-type]
    return embed.OUTPUT / dataset


@pytest.mark.usefixtures("project")
def test_images_go_through_an_untrained_backbone() -> None:
    artifact = open_artifact(embed_all(SomeParams(floor=backbone())) / "floor", kind="embed")
    parts = open_embeddings(artifact)
    assert {split: tuple(part.data.shape) for split, part in parts.items()} == {
        "train": (50, 64),
        "validation": (10, 64),
        "test": (20, 64),
    }
    provenance = artifact.json("provenance.json")
    assert provenance["dataset"] == "digits"
    assert provenance["backbone"] == "floor"
    assert provenance["weights"] == "untrained"
    assert provenance["precision"] == "float32"
    assert len(provenance["weights_sha256"]) == 64


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
    weights = build_classifier(spec, classes=3).state_dict()
    with new_artifact(embed.BACKBONES / "small", kind="backbones", about={}) as folder:
        save_file(weights, folder / embed.WEIGHTS)
    [cell] = planned(SomeParams(small=spec))
    assert cell.inputs["weights"] == embed.BACKBONES / "small"
    artifact = open_artifact(embed_all(SomeParams(small=spec)) / "small")
    recorded = open_artifact(embed.BACKBONES / "small").files[embed.WEIGHTS]
    assert artifact.json("provenance.json")["weights_sha256"] == recorded
    assert load_file(artifact.path(EMBEDDINGS))["train.embeddings"].shape == (50, 64)


@pytest.mark.usefixtures("project")
def test_changed_weights_change_the_cell() -> None:
    spec = backbone(weights="file", file="small.safetensors")
    Path("raw").mkdir()
    prints = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        save_file(build_classifier(spec, classes=3).state_dict(), "raw/small.safetensors")
        [cell] = planned(SomeParams(small=spec))
        prints.append(fingerprint(cell, 0))
    assert prints[0] != prints[1]
    torch.manual_seed(2)
    save_file(build_classifier(spec, classes=3).state_dict(), "raw/small.safetensors")
    with pytest.raises(CellsFailed, match="the weights changed during the run"):
        run_stage([cell], embed.OUTPUT / "digits")
