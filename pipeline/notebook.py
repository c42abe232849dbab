"""Execute one paper's notebook on the results of a study.

The section `notebooks` of the parameters selects the study and what to show. The
executed notebook and the figures are written next to the results.
"""

import sys
from pathlib import Path

import own_source  # noqa: F401 - before the package

from softmax_temperature.papers.shared.results import PAPERS, SHOWN, paper_folder
from softmax_temperature.papers.shared.runs import cells_of
from softmax_temperature.papers.shared.views import view_of
from softmax_temperature.params import read_params
from softmax_temperature.tools.notebooks import execute, write_contents, write_notice
from softmax_temperature.tools.programs import (
    PARAMS,
    Paper,
    ParamsFile,
    require_choice,
    run_program,
)


def main(paper: Paper, params: ParamsFile = PARAMS) -> None:
    require_choice("--paper", paper, PAPERS)
    view = view_of(read_params(params), paper)
    folder = paper_folder(view.study, paper)
    notebook = Path("notebooks", f"{paper}.ipynb")
    target = folder / "notebook.ipynb"
    if cells_of(folder):
        execute(notebook, target, view.parameters())
    else:
        write_notice(notebook, target, "Nothing of this paper was run: data missing.")
    write_contents(folder, folder.parent / SHOWN / paper)


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
