"""Train and confirm temperature_check's sweeps, and measure early learning."""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_temperature_check", __doc__))
