"""Speed of the Tree-LSTM batched by depth against one node after the other.

Forward and backward passes are timed, without the optimizer. The sizes are the paper's:
embeddings of 300 numbers, memories of 150, and 25 trees per batch. The trees are
random; on average they have as many words (20) and levels (10) as the trees of the
Stanford Sentiment Treebank. The tests compare the plain form's outputs and gradients
with the batched form's. Both compute the same loss over all labelled nodes.
"""

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.program import print_result
from benchmarks.timing import gpu_gibibytes, seconds
from softmax_temperature.data.trees import LABEL, UNLABELLED, encode_trees, parse_tree
from softmax_temperature.networks.tree_lstm import TreeLSTM
from tests.networks.node_by_node import plain_states

# Size of the vocabulary, and the largest number of words in a sentence.
WORDS = 1000
MOST = 38
TREES = 25
QUICK_TREES = 3
ROUNDS = {"cpu": 15, "cuda": 100}
QUICK_ROUNDS = 1
# Probability that the left child of a node is a single word.
CHAINED = 0.5


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time forward and backward passes of one batch, alternating between the two ways.

    Args:
        quick: Use few trees and one round.

    Returns:
        name, size, precision, rounds, threads; seconds of each way; ratio, the median
        of plain over batched; trees per second and GPU memory of the batched way; and
        the largest difference between the gradients of the two ways.
    """
    generator = torch.Generator().manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count = QUICK_TREES if quick else TREES
    rounds = QUICK_ROUNDS if quick else ROUNDS[device]
    trees = random_trees(count, generator)
    torch.manual_seed(0)
    network = TreeLSTM(WORDS + 2, embedding=300, hidden=150, dropout=0.0).to(device)
    # The batched form gets trees in the host's memory, as it does during training.
    batched = step(network, trees, network.states)
    plain = step(network, trees.to(device), lambda batch: plain_states(network, batch))
    differences = [
        (batched_gradient - plain_gradient).abs().max().item()
        for batched_gradient, plain_gradient in zip(batched(), plain(), strict=True)
    ]
    memory = gpu_gibibytes(batched)
    times = [(seconds(batched), seconds(plain)) for _ in range(rounds)]
    words = int((trees[..., 0] > 0).sum())
    return {
        "name": "Tree-LSTM batched by depth against one node after the other",
        "size": f"{count} trees with {words} words, embedding 300, memory 150",
        "precision": "float32",
        "rounds": rounds,
        "threads": torch.get_num_threads(),
        "batched_seconds": median(fast for fast, _ in times),
        "plain_seconds": median(slow for _, slow in times),
        "ratio": median(slow / fast for fast, slow in times),
        "trees_per_second": count / median(fast for fast, _ in times),
        "gpu_gibibytes": memory,
        "difference": max(differences),
    }


def random_trees(count: int, generator: torch.Generator) -> Tensor:
    """Encoded trees (n, nodes, 4) with random words, labels and shapes."""

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=generator))

    def written(words: int) -> str:
        if words == 1:
            return f"({draw(0, 5)} w{draw(0, WORDS)})"
        chained = torch.rand(1, generator=generator).item() < CHAINED
        left = 1 if chained else draw(1, words)
        return f"({draw(0, 5)} {written(left)} {written(words - left)})"

    parsed = [parse_tree(written(draw(2, MOST + 1))) for _ in range(count)]
    return encode_trees(parsed, [f"w{number}" for number in range(WORDS)])


def step(
    network: TreeLSTM, trees: Tensor, states: Callable[[Tensor], Tensor]
) -> Callable[[], tuple[Tensor, ...]]:
    """A function that computes the gradients of the loss over all labelled nodes.

    `states` maps trees to the states of their nodes.
    """
    labels = trees[..., LABEL].to(network.classifier.weight.device)
    labelled = labels != UNLABELLED
    parameters = list(network.parameters())

    def gradients() -> tuple[Tensor, ...]:
        logits = network.classifier(states(trees))
        loss = F.cross_entropy(logits[labelled], labels[labelled])
        return torch.autograd.grad(loss, parameters)

    return gradients


if __name__ == "__main__":
    sys.exit(print_result(measure, __doc__))
