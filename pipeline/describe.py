"""Compute the 23 statistics of every embedded data set."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("describe", __doc__))
