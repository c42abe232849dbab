"""Turn the images of every prepared data set into embeddings, with every backbone."""

import sys

from softmax_temperature.programs import stage_program
from softmax_temperature.stages import embed

if __name__ == "__main__":
    sys.exit(stage_program(embed, __doc__))
