"""Shards read back: in pieces, whole, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from softmax_temperature.runner.artifacts import new_artifact, open_artifact, write_json, write_sealed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards import ShardedEmbeddings, feature_moments, open_embedded
from softmax_temperature.shards.embed_shard import COUNTS
from softmax_temperature.shards.index import write_index
from softmax_temperature.shards.moments import moments_of

from .made import DIM, made_shards, rows_of


def test_all_rows_come_once_in_pieces_of_any_size(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [30, 7, 0, 12])
    embeddings, labels = rows_of(tmp_path, "train")
    for size in (1, 5, 100):
        found = list(shards.batches("train", size))
        assert max(len(classes) for _, classes in found) <= size
        assert torch.equal(torch.cat([rows for rows, _ in found]), embeddings)
        assert torch.equal(torch.cat([classes for _, classes in found]), labels)
    assert shards.rows("train") == len(labels)


def test_a_sample_is_made_of_the_rows_that_were_asked_for(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [30, 7, 0, 12])
    embeddings, labels = rows_of(tmp_path, "train")
    chosen = [0, 3, 29, 30, 36, 37, len(labels) - 1]
    found = shards.sample(chosen)
    assert torch.equal(found[0], embeddings[chosen])
    assert torch.equal(found[1], labels[chosen])


def test_classes_are_numbered_by_the_labels_to_train_on(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [20], label=lambda label: 10 * label + 5, only_in_test=7)
    assert shards.labels == [5, 15, 25]
    (_, classes), (_, of_test) = (next(shards.batches(split, 100)) for split in ("train", "test"))  # type: ignore[arg-type]
    assert sorted(set(classes.tolist())) == [0, 1, 2]
    assert len(of_test) == shards.rows("test") == sum(shards.index.test.values()) - 1


def test_moments_are_those_of_all_rows_at_once(tmp_path: Path) -> None:
    shards = made_shards(tmp_path, [30, 7, 12])
    rows = rows_of(tmp_path, "train")[0].double()
    found = feature_moments(shards)
    assert found.count == len(rows)
    torch.testing.assert_close(found.mean, rows.mean(0))
    torch.testing.assert_close(found.standard_deviation, rows.std(0, correction=0))


def test_moments_lose_nothing_where_the_mean_is_large() -> None:
    rows = torch.randn(1000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 1e8
    found = moments_of(rows.split(7))
    torch.testing.assert_close(found.standard_deviation, rows.std(0, correction=0), rtol=1e-6, atol=0)
    with pytest.raises(ValueError, match="at least one row"):
        moments_of([])


# ---- damage


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def reindexed(folder: Path, **changes: Any) -> None:
    body = json.loads((folder / "index.json").read_text())
    del body["sha256"]
    write_sealed(folder / "index.json", body | changes)


def other_width(folder: Path) -> None:
    """A shard of another backbone, put among the others by hand."""
    place = folder / "shards/s-1"
    counts = open_artifact(place).json(COUNTS)
    provenance = open_artifact(place).json("provenance.json")
    with new_artifact(place, kind="embed_shard", about={}) as output:
        tensors = {}
        for split, count in counts.items():
            rows = sum(count.values())
            tensors |= {f"{split}.embeddings": torch.ones(rows, DIM + 1), f"{split}.labels": torch.ones(rows).long()}
        save_file(tensors, output / "embeddings.safetensors")
        write_json(output / COUNTS, counts)
        write_json(output / "provenance.json", provenance)
    write_index(folder, ["s-0", "s-1"], None)


def remove_shard(folder: Path) -> None:
    (folder / "shards/s-1/manifest.json").unlink()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: flip(folder / "shards/s-1/embeddings.safetensors"), "s-1/embeddings.safetensors: damaged"),
        (remove_shard, "shards/s-1: not there, or not complete"),
        (lambda folder: flip(folder / "shards/s-1/manifest.json"), "s-1/manifest.json: damaged"),
        (lambda folder: (folder / "index.json").unlink(), "index.json: no such file"),
        (lambda folder: (folder / "index.json").write_text("{}"), "index.json"),
        (
            lambda folder: reindexed(folder, dim=DIM + 1),
            f"train.embeddings is F32 of shape (27, {DIM}), the index says F32",
        ),
        (lambda folder: reindexed(folder, train={"0": 1}), "its own sha256 differs, or its sums"),
        (lambda folder: reindexed(folder, shards=[]), "its own sha256 differs, or its sums"),
        (
            lambda folder: (
                (folder / "shards/s-0").rename(folder / "a") and (folder / "shards/s-1").rename(folder / "shards/s-0")
            ),
            "shards/s-0: is another shard than the index lists",
        ),
        (other_width, f"F32 of shape (27, {DIM + 1}), the index says F32 of shape (27, {DIM})"),
    ],
)
def test_damage_is_named(tmp_path: Path, damage: Callable[[Path], object], says: str) -> None:
    made_shards(tmp_path, [30, 30])
    damage(tmp_path)
    with pytest.raises(InputError) as error:
        list(open_embedded(tmp_path).batches("train", 100))
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert "softmax-temperature embed" in str(error.value)


def test_a_folder_without_rows_to_train_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no shard has a row to train on"):
        made_shards(tmp_path, [1], test_every=1)


def test_names_of_shards_cannot_lead_elsewhere(tmp_path: Path) -> None:
    made_shards(tmp_path, [30])
    body = json.loads((tmp_path / "index.json").read_text())
    reindexed(tmp_path, shards=[body["shards"][0] | {"name": "../shards/s-0"}])
    with pytest.raises(InputError, match="does not hold what it should"):
        ShardedEmbeddings(tmp_path)
