"""Describe the embeddings, search inverse temperatures, and fit the heuristic."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("search", __doc__))
