"""Classifiers of texts: by their equations, and blind to padding to the last bit."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.texts import GRU, TextCNN
from softmax_temperature.training import last_layer_inputs

VOCABULARY, LENGTH = 13, 40
LENGTHS = (40, 1, 25, 11, 12, 10, 33) + 33 * (17,)
"""Shorter and longer than the 11 tokens that three convolutions of width 3 see; more texts than one group of them."""
LABELS = torch.arange(len(LENGTHS)) % 3


def gru() -> GRU:
    with drawn_from(0):
        return GRU(VOCABULARY, embedding=5, hidden=7, num_classes=3)


def text_cnn() -> TextCNN:
    with drawn_from(0):
        model = TextCNN(VOCABULARY, embedding=5, filters=6, width=3, dense=7, dropout=0.0, num_classes=3)
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
    return logits, list(torch.autograd.grad(F.cross_entropy(logits, LABELS), list(model.parameters())))


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


def by_equations(model: GRU, row: list[int]) -> Tensor:
    """The state after a text, one token and one gate at a time (Cho et al. 2014, with PyTorch's two biases)."""
    weights = model.recurrent.state_dict()
    inner, outer = weights["weight_ih_l0"].double().chunk(3), weights["weight_hh_l0"].double().chunk(3)
    inner_bias, outer_bias = weights["bias_ih_l0"].double().chunk(3), weights["bias_hh_l0"].double().chunk(3)
    state = torch.zeros(7, dtype=torch.float64)
    for token in row:
        word = model.embedding.weight[token].detach().double()
        of_word = [weight @ word + bias for weight, bias in zip(inner, inner_bias, strict=True)]
        of_state = [weight @ state + bias for weight, bias in zip(outer, outer_bias, strict=True)]
        reset, update = ((one + other).sigmoid() for one, other in zip(of_word[:2], of_state[:2], strict=True))
        new = (of_word[2] + reset * of_state[2]).tanh()
        state = (1 - update) * new + update * state
    return state


def test_features_of_a_gru_are_the_states_after_the_last_tokens_by_the_equations() -> None:
    model, rows = gru(), tokens()
    expected = torch.stack([by_equations(model, row[:own].tolist()) for row, own in zip(rows, LENGTHS, strict=True)])
    torch.testing.assert_close(model.features(rows).double(), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(model.classifier(model.features(rows)), model(rows))


def test_under_autocast_all_of_a_gru_stays_float32() -> None:
    model, rows = gru(), tokens()
    with torch.autocast("cpu", torch.bfloat16):
        logits, features = last_layer_inputs(model, rows)
    assert logits.dtype == features.dtype == torch.float32
    assert torch.equal(logits, model(rows))


# ---- the global-pooling network


def by_layers(model: TextCNN, row: list[int]) -> Tensor:
    """One text, one place at a time: what each filter sees, and its maximum over neighbours, and over all."""
    row = row + [PADDING] * (11 - len(row))
    places = [model.embedding.weight[token].detach().double() for token in row]
    first, second, third = (model.convolutions[number] for number in (0, 3, 6))
    for number, layer in enumerate((first, second, third)):
        weight, bias = layer.weight.detach().double(), layer.bias.detach().double()
        seen = [torch.stack(places[place : place + 3], dim=1) for place in range(len(places) - 2)]
        places = [((weight * window).sum((1, 2)) + bias).clamp(min=0) for window in seen]
        if number < 2:
            places = [torch.stack(places[place : place + 3]).amax(0) for place in range(len(places) - 2)]
    dense = model.hidden[0]
    pooled = torch.stack(places).amax(0)
    return (dense.weight.detach().double() @ pooled + dense.bias.detach().double()).clamp(min=0)


def test_features_of_a_text_cnn_are_those_of_its_layers_one_text_after_the_other() -> None:
    model, rows = text_cnn(), tokens()
    expected = torch.stack([by_layers(model, row[:own].tolist()) for row, own in zip(rows, LENGTHS, strict=True)])
    assert expected.std(0).max() > 1e-3
    torch.testing.assert_close(model.features(rows).double(), expected, rtol=1e-5, atol=1e-7)
    assert torch.equal(model.classifier(model.features(rows)), model(rows))
