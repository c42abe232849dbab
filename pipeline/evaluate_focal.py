"""Evaluate every training of the focal paper: metrics, temperature scaling, intervals, out-of-distribution scores."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import evaluate_focal

if __name__ == "__main__":
    sys.exit(stage_program(evaluate_focal, __doc__))
