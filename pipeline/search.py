"""Train every inverse temperature of the grid on one embedded data set, for every backbone."""

import sys

from softmax_temperature.programs import dataset_program
from softmax_temperature.stages import search

if __name__ == "__main__":
    sys.exit(dataset_program(search, __doc__))
