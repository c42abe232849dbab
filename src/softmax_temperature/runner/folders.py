"""Where stages leave what other stages read, below the project's root.

They stand apart from the stages, so that a stage that reads another's output does not import it.
"""

from pathlib import Path

PREPARED = Path("data/prepared")
BACKBONES = Path("data/backbones")
EMBEDDINGS = Path("data/embeddings")
FOCAL_TRAINING = Path("data/focal/training")
HEURISTIC = Path("data/classifier_temperature/heuristic")
