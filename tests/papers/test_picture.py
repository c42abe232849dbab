"""The picture on the front page comes from the committed studies, the newest that is there."""

from pathlib import Path

import pytest

from softmax_temperature.papers import picture
from softmax_temperature.runner.errors import InputError


def test_the_picture_shows_the_first_study_that_is_there(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project_root)
    sources = [picture._first(project_root / "results", names) for names in (picture.FOCAL, picture.COOLING)]
    assert all(folder.is_dir() for folder in sources)
    drawn = picture.draw(project_root / "results", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["summary.png", "summary.svg"]
    assert drawn.stat().st_size > 50_000
    (tmp_path / "cifar10_cpu/focal").mkdir(parents=True)
    (tmp_path / "cifar10_cpu/focal/claims.json").write_text("[]")
    assert picture._first(tmp_path, picture.FOCAL) == tmp_path / "cifar10_cpu/focal"
    with pytest.raises(InputError, match="none of cooling_cifar10/cooling, cifar10_cpu_cooling/cooling"):
        picture._first(tmp_path, picture.COOLING)
