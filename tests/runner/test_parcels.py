"""What travels between machines arrives byte for byte, or is refused and changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from softmax_temperature.runner.parcels import check_arrival, packed, packed_beside, unpack, unpack_artifact

from softmax_temperature.runner.artifacts import ArtifactError, new_artifact, open_artifact

FINGERPRINT = "f" * 64


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    folder = tmp_path / "there" / "result"
    with new_artifact(folder, kind="test", about={"fingerprint": FINGERPRINT}) as output:
        (output / "empty").touch()
        (output / "below").mkdir()
        (output / "below" / "numbers.bin").write_bytes(bytes(range(256)) * 9)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_artifact_arrives_as_it_left(artifact: Path, tmp_path: Path) -> None:
    place = tmp_path / "here" / "result"
    unpack_artifact(packed(artifact), place, fingerprint=FINGERPRINT)
    assert contents(place) == contents(artifact)
    assert not open_artifact(place).problems()
    assert list(place.parent.iterdir()) == [place]


def test_a_parcel_outlives_its_folder(artifact: Path, tmp_path: Path) -> None:
    parcel, before = packed(artifact), contents(artifact)
    artifact.rename(tmp_path / "gone")
    for path in (tmp_path / "gone").rglob("*"):
        if path.is_file():
            path.unlink()
    unpack(parcel, tmp_path / "copy")
    assert contents(tmp_path / "copy") == before


@pytest.mark.parametrize("damage", ["flipped", "missing", "added", "manifest"])
def test_a_damaged_artifact_is_refused_and_what_stood_stays(artifact: Path, tmp_path: Path, damage: str) -> None:
    place = tmp_path / "here" / "result"
    unpack_artifact(packed(artifact), place, fingerprint=FINGERPRINT)
    before = contents(place)
    parcel = {name: np.array(content) for name, content in packed(artifact).items()}
    if damage == "flipped":
        parcel["below/numbers.bin"][7] ^= 1
    elif damage == "missing":
        del parcel["empty"]
    elif damage == "added":
        parcel["more"] = np.zeros(3, np.uint8)
    else:
        parcel["manifest.json"][-9] ^= 1
    with pytest.raises(ArtifactError):
        unpack_artifact(parcel, place, fingerprint=FINGERPRINT)
    assert contents(place) == before
    assert list(place.parent.iterdir()) == [place]


def test_what_another_fingerprint_made_is_refused(artifact: Path) -> None:
    check_arrival(artifact, fingerprint=FINGERPRINT)
    with pytest.raises(ArtifactError, match="another fingerprint"):
        check_arrival(artifact, fingerprint="e" * 64)


def test_beside_a_result_lies_what_is_not_hidden_or_left(artifact: Path) -> None:
    for name in ("checkpoint.pt", "lock", ".ray.1"):
        (artifact.parent / name).write_text(name)
    assert set(packed_beside(artifact, leave=frozenset({"lock"}))) == {"checkpoint.pt"}
    assert packed_beside(artifact.parent / "nowhere" / "result", leave=frozenset()) == {}
