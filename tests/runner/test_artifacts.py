"""Artifacts are verified when they are read, and never half-written."""

import errno
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

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


def make(name: str = "a", value: int = 1) -> Path:
    with new_artifact(Path(name), kind="numbers", about={"value": value}) as output:
        write_json(output / "value.json", {"value": value})
        save_file({"row": torch.arange(8) + value}, output / "rows.safetensors")
    return Path(name)


def break_off(folder: Path) -> None:
    with new_artifact(folder, kind="numbers", about={}) as output:
        (output / "half").write_text("half")
        raise RuntimeError("stop")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_round_trip() -> None:
    artifact = open_artifact(make(), kind="numbers")
    assert artifact.json("value.json") == {"value": 1}
    assert torch.equal(artifact.tensors("rows.safetensors")["row"], torch.arange(8) + 1)
    assert artifact.about == {"value": 1}
    assert artifact.problems() == []
    with pytest.raises(ArtifactError, match="is of kind 'numbers', not 'words'"):
        open_artifact(Path("a"), kind="words")


def test_equal_content_has_an_equal_digest_in_any_place() -> None:
    first, second = make("a"), make("deep/b")
    assert (
        open_artifact(first).digest
        == open_artifact(second).digest
        != open_artifact(make("c", value=2)).digest
    )
    assert (first / "manifest.json").read_bytes() == (
        second / "manifest.json"
    ).read_bytes()
    make(".a.unfinished")
    assert find_artifacts(Path()) == [Path("a"), Path("c"), Path("deep/b")]


@pytest.mark.parametrize("name", ["rows.safetensors", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncate", "empty", "remove"])
def test_any_damage_is_noticed_and_named(name: str, damage: str) -> None:
    path = make() / name
    whole = path.read_bytes()
    path.unlink()
    if damage != "remove":
        path.write_bytes(whole[:-3] if damage == "truncate" else b"")
    with pytest.raises(ArtifactError, match=r"^a.*dvc repro"):
        open_artifact(Path("a")).path(name)


def test_a_damaged_file_is_listed_and_set_aside() -> None:
    folder = make()
    (folder / "value.json").write_text("{}")
    (folder / "rows.safetensors").unlink()
    (folder / "stranger").write_text("")
    rest = ["a/stranger: not in the manifest", "a/rows.safetensors: missing"]
    assert open_artifact(folder).problems() == [
        *rest,
        "a/value.json: damaged (its sha256 is not the recorded one)",
    ]
    assert open_artifact(folder).problems() == [*rest, "a/value.json: missing"]
    assert (folder / "value.json.damaged").read_text() == "{}"
    make()
    assert names(folder) == ["manifest.json", "rows.safetensors", "value.json"]


def test_any_flipped_bit_of_a_sealed_file_is_detected() -> None:
    path = Path("sealed.json")
    write_sealed(path, {"a": [1, 2], "b": "text"})
    assert read_sealed(path) == {"a": [1, 2], "b": "text"}
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(ArtifactError, match=r"sealed\.json: damaged"):
            read_sealed(path)


def test_an_exception_while_building_leaves_the_old_artifact() -> None:
    with pytest.raises(RuntimeError, match="stop"):
        break_off(make())
    assert open_artifact(Path("a")).json("value.json") == {"value": 1}
    assert names(Path()) == ["a"]


def test_a_disk_fault_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=f"^file: .*{os.strerror(errno.ENOSPC)}"):
        write_text(Path("file"), "new")
    assert names(Path()) == []
