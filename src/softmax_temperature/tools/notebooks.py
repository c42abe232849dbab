"""Executing a paper's notebook with papermill, the same from run to run, and listing
what its folder holds.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill

from softmax_temperature.runner.artifacts import digest_of_file, write_text
from softmax_temperature.runner.errors import InputError

TIMEOUT_SECONDS = 600


def execute(source: Path, target: Path, parameters: Mapping[str, Any]) -> None:
    """Execute a notebook, stripped of outputs, and write it without times; nothing is
    written if a cell fails.
    """
    with tempfile.TemporaryDirectory() as settings:  # Not those of whoever runs it.
        # Readers can do nothing about what the kernel says of its port, and of being
        # stopped.
        options = [f"--ipython-dir={settings}", "--log-level=CRITICAL"]
        try:
            notebook = papermill.execute_notebook(
                source, None, dict(parameters), kernel_name="python3", progress_bar=False, cwd=".",
                execution_timeout=TIMEOUT_SECONDS, iopub_timeout=TIMEOUT_SECONDS, extra_arguments=options,
            )  # fmt: skip
        except (papermill.PapermillExecutionError, TimeoutError, RuntimeError) as error:
            names = [
                getattr(error, name)
                for name in ("ename", "evalue")
                if hasattr(error, name)
            ]
            reason = ": ".join(names) or str(error).partition("\n")[0]
            remedy = "Run it in Jupyter to see the whole trace, with more memory if its kernel died."
            raise InputError(
                f"did not run to its end ({reason})", where=str(source), remedy=remedy
            ) from error
    # Parameters stand there as they were set, and not beside their defaults too.
    notebook.cells = [
        cell
        for cell in notebook.cells
        if "parameters" not in cell.metadata.get("tags", [])
    ]
    # Relative links lead to the same files from where the executed copy is.
    up = Path(os.path.relpath(source.parent.parent, target.parent)).as_posix()
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.source = (
            f"cell-{number}",
            cell.source.replace("](../", f"]({up}/"),
        )
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
    write_text(target, nbformat.writes(notebook) + "\n")


def write_contents(folder: Path, path: Path) -> None:
    """Write what a folder holds: one line per file, its sha256 and its path.

    DVC cannot say "the results of all papers that this profile runs", so the report
    depends on the folder of these.
    """
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    write_text(
        path, "".join(f"{digest_of_file(each)}  {each.as_posix()}\n" for each in files)
    )
