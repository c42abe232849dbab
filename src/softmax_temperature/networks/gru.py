"""A classifier of texts: word embeddings and a gated recurrent unit (Cho et al. 2014)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.metrics.checks import check_count

# Deviation: the text at hand of the temperature_check paper names a GRU on IMDB and gives neither its widths, the
# number of its layers and directions, what the logits are made of, nor how weights start. Here one layer reads from
# left to right, its state after the last token goes to the classifier, the embedding is learned with the rest, and
# weights start as PyTorch's: the embedding standard normal, the others uniform within ±1 / sqrt(units).


class GRU(nn.Module):
    """A learned embedding, one recurrent layer, and a linear classifier of its last state.

    Padding has no say: where all texts of a batch have ended nothing is read, and what is read after the end of one
    reaches neither its logits nor any gradient. So both are the same bits however far the batch is padded.

    All of it computes in float32, under autocast too: a state that is updated hundreds of times would lose in bfloat16
    what a single token adds.

    Args:
        vocabulary_size: Numbers that a token may have, `PADDING` included.
        embedding: Width of the embedding.
        hidden: Units of the recurrent layer.
        num_classes: Outputs of `classifier`.

    Raises:
        ValueError: If an argument is too small; the message names it and its value.
    """

    def __init__(self, vocabulary_size: int, embedding: int = 128, hidden: int = 128, num_classes: int = 2) -> None:
        super().__init__()
        check_count(vocabulary_size, "vocabulary_size", least=2)
        check_count(embedding, "embedding", least=1)
        check_count(hidden, "hidden", least=1)
        check_count(num_classes, "num_classes", least=1)
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.recurrent = nn.GRU(embedding, hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, num_classes)

    def features(self, tokens: Tensor) -> Tensor:
        """What `classifier` reads: the state after each text's last token, (n, hidden) float32.

        Args:
            tokens: (n, length) int64, padded on the right.

        Raises:
            ValueError: If a text has no token, or a token is not in the vocabulary.
        """
        lengths = (tokens != PADDING).sum(1)
        shortest, longest, largest = torch.stack([lengths.min(), lengths.max(), tokens.max()]).tolist()
        if shortest == 0:
            raise ValueError(f"tokens must have one in every row, got none in row {int(lengths.argmin())}")
        if largest >= self.embedding.num_embeddings:
            size = self.embedding.num_embeddings
            raise ValueError(f"tokens must be below the vocabulary's size {size}, got {largest}")
        # Not as a packed sequence, which reads no padding at all: on a CPU its gradients take time that grows with the
        # square of the length, 4 times as long for 64 texts of up to 400 tokens.
        with torch.autocast(tokens.device.type, enabled=False):
            states, _ = self.recurrent(self.embedding(tokens[:, :longest]))
        last: Tensor = states[torch.arange(len(tokens), device=tokens.device), lengths - 1]
        return last

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (n, num_classes) of tokens (n, length)."""
        logits: Tensor = self.classifier(self.features(tokens))
        return logits


make = GRU
"""What a task that names this architecture trains."""
