"""Train every sweep of the temperature_check paper."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_temperature_check", __doc__))
