"""Files of embeddings: what is read, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.suggest.embedded import Embedded, EmbeddingFiles, read_embedded, save_embedded

from .conftest import Arrays, clusters


def saved(folder: Path, arrays: Arrays, name: str = "a.npz") -> Path:
    np.savez(folder / name, allow_pickle=True, **arrays)  # type: ignore[arg-type]  # the stubs take them for options
    return folder / name


def with_test(**changes: Any) -> Arrays:
    test = {f"test_{key}": array for key, array in clusters(30, seed=1).items()}
    return clusters() | test | changes


def read(path: Path, **files: Path) -> Embedded:
    return read_embedded(EmbeddingFiles(path, **files))


def test_test_rows_lie_in_the_same_file_or_in_another(tmp_path: Path) -> None:
    together = read(saved(tmp_path, with_test()))
    apart = read(saved(tmp_path, clusters()), test=saved(tmp_path, clusters(30, seed=1), "b.npz"))
    assert together.test is not None
    assert apart.test is not None
    for first, second in zip((*together.train, *together.test), (*apart.train, *apart.test), strict=True):
        assert torch.equal(first, second)
    assert together.train[0].dtype == torch.float32
    assert together.train[0].tolist() == clusters()["embeddings"].astype(np.float32).tolist()


def test_classes_are_numbered_from_zero_the_same_way_in_both_parts(tmp_path: Path) -> None:
    arrays = with_test()
    odd = arrays | {key: np.array([7, 40, 900])[arrays[key]] for key in ("labels", "test_labels")}
    first, second = read(saved(tmp_path, arrays)), read(saved(tmp_path, odd, "b.npz"))
    assert second.test is not None
    assert first.test is not None
    assert torch.equal(first.train[1], second.train[1])
    assert torch.equal(first.test[1], second.test[1])


def test_rows_are_held_out_of_every_class_once(tmp_path: Path) -> None:
    data = read(saved(tmp_path, clusters()))
    divided, held_out = data.with_test(0)
    assert held_out
    assert divided.test is not None
    assert torch.bincount(divided.test[1]).tolist() == [5, 5, 5]
    rows = [tuple(row) for part in (divided.train, divided.test) for row in part[0].tolist()]
    assert sorted(rows) == sorted(tuple(row) for row in data.train[0].tolist())
    own = read(saved(tmp_path, with_test()))
    assert own.with_test(0) == (own, False)


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    data = read(saved(tmp_path, with_test()))
    save_embedded(data, tmp_path / "b.npz")
    again = read(tmp_path / "b.npz")
    assert again.test is not None
    assert data.test is not None
    for first, second in zip((*again.train, *again.test), (*data.train, *data.test), strict=True):
        assert torch.equal(first, second)


def changed(row: int, value: float) -> dict[str, Any]:
    embeddings = clusters()["embeddings"]
    embeddings[row] = value
    return {"embeddings": embeddings}


BAD: dict[str, tuple[Arrays, str]] = {
    "nan": (clusters() | changed(4, np.nan), "row 4 of embeddings is not finite"),
    "zeros": (clusters() | changed(5, 0.0), "row 5 of embeddings is all zero"),
    "beyond float32": (clusters() | changed(6, 1e300), "row 6 of embeddings is not finite"),
    "integers": (clusters() | {"embeddings": np.ones((60, 8), int)}, "embeddings is int64 of shape (60, 8)"),
    "one dimension": (clusters() | {"embeddings": np.ones(60)}, "embeddings is float64 of shape (60,)"),
    "fewer labels": (clusters() | {"labels": np.arange(59) % 3}, "labels has shape (59,) for 60 rows"),
    "float labels": (clusters() | {"labels": np.ones(60)}, "labels is float64, not integers"),
    "negative": (clusters() | {"labels": np.arange(60) % 3 - 1}, "labels must not be negative, got -1"),
    "one class": (clusters() | {"labels": np.zeros(60, int)}, "labels hold 1 classes in 60 rows"),
    "a class each": (clusters() | {"labels": np.arange(60)}, "labels hold 60 classes in 60 rows"),
    "no rows": ({"embeddings": np.ones((0, 8)), "labels": np.zeros(0, int)}, "labels hold 0 classes in 0 rows"),
    "new class": (with_test(test_labels=np.arange(30) % 4), "test_labels hold 3, a class that the training rows"),
    "other length": (with_test(test_embeddings=np.ones((30, 7))), "test_embeddings have length 7, embeddings 8"),
    "half a pair": (clusters() | {"test_labels": np.zeros(3, int)}, "has test_labels alone"),
    "test nan": (with_test(test_embeddings=np.full((30, 8), np.nan)), "row 0 of test_embeddings is not finite"),
    "objects": (clusters() | {"labels": np.array([None] * 60)}, "labels holds Python objects"),
    "no labels": ({"embeddings": np.ones((3, 2))}, "has no labels (it holds: embeddings)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_are_refused_by_name(tmp_path: Path, case: str) -> None:
    arrays, says = BAD[case]
    path = saved(tmp_path, arrays)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "\n" not in str(caught.value)


def test_files_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    whole, other = saved(tmp_path, with_test()), saved(tmp_path, clusters(), "b.npz")
    with pytest.raises(InputError, match=r"--test: is given, and .*a\.npz holds test_embeddings"):
        read(whole, test=other)
    with pytest.raises(InputError, match="--test-labels: is given without --test"):
        read(whole, test_labels=other)


def test_no_row_can_be_spared() -> None:
    data = Embedded((torch.ones(2, 3), torch.tensor([0, 1])), None)
    with pytest.raises(InputError, match="--verify: no class has a second row"):
        data.with_test(0)
