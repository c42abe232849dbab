"""Join statistics and searches into pairs and fit the heuristic on them."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("heuristic", __doc__))
