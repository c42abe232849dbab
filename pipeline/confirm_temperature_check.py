"""Train fresh seeds of the temperature_check paper with the learning rates that validation data prefer."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("confirm_temperature_check", __doc__))
