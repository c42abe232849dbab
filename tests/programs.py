"""Runs programs in `pipeline/` in this process, which has already imported torch."""

import os
import runpy
import sys
from pathlib import Path

import pytest


def run_program(path: Path, *arguments: str) -> int:
    """Run a program as `python path arguments...` does, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        # The program changes its own import path and that of child processes, so both
        # are restored afterwards.
        patch.syspath_prepend(path.parent)
        patch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        patch.setattr(sys, "argv", [str(path), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
    return int(ended.value.code or 0)
