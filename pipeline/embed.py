"""Turn the images of one prepared data set into embeddings, with every backbone."""

import sys

from softmax_temperature.programs import dataset_program
from softmax_temperature.stages import embed

if __name__ == "__main__":
    sys.exit(dataset_program(embed, __doc__))
