"""Train every sweep of the temperature_check paper."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import train_temperature_check

if __name__ == "__main__":
    sys.exit(stage_program(train_temperature_check, __doc__))
