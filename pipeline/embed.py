"""Train the backbones that the pipeline trains itself, and turn the images of every
data set into embeddings.
"""

import sys

from softmax_temperature.tools.programs import stage_program

if __name__ == "__main__":
    sys.exit(stage_program("embed", __doc__))
