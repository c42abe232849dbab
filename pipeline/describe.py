"""Compute the 23 statistics of one embedded data set, for every backbone."""

import sys

from softmax_temperature.programs import dataset_program
from softmax_temperature.stages import describe

if __name__ == "__main__":
    sys.exit(dataset_program(describe, __doc__))
