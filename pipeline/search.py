"""Train every inverse temperature of the grid on every embedded data set."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("search", __doc__))
