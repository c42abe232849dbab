"""A default inverse temperature for a user's own embeddings or images, from the heuristic, without a search.

`study` holds the fitted heuristic and what it rests on, `embedded` the user's data, `sharded` those that fit in no
memory, `choice` the user's backbone, `images` turns images into embeddings, `verification` is the search to compare
with, `suggestion` puts them together, and `text` prints it.
"""

from softmax_temperature.tools.suggest.choice import Wish
from softmax_temperature.tools.suggest.embedded import EmbeddingFiles
from softmax_temperature.tools.suggest.sharded import is_sharded
from softmax_temperature.tools.suggest.suggestion import (
    Options,
    suggest_for_files,
    suggest_for_images,
    suggest_for_shards,
)
from softmax_temperature.tools.suggest.text import summary

__all__ = [
    "EmbeddingFiles",
    "Options",
    "Wish",
    "is_sharded",
    "suggest_for_files",
    "suggest_for_images",
    "suggest_for_shards",
    "summary",
]
