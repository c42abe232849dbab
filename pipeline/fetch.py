"""Prepare the data sets: samples, labels, splits, and a card with their origin."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("fetch", __doc__))
