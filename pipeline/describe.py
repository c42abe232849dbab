"""Compute the 23 statistics of every embedded data set."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import describe

if __name__ == "__main__":
    sys.exit(stage_program(describe, __doc__))
