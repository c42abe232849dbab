"""Train every task of the focal paper with every loss and evaluate it; then its
appendices: linear, translation.
"""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_focal", __doc__))
