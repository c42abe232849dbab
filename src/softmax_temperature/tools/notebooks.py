"""Run a paper's notebook so that equal results give equal bytes, and list results."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from softmax_temperature.runner.artifacts import digest_of_file, write_text
from softmax_temperature.runner.errors import InputError

TIMEOUT_SECONDS = 600


class _KernelOfThisPython(AsyncKernelManager):
    """Starts kernels with the interpreter of this process.

    A kernel "python3" in JUPYTER_PATH or the user's settings may belong to another
    environment.
    """

    def __init__(self, **options: Any) -> None:
        manager = KernelSpecManager(kernel_dirs=[])
        super().__init__(kernel_spec_manager=manager, **options)


def execute(source: Path, target: Path, parameters: Mapping[str, Any]) -> None:
    """Execute the notebook `source`, and write it to `target` without run times.

    Raises:
        InputError: If a cell fails, or the kernel dies or is too slow; nothing is
            written.
    """
    notebook = _executed(source, parameters)
    # papermill adds a cell with the actual parameters, so drop the cell with their
    # defaults.
    notebook.cells = [
        cell
        for cell in notebook.cells
        if "parameters" not in cell.metadata.get("tags", [])
    ]
    notebook.cells = without_empty_sections(notebook.cells)
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    # Rewrite relative links, so that they lead to the same files from the folder of the
    # executed copy.
    root = Path(os.path.relpath(source.parent.parent, target.parent)).as_posix()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.source = cell.source.replace("](../", f"]({root}/")
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    write_text(target, nbformat.writes(notebook) + "\n")


def without_empty_sections(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The `cells` without code that shows nothing, and without the text about it.

    A section begins with a heading. A section is dropped if it has code and none of its
    code shows anything. In the other sections, each code cell that shows nothing is
    dropped. The text above it is dropped, too, unless the section begins with this text
    or another code cell below it shows something. Code that imports or reads something,
    tagged "setup", always stays.

    If the section tagged "main" is dropped, the section tagged "instead" replaces it,
    so that a study without the paper's main experiment shows its own results first.
    """
    kept_cells = []
    for section in _in_order(_begun(cells, _is_heading)):
        if _is_empty(section):
            continue
        for number, block in enumerate(_begun(section, _is_prose)):
            shows = [cell for cell in block if _shows(cell)]
            if shows or (len(block) == 1 and _is_prose(block[0])):
                kept_cells += [
                    cell for cell in block if _is_prose(cell) or cell in shows
                ]
            elif number == 0:
                kept_cells += [cell for cell in block if _is_prose(cell)]
    return kept_cells


def _in_order(sections: list[list[NotebookNode]]) -> list[list[NotebookNode]]:
    """Return the sections; if "main" is empty, "instead" moves directly before it."""
    main = [section for section in sections if "main" in _tags(section[0])]
    instead = [section for section in sections if "instead" in _tags(section[0])]
    if not main or not instead or not _is_empty(main[0]):
        return sections
    rest = [section for section in sections if section is not instead[0]]
    place = next(n for n, section in enumerate(rest) if section is main[0])
    return [*rest[:place], instead[0], *rest[place:]]


def _is_empty(section: Sequence[NotebookNode]) -> bool:
    """Whether `section` has code cells and none of them shows anything."""
    code = [cell for cell in section if cell.cell_type == "code"]
    return bool(code) and not any(map(_shows, code))


def _tags(cell: NotebookNode) -> list[str]:
    tags: list[str] = cell.metadata.get("tags", [])
    return tags


def _begun(
    cells: Sequence[NotebookNode], begins: Callable[[NotebookNode], bool]
) -> list[list[NotebookNode]]:
    """Split `cells` into groups; a cell for which `begins` is true begins a group."""
    groups: list[list[NotebookNode]] = []
    for cell in cells:
        if begins(cell) or not groups:
            groups.append([])
        groups[-1].append(cell)
    return groups


def _is_prose(cell: NotebookNode) -> bool:
    return bool(cell.cell_type == "markdown")


def _is_heading(cell: NotebookNode) -> bool:
    return _is_prose(cell) and cell.source.startswith("#")


def _shows(cell: NotebookNode) -> bool:
    """Whether the code cell has an output, or other cells need it."""
    if cell.cell_type != "code":
        return False
    tags = _tags(cell)
    return bool(cell.outputs) or "setup" in tags or "injected-parameters" in tags


def write_notice(source: Path, target: Path, text: str) -> None:
    """Write a notebook that has only the title of `source` and, below it, `text`.

    The folder `figures` next to the notebook is emptied.
    """
    title = nbformat.read(source, as_version=4).cells[0].source
    cells = [new_markdown_cell(title), new_markdown_cell(text)]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    write_text(target, nbformat.writes(new_notebook(cells=cells)) + "\n")
    shutil.rmtree(target.parent / "figures", ignore_errors=True)
    (target.parent / "figures").mkdir()


def _executed(source: Path, parameters: Mapping[str, Any]) -> NotebookNode:
    # Use an empty folder of settings, so that the user's own settings have no effect.
    with tempfile.TemporaryDirectory() as settings:
        # Silence the log, which would show readers the kernel's port and shutdown.
        options = [f"--ipython-dir={settings}", "--log-level=CRITICAL"]
        try:
            notebook: NotebookNode = papermill.execute_notebook(
                source,
                None,
                dict(parameters),
                kernel_name="python3",
                kernel_manager_class=_KernelOfThisPython,
                progress_bar=False,
                cwd=".",
                execution_timeout=TIMEOUT_SECONDS,
                iopub_timeout=TIMEOUT_SECONDS,
                extra_arguments=options,
            )
        except (papermill.PapermillExecutionError, TimeoutError, RuntimeError) as error:
            raise InputError(
                f"did not finish ({_reason(error)})",
                where=str(source),
                remedy=(
                    "Run it in Jupyter to see the whole trace, with more memory if its "
                    "kernel died."
                ),
            ) from error
    return notebook


def _reason(error: Exception) -> str:
    """The name and value of a cell's error, or the first line of any other `error`."""
    if isinstance(error, papermill.PapermillExecutionError):
        return f"{error.ename}: {error.evalue}"
    return str(error).partition("\n")[0]


def write_contents(folder: Path, path: Path) -> None:
    """Write a list of a folder's files, one line per file with its sha256 and path.

    DVC has no name for "the results of all papers that this profile runs", so the
    report depends on a folder of such lists.
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    lines = [f"{digest_of_file(file)}  {file.as_posix()}\n" for file in files]
    write_text(path, "".join(lines))
