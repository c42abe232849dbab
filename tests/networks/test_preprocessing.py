"""Preprocessing of batches equals the transform that comes with the weights."""

from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision.models
from PIL import Image
from timm.data import create_transform, resolve_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor

from softmax_temperature.networks.preprocess import (
    Preprocess,
    timm_preprocess,
    torchvision_preprocess,
)
from softmax_temperature.runner.errors import InputError


def photograph(height: int, width: int) -> Image.Image:
    """An image of smooth colours with some texture: more like a photo than noise is."""
    generator = np.random.default_rng(height * width)
    coarse = Image.fromarray(generator.integers(0, 256, (9, 11, 3), dtype=np.uint8))
    return coarse.resize((width, height), Image.Resampling.BICUBIC)


def as_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)


def assert_equal_up_to_rounding(
    preprocess: Preprocess, image: Image.Image, expected: Tensor
) -> None:
    """Compare images in units of grey levels: resized pixels are rounded to levels.

    Bicubic resizing rounds twice, so its images may differ by more.
    """
    std = torch.tensor(preprocess.std).view(3, 1, 1)
    difference = (preprocess([as_tensor(image)])[0] - expected).abs() * std * 255
    roundings = 1 if preprocess.interpolation == "bilinear" else 2
    assert difference.max() < roundings + 0.01
    assert (difference > 1.01).float().mean() < 1e-4
    assert difference.mean() < 0.1


SHAPES = [(300, 400), (48, 30)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "weights",
    [
        torchvision.models.AlexNet_Weights.IMAGENET1K_V1,
        torchvision.models.ResNet50_Weights.IMAGENET1K_V2,
        # These weights use bicubic resizing to 384 pixels.
        torchvision.models.ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1,
    ],
    ids=lambda weights: type(weights).__name__,
)
def test_torchvision_weights_get_their_own_transform(
    weights: Any, shape: tuple[int, int]
) -> None:
    image = photograph(*shape)
    assert_equal_up_to_rounding(
        torchvision_preprocess(weights), image, weights.transforms()(image)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "name",
    ["resnet18.a1_in1k", "resnet50_clip.openai", "resnet18.fb_ssl_yfcc100m_ft_in1k"],
)
def test_timm_weights_get_their_own_transform(
    name: str, shape: tuple[int, int]
) -> None:
    with torch.device("meta"):
        preprocess = timm_preprocess(timm.create_model(name))
    image = photograph(*shape)
    weights = get_pretrained_cfg(name).to_dict()
    transform = create_transform(**resolve_data_config({}, pretrained_cfg=weights))
    expected = transform(image)
    assert_equal_up_to_rounding(preprocess, image, expected)


def test_a_transform_of_another_kind_is_refused() -> None:
    with torch.device("meta"):
        network = timm.create_model(
            "beit_base_patch16_224", pretrained_cfg_overlay={"crop_mode": "squash"}
        )
    with pytest.raises(InputError, match="transform is not supported"):
        timm_preprocess(network)


def test_normalisation_by_hand() -> None:
    # Red is 0, green 100, blue 200. The result has the channels in the order blue,
    # green, red; (104, 117, 123) is subtracted, and nothing is scaled.
    colours = torch.tensor([0, 100, 200], dtype=torch.uint8)
    image = colours.view(1, 3, 1, 1).expand(1, 3, 2, 2)
    caffe = Preprocess(
        2,
        2,
        "bilinear",
        (104.0, 117.0, 123.0),
        (1.0, 1.0, 1.0),
        channels="bgr",
        pixel_scale=255.0,
    )
    assert caffe(image)[0, :, 0, 0].tolist() == [200 - 104, 100 - 117, 0 - 123]
    # White becomes (1 - 0.5) / 0.5 = 1.
    half = Preprocess(2, 2, "bilinear", (0.5,) * 3, (0.5,) * 3)
    white = torch.full((1, 3, 2, 2), 255, dtype=torch.uint8)
    assert half(white).unique().tolist() == [1.0]
