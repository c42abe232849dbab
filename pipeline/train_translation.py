"""Train the focal paper's translation models, and translate with them."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import train_translation

if __name__ == "__main__":
    sys.exit(stage_program(train_translation, __doc__))
