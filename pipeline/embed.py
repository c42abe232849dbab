"""Turn the images of every prepared data set into embeddings, with every backbone."""

import sys

from softmax_temperature.stages.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("embed", __doc__))
