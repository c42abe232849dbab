"""Running a paper's stages one after another in this process, and the bytes that they leave."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.stages import fetch


def prepare(params: Params, datasets: Iterable[str]) -> None:
    """Prepare these data sets below the current folder."""
    cells = [cell for cell in fetch.cells(params) if cell.name in set(datasets)]
    run_cells(cells, output=fetch.OUTPUT, compute=params.compute, seed=params.seed)


def run_stages(params: Params, stages: Sequence[Any]) -> None:
    """Run stages, in this order, below the current folder."""
    for stage in stages:
        run_cells(stage.cells(params), output=stage.OUTPUT, compute=params.compute, seed=params.seed)


def finish(folder: Path, run_all: Callable[[Params], None], params: Params) -> Path:
    """The folder, after a whole run in it."""
    with chdir(folder):
        run_all(params)
    return folder


def digests(folder: Path, *parts: str) -> dict[str, str]:
    """By path, what parts of a project hold; without what is drawn, and without what cells keep until they are done."""
    return {
        path.relative_to(folder).as_posix(): digest_of_file(path)
        for part in parts
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
        and path.parent.name != "figures"
        and path.suffix != ".ipynb"
        and not path.is_relative_to(folder / "data/work")
    }
