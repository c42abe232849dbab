"""Write the digests of the files that the parameters name, and list what changed.

If data.download is true, missing files that a library can download are downloaded
first. Items that are still missing are skipped and listed on standard error; everything
else runs.
"""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.papers.shared.views import require_studies
from softmax_temperature.params import read_params
from softmax_temperature.runner.progress import say
from softmax_temperature.stages.inputs import download_missing
from softmax_temperature.tools.inputs import write_inputs
from softmax_temperature.tools.programs import PARAMS, ParamsFile, run_program


def main(params: ParamsFile = PARAMS) -> None:
    parameters = read_params(params)
    # Report a wrong name of a study now instead of in the last stage.
    require_studies(parameters)
    for line in download_missing(parameters):
        say(f"not run: data missing: {line}")
    for name in write_inputs(parameters):
        print(f"changed: {name}")


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
