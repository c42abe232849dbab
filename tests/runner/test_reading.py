"""YAML that people edit: one error names the place where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_yaml


@pytest.mark.parametrize("text", ["a: [1", "a: !!timestamp 2026-99-99", "a: 1\na: 2"])
def test_wrong_yaml_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=r"a\.yaml: not readable as YAML"):
        read_yaml(tmp_path / "a.yaml")


def test_a_missing_yaml_file_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_yaml(tmp_path / "a.yaml")


def test_tags_construct_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: !!python/object/apply:os.getcwd []")
    assert "os.getcwd" not in type(read_yaml(tmp_path / "a.yaml")["a"]).__name__
