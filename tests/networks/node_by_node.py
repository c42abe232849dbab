"""The Tree-LSTM, computed node by node: equations 9 to 14 of Tai et al. 2015.

Tests compare its values with those of the batched network; a benchmark compares its
speed.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import WORD
from softmax_temperature.networks.tree_lstm import TreeLSTM


class Node(NamedTuple):
    """State and memory of one node."""

    state: Tensor
    memory: Tensor


def plain_states(model: TreeLSTM, trees: Tensor) -> Tensor:
    """The state of every node, in shape (n, nodes, hidden); 0 where the node is
    padding.
    """
    return torch.stack([_states_of_tree(model, tree) for tree in trees])


def _states_of_tree(model: TreeLSTM, tree: Tensor) -> Tensor:
    leaf_gates = model.leaf(model.embedding(tree[:, WORD]))
    nodes: dict[int, Node] = {}
    _add(nodes, model, tree.tolist(), leaf_gates, 0)
    zero = model.leaf.bias.new_zeros(model.classifier.in_features)
    states = [nodes[row].state if row in nodes else zero for row in range(len(tree))]
    return torch.stack(states)


def _add(
    nodes: dict[int, Node],
    model: TreeLSTM,
    tree: list[list[int]],
    leaf_gates: Tensor,
    row: int,
) -> Node:
    """Add a node and all nodes below it to `nodes`, and return the node.

    `leaf_gates` has one row of gates per row of the tree, computed from the row's word.
    """
    word, left_row, right_row, _ = tree[row]
    if word != PADDING:
        input_gate, output_gate, update = leaf_gates[row].chunk(3)
        memory = input_gate.sigmoid() * update.tanh()
    else:
        left = _add(nodes, model, tree, leaf_gates, left_row)
        right = _add(nodes, model, tree, leaf_gates, right_row)
        gates = model.inner(torch.cat([left.state, right.state])).chunk(5)
        input_gate, left_gate, right_gate, output_gate, update = gates
        memory = (
            input_gate.sigmoid() * update.tanh()
            + left_gate.sigmoid() * left.memory
            + right_gate.sigmoid() * right.memory
        )
    nodes[row] = Node(output_gate.sigmoid() * memory.tanh(), memory)
    return nodes[row]
