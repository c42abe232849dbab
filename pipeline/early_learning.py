"""Measure the early learning of the temperature_check paper's networks."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import early_learning

if __name__ == "__main__":
    sys.exit(stage_program(early_learning, __doc__))
