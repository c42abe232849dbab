"""Train with the plain and the rescaled cross-entropy, under SGD and Adam (Figure 2)."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("rescaling", __doc__))
