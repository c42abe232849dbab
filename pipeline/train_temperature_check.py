"""Train the temperature_check paper's sweeps, confirm them, and measure early learning."""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_temperature_check", __doc__))
