"""Train the backbones that the pipeline trains itself."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("pretrain", __doc__))
