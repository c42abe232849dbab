"""Train the pipeline's own backbones, and embed all images with every backbone."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("embed", __doc__))
