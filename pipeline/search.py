"""Describe and search every embedded data set, fit the heuristic, and draw Figure 2."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("search", __doc__))
