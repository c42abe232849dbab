"""Describe and search every embedded data set, and fit the heuristic; Figure 2."""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("search", __doc__))
