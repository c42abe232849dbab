"""Artifacts are whole, verified on read, and never half-written."""

import errno
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from softmax_temperature.runner import artifacts
from softmax_temperature.runner.artifacts import (
    ArtifactError,
    find_artifacts,
    new_artifact,
    open_artifact,
    read_sealed,
    write_json,
    write_sealed,
    write_text,
)
from softmax_temperature.runner.errors import InputError


def make(folder: Path, value: int = 1) -> Path:
    with new_artifact(folder, kind="numbers", about={"value": value}) as output:
        write_json(output / "value.json", {"value": value})
        save_file({"row": torch.arange(8) + value}, output / "rows.safetensors")
    return folder


def read(folder: Path) -> None:
    artifact = open_artifact(folder)
    artifact.json("value.json")
    artifact.tensors("rows.safetensors")


def break_off(folder: Path) -> None:
    with new_artifact(folder, kind="numbers", about={}) as output:
        (output / "half").write_text("half")
        raise RuntimeError("stop")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_round_trip(tmp_path: Path) -> None:
    artifact = open_artifact(make(tmp_path / "a"), kind="numbers")
    assert artifact.json("value.json") == {"value": 1}
    assert torch.equal(artifact.tensors("rows.safetensors")["row"], torch.arange(8) + 1)
    assert artifact.about == {"value": 1}
    assert artifact.problems() == []


def test_equal_content_has_an_equal_digest_wherever_it_stands(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a"), make(tmp_path / "deep" / "b")
    assert open_artifact(first).digest == open_artifact(second).digest
    assert (first / "manifest.json").read_bytes() == (second / "manifest.json").read_bytes()
    assert open_artifact(first).digest != open_artifact(make(tmp_path / "c", value=2)).digest


@pytest.mark.parametrize("name", ["value.json", "rows.safetensors", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "remove"])
def test_any_damage_is_noticed_and_named(tmp_path: Path, name: str, damage: str) -> None:
    path = make(tmp_path / "a") / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes({"flip": bytes(content), "truncate": bytes(content[:-3]), "empty": b""}[damage])
    with pytest.raises(ArtifactError) as caught:
        read(tmp_path / "a")
    assert str(tmp_path / "a") in str(caught.value)
    assert "dvc repro" in str(caught.value)


def test_problems_lists_every_fault(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    (folder / "value.json").write_text("{}")
    (folder / "rows.safetensors").unlink()
    (folder / "stranger").write_text("")
    problems = open_artifact(folder).problems()
    assert [line.removeprefix(f"{folder}/") for line in problems] == [
        "stranger: not in the manifest",
        "rows.safetensors: missing",
        "value.json: damaged (its sha256 is not the recorded one)",
    ]


def test_a_damaged_file_is_set_aside_when_it_is_read(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    (folder / "value.json").write_text("{}")
    for fault in ("damaged", "missing"):
        with pytest.raises(ArtifactError, match=rf"value\.json: {fault}"):
            read(folder)
    assert names(folder) == ["manifest.json", "rows.safetensors", "value.json.damaged"]
    assert (folder / "value.json.damaged").read_text() == "{}"
    make(folder)
    assert names(folder) == ["manifest.json", "rows.safetensors", "value.json"]


def test_a_manifest_that_is_no_artifacts_is_left_alone(tmp_path: Path) -> None:
    """A folder of the user's may hold a file of that name, as web pages do."""
    (tmp_path / "manifest.json").write_text('{"name": "page"}')
    with pytest.raises(ArtifactError, match="damaged"):
        open_artifact(tmp_path)
    assert names(tmp_path) == ["manifest.json"]


def test_a_sealed_file_knows_every_bit_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "sealed.json"
    write_sealed(path, {"a": [1, 2], "b": "text"})
    assert read_sealed(path) == {"a": [1, 2], "b": "text"}
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(ArtifactError, match=r"sealed\.json: damaged"):
            read_sealed(path)


def test_wrong_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is of kind 'numbers', not 'words'"):
        open_artifact(make(tmp_path / "a"), kind="words")


def test_an_exception_while_building_leaves_the_old_artifact(tmp_path: Path) -> None:
    make(tmp_path / "a")
    with pytest.raises(RuntimeError, match="stop"):
        break_off(tmp_path / "a")
    assert open_artifact(tmp_path / "a").json("value.json") == {"value": 1}
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES])
def test_a_disk_fault_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int) -> None:
    def full(_: int) -> None:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(artifacts.os, "fsync", full)
    with pytest.raises(InputError, match=os.strerror(fault)) as caught:
        write_text(tmp_path / "file", "new")
    assert str(tmp_path / "file") in str(caught.value)
    assert names(tmp_path) == []


def test_find_artifacts_passes_over_folders_under_construction(tmp_path: Path) -> None:
    make(tmp_path / "b" / "deep")
    make(tmp_path / "a")
    make(tmp_path / ".a.unfinished")
    assert find_artifacts(tmp_path) == [tmp_path / "a", tmp_path / "b" / "deep"]
