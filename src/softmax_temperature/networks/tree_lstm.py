"""A classifier of parsed sentences: the binary constituency Tree-LSTM (Tai et al. 2015; focal paper, appendix E)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LEFT, RIGHT, WORD
from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.layers import Classifier, check_sizes

# Deviation: the focal paper gives no sizes. Memory, embedding and dropout before the classifier are those of Tai et al.
# 2015 for this task. Leaves and inner nodes have biases of their own, where equations 9 to 14 there share them; the
# released code has no input gate at leaves and no output gate at inner nodes.
# Deviation: section E says that the nodes of training trees are positive, neutral or negative, that sentences to be
# judged are never neutral, and not what becomes of neutral. Here, as in the released code, it is a third class in
# training. There a prediction is the more probable of the other two, and its confidence is its share of all three; here
# neutral is left out of the softmax too, so that the two shares of a sentence add up to 1.


class TreeLSTM(Classifier):
    """Word embeddings, a memory for each node made from those of the two below it, and a linear classifier.

    Nodes of the same depth are computed together, over all trees of a batch: one step per level of the deepest tree,
    not one per node. All of it computes in float32, under autocast too: a memory is updated at every level. A tree's
    logits do not depend on how far it is padded, nor on labels.

    Args:
        vocabulary_size: Numbers that a word may have, `PADDING` included.
        hidden: Width of a node's state and memory.
        dropout: Share of a state's numbers that the classifier does not see in training.
        neutral: Whether `classifier` has one more output, the last, for the neutral nodes of training trees.
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
        check_count(vocabulary_size, "vocabulary_size", least=2)
        check_sizes(embedding=embedding, hidden=hidden, num_classes=num_classes)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout!r}")
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.leaf = nn.Linear(embedding, 3 * hidden)
        self.inner = nn.Linear(2 * hidden, 5 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_classes = num_classes
        self.classifier = nn.Linear(hidden, num_classes + neutral)

    def states(self, trees: Tensor) -> Tensor:
        """The state of every node, (n, nodes, hidden) float32; 0 where there is none.

        Raises:
            ValueError: If `trees` are not (n, nodes, 4) as of `encode_trees`, or a word is not in the vocabulary.
        """
        levels = self._levels(trees)
        words = trees[..., WORD].flatten()
        leaves = [level[words[level] != PADDING] for level in levels]
        with torch.autocast(trees.device.type, enabled=False):
            states = self._upwards(levels, leaves, words)
        flat = states.new_zeros(len(words), states.shape[1]).index_copy(0, torch.cat(levels), states)
        return flat.view(*trees.shape[:2], -1)

    def features(self, inputs: Tensor) -> Tensor:
        """What `classifier` reads in evaluation: the states of the roots of trees, (n, hidden) float32."""
        return self.states(inputs)[:, 0]

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of the roots, (n, num_classes); in training of all nodes, (n, nodes, outputs of `classifier`)."""
        if not self.training:
            return super().forward(inputs)[:, : self.num_classes]
        logits: Tensor = self.classifier(self.dropout(self.states(inputs)))
        return logits

    def _levels(self, trees: Tensor) -> list[Tensor]:
        """Indices of the nodes at each depth in the flattened batch: the left children of a level, then the right."""
        if trees.ndim != 3 or trees.shape[2] != 4:
            raise ValueError(f"trees must have shape (n, nodes, 4), got {tuple(trees.shape)}")
        largest = int(trees[..., WORD].max())
        if largest >= self.embedding.num_embeddings:
            size = self.embedding.num_embeddings
            raise ValueError(f"trees must have words below the vocabulary's size {size}, got {largest}")
        count, nodes, _ = trees.shape
        first = torch.arange(count, device=trees.device) * nodes
        left, right = ((trees[..., side] + first[:, None]).flatten() for side in (LEFT, RIGHT))
        has_nodes_below = trees[..., LEFT].flatten() > 0
        levels = [first]
        while len(above := levels[-1][has_nodes_below[levels[-1]]]):
            if len(levels) == nodes:
                raise ValueError("trees must have no node below itself")
            levels.append(torch.cat([left[above], right[above]]))
        return levels

    def _upwards(self, levels: list[Tensor], leaves: list[Tensor], words: Tensor) -> Tensor:
        """The states of the nodes of all levels, one level after the other, made from the deepest up."""
        of_leaves = _made(*self.leaf(self.embedding(words[torch.cat(leaves)])).chunk(3, dim=1))
        below, states = of_leaves[:, :0], []
        for level, own in zip(levels[::-1], of_leaves.split([len(some) for some in leaves], dim=1)[::-1], strict=True):
            inner = self._joined(below)
            # In the order of the level, where inner nodes and leaves are mixed.
            is_leaf = words[level] != PADDING
            place = torch.where(is_leaf, inner.shape[1] + is_leaf.cumsum(0), (~is_leaf).cumsum(0)) - 1
            below = torch.cat([inner, own], dim=1)[:, place]
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
