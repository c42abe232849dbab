"""`suggest` as a user calls it: the numbers it gives, where they come from, and what it refuses."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from softmax_temperature.cosine_classifier import train_temperature_grid
from softmax_temperature.dataset_statistics import STATISTICS, describe
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli
from softmax_temperature.tools.suggest import (
    EmbeddingFiles,
    Options,
    Wish,
    suggest_for_files,
    suggest_for_images,
    summary,
)
from softmax_temperature.tools.suggest.study import shipped_study

from .conftest import clusters

UNTRAINED = """
seed: 0
data: {root: .}
backbones:
  tiny:
    library: project
    architecture: cifar_resnet
    weights: untrained
    embedding: 64
    arguments: {blocks: 1}
    input_size: 32
    mean: [0.2, 0.2, 0.2]
    std: [0.2, 0.2, 0.2]
"""


@pytest.fixture
def embeddings(tmp_path: Path) -> Path:
    test = {f"test_{key}": array for key, array in clusters(40, seed=1).items()}
    np.savez(tmp_path / "a.npz", allow_pickle=False, **clusters(), **test)  # type: ignore[arg-type]
    return tmp_path / "a.npz"


@pytest.fixture
def params(tmp_path: Path) -> Path:
    (tmp_path / "params.yaml").write_text(UNTRAINED)
    return tmp_path / "params.yaml"


def suggest(path: Path, **options: Any) -> dict[str, Any]:
    return suggest_for_files(EmbeddingFiles(path), Options(device="cpu", **options))


def test_the_prediction_is_the_heuristic_s_of_the_training_rows_statistics(embeddings: Path) -> None:
    found = suggest(embeddings)
    rows = clusters()
    statistics = describe(torch.from_numpy(rows["embeddings"]).float(), torch.from_numpy(rows["labels"]))
    assert found["statistics"] == statistics
    estimate = shipped_study().heuristic.predict(statistics)
    prediction = found["prediction"]
    assert [prediction[key] for key in ("inverse_temperature", "low", "high", "inside")] == [
        estimate.inverse_temperature,
        estimate.low,
        estimate.high,
        estimate.inside,
    ]
    assert found["rows"] == {"train": 60, "test": 40, "described": 60, "held_out": False}
    assert found["search"] is None


def test_rules_of_thumb_by_hand(embeddings: Path) -> None:
    rules = suggest(embeddings)["rules"]
    assert rules["square root of dimension"] == math.sqrt(8)
    # Half the logarithm of two over 0.0010005, which is e to the power of 0.001, less one.
    assert rules["lower bound from classes"] == pytest.approx(3.80020)
    assert (rules["none (1)"], rules["median of the study"]) == (1.0, 35.0)


def test_data_outside_the_range_are_said_to_be(embeddings: Path) -> None:
    found = suggest(embeddings)
    used = found["prediction"]["used"]
    outside = {name for name, one in used.items() if not one["low"] <= one["value"] <= one["high"]}
    assert outside
    assert not found["prediction"]["inside"]
    assert outside <= set(found["outside"])
    assert "n_samples" in found["outside"]
    text = summary(found)
    assert "the interval promises nothing" in text
    assert text.count("OUTSIDE") == len(outside)
    assert all(name in text for name in STATISTICS)


def test_the_search_is_the_grid_s_own_with_the_rules_beside_it(embeddings: Path) -> None:
    found = suggest(embeddings, verify=True, epochs=6, seed=3)
    search, settings = found["search"], shipped_study().search
    files = np.load(embeddings)
    train, test = (
        (torch.from_numpy(files[f"{part}embeddings"]).float(), torch.from_numpy(files[f"{part}labels"]))
        for part in ("", "test_")
    )
    grid = train_temperature_grid(
        train, test, settings.inverse_temperatures, epochs=6, batch_size=2048, lr=3.0, momentum=0.9, seed=3
    )
    assert search["best_inverse_temperature"] == grid.best_inverse_temperature
    assert tuple(search["plateau"]) == grid.plateau
    assert search["accuracy"] == pytest.approx(grid.accuracy[0].tolist())
    assert search["best_accuracy"] == pytest.approx(grid.accuracy.max().item())
    assert search["standard_error"] == pytest.approx(
        math.sqrt(search["best_accuracy"] * (1 - search["best_accuracy"]) / 40)
    )
    alone = train_temperature_grid(
        train, test, list(found["rules"].values()), epochs=6, batch_size=2048, lr=3.0, momentum=0.9, seed=3
    )
    for number, (name, one) in enumerate(search["rules"].items()):
        assert one["inverse_temperature"] == found["rules"][name]
        assert one["accuracy"] == pytest.approx(alone.accuracy[0, number].item())
        assert one["accuracy_lost"] == pytest.approx(search["best_accuracy"] - one["accuracy"])
        assert one["on_plateau"] == (grid.plateau[0] <= one["inverse_temperature"] <= grid.plateau[1])
    assert "Searched 51: the best is" in summary(found)
    json.dumps(found, allow_nan=False)


def test_held_out_rows_are_not_described(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **clusters())  # type: ignore[arg-type]
    found = suggest(tmp_path / "a.npz", verify=True, epochs=1)
    assert found["rows"] == {"train": 45, "test": 15, "described": 45, "held_out": True}
    assert found["statistics"]["n_samples"] == 45
    assert suggest(tmp_path / "a.npz")["statistics"]["n_samples"] == 60
    assert "15 rows of all classes were held out" in summary(found)


@pytest.mark.parametrize("parts", [("",), ("train", "test"), ("all",)])
def test_images_become_embeddings(
    image_folder: Callable[..., Path], params: Path, parts: tuple[str, ...], tmp_path: Path
) -> None:
    folder, save = image_folder(parts=parts), tmp_path / "saved.npz"
    wish = Wish("tiny", None, download=False, params=params)
    found = suggest_for_images(folder, wish, Options(device="cpu"), save=save)
    test = 12 if "test" in parts else 0
    assert found["rows"] == {"train": 12, "test": test, "described": 12, "held_out": False}
    assert found["backbone"]["architecture"] == "cifar_resnet"
    assert found["statistics"]["dim"] == 64
    assert suggest(save)["statistics"] == found["statistics"]
    fewer = suggest_for_images(folder, wish, Options(device="cpu"), limit=8)
    assert (fewer["rows"]["train"], fewer["statistics"]["n_classes"]) == (8, 2)


def test_a_network_of_a_library_with_weights_of_the_user_s(image_folder: Callable[..., Path], tmp_path: Path) -> None:
    import timm

    torch.manual_seed(0)
    network = timm.create_model("test_resnet.r160_in1k", pretrained=False)
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    folder = image_folder()
    wish = Wish("test_resnet", tmp_path / "weights.safetensors", download=False, params=tmp_path / "none.yaml")
    saved = tmp_path / "saved.npz"
    provenance = suggest_for_images(folder, wish, Options(device="cpu"), save=saved)["backbone"]
    assert provenance["transform"]["size"] == 160
    config = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**config, is_training=False)
    network.eval().reset_classifier(0)
    image = Image.open(folder / "bright" / "0.png")
    with torch.inference_mode():
        expected = network(transform(image)[None])[0]
    found = torch.from_numpy(np.load(saved)["embeddings"][0])
    # Resizing rounds to whole grey levels, one of which is 1/58 here.
    assert torch.nn.functional.cosine_similarity(found, expected, dim=0) > 0.999


BAD_WISHES = {
    "mistyped": (Wish("tinny", None, download=False, params=Path("params.yaml")), "Did you mean 'tiny'?"),
    "unknown network": (Wish("resnet1888", None, download=False, params=Path("none")), "unknown network 'resnet1888'"),
    "unknown library": (Wish("keras/vgg16", None, download=False, params=Path("none")), "unknown library 'keras'"),
    "unknown tag": (Wish("resnet18.x", None, download=False, params=Path("none")), "timm/resnet18: no weights 'x'"),
    "not here": (Wish("resnet18", None, download=False, params=Path("none")), "not on this machine"),
    "no weights": (Wish("resnet18", Path("no.safetensors"), download=False, params=Path("none")), "no such file"),
    "both": (Wish("tiny", Path("no.safetensors"), download=False, params=Path("params.yaml")), "--weights: is given"),
}


def test_weights_that_are_not_here_are_asked_for_by_the_command_s_own_options(
    image_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    wish = Wish("resnet18", None, download=False, params=tmp_path / "none")
    with pytest.raises(InputError, match=r"Give --download, .* or give a file of weights with --weights"):
        suggest_for_images(image_folder(), wish, Options(device="cpu"))


@pytest.mark.parametrize("case", BAD_WISHES)
def test_a_backbone_that_cannot_be_had_is_one_line(
    image_folder: Callable[..., Path], params: Path, monkeypatch: pytest.MonkeyPatch, case: str, tmp_path: Path
) -> None:
    wish, says = BAD_WISHES[case]
    monkeypatch.chdir(params.parent)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError) as caught:
        suggest_for_images(image_folder(), wish, Options(device="cpu"))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def no_images(folder: Path) -> None:
    for kind in ("a", "b"):
        (folder / kind).mkdir(parents=True)


def loose_images(folder: Path) -> None:
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a.png")


def train_alone(folder: Path) -> None:
    (folder / "train" / "a").mkdir(parents=True)


def damaged(folder: Path) -> None:
    for kind in ("a", "b"):
        (folder / kind).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (8, 8), "red").save(folder / kind / f"{number}.png")
    (folder / "b" / "1.png").write_bytes(b"\x89PNG")


BAD_FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (Path.mkdir, "has 0 class folders with images"),
    "without images": (no_images, "no image files"),
    "without classes": (loose_images, "has 0 class folders with images"),
    "train alone": (train_alone, "holds only train"),
    "damaged image": (damaged, "1.png: not a readable image"),
}


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_a_folder_that_is_none_of_classes_is_one_line(tmp_path: Path, params: Path, case: str) -> None:
    make, says = BAD_FOLDERS[case]
    make(tmp_path / "folder")
    wish = Wish("tiny", None, download=False, params=params)
    with pytest.raises(InputError) as caught:
        suggest_for_images(tmp_path / "folder", wish, Options(device="cpu"), save=tmp_path / "saved.npz")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "saved.npz").exists()


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"epochs": 0}, "--epochs: is 0"),
    ({"seed": -1}, "--seed: is -1"),
    ({"lr": 0.0}, r"--lr: is 0\.0"),
    ({"lr": math.nan}, "--lr: is nan"),
    ({"device": "gpu"}, "--device: unknown device 'gpu'"),
    ({"heuristic": Path("none.json")}, r"none\.json: no such file"),
]


@pytest.mark.parametrize(("options", "says"), BAD_OPTIONS)
def test_bad_options_are_refused_by_name(embeddings: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        suggest_for_files(EmbeddingFiles(embeddings), Options(**options))


def test_a_search_that_diverges_is_said_to(embeddings: Path) -> None:
    with pytest.raises(InputError, match="--verify: lr="):
        suggest(embeddings, verify=True, epochs=3, lr=1e38)


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", "suggest", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_the_command_prints_text_or_json(
    embeddings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not call(monkeypatch, str(embeddings))
    assert capsys.readouterr().out.startswith("Inverse temperature ")
    assert not call(monkeypatch, str(embeddings), "--json")
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(suggest(embeddings)))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((".",), "error: --backbone: is missing."),
        ((".", "--labels", "a.npy"), "error: --labels: says nothing about an image folder."),
        (("a.npz", "--backbone", "b"), "error: --backbone: says nothing about a file of embeddings."),
        (("none.npz",), "error: none.npz: no such file."),
        (("a.txt",), "error: a.txt: unknown file type '.txt'."),
    ],
)
def test_the_command_ends_with_2_and_one_line_on_bad_input(
    embeddings: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(embeddings.parent)
    assert call(monkeypatch, *words) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(says)
    assert printed.count("\n") == 1
