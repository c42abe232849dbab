"""Measure the early learning of the temperature_check paper's networks."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("early_learning", __doc__))
