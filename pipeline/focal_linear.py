"""Train the focal paper's linear model with cross-entropy and focal loss (appendix C)."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("focal_linear", __doc__))
