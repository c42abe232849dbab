"""A notebook that cannot be executed to its end is one clear error and leaves nothing."""

from __future__ import annotations

import gc
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from softmax_temperature.papers.shared import notebooks
from softmax_temperature.runner.errors import InputError


@pytest.mark.parametrize(
    ("code", "seconds", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 60, r"its kernel ended \(.*died"),
        ("import time; time.sleep(300)", 1, "a cell took longer than 1 seconds"),
    ],
    ids=["killed", "hangs"],
)
# Whoever kills a kernel leaves its sockets to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_kernel_that_is_killed_or_hangs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, seconds: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebooks, "TIMEOUT_SECONDS", seconds)
    nbformat.write(new_notebook(cells=[new_code_cell(code, id="only")]), "bad.ipynb")
    with pytest.raises(InputError, match=rf"^bad\.ipynb: {says}"):
        notebooks.execute(Path("bad.ipynb"), Path("executed.ipynb"), {})
    gc.collect()  # What it warns of is ignored here, and would not be in another test.
    assert [path.name for path in tmp_path.iterdir()] == ["bad.ipynb"]
