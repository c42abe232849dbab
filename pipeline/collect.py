"""Collect one paper's records, tables and claims in results/<profile>/<paper>/."""

import sys
from importlib import import_module

import torch

from softmax_temperature.papers.shared.results import PAPERS, paper_folder, read_json
from softmax_temperature.papers.shared.runs import cells_of
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.params import read_params
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.tools.programs import exit_code, parser
from softmax_temperature.tools.provenance import provenance, record_run


def main() -> int:
    reader = parser(__doc__)
    reader.add_argument("--paper", required=True, choices=PAPERS, help="a paper's slug")
    options = reader.parse_args()

    def work() -> None:
        params = read_params(options.params)
        torch.set_num_threads(
            params.compute.threads_per_cell
        )  # As in cells: the last bits of a sum depend on it.
        paper = import_module(f"softmax_temperature.papers.{options.paper}.collect")
        folder = paper_folder(params.profile, options.paper)
        outputs = [stage.output for stage in paper.STAGES]
        before = read_json(folder / RECORDS)
        paper.collect(params, folder)
        cells = cells_of(folder)
        records = provenance(outputs, recorded=before, cells=cells)
        write_json(folder / RECORDS, records)
        record_run(
            params.profile, options.paper, options.params, outputs, recorded=before
        )

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
