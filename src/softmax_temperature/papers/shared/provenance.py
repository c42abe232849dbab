"""What a paper's numbers rest on: one record for each cell, in `sources.RECORDS` beside its results.

The manifests below data/ say how each result was made, but a reader has results/ alone. So what they say is copied
there: it is the same from run to run. Times and machines, which are not, stand in `environment.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.artifacts import Artifact, canonical_json, digest_of_text, find_artifacts, open_artifact
from softmax_temperature.runner.cells import seed_of
from softmax_temperature.runner.folders import PREPARED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def provenance(outputs: Sequence[Path]) -> dict[str, Any]:
    """What the artifacts of some stages were made from.

    Args:
        outputs: the stages' output folders, in the order of the pipeline.

    Returns:
        cells: for each artifact its stage, cell, project_seed, seed (its own), fingerprint, result (its digest), inputs
            (name to digest; that of another cell's result, if it is one of the pipeline's), and by their digests
            parameters and code; code is None where the manifest is from a time before it was kept there.
        parameters, code: digest to value, because cells have them in common. Code is a digest for each module that the
            cell runs.

        Data sets that none of the other artifacts was made from are left out: papers share their folder.
    """
    artifacts = [open_artifact(folder) for output in outputs for folder in find_artifacts(output)]
    used = {digest for artifact in artifacts for digest in artifact.about["inputs"].values()}
    chosen = [one for one in artifacts if one.digest in used or not one.folder.is_relative_to(PREPARED)]
    abouts = [artifact.about for artifact in chosen]
    return {
        "cells": [_cell(artifact) for artifact in chosen],
        "parameters": _by_digest(about["parameters"] for about in abouts),
        "code": _by_digest(about["code"] for about in abouts if "code" in about),
    }


def _cell(artifact: Artifact) -> dict[str, Any]:
    about = artifact.about
    return {
        "stage": about["stage"],
        "cell": about["cell"],
        "project_seed": about["seed"],
        "seed": seed_of(about["seed"], about["stage"], about["cell"]),
        "parameters": _digest(about["parameters"]),
        "inputs": about["inputs"],
        "code": _digest(about["code"]) if "code" in about else None,
        "fingerprint": about["fingerprint"],
        "result": artifact.digest,
    }


def _by_digest(values: Iterable[Any]) -> dict[str, Any]:
    return {_digest(value): value for value in values}


def _digest(value: Any) -> str:
    return digest_of_text(canonical_json(value))
