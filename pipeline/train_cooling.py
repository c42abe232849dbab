"""Train the networks of the Cooling paper's experiments, and its U-Net."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_cooling", __doc__))
