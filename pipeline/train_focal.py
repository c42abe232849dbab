"""Train and evaluate all losses on all tasks of the focal paper and its appendices."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("train_focal", __doc__))
