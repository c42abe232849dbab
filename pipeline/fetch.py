"""Prepare the data sets: images, labels, splits and a card of where they come from."""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("fetch", __doc__))
