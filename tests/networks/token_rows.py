"""Rows of tokens with many different lengths, for text classifiers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING

VOCABULARY = 13
CLASSES = 3
LENGTH = 40
# A feature of the text CNN reads 11 tokens, through three convolutions and two poolings
# of width 3. Some texts are shorter and some are longer. There are more texts than the
# network processes in one group.
LENGTHS = (40, 1, 25, 11, 12, 10, 33) + 33 * (17,)
LABELS = torch.arange(len(LENGTHS)) % CLASSES


def tokens(length: int = LENGTH) -> Tensor:
    """Random tokens of shape (texts, length), padded on the right."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.full((len(LENGTHS), length), PADDING)
    for row, size in enumerate(LENGTHS):
        rows[row, :size] = torch.randint(1, VOCABULARY, (size,), generator=generator)
    return rows


def logits_and_gradients(network: nn.Module, rows: Tensor) -> tuple[Tensor, Any]:
    logits = network(rows)
    loss = F.cross_entropy(logits, LABELS)
    return logits, torch.autograd.grad(loss, list(network.parameters()))


def assert_padding_changes_no_bit(network: nn.Module, length: int) -> None:
    """Compare logits and gradients with those for the same rows padded to `length`."""
    logits, gradients = logits_and_gradients(network, tokens())
    padded_logits, padded_gradients = logits_and_gradients(network, tokens(length))
    assert torch.equal(logits, padded_logits)
    for gradient, padded_gradient in zip(gradients, padded_gradients, strict=True):
        assert torch.equal(gradient, padded_gradient)
        assert gradient.abs().max() > 0
    embedding_gradient = gradients[0]
    assert not embedding_gradient[PADDING].any()
