"""Classifiers of texts: a recurrent network (temperature_check paper) and a global-pooling one (focal paper)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.layers import Classifier, redraw, upload

# Deviation: the text at hand of the temperature_check paper names a GRU on IMDB and gives neither its widths, the
# number of its layers and directions, what the logits are made of, nor how weights start. Here one layer reads from
# left to right, its state after the last token goes to the classifier, the embedding is learned with the rest, and
# weights start as PyTorch's: the embedding standard normal, the others uniform within ±1 / sqrt(units).


class GRU(Classifier):
    """A learned embedding, one gated recurrent layer (Cho et al. 2014), and a linear classifier of its last state.

    Logits and gradients are the same bits however far a batch is padded. All of it computes in float32, under autocast
    too: a state that is updated hundreds of times would lose in bfloat16 what a single token adds. `vocabulary_size`
    counts `PADDING` too.
    """

    def __init__(self, vocabulary_size: int, embedding: int = 128, hidden: int = 128, num_classes: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.recurrent = nn.GRU(embedding, hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        """The state after each text's last token, (n, hidden) float32, of tokens (n, length) padded on the right."""
        lengths = (inputs != PADDING).sum(1)
        device = self.embedding.weight.device
        tokens, ends = upload(device, inputs[:, : int(lengths.max())], lengths - 1)
        # Not as a packed sequence, which reads no padding at all: on a CPU its gradients take time that grows with the
        # square of the length, 4 times as long for 64 texts of up to 400 tokens.
        with torch.autocast(device.type, enabled=False):
            states, _ = self.recurrent(self.embedding(tokens))
        last: Tensor = states[torch.arange(len(tokens), device=device), ends]
        return last


# Deviation: the text names a global pooling network and no sizes; these are the released code's. There a text that is
# shorter than the others is pooled with its padding. Here padding has no say, and a text that is too short for the
# convolutions is read as if it went on with empty words up to the least length. Weights start as in the Keras network
# that the released code adapts: with PyTorch's, embeddings that are learned take many more epochs.

_START = 0.05  # Keras draws embeddings within ± this.
_GROUP = 32  # Texts of similar length that are computed together, no longer than the longest of them.


class TextCNN(Classifier):
    """Word embeddings, three convolutions, global max-pooling, a hidden and a linear layer (focal paper, appendix E).

    The first two convolutions are each followed by a max-pooling of the same width and stride 1. A text's logits do not
    depend on how far it is padded. `vocabulary_size` counts `PADDING` too.
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
        self.least = 5 * (width - 1) + 1
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.convolutions = nn.Sequential()
        for number, inputs in enumerate((embedding, filters, filters)):
            pool = [nn.MaxPool1d(width, stride=1)] if number < 2 else []
            self.convolutions.extend([nn.Conv1d(inputs, filters, width), nn.ReLU(), *pool])
        self.hidden = nn.Sequential(nn.Linear(filters, dense), nn.ReLU(), nn.Dropout(dropout))
        self.classifier = nn.Linear(dense, num_classes)
        redraw(self, nn.init.xavier_uniform_)
        with torch.no_grad():
            nn.init.uniform_(self.embedding.weight, -_START, _START)[PADDING] = 0

    def features(self, inputs: Tensor) -> Tensor:
        """The hidden layer's outputs, (n, dense), of tokens (n, length) int64 padded on the right."""
        lengths = (inputs != PADDING).sum(1)
        order = lengths.argsort(descending=True, stable=True)
        lengths = lengths.clamp(min=self.least)  # What the convolutions read at least.
        tables = [order.argsort()]
        for rows in order.split(_GROUP):
            longest = int(lengths[rows[0]])
            tokens = F.pad(inputs[rows, :longest], (0, max(0, longest - inputs.shape[1])), value=PADDING)
            tables += [tokens, lengths[rows]]
        back, *parts = upload(self.embedding.weight.device, *tables)
        pooled = torch.cat([self._pooled(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)])
        hidden: Tensor = self.hidden(pooled[back])
        return hidden

    def _pooled(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The maximum of each filter over the positions that see no padding, (n, filters)."""
        positions = self.convolutions(self.embedding(tokens).transpose(1, 2))
        sees_padding = torch.arange(positions.shape[2], device=tokens.device) > (lengths - self.least)[:, None]
        # ReLU leaves nothing below 0, so a masked 0 never exceeds the true maximum.
        maxima: Tensor = positions.masked_fill(sees_padding[:, None], 0).amax(2)
        return maxima
