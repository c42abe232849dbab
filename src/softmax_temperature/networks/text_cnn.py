"""The focal paper's global-pooling network for texts (appendix E)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.layers import Classifier, redraw, upload

# Deviation: the sizes are the released code's, because the focal paper names a global
# pooling network but no sizes. Padding has no influence here, and a text that is too
# short for the convolutions is extended with empty words to the minimum length; in the
# released code a text that is shorter than the others is pooled together with its
# padding. Initial weights are drawn as in the Keras network that the released code
# adapts: with PyTorch's defaults, learning the embeddings takes many more epochs.

_EMBEDDING_BOUND = 0.05
"""Keras draws embeddings uniformly within ± this bound."""
_GROUP = 32
"""Number of texts of similar length in a group, which is padded to its longest text."""
_CONVOLUTIONS = 3
_REACH = 5
"""A feature reads 5 (width - 1) + 1 tokens: three convolutions and two poolings."""


class TextCNN(Classifier):
    """Word embeddings, three convolutions, global max-pooling, and two dense layers.

    Args:
        vocabulary_size: Number of distinct token IDs, including the reserved ones.
        embedding: Length of a token's vector.
        filters: Output channels of each convolution.
        width: Number of positions that a convolution or pooling reads.
        dense: Units of the hidden dense layer.
        dropout: Probability of dropping a unit of the hidden dense layer in training.
        num_classes: The number of logits.
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
        self.least = _REACH * (width - 1) + 1
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.convolutions = nn.Sequential()
        inputs = embedding
        for number in range(_CONVOLUTIONS):
            self.convolutions.append(nn.Conv1d(inputs, filters, width))
            self.convolutions.append(nn.ReLU())
            if number < _CONVOLUTIONS - 1:
                self.convolutions.append(nn.MaxPool1d(width, stride=1))
            inputs = filters
        self.hidden = nn.Sequential(
            nn.Linear(filters, dense), nn.ReLU(), nn.Dropout(dropout)
        )
        self.classifier = nn.Linear(dense, num_classes)
        redraw(self, nn.init.xavier_uniform_)
        with torch.no_grad():
            weight = self.embedding.weight
            nn.init.uniform_(weight, -_EMBEDDING_BOUND, _EMBEDDING_BOUND)
            weight[PADDING] = 0

    def features(self, inputs: Tensor) -> Tensor:
        """The outputs of the hidden dense layer, (n, dense).

        Args:
            inputs: Token IDs, an int64 tensor (n, length), padded on the right.
        """
        lengths = (inputs != PADDING).sum(1)
        order = lengths.argsort(descending=True, stable=True)
        lengths = lengths.clamp(min=self.least)
        # Collect all tables, to upload them together: the permutation that restores the
        # order of the batch, then the tokens and lengths of each group.
        tables = [order.argsort()]
        for rows in order.split(_GROUP):
            longest = int(lengths[rows[0]])
            padding = max(0, longest - inputs.shape[1])
            tokens = F.pad(inputs[rows, :longest], (0, padding), value=PADDING)
            tables += [tokens, lengths[rows]]
        back, *groups = upload(self.embedding.weight.device, *tables)
        pooled = [
            self._pooled(tokens, group_lengths)
            for tokens, group_lengths in zip(groups[::2], groups[1::2], strict=True)
        ]
        hidden: Tensor = self.hidden(torch.cat(pooled)[back])
        return hidden

    def _pooled(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The maximum of each filter over positions without padding, (n, filters)."""
        maps = self.convolutions(self.embedding(tokens).transpose(1, 2))
        positions = torch.arange(maps.shape[2], device=tokens.device)
        sees_padding = positions > (lengths - self.least)[:, None]
        # Mask with 0, which never exceeds the true maximum, because the maps come from
        # a ReLU.
        maxima: Tensor = maps.masked_fill(sees_padding[:, None], 0).amax(2)
        return maxima
