"""Train the focal paper's translation models, and translate with them."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_translation", __doc__))
