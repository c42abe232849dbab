"""Classifiers of texts: a recurrent network (temperature_check), a global-pooling one
and the Tree-LSTM (focal).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.tokens import LEFT, PADDING, RIGHT, WORD
from softmax_temperature.networks.layers import Classifier, redraw, upload

# Deviation: the text at hand of the temperature_check paper names a GRU on IMDB and
# gives neither its widths, the number of its layers and directions, what the logits are
# made of, nor how weights start. Here one layer reads from left to right, its state
# after the last token goes to the classifier, the embedding is learned with the rest,
# and weights start as PyTorch's: the embedding standard normal, the others uniform
# within ±1 / sqrt(units).


class GRU(Classifier):
    """A learned embedding, one gated recurrent layer (Cho et al. 2014), and a linear
    classifier of its last state.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: int = 128,
        hidden: int = 128,
        num_classes: int = 2,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.recurrent = nn.GRU(embedding, hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        """The state after each text's last token, (n, hidden) float32, of tokens (n,
        length) padded on the right.
        """
        lengths = (inputs != PADDING).sum(1)
        device = self.embedding.weight.device
        tokens, ends = upload(device, inputs[:, : int(lengths.max())], lengths - 1)
        # Not as a packed sequence, which reads no padding at all: on a CPU its
        # gradients take time that grows with the square of the length, 4 times as long
        # for 64 texts of up to 400 tokens. A state that is updated hundreds of times
        # would lose in bfloat16 what a single token adds.
        with torch.autocast(device.type, enabled=False):
            states, _ = self.recurrent(self.embedding(tokens))
        last: Tensor = states[torch.arange(len(tokens), device=device), ends]
        return last


# Deviation: the text names a global pooling network and no sizes; these are the
# released code's. There a text that is shorter than the others is pooled with its
# padding. Here padding has no say, and a text that is too short for the convolutions is
# read as if it went on with empty words up to the least length. Weights start as in the
# Keras network that the released code adapts: with PyTorch's, embeddings that are
# learned take many more epochs.

_START = 0.05  # Keras draws embeddings within ± this.
# Texts of similar length that are computed together, no longer than the longest of
# them.
_GROUP = 32


class TextCNN(Classifier):
    """Word embeddings, three convolutions, global max-pooling, a hidden and a linear
    layer (focal, appendix E).
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
            self.convolutions.extend(
                [nn.Conv1d(inputs, filters, width), nn.ReLU(), *pool]
            )
        self.hidden = nn.Sequential(
            nn.Linear(filters, dense), nn.ReLU(), nn.Dropout(dropout)
        )
        self.classifier = nn.Linear(dense, num_classes)
        redraw(self, nn.init.xavier_uniform_)
        with torch.no_grad():
            nn.init.uniform_(self.embedding.weight, -_START, _START)[PADDING] = 0

    def features(self, inputs: Tensor) -> Tensor:
        """The hidden layer's outputs, (n, dense), of tokens (n, length) int64 padded on
        the right.
        """
        lengths = (inputs != PADDING).sum(1)
        order = lengths.argsort(descending=True, stable=True)
        lengths = lengths.clamp(min=self.least)  # What the convolutions read at least.
        tables = [order.argsort()]
        for rows in order.split(_GROUP):
            longest = int(lengths[rows[0]])
            tokens = F.pad(
                inputs[rows, :longest],
                (0, max(0, longest - inputs.shape[1])),
                value=PADDING,
            )
            tables += [tokens, lengths[rows]]
        back, *parts = upload(self.embedding.weight.device, *tables)
        pooled = torch.cat(
            [self._pooled(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        )
        hidden: Tensor = self.hidden(pooled[back])
        return hidden

    def _pooled(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The maximum of each filter over the positions that see no padding, (n,
        filters).
        """
        positions = self.convolutions(self.embedding(tokens).transpose(1, 2))
        sees_padding = (
            torch.arange(positions.shape[2], device=tokens.device)
            > (lengths - self.least)[:, None]
        )
        # ReLU leaves nothing below 0, so a masked 0 never exceeds the true maximum.
        maxima: Tensor = positions.masked_fill(sees_padding[:, None], 0).amax(2)
        return maxima


# Deviation: the focal paper gives no sizes. Memory, embedding and dropout before the
# classifier are those of Tai et al. 2015 for this task. Leaves and inner nodes have
# biases of their own, where equations 9 to 14 there share them; the released code has
# no input gate at leaves and no output gate at inner nodes.
# Deviation: section E says that the nodes of training trees are positive, neutral or
# negative, that sentences to be judged are never neutral, and not what becomes of
# neutral. Here, as in the released code, it is a third class in training. There a
# prediction is the more probable of the other two, and its confidence is its share of
# all three; here neutral is left out of the softmax too, so that the two shares of a
# sentence add up to 1.


class TreeLSTM(Classifier):
    """Word embeddings, a memory for each node made from those of the two below it, and
    a linear classifier.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: int = 300,
        hidden: int = 150,
        dropout: float = 0.5,
        num_classes: int = 2,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.leaf = nn.Linear(embedding, 3 * hidden)
        self.inner = nn.Linear(2 * hidden, 5 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_classes = num_classes
        self.classifier = nn.Linear(
            hidden, num_classes + 1
        )  # One for the neutral nodes of training trees.

    def states(self, trees: Tensor) -> Tensor:
        """The state of every node of trees as of `encode_trees`, (n, nodes, hidden)
        float32; 0 where there is none.
        """
        device, (levels, places, leaves, words) = self.leaf.weight.device, _plan(trees)
        words, nodes, *places = upload(device, words, torch.cat(levels), *places)
        with torch.autocast(device.type, enabled=False):
            states = self._upwards(words, places, leaves)
        flat = states.new_zeros(
            trees.shape[0] * trees.shape[1], states.shape[1]
        ).index_copy(0, nodes, states)
        return flat.view(*trees.shape[:2], -1)

    def features(self, inputs: Tensor) -> Tensor:
        """The states of the roots of trees, (n, hidden) float32, which `classifier`
        reads in evaluation.
        """
        return self.states(inputs)[:, 0]

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of the roots, (n, num_classes); in training of all nodes, (n, nodes,
        outputs of `classifier`).
        """
        if not self.training:
            return super().forward(inputs)[:, : self.num_classes]
        logits: Tensor = self.classifier(self.dropout(self.states(inputs)))
        return logits

    def _upwards(
        self, words: Tensor, places: list[Tensor], leaves: list[int]
    ) -> Tensor:
        of_leaves = _made(*self.leaf(self.embedding(words)).chunk(3, dim=1))
        below, states = of_leaves[:, :0], []
        for place, own in zip(
            places[::-1], of_leaves.split(leaves, dim=1)[::-1], strict=True
        ):
            below = torch.cat([self._joined(below), own], dim=1)[:, place]
            states.append(below[0])
        return torch.cat(states[::-1])

    def _joined(self, below: Tensor) -> Tensor:
        """State and memory of nodes, (2, n, hidden), from those of the nodes below
        them, (2, 2n, hidden).
        """
        states, memories = below
        count = len(states) // 2
        taken, left, right, shown, new = self.inner(
            torch.cat([states[:count], states[count:]], dim=1)
        ).chunk(5, dim=1)
        return _made(
            taken,
            shown,
            new,
            left.sigmoid() * memories[:count] + right.sigmoid() * memories[count:],
        )


def _made(
    taken: Tensor, shown: Tensor, new: Tensor, kept: Tensor | float = 0.0
) -> Tensor:
    """State and memory of nodes, (2, n, hidden), from their gates and what is kept of
    the memories below.
    """
    memory = taken.sigmoid() * new.tanh() + kept
    return torch.stack([shown.sigmoid() * memory.tanh(), memory])


def _plan(trees: Tensor) -> tuple[list[Tensor], list[Tensor], list[int], Tensor]:
    """What is computed when, from the roots' level down, and the words of the leaves of
    all levels.

    Of each level (the left children of the one above, then the right): the indices of
    its nodes in the flattened batch, their places in its states (inner nodes first,
    then leaves), and how many are leaves.
    """
    words, first = (
        trees[..., WORD].flatten(),
        torch.arange(len(trees), device=trees.device) * trees.shape[1],
    )
    left, right = (
        (trees[..., side] + first[:, None]).flatten() for side in (LEFT, RIGHT)
    )
    levels, are_inner = [first], trees[..., LEFT].flatten() > 0
    while len(above := levels[-1][are_inner[levels[-1]]]):
        levels.append(torch.cat([left[above], right[above]]))
    are_leaves = [words[level] != PADDING for level in levels]
    leaves = [int(is_leaf.sum()) for is_leaf in are_leaves]
    places = [
        torch.where(
            is_leaf, len(is_leaf) - count + is_leaf.cumsum(0), (~is_leaf).cumsum(0)
        )
        - 1
        for is_leaf, count in zip(are_leaves, leaves, strict=True)
    ]
    nodes = [level[is_leaf] for level, is_leaf in zip(levels, are_leaves, strict=True)]
    return levels, places, leaves, words[torch.cat(nodes)]
