"""The global-pooling network: by its layers, one text after the other, and blind to padding."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.texts import TextCNN
from softmax_temperature.params.network import Network, architectures
from softmax_temperature.training import build_network, check_network, count_parameters, last_layer_inputs

VOCABULARY, LENGTH = 13, 40
LENGTHS = (40, 1, 25, 11, 12, 10, 33) + 33 * (17,)
"""Shorter and longer than the 11 tokens that three convolutions of width 3 see; more texts than one group of them."""


def network(**changes: float) -> TextCNN:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"embedding": 5, "filters": 6, "width": 3, "dense": 7, "dropout": 0.0, "num_classes": 3}
        model = TextCNN(VOCABULARY, **{**sizes, **changes})  # type: ignore[arg-type]
        for layer in (0, 3, 6):  # As after some training, so that biases have a say.
            torch.nn.init.normal_(model.convolutions[layer].bias, std=0.01)
        return model


def tokens(length: int = LENGTH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    rows = torch.full((len(LENGTHS), length), PADDING)
    for row, own in enumerate(LENGTHS):
        rows[row, :own] = torch.randint(1, VOCABULARY, (own,), generator=generator)
    return rows


LABELS = torch.arange(len(LENGTHS)) % 3


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


def test_features_are_those_of_its_layers_one_text_after_the_other() -> None:
    model, rows = network(), tokens()
    expected = torch.stack([by_layers(model, row[:own].tolist()) for row, own in zip(rows, LENGTHS, strict=True)])
    assert expected.std(0).max() > 1e-3
    torch.testing.assert_close(model.features(rows).double(), expected, rtol=1e-5, atol=1e-7)
    weight, bias = model.classifier.weight.double(), model.classifier.bias.double()
    torch.testing.assert_close(model(rows).double(), expected @ weight.T + bias, rtol=1e-5, atol=1e-6)


def gradients(model: TextCNN, rows: Tensor) -> tuple[Tensor, list[Tensor]]:
    logits = model(rows)
    return logits, list(torch.autograd.grad(F.cross_entropy(logits, LABELS), list(model.parameters())))


@pytest.mark.parametrize("length", [41, 100, 1000])
def test_padding_changes_no_bit_of_logits_and_gradients(length: int) -> None:
    model = network()
    logits, slopes = gradients(model, tokens())
    padded_logits, padded_slopes = gradients(model, tokens(length))
    assert torch.equal(logits, padded_logits)
    for one, other in zip(slopes, padded_slopes, strict=True):
        assert torch.equal(one, other)
        assert one.abs().max() > 0


def test_short_texts_alone_are_no_wider_than_they_have_to_be() -> None:
    model, rows = network(), tokens()
    for row, own in ((1, 1), (5, 10)):
        assert torch.equal(model(rows[[row], :own]), model(rows[[row]]))
        torch.testing.assert_close(model(rows[[row], :own]), model(rows)[[row]])


def test_what_stands_for_padding_is_never_learned() -> None:
    _, slopes = gradients(network(), tokens())
    assert not slopes[0][PADDING].any()
    assert not network().embedding.weight[PADDING].any()


def test_order_of_the_texts_and_company_have_no_say() -> None:
    model, rows = network(), tokens()
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(rows[order]), model(rows)[order])


def test_the_order_of_words_has_a_say() -> None:
    model, rows = network(), tokens()
    turned = rows.clone()
    turned[0] = rows[0].flip(0)
    assert not torch.allclose(model(turned)[0], model(rows)[0])


def test_dropout_is_for_training_alone() -> None:
    model, rows = network(dropout=0.5), tokens()
    assert torch.equal(model.eval()(rows), network()(rows))
    assert not torch.equal(model.train()(rows), network()(rows))


def test_the_sizes_of_the_released_code_are_the_defaults() -> None:
    model = TextCNN(20_002)
    convolutions = [layer for layer in model.convolutions if isinstance(layer, torch.nn.Conv1d)]
    assert [(layer.in_channels, layer.out_channels, layer.kernel_size) for layer in convolutions] == [
        (100, 128, (5,)),
        (128, 128, (5,)),
        (128, 128, (5,)),
    ]
    assert (model.hidden[0].out_features, model.hidden[2].p, model.classifier.out_features) == (128, 0.3, 20)
    rest = 128 * 100 * 5 + 2 * 128 * 128 * 5 + 3 * 128 + 128 * 128 + 128 + 128 * 20 + 20
    assert count_parameters(model) == 20_002 * 100 + rest


def test_weights_start_as_keras_draws_them() -> None:
    model = TextCNN(1000, embedding=20)
    assert model.embedding.weight.abs().max() <= 0.05 < 1.1 * model.embedding.weight.abs().max()
    bound = (6 / (5 * 20 + 5 * 128)) ** 0.5
    first = model.convolutions[0]
    assert first.weight.abs().max() <= bound < 1.1 * first.weight.abs().max()
    assert not any(layer.bias.any() for layer in (first, model.hidden[0], model.classifier))


def test_a_profile_can_name_it() -> None:
    assert "text_cnn" in architectures()
    spec = Network(architecture="text_cnn", arguments={"vocabulary_size": VOCABULARY, "width": 3, "dense": 9})
    check_network(spec)
    model = build_network(spec, classes=4, seed=0).eval()
    logits, features = last_layer_inputs(model, tokens())
    assert (tuple(logits.shape), tuple(features.shape)) == ((len(LENGTHS), 4), (len(LENGTHS), 9))
    assert torch.equal(copy.deepcopy(model)(tokens()), logits)


# ---- refusals


@pytest.mark.parametrize("name", ["vocabulary_size", "embedding", "filters", "width", "dense", "num_classes"])
def test_an_argument_that_is_too_small_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least ., got 0"):
        TextCNN(**{"vocabulary_size": 5, name: 0})


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_a_dropout_outside_its_range_is_refused(dropout: float) -> None:
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got"):
        network(dropout=dropout)


def test_what_is_no_batch_of_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tokens must have shape \(n, length\), got \(2, 3, 4\)"):
        network()(torch.ones(2, 3, 4).long())
    rows = tokens()
    rows[2, 0] = VOCABULARY
    with pytest.raises(ValueError, match=f"tokens must be below the vocabulary's size {VOCABULARY}, got {VOCABULARY}"):
        network()(rows)
