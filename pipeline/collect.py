"""Collect one paper's records, tables and claims in results/<profile>/<paper>/."""

import sys
from importlib import import_module

from softmax_temperature.papers.shared.provenance import provenance
from softmax_temperature.papers.shared.results import PAPERS, paper_folder, record_run
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.params import read_params
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.stages.programs import exit_code, parser, require_known


def main() -> int:
    reader = parser(__doc__)
    reader.add_argument("--paper", required=True, help="a paper's slug")
    options = reader.parse_args()

    def work() -> None:
        require_known(options.paper, PAPERS, where="--paper")
        params = read_params(options.params)
        paper = import_module(f"softmax_temperature.papers.{options.paper}.collect")
        folder, outputs = paper_folder(params.profile, options.paper), [stage.OUTPUT for stage in paper.STAGES]
        paper.collect(params, folder)
        write_json(folder / RECORDS, provenance(outputs))
        record_run(params.profile, options.paper, options.params, outputs)

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
