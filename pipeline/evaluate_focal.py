"""Evaluate every training of the focal paper: metrics, temperature scaling, intervals, out-of-distribution scores."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("evaluate_focal", __doc__))
