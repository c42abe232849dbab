"""Collect one paper's records, tables and claims in results/<profile>/<paper>/."""

import sys
from importlib import import_module

import own_source  # noqa: F401 - before the package

from softmax_temperature.runner.loading import uncollected

with uncollected():
    import torch

    from softmax_temperature.papers.shared.provenance import provenance, record_run
    from softmax_temperature.papers.shared.results import (
        PAPERS,
        paper_folder,
        read_json,
    )
    from softmax_temperature.papers.shared.runs import cells_of
    from softmax_temperature.papers.shared.sources import RECORDS
    from softmax_temperature.params import read_params
    from softmax_temperature.runner.artifacts import write_json
    from softmax_temperature.tools.programs import (
        PARAMS,
        Paper,
        ParamsFile,
        require_choice,
        run_program,
    )


def main(paper: Paper, params: ParamsFile = PARAMS) -> None:
    require_choice("--paper", paper, PAPERS)
    parameters = read_params(params)
    # Use as many threads as a cell uses, because the last bits of a sum depend on the
    # number of threads.
    torch.set_num_threads(parameters.compute.threads_per_cell)
    with uncollected():
        module = import_module(f"softmax_temperature.papers.{paper}.collect")
    folder = paper_folder(parameters.profile, paper)
    outputs = [stage.output for stage in module.STAGES]
    before = read_json(folder / RECORDS)
    module.collect(parameters, folder)
    cells = cells_of(folder)
    write_json(folder / RECORDS, provenance(outputs, recorded=before, cells=cells))
    record_run(parameters.profile, paper, params, outputs, recorded=before)


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
