"""Train the networks of temperature_check's sweeps, and measure early learning."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_temperature_check", __doc__))
