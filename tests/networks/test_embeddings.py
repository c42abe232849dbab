"""Embeddings do not depend on the batch size, and are stored in the rows' order."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.data.splits import LeakError
from softmax_temperature.networks.embeddings import (
    extract,
    open_embeddings,
    write_embeddings,
)
from softmax_temperature.networks.preprocess import Preprocess
from softmax_temperature.runner.artifacts import new_artifact, open_artifact
from softmax_temperature.runner.errors import InputError

PREPROCESS = Preprocess(16, 16, "bilinear", (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
DIM = 6


def tiny_network() -> nn.Module:
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(3, DIM, 5, stride=3),
        nn.BatchNorm2d(DIM),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]
    return nn.Sequential(*layers).eval().requires_grad_(False)


def images(count: int = 23) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = (count, 1, 16, 16)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def in_batches(size: int) -> Tensor:
    batches = images().split(size)
    return torch.cat(list(extract(tiny_network(), PREPROCESS, batches)))


# ---- extraction


def test_a_stream_gives_what_one_batch_gives() -> None:
    at_once = tiny_network()(PREPROCESS(images()))
    assert in_batches(23).dtype == torch.float32
    for size in (1, 4, 23):
        torch.testing.assert_close(in_batches(size), at_once, rtol=1e-5, atol=1e-6)


def test_batches_are_taken_one_at_a_time() -> None:
    batches = iter(images().split(5))
    next(extract(tiny_network(), PREPROCESS, batches))
    assert len(list(batches)) == 4
    assert not torch.is_inference_mode_enabled(), "inference mode is left on"


@pytest.mark.parametrize(
    ("value", "fault"),
    [(math.nan, "not finite"), (-math.inf, "not finite"), (0.0, "all zero")],
)
def test_an_embedding_without_direction_is_named_by_its_row(
    value: float, fault: str
) -> None:
    spoiled = images().clamp(min=1)
    spoiled[11] = 0
    network = nn.Sequential(nn.Flatten(), nn.Threshold(0, value))
    preprocess = Preprocess(16, 16, "bilinear", (0.0,) * 3, (1.0,) * 3)
    batches = extract(network, preprocess, spoiled.split(5), where="birds with tiny")
    message = f"birds with tiny: the embedding of row 11 is {fault}"
    with pytest.raises(InputError, match=message):
        list(batches)


# ---- storage


def test_embeddings_are_read_back_with_their_split(tmp_path: Path) -> None:
    sizes = {"train": 7, "validation": 2, "test": 3}
    stored = {split: torch.randn(size, DIM) for split, size in sizes.items()}
    rows = {
        split: (torch.arange(size) % 2, torch.arange(size) * 10)
        for split, size in sizes.items()
    }
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
