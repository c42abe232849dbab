"""Where stages leave what other stages read: apart from them, so that a stage need not import another."""

from pathlib import Path

PREPARED = Path("data/prepared")
BACKBONES = Path("data/backbones")
EMBEDDINGS = Path("data/embeddings")
FOCAL_TRAINING = Path("data/focal/training")
HEURISTIC = Path("data/classifier_temperature/heuristic")
