"""The Tree-LSTM batched by depth gives what one node after the other does: the same
outputs and gradients.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LABEL, encode_trees, parse_tree
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.tree_lstm import TreeLSTM
from tests.networks.node_by_node import plain_states

WORDS = ("a", "b", "c", "d", "e")
VOCABULARY, HIDDEN, CLASSES = len(WORDS) + 2, 6, 2


def random_tree(leaves: int, generator: torch.Generator, *, chain: bool = False) -> str:
    """A tree in brackets with so many words, of a random shape or as deep as can be."""
    label = int(torch.randint(5, (1,), generator=generator))
    if leaves == 1:
        return f"({label} {WORDS[int(torch.randint(len(WORDS), (1,), generator=generator))]})"
    left = 1 if chain else int(torch.randint(1, leaves, (1,), generator=generator))
    below = (
        random_tree(count, generator, chain=chain) for count in (left, leaves - left)
    )
    return f"({label} {' '.join(below)})"


def trees() -> Tensor:
    """Random shapes, a single word, a chain, and words that nothing knows."""
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


def test_outputs_and_gradients_are_those_of_one_node_after_the_other() -> None:
    model, batch = network(), trees()
    by_depth, plain = model.states(batch), plain_states(model, batch)
    torch.testing.assert_close(by_depth, plain, rtol=1e-12, atol=1e-14)
    parameters = list(model.parameters())
    found, expected = (
        torch.autograd.grad(loss_of(model, states, batch), parameters)
        for states in (by_depth, plain)
    )
    assert not found[0][PADDING].any()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)
        assert one.abs().max() > 0


def test_training_gives_logits_of_all_nodes_and_evaluation_those_of_the_roots() -> None:
    model, batch = network(), trees()
    of_nodes, of_roots = model.train()(batch), model.eval()(batch)
    assert of_nodes.shape == (len(batch), batch.shape[1], CLASSES + 1)
    assert of_roots.shape == (len(batch), CLASSES), "what is judged is never neutral"
    torch.testing.assert_close(
        of_nodes[:, 0, :CLASSES], of_roots, rtol=1e-12, atol=1e-12
    )
    assert torch.equal(model.classifier(model.features(batch))[:, :CLASSES], of_roots)


def test_padding_and_labels_have_no_say() -> None:
    model, batch = network().eval(), trees()
    padded = F.pad(batch, (0, 0, 0, 30))
    padded[..., LABEL] = 1
    assert torch.equal(model(padded), model(batch))
