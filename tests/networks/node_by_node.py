"""The Tree-LSTM one node after the other, by equations 9 to 14 of Tai et al. 2015: what
the fast one must equal.

Tests compare their numbers, a benchmark their speed.
"""

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import WORD
from softmax_temperature.networks.tree_lstm import TreeLSTM


def plain_states(model: TreeLSTM, trees: Tensor) -> Tensor:
    """What `TreeLSTM.states` gives: the state of every node of trees (n, nodes, 4), 0
    where there is none.
    """
    rows = []
    for tree in trees:
        found = _below(
            model, tree.tolist(), model.leaf(model.embedding(tree[:, WORD])), 0
        )
        nothing = model.leaf.bias.new_zeros(model.classifier.in_features)
        rows.append(
            torch.stack(
                [
                    found[node][0] if node in found else nothing
                    for node in range(len(tree))
                ]
            )
        )
    return torch.stack(rows)


def _below(
    model: TreeLSTM, tree: list[list[int]], gates: Tensor, node: int
) -> dict[int, tuple[Tensor, Tensor]]:
    """State and memory of a node and of all below it; `gates` are those that each word
    would have as a leaf.
    """
    word, left, right, _ = tree[node]
    if word != PADDING:
        taken, shown, new = gates[node].chunk(3)
        memory = taken.sigmoid() * new.tanh()
        return {node: (shown.sigmoid() * memory.tanh(), memory)}
    found = _below(model, tree, gates, left) | _below(model, tree, gates, right)
    (left_state, left_memory), (right_state, right_memory) = found[left], found[right]
    taken, keeps_left, keeps_right, shown, new = model.inner(
        torch.cat([left_state, right_state])
    ).chunk(5)
    memory = (
        taken.sigmoid() * new.tanh()
        + keeps_left.sigmoid() * left_memory
        + keeps_right.sigmoid() * right_memory
    )
    return found | {node: (shown.sigmoid() * memory.tanh(), memory)}
