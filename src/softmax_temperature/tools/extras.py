"""Print the extras that params.yaml uses and that are not installed yet."""

import sys
from importlib.util import find_spec

from softmax_temperature.params import Params, read_params
from softmax_temperature.tools.programs import PARAMS, ParamsFile, run_program

# For each extra, one of its packages. The extra counts as installed if this package is.
PACKAGES = {"ray": "ray", "translation": "sacrebleu"}


def used_extras(params: Params) -> list[str]:
    """The optional extras that the parameters use."""
    used = []
    if params.compute.engine == "ray":
        used.append("ray")
    if "focal" in params.papers and params.focal.translation is not None:
        used.append("translation")
    return used


def print_missing(params: ParamsFile = PARAMS) -> None:
    """Print one line per extra that has to be installed."""
    for extra in used_extras(read_params(params)):
        if find_spec(PACKAGES[extra]) is None:
            print(extra)


if __name__ == "__main__":
    sys.exit(run_program(print_missing, __doc__))
