"""The Tree-LSTM gives the same results in batches by depth as node by node."""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LABEL, encode_trees, parse_tree
from softmax_temperature.networks.tree_lstm import TreeLSTM
from tests.networks.node_by_node import plain_states

WORDS = ("a", "b", "c", "d", "e")
VOCABULARY = len(WORDS) + 2
HIDDEN = 6
CLASSES = 2


def random_tree(leaves: int, generator: torch.Generator, *, chain: bool = False) -> str:
    """A bracketed tree with `leaves` words, of random shape or a chain."""

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=generator))

    label = draw(0, 5)
    if leaves == 1:
        return f"({label} {WORDS[draw(0, len(WORDS))]})"
    left_leaves = 1 if chain else draw(1, leaves)
    left = random_tree(left_leaves, generator, chain=chain)
    right = random_tree(leaves - left_leaves, generator, chain=chain)
    return f"({label} {left} {right})"


def trees() -> Tensor:
    """Encode trees of random shapes, one of them a single word, a chain, and a tree
    with unknown words.
    """
    generator = torch.Generator().manual_seed(0)
    texts = [random_tree(leaves, generator) for leaves in (1, 2, 3, 7, 12, 20, 20)]
    texts += [random_tree(15, generator, chain=True), "(3 (2 x) (1 (4 a) (0 y)))"]
    return encode_trees([parse_tree(text) for text in texts], WORDS)


def network() -> TreeLSTM:
    with drawn_from(0):
        sizes = {"embedding": 4, "hidden": HIDDEN, "num_classes": CLASSES}
        return TreeLSTM(VOCABULARY, **sizes, dropout=0.0).double()


def loss_of(model: TreeLSTM, states: Tensor, batch: Tensor) -> Tensor:
    labels = batch[..., LABEL]
    return F.cross_entropy(model.classifier(states)[labels >= 0], labels[labels >= 0])


def test_states_and_gradients_equal_those_of_the_node_by_node_network() -> None:
    model = network()
    batch = trees()
    by_depth = model.states(batch)
    plain = plain_states(model, batch)
    torch.testing.assert_close(by_depth, plain, rtol=1e-12, atol=1e-14)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss_of(model, by_depth, batch), parameters)
    expected = torch.autograd.grad(loss_of(model, plain, batch), parameters)
    assert not gradients[0][PADDING].any()
    for gradient, plain_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, plain_gradient, rtol=1e-10, atol=1e-13)
        assert gradient.abs().max() > 0


def test_training_gives_logits_of_all_nodes_and_evaluation_those_of_the_roots() -> None:
    model = network()
    batch = trees()
    of_nodes = model.train()(batch)
    of_roots = model.eval()(batch)
    assert of_nodes.shape == (len(batch), batch.shape[1], CLASSES + 1)
    assert of_roots.shape == (len(batch), CLASSES), "in evaluation, no neutral class"
    torch.testing.assert_close(
        of_nodes[:, 0, :CLASSES], of_roots, rtol=1e-12, atol=1e-12
    )
    assert torch.equal(model.classifier(model.features(batch))[:, :CLASSES], of_roots)


def test_padding_and_labels_do_not_change_the_logits() -> None:
    model = network().eval()
    batch = trees()
    padded = F.pad(batch, (0, 0, 0, 30))
    padded[..., LABEL] = 1
    assert torch.equal(model(padded), model(batch))
