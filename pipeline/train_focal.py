"""Train and evaluate all losses on all tasks of the focal paper and its appendices."""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_focal", __doc__))
