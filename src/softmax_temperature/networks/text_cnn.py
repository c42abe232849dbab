"""A classifier of texts: three convolutions and global pooling (focal paper, appendix E: 20 Newsgroups)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.glorot import draw_glorot

# Deviation: the text names a global pooling network and no sizes; these are the released code's. There a text that is
# shorter than the others is pooled with its padding. Here padding has no say, and a text that is too short for the
# convolutions is read as if it went on with empty words up to the least length. Weights start as in the Keras network
# that the released code adapts: with PyTorch's, embeddings that are learned take many more epochs.

_START = 0.05  # Keras draws embeddings within ± this.
_GROUP = 32  # Texts of like length that are computed together, no longer than the longest of them.


class TextCNN(nn.Module):
    """Word embeddings, three convolutions, the maximum over all places, a hidden layer and a linear classifier.

    After the first two convolutions comes the maximum over as many neighbours as they are wide. Nothing is padded, so
    a text of n tokens has n - 5 (width - 1) places in the end. A text's logits do not depend on how far it is padded.

    Args:
        vocabulary_size: Numbers that a token may have, `PADDING` included.
        embedding: Width of the embedding.
        filters: Outputs of each convolution.
        width: Tokens that a convolution sees at a time.
        dense: Units of the hidden layer.
        dropout: Share of the hidden layer's outputs that are dropped in training.
        num_classes: Outputs of `classifier`.

    Raises:
        ValueError: If an argument is too small, or `dropout` is not in [0, 1); the message names it and its value.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: int = 100,
        filters: int = 128,
        width: int = 5,
        dense: int = 128,
        dropout: float = 0.3,
        num_classes: int = 20,
    ) -> None:
        super().__init__()
        check_count(vocabulary_size, "vocabulary_size", least=2)
        sizes = {"embedding": embedding, "filters": filters, "width": width, "dense": dense, "num_classes": num_classes}
        for name, size in sizes.items():
            check_count(size, name, least=1)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout!r}")
        self.least = 5 * (width - 1) + 1
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.convolutions = nn.Sequential(
            nn.Conv1d(embedding, filters, width),
            nn.ReLU(),
            nn.MaxPool1d(width, stride=1),
            nn.Conv1d(filters, filters, width),
            nn.ReLU(),
            nn.MaxPool1d(width, stride=1),
            nn.Conv1d(filters, filters, width),
            nn.ReLU(),
        )
        self.hidden = nn.Sequential(nn.Linear(filters, dense), nn.ReLU(), nn.Dropout(dropout))
        self.classifier = nn.Linear(dense, num_classes)
        draw_glorot(self)
        with torch.no_grad():
            nn.init.uniform_(self.embedding.weight, -_START, _START)[PADDING] = 0

    def features(self, tokens: Tensor) -> Tensor:
        """What `classifier` reads: the hidden layer's outputs, (n, dense).

        Args:
            tokens: (n, length) int64, padded on the right.

        Raises:
            ValueError: If they have another shape, or a token is not in the vocabulary.
        """
        if tokens.ndim != 2:
            raise ValueError(f"tokens must have shape (n, length), got {tuple(tokens.shape)}")
        if (largest := int(tokens.max())) >= self.embedding.num_embeddings:
            size = self.embedding.num_embeddings
            raise ValueError(f"tokens must be below the vocabulary's size {size}, got {largest}")
        lengths = (tokens != PADDING).sum(1)
        order = lengths.argsort(descending=True, stable=True)
        pooled = [self._pooled(tokens[rows], lengths[rows]) for rows in order.split(_GROUP)]
        hidden: Tensor = self.hidden(torch.cat(pooled)[order.argsort()])
        return hidden

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (n, num_classes) of tokens (n, length)."""
        logits: Tensor = self.classifier(self.features(tokens))
        return logits

    def _pooled(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The maximum of each filter over the places that see no padding, (n, filters)."""
        lengths = lengths.clamp(min=self.least)
        longest = int(lengths.max())
        tokens = F.pad(tokens[:, :longest], (0, max(0, longest - tokens.shape[1])), value=PADDING)
        places = self.convolutions(self.embedding(tokens).transpose(1, 2))
        sees_padding = torch.arange(places.shape[2], device=tokens.device) > (lengths - self.least)[:, None]
        # What is left is at least 0, so that 0 is no maximum that it does not have.
        maxima: Tensor = places.masked_fill(sees_padding[:, None], 0).amax(2)
        return maxima


make = TextCNN
"""What a task that names this architecture trains."""
