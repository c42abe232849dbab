"""The text CNN gives the same results as a computation for one text at a time.

Padding changes no bit.
"""

import pytest
import torch
from torch import Tensor

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.text_cnn import TextCNN
from tests.networks.token_rows import (
    CLASSES,
    LENGTHS,
    VOCABULARY,
    assert_padding_changes_no_bit,
    tokens,
)

LEAST = 11
SIZES = {"embedding": 5, "filters": 6, "width": 3, "dense": 7}


def text_cnn() -> TextCNN:
    """A network whose biases are not zero, as if it had been trained."""
    with drawn_from(0):
        network = TextCNN(VOCABULARY, **SIZES, dropout=0.0, num_classes=CLASSES)
        for layer in (0, 3, 6):
            torch.nn.init.normal_(network.convolutions[layer].bias, std=0.01)
        return network


@pytest.mark.parametrize("length", [41, 400])
def test_padding_changes_no_bit_of_logits_and_gradients(length: int) -> None:
    assert_padding_changes_no_bit(text_cnn(), length)


def features_of_one(network: TextCNN, row: list[int]) -> Tensor:
    """Features of one text, which is padded to the minimum length."""
    padding = [PADDING] * (LEAST - len(row))
    words = network.embedding(torch.tensor(row + padding))
    maxima = network.convolutions(words.T[None]).amax(2)
    features: Tensor = network.hidden(maxima[0])
    return features


def test_features_equal_those_of_one_text_after_the_other() -> None:
    network = text_cnn()
    texts = [row[:size].tolist() for row, size in zip(tokens(), LENGTHS, strict=True)]
    expected = torch.stack([features_of_one(network, text) for text in texts])
    assert expected.std(0).max() > 1e-3
    features = network.features(tokens())
    torch.testing.assert_close(features, expected, rtol=1e-5, atol=1e-7)
    assert torch.equal(network.classifier(features), network(tokens()))
