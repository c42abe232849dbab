"""Train every inverse temperature of the grid on every embedded data set."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import search

if __name__ == "__main__":
    sys.exit(stage_program(search, __doc__))
