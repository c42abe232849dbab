"""Data sets and embeddings larger than memory, in shards.

`source` finds the shards of a data set, in `tar_files` or `class_folders`, and `images` decodes them; `embed_shard` is
the cell that embeds one, `embedding` runs all, `held_out` tells rows to train on from rows to test on, `index` says
what the shards hold together. `reading` gives them back in pieces, to `training_rows`, `grid` and `moments`.
"""

from softmax_temperature.shards.grid import accuracy_on_shards, train_grid_on_shards
from softmax_temperature.shards.moments import Moments, feature_moments
from softmax_temperature.shards.reading import ShardedEmbeddings, open_embedded
from softmax_temperature.shards.training_rows import TrainingRows

__all__ = [
    "Moments",
    "ShardedEmbeddings",
    "TrainingRows",
    "accuracy_on_shards",
    "feature_moments",
    "open_embedded",
    "train_grid_on_shards",
]
