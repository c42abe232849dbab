"""Both kinds of samples are what a training asks for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from softmax_temperature.training import Samples
from softmax_temperature.training.texts import TokenSet


def token_set() -> TokenSet:
    return TokenSet(torch.arange(1, 64).view(21, 3), torch.arange(21) % 4)


@pytest.mark.parametrize("kind", ["images", "tokens"])
def test_both_kinds_are_samples(kind: str, make_images: Any, make_recipe: Any) -> None:
    samples: Samples = make_images(21) if kind == "images" else token_set()
    recipe = make_recipe() if kind == "images" else make_recipe(mean=None, std=None)
    samples.check(recipe)
    assert len(samples) == len(samples.inputs) == len(samples.labels) == 21
    some = samples.sample(7)
    assert type(some) is type(samples)
    assert torch.equal(some.inputs, samples.inputs[::3])
    assert torch.equal(some.labels, samples.labels[::3])
    moved = samples.to("cpu")
    assert torch.equal(moved.inputs, samples.inputs)
    # Without augmentation a training batch is what evaluation sees.
    rows = torch.tensor([4, 0, 20])
    batch = samples.batch(rows, torch.Generator(), recipe)
    assert torch.equal(batch, samples.prepare(samples.inputs[rows], recipe))


@pytest.mark.parametrize("absent", ["mean", "std"])
def test_images_are_not_trained_without_a_normalisation(absent: str, make_trainer: Any) -> None:
    with pytest.raises(ValueError, match=rf"recipe must normalise images, got .*recipe.{absent}=None"):
        make_trainer(**{absent: None})
