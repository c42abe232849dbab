"""Imports run with the garbage collector off, and it is on again afterwards."""

import gc
from importlib import import_module
from pathlib import Path

import pytest

from softmax_temperature.runner.loading import uncollected


def test_the_collector_is_off_in_the_block_and_leaves_what_was_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "imported_here.py").write_text("OBJECTS = [[] for _ in range(100)]\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = gc.get_freeze_count()
    with uncollected():
        assert not gc.isenabled()
        import_module("imported_here")
    assert gc.isenabled()
    assert gc.get_freeze_count() > before + 100
    before = gc.get_freeze_count()
    with pytest.raises(ImportError), uncollected():
        import_module("no_such_module")
    assert gc.isenabled()
    # Nothing was imported, so a test's own objects are still collected.
    assert gc.get_freeze_count() <= before
