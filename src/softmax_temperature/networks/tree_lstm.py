"""The Tree-LSTM, a classifier of parse trees (focal paper, appendix E)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LEFT, RIGHT, WORD
from softmax_temperature.networks.layers import Classifier, upload

# Deviation: the sizes of memory and embedding and the dropout before the classifier are
# those of Tai et al. 2015 for this task, because the focal paper gives none. Our leaves
# and inner nodes have separate biases; in equations 9 to 14 of Tai et al. all nodes
# share the same biases, and the released code has no input gate at leaves and no output
# gate at inner nodes.
# Deviation: neutral is a third class in training, as in the released code, and we leave
# it out of the softmax in evaluation, so that the probabilities of the other two
# classes add up to 1. The released code predicts the more probable of these two, and
# takes its probability among all three classes as the confidence. Appendix E says that
# the nodes of training trees are positive, neutral or negative and that test sentences
# are never neutral, but not how the neutral class is treated.


class TreeLSTM(Classifier):
    """Word embeddings, a memory for each node, and a linear classifier.

    The memory of an inner node is computed from the states and memories of its two
    children.

    Args:
        vocabulary_size: Number of distinct token IDs, including the reserved ones.
        embedding: Length of a word's vector.
        hidden: Length of a memory and of a state.
        dropout: Probability of dropping an entry of a state in training.
        num_classes: Number of logits of a root in evaluation. In training, every node
            has one more logit.
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
        # Add one more logit, for the neutral nodes of training trees.
        self.classifier = nn.Linear(hidden, num_classes + 1)

    def states(self, trees: Tensor) -> Tensor:
        """The state of every node, (n, nodes, hidden) float32; 0 for padding.

        Args:
            trees: Trees from `encode_trees`, an int64 tensor of shape (n, nodes, 4).
        """
        device = self.leaf.weight.device
        plan = _plan(trees)
        words, nodes, *positions = upload(
            device, plan.words, torch.cat(plan.levels), *plan.positions
        )
        with torch.autocast(device.type, enabled=False):
            states = self._states_by_level(words, positions, plan.leaf_counts)
        size, length = trees.shape[:2]
        flat = states.new_zeros(size * length, states.shape[1])
        return flat.index_copy(0, nodes, states).view(size, length, -1)

    def features(self, inputs: Tensor) -> Tensor:
        """The states of the roots, (n, hidden) float32, for evaluation."""
        return self.states(inputs)[:, 0]

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of trees from `encode_trees`.

        Returns:
            Logits of the roots, shape (n, num_classes); in training, logits of all
            nodes, shape (n, nodes, num_classes + 1).
        """
        if not self.training:
            return super().forward(inputs)[:, : self.num_classes]
        logits: Tensor = self.classifier(self.dropout(self.states(inputs)))
        return logits

    def _states_by_level(
        self, words: Tensor, positions: list[Tensor], leaf_counts: list[int]
    ) -> Tensor:
        """The states of all levels, roots first, computed from the deepest level up."""
        gates = self.leaf(self.embedding(words))
        input_gate, output_gate, update = gates.chunk(3, dim=1)
        all_leaves = _state_and_memory(input_gate, output_gate, update)
        leaves_by_level = all_leaves.split(leaf_counts, dim=1)
        states: list[Tensor] = []
        level = all_leaves[:, :0]
        for order, leaves in zip(
            reversed(positions), reversed(leaves_by_level), strict=True
        ):
            inner_nodes = self._joined(level)
            level = torch.cat([inner_nodes, leaves], dim=1)[:, order]
            states.append(level[0])
        states.reverse()
        return torch.cat(states)

    def _joined(self, below: Tensor) -> Tensor:
        """State and memory of inner nodes, (2, n, hidden).

        `below`, (2, 2n, hidden), holds state and memory of the left children, followed
        by the right children.
        """
        states, memories = below
        left_states, right_states = states.chunk(2)
        left_memories, right_memories = memories.chunk(2)
        gates = self.inner(torch.cat([left_states, right_states], dim=1))
        input_gate, left_gate, right_gate, output_gate, update = gates.chunk(5, dim=1)
        left = left_gate.sigmoid() * left_memories
        right = right_gate.sigmoid() * right_memories
        return _state_and_memory(input_gate, output_gate, update, left + right)


def _state_and_memory(
    input_gate: Tensor,
    output_gate: Tensor,
    update: Tensor,
    memory_below: Tensor | float = 0.0,
) -> Tensor:
    """The state and the memory of n nodes, (2, n, hidden), from their gates."""
    memory = input_gate.sigmoid() * update.tanh() + memory_below
    state = output_gate.sigmoid() * memory.tanh()
    return torch.stack([state, memory])


@dataclass(frozen=True)
class _Plan:
    """The nodes of a batch of trees by level, from the roots' level down.

    A level holds the left children of the level above, then the right children.

    Attributes:
        levels: Indices of each level's nodes in the flattened batch.
        positions: For each level, the positions that its nodes would have if its inner
            nodes came before its leaves.
        leaf_counts: The number of leaves of each level.
        words: The words of the leaves of all levels.
    """

    levels: list[Tensor]
    positions: list[Tensor]
    leaf_counts: list[int]
    words: Tensor


def _plan(trees: Tensor) -> _Plan:
    size, length = trees.shape[:2]
    roots = torch.arange(size, device=trees.device) * length
    words = trees[..., WORD].flatten()
    left = (trees[..., LEFT] + roots[:, None]).flatten()
    right = (trees[..., RIGHT] + roots[:, None]).flatten()
    is_inner = trees[..., LEFT].flatten() > 0
    levels: list[Tensor] = []
    level = roots
    while len(level):
        levels.append(level)
        inner_nodes = level[is_inner[level]]
        level = torch.cat([left[inner_nodes], right[inner_nodes]])
    positions: list[Tensor] = []
    leaf_counts: list[int] = []
    leaves: list[Tensor] = []
    for level in levels:
        is_leaf = words[level] != PADDING
        positions.append(_inner_first(is_leaf))
        leaf_counts.append(int(is_leaf.sum()))
        leaves.append(level[is_leaf])
    return _Plan(levels, positions, leaf_counts, words[torch.cat(leaves)])


def _inner_first(is_leaf: Tensor) -> Tensor:
    """Positions that nodes would have, (n,), if inner nodes came before leaves."""
    inner_count = len(is_leaf) - int(is_leaf.sum())
    as_leaf = inner_count + is_leaf.cumsum(0) - 1
    as_inner = (~is_leaf).cumsum(0) - 1
    return torch.where(is_leaf, as_leaf, as_inner)
