"""Which code each stage of the pipeline rests on: one small file a stage, which the stage depends on.

DVC compares files. Were the code itself a dependency, every edit would start every stage; were its modules listed in
`dvc.yaml`, each new import would have to be. So the stage `code` runs whenever any of the code has changed, and writes
for each stage a line a module with the digest of its code. Comments and docstrings do not count, as for cells.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

import nbformat

from softmax_temperature.runner.artifacts import digest_of_text, write_text
from softmax_temperature.runner.code_digest import PACKAGE, code_only, import_closure, source_path
from softmax_temperature.runner.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TRAINING = f"{PACKAGE}.training.networks"
CHOSEN = ("networks", "losses.objectives")
"""What trains networks imports them, and the losses, by names from the parameters."""


def write_stage_code(root: Path, folder: Path) -> None:
    """Write a file for each stage of `dvc.yaml`, named after it.

    Args:
        root: of the project.
        folder: where to; made when absent. What else stands there is removed, because DVC does not.
    """
    stages = read_yaml(root / "dvc.yaml")["stages"]
    for path in folder.glob("*"):
        if path.name not in stages:
            path.unlink()
    for stage, content in stages.items():
        program = root / content["cmd"].split()[1]
        names = stage_modules(stage, program, root / "notebooks")
        lines = [f"{_digest(source_path(name))}  {name}" for name in names]
        lines.append(f"{_digest(program)}  {program.relative_to(root).as_posix()}")
        write_text(folder / stage, "\n".join(lines) + "\n")


def stage_modules(stage: str, program: Path, notebooks: Path) -> list[str]:
    """The modules of this package that a stage runs, sorted.

    They are what its program imports, what the paper that a stage collects or shows imports, what all of these import,
    and what they import by name: a module that a string names, and all of a folder where the parameters choose.

    Args:
        stage: its name; what stands behind a hyphen is the paper.
        program: what it starts.
        notebooks: the folder of the papers' notebooks.
    """
    found = imported(program.read_text(encoding="utf-8"))
    kind, _, paper = stage.partition("-")
    if kind == "collect":
        found.add(f"{PACKAGE}.papers.{paper}.collect")
    if kind == "notebook":
        found |= imported(_notebook_code(notebooks / f"{paper}.ipynb"))
    known: set[str] = set()
    while found:
        known |= {name for module in found for name in import_closure(module)}
        found = {name for module in known for name in _named(module)} - known
    return sorted(known)


def imported(code: str) -> set[str]:
    """The modules of this package that a piece of code names in its imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                found.add(module if _is_module(module) else node.module)
    return found


@cache
def _named(module: str) -> Iterable[str]:
    """The modules that a module imports by name."""
    tree = ast.parse(source_path(module).read_text(encoding="utf-8"))
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in strings if text.startswith(f"{PACKAGE}.") and text.isprintable() and _is_module(text)}
    if module == TRAINING:
        folders = {
            folder.replace("/", "."): source_path(f"{PACKAGE}.{folder.replace(chr(47), chr(46))}").parent
            for folder in CHOSEN
        }
        names |= {
            f"{PACKAGE}.{name}.{path.stem}" for name, place in folders.items() for path in place.glob("[a-z]*.py")
        }
    return names


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split(".")) and source_path(name).is_file()


def _notebook_code(path: Path) -> str:
    notebook = nbformat.read(path, as_version=4)
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


@cache
def _digest(path: Path) -> str:
    return digest_of_text(code_only(path))
