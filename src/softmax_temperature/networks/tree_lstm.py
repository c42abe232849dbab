"""A classifier of parsed sentences: the binary constituency Tree-LSTM (Tai et al. 2015; focal paper, appendix E)."""

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LEFT, RIGHT, WORD
from softmax_temperature.networks.layers import Classifier, upload

# Deviation: the focal paper gives no sizes. Memory, embedding and dropout before the classifier are those of Tai et al.
# 2015 for this task. Leaves and inner nodes have biases of their own, where equations 9 to 14 there share them; the
# released code has no input gate at leaves and no output gate at inner nodes.
# Deviation: section E says that the nodes of training trees are positive, neutral or negative, that sentences to be
# judged are never neutral, and not what becomes of neutral. Here, as in the released code, it is a third class in
# training. There a prediction is the more probable of the other two, and its confidence is its share of all three; here
# neutral is left out of the softmax too, so that the two shares of a sentence add up to 1.


class TreeLSTM(Classifier):
    """Word embeddings, a memory for each node made from those of the two below it, and a linear classifier.

    Nodes of the same depth are computed together, over all trees of a batch, in float32 under autocast too: a memory is
    updated at every level. `vocabulary_size` counts `PADDING` too. With `neutral`, `classifier` has one more output for
    the neutral nodes of training trees.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: int = 300,
        hidden: int = 150,
        dropout: float = 0.5,
        num_classes: int = 2,
        *,
        neutral: bool = True,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.leaf = nn.Linear(embedding, 3 * hidden)
        self.inner = nn.Linear(2 * hidden, 5 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_classes = num_classes
        self.classifier = nn.Linear(hidden, num_classes + neutral)

    def states(self, trees: Tensor) -> Tensor:
        """The state of every node of trees as of `encode_trees`, (n, nodes, hidden) float32; 0 where there is none.

        Trees in the host's memory are best: their shapes are read there, and a batch is uploaded once.
        """
        device, (levels, places, leaves, words) = self.leaf.weight.device, _plan(trees)
        words, nodes, *places = upload(device, words, torch.cat(levels), *places)
        with torch.autocast(device.type, enabled=False):
            states = self._upwards(words, places, leaves)
        flat = states.new_zeros(trees.shape[0] * trees.shape[1], states.shape[1]).index_copy(0, nodes, states)
        return flat.view(*trees.shape[:2], -1)

    def features(self, inputs: Tensor) -> Tensor:
        """The states of the roots of trees, (n, hidden) float32, which `classifier` reads in evaluation."""
        return self.states(inputs)[:, 0]

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of the roots, (n, num_classes); in training of all nodes, (n, nodes, outputs of `classifier`)."""
        if not self.training:
            return super().forward(inputs)[:, : self.num_classes]
        logits: Tensor = self.classifier(self.dropout(self.states(inputs)))
        return logits

    def _upwards(self, words: Tensor, places: list[Tensor], leaves: list[int]) -> Tensor:
        """The states of the nodes of all levels, one level after the other, made from the deepest up."""
        of_leaves = _made(*self.leaf(self.embedding(words)).chunk(3, dim=1))
        below, states = of_leaves[:, :0], []
        for place, own in zip(places[::-1], of_leaves.split(leaves, dim=1)[::-1], strict=True):
            below = torch.cat([self._joined(below), own], dim=1)[:, place]
            states.append(below[0])
        return torch.cat(states[::-1])

    def _joined(self, below: Tensor) -> Tensor:
        """State and memory of nodes, (2, n, hidden), from those of the nodes below them, (2, 2n, hidden)."""
        states, memories = below
        count = len(states) // 2
        taken, left, right, shown, new = self.inner(torch.cat([states[:count], states[count:]], dim=1)).chunk(5, dim=1)
        return _made(taken, shown, new, left.sigmoid() * memories[:count] + right.sigmoid() * memories[count:])


def _made(taken: Tensor, shown: Tensor, new: Tensor, kept: Tensor | float = 0.0) -> Tensor:
    """State and memory of nodes, (2, n, hidden), from their gates and what is kept of the memories below."""
    memory = taken.sigmoid() * new.tanh() + kept
    return torch.stack([shown.sigmoid() * memory.tanh(), memory])


def _plan(trees: Tensor) -> tuple[list[Tensor], list[Tensor], list[int], Tensor]:
    """What is computed when, from the roots' level down.

    For each level the indices of its nodes in the flattened batch, the place of each in the states of the level (inner
    nodes first, then leaves), and how many are leaves; and the words of the leaves of all levels.
    """
    words, levels = trees[..., WORD].flatten(), _levels(trees)
    are_leaves = [words[level] != PADDING for level in levels]
    leaves = [int(is_leaf.sum()) for is_leaf in are_leaves]
    places = [
        torch.where(is_leaf, len(is_leaf) - count + is_leaf.cumsum(0), (~is_leaf).cumsum(0)) - 1
        for is_leaf, count in zip(are_leaves, leaves, strict=True)
    ]
    nodes = [level[is_leaf] for level, is_leaf in zip(levels, are_leaves, strict=True)]
    return levels, places, leaves, words[torch.cat(nodes)]


def _levels(trees: Tensor) -> list[Tensor]:
    """Indices of the nodes at each depth in the flattened batch: the left children of a level, then the right."""
    count, nodes, _ = trees.shape
    first = torch.arange(count, device=trees.device) * nodes
    left, right = ((trees[..., side] + first[:, None]).flatten() for side in (LEFT, RIGHT))
    has_nodes_below = trees[..., LEFT].flatten() > 0
    levels = [first]
    while len(above := levels[-1][has_nodes_below[levels[-1]]]):
        levels.append(torch.cat([left[above], right[above]]))
    return levels
