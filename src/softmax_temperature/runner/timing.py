"""The timing of a cell: its seconds, device, machine and library versions.

The timing is in the cell's work folder instead of its artifact, because it differs
between runs with equal results.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from softmax_temperature.runner.artifacts import ArtifactError, read_sealed
from softmax_temperature.runner.cells import TIMING, work_folder


def timing_of(about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the timing of the cell that an artifact's `about` names.

    Returns None if the timing is missing or damaged.
    """
    return read_timing(work_folder(about["stage"], about["cell"], about["fingerprint"]))


def read_timing(work: Path) -> dict[str, Any] | None:
    """Read the timing in the work folder `work`; None if it is missing or damaged."""
    with suppress(ArtifactError, FileNotFoundError):
        return read_sealed(work / TIMING)
    return None
