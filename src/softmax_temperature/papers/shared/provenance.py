"""What a paper's numbers come from: one record per cell, copied from the manifests below data/ to `records.json`.

A reader has results/ alone. Records are the same from run to run; times and machines are in `environment.json`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softmax_temperature.runner.artifacts import canonical_json, digest_of_text, find_artifacts, open_artifact
from softmax_temperature.runner.cells import seed_of
from softmax_temperature.runner.folders import PREPARED


def provenance(outputs: Sequence[Path]) -> dict[str, Any]:
    """What the artifacts of some stages were made from.

    Args:
        outputs: the stages' output folders, in the order of the pipeline. Papers share the folder of data sets: those
            that none of the other artifacts was made from are left out.

    Returns:
        cells: for each artifact its stage, cell, project_seed, seed (its own), fingerprint, result (its digest), inputs
            (name to digest of another cell's result), and by their digests parameters and code.
        parameters, code: digest to value, because cells share them. Code is one digest per module that a cell runs.
    """
    artifacts = [open_artifact(folder) for output in outputs for folder in find_artifacts(output)]
    used = {digest for artifact in artifacts for digest in artifact.about["inputs"].values()}
    chosen = [one for one in artifacts if one.digest in used or not one.folder.is_relative_to(PREPARED)]
    found: dict[str, Any] = {"cells": [], "parameters": {}, "code": {}}
    for artifact in chosen:
        about = artifact.about
        row = {"stage": about["stage"], "cell": about["cell"], "project_seed": about["seed"]}
        row |= {"seed": seed_of(about["seed"], about["stage"], about["cell"]), "inputs": about["inputs"]}
        for name in ("parameters", "code"):
            row[name] = digest_of_text(canonical_json(about[name]))
            found[name][row[name]] = about[name]
        found["cells"].append({**row, "fingerprint": about["fingerprint"], "result": artifact.digest})
    return found
