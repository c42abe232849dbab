"""Collect one paper's records, tables and claims in results/<profile>/<paper>/."""

import sys

import torch

from softmax_temperature.papers.classifier_temperature import collect as classifier_temperature
from softmax_temperature.papers.cooling import collect as cooling
from softmax_temperature.papers.focal import collect as focal
from softmax_temperature.papers.shared.results import PAPERS, paper_folder, record_run
from softmax_temperature.papers.shared.sources import RECORDS, provenance
from softmax_temperature.papers.temperature_check import collect as temperature_check
from softmax_temperature.params import read_params
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.stages.programs import exit_code, parser

COLLECTORS = dict(zip(PAPERS, (classifier_temperature, focal, cooling, temperature_check), strict=True))


def main() -> int:
    reader = parser(__doc__)
    reader.add_argument("--paper", required=True, choices=PAPERS, help="a paper's slug")
    options = reader.parse_args()

    def work() -> None:
        params = read_params(options.params)
        torch.set_num_threads(params.compute.threads_per_cell)  # As in cells: the last bits of a sum depend on it.
        paper, folder = COLLECTORS[options.paper], paper_folder(params.profile, options.paper)
        outputs = [stage.output for stage in paper.STAGES]
        paper.collect(params, folder)
        write_json(folder / RECORDS, provenance(outputs))
        record_run(params.profile, options.paper, options.params, outputs)

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
