"""Gives each test an empty current folder, because cells run in the current folder."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
