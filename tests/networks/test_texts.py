"""Classifiers of texts: by their equations, and blind to padding to the last bit."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.gru import GRU
from softmax_temperature.networks.layers import drawn_from, last_layer_inputs
from softmax_temperature.networks.text_cnn import TextCNN

VOCABULARY, LENGTH = 13, 40
LENGTHS = (40, 1, 25, 11, 12, 10, 33) + 33 * (17,)
"""Shorter and longer than the 11 tokens that three convolutions of width 3 see; more
texts than one group of them.
"""
LABELS = torch.arange(len(LENGTHS)) % 3


def gru() -> GRU:
    with drawn_from(0):
        return GRU(VOCABULARY, embedding=5, hidden=7, num_classes=3)


def text_cnn() -> TextCNN:
    with drawn_from(0):
        model = TextCNN(
            VOCABULARY,
            embedding=5,
            filters=6,
            width=3,
            dense=7,
            dropout=0.0,
            num_classes=3,
        )
        for layer in (0, 3, 6):  # As after some training, so that biases count too.
            torch.nn.init.normal_(model.convolutions[layer].bias, std=0.01)
        return model


EITHER = pytest.mark.parametrize("make", [gru, text_cnn])


def tokens(length: int = LENGTH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    rows = torch.full((len(LENGTHS), length), PADDING)
    for row, own in enumerate(LENGTHS):
        rows[row, :own] = torch.randint(1, VOCABULARY, (own,), generator=generator)
    return rows


def gradients(model: Any, rows: Tensor) -> tuple[Tensor, list[Tensor]]:
    logits = model(rows)
    return logits, list(
        torch.autograd.grad(F.cross_entropy(logits, LABELS), list(model.parameters()))
    )


@EITHER
@pytest.mark.parametrize("length", [41, 400])
def test_padding_changes_no_bit_of_logits_and_gradients(make: Any, length: int) -> None:
    logits, slopes = gradients(make(), tokens())
    assert not slopes[0][PADDING].any()
    padded_logits, padded_slopes = gradients(make(), tokens(length))
    assert torch.equal(logits, padded_logits)
    for one, other in zip(slopes, padded_slopes, strict=True):
        assert torch.equal(one, other)
        assert one.abs().max() > 0


# ---- the GRU


def test_features_of_a_gru_are_the_states_of_a_packed_sequence() -> None:
    model, rows = gru(), tokens()
    packed = pack_padded_sequence(
        model.embedding(rows),
        torch.tensor(LENGTHS),
        batch_first=True,
        enforce_sorted=False,
    )
    torch.testing.assert_close(
        model.features(rows), model.recurrent(packed)[1][0], rtol=1e-5, atol=1e-6
    )
    assert torch.equal(model.classifier(model.features(rows)), model(rows))


def test_under_autocast_all_of_a_gru_stays_float32() -> None:
    model, rows = gru(), tokens()
    with torch.autocast("cpu", torch.bfloat16):
        logits, features = last_layer_inputs(model, rows)
    assert logits.dtype == features.dtype == torch.float32
    assert torch.equal(logits, model(rows))


# ---- the global-pooling network


def alone(model: TextCNN, row: list[int]) -> Tensor:
    """The features of one text, which goes on with empty words up to the 11 that the
    convolutions read at least.
    """
    words = model.embedding(torch.tensor(row + [PADDING] * (11 - len(row))))
    features: Tensor = model.hidden(model.convolutions(words.T[None]).amax(2)[0])
    return features


def test_features_of_a_text_cnn_are_those_of_its_layers_one_text_after_the_other() -> (
    None
):
    model, rows = text_cnn(), tokens()
    expected = torch.stack(
        [
            alone(model, row[:own].tolist())
            for row, own in zip(rows, LENGTHS, strict=True)
        ]
    )
    assert expected.std(0).max() > 1e-3
    torch.testing.assert_close(model.features(rows), expected, rtol=1e-5, atol=1e-7)
    assert torch.equal(model.classifier(model.features(rows)), model(rows))
