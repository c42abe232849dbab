"""List the digests of the user's files that the parameters name."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.params import read_params
from softmax_temperature.tools.inputs import write_inputs
from softmax_temperature.tools.programs import PARAMS, ParamsFile, run_program


def main(params: ParamsFile = PARAMS) -> None:
    for name in write_inputs(read_params(params)):
        print(f"changed: {name}")


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
