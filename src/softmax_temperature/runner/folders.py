"""The output folders that other stages or papers read, so that only their names have to be imported."""

from pathlib import Path

PREPARED = Path("data/prepared")
BACKBONES = Path("data/backbones")
EMBEDDINGS = Path("data/embeddings")
FOCAL_TRAINING = Path("data/focal/training")
HEURISTIC = Path("data/classifier_temperature/heuristic")
