"""Train the cooling paper's U-Net with and without Cooling."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_segmentation", __doc__))
