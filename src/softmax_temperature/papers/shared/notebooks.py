"""Executing a paper's notebook with papermill, so that the result is complete, and the same from run to run."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill

from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError, nearest

TIMEOUT_SECONDS = 600


def execute(source: Path, target: Path, parameters: Mapping[str, Any]) -> None:
    """Execute a notebook, stripped of outputs, and write it without times; nothing is written if a cell fails."""
    known = papermill.inspect_notebook(source)
    for name in parameters:  # Papermill only warns about one that the notebook does not have.
        if name not in known:
            raise InputError(f"no parameter {name!r}", where=str(source), remedy=nearest(name, known))
    with tempfile.TemporaryDirectory() as folder:
        executed = Path(folder) / source.name
        # The kernel warns that its port is not encrypted, which readers can do nothing about.
        write_text(Path(folder, "profile_default/ipython_kernel_config.py"), "c.IPKernelApp.log_level = 'ERROR'\n")
        before, os.environ["IPYTHONDIR"] = os.environ.get("IPYTHONDIR"), folder
        try:
            papermill.execute_notebook(
                source, executed, dict(parameters), kernel_name="python3", progress_bar=False, cwd=".",
                execution_timeout=TIMEOUT_SECONDS, iopub_timeout=TIMEOUT_SECONDS,
            )  # fmt: skip
        except (papermill.PapermillExecutionError, TimeoutError, RuntimeError) as error:
            names = [getattr(error, name) for name in ("ename", "evalue") if hasattr(error, name)]
            reason = ": ".join(names) or str(error).partition("\n")[0]
            remedy = "Run it in Jupyter to see the whole trace, with more memory if its kernel died."
            raise InputError(f"did not run to its end ({reason})", where=str(source), remedy=remedy) from error
        finally:
            os.environ.pop("IPYTHONDIR")
            os.environ |= {"IPYTHONDIR": before} if before else {}
        notebook = nbformat.read(executed, as_version=4)
    # Parameters stand there as they were set, and not beside their defaults too.
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    if ["injected-parameters"] in tags:
        notebook.cells = [cell for cell, its in zip(notebook.cells, tags, strict=True) if "parameters" not in its]
    # Relative links lead to the same files from where the executed copy is.
    up = Path(os.path.relpath(source.parent.parent, target.parent)).as_posix()
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.source = f"cell-{number}", cell.source.replace("](../", f"]({up}/")
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
    write_text(target, nbformat.writes(notebook) + "\n")
