"""The GRU: by its equations, and blind to padding to the last bit."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.cooling import Cooling
from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.texts import GRU
from softmax_temperature.params.network import Network, architectures
from softmax_temperature.training import build_network, check_network, count_parameters, last_layer_inputs

VOCABULARY, LENGTH = 11, 9
LENGTHS = (4, 9, 1, 6, 4, 2)


def network(**changes: int) -> GRU:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GRU(VOCABULARY, **{"embedding": 5, "hidden": 7, "num_classes": 3, **changes})


def tokens(length: int = LENGTH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    rows = torch.full((len(LENGTHS), length), PADDING)
    for row, own in enumerate(LENGTHS):
        rows[row, :own] = torch.randint(1, VOCABULARY, (own,), generator=generator)
    return rows


LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


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


def test_features_are_the_states_after_the_last_tokens_by_the_equations() -> None:
    model, rows = network(), tokens()
    expected = torch.stack([by_equations(model, row[:own].tolist()) for row, own in zip(rows, LENGTHS, strict=True)])
    torch.testing.assert_close(model.features(rows).double(), expected, rtol=1e-5, atol=1e-6)
    weight, bias = model.classifier.weight.double(), model.classifier.bias.double()
    torch.testing.assert_close(model(rows).double(), expected @ weight.T + bias, rtol=1e-5, atol=1e-6)


def gradients(model: GRU, rows: Tensor) -> tuple[Tensor, list[Tensor]]:
    logits = model(rows)
    return logits, list(torch.autograd.grad(F.cross_entropy(logits, LABELS), list(model.parameters())))


@pytest.mark.parametrize("length", [10, 50, 400])
def test_padding_changes_no_bit_of_logits_and_gradients(length: int) -> None:
    model = network()
    logits, slopes = gradients(model, tokens())
    padded_logits, padded_slopes = gradients(model, tokens(length))
    assert torch.equal(logits, padded_logits)
    for one, other in zip(slopes, padded_slopes, strict=True):
        assert torch.equal(one, other)
        assert one.abs().max() > 0


def test_what_stands_for_padding_has_no_say_and_is_never_learned() -> None:
    model = network()
    logits, slopes = gradients(model, tokens())
    changed = copy.deepcopy(model)
    with torch.no_grad():
        changed.embedding.weight[PADDING] = 30.0
    same_logits, same_slopes = gradients(changed, tokens())
    assert torch.equal(logits, same_logits)
    assert all(torch.equal(one, other) for one, other in zip(slopes, same_slopes, strict=True))
    assert not slopes[0][PADDING].any()
    assert not model.embedding.weight[PADDING].any()


def test_the_other_texts_of_a_batch_have_no_say() -> None:
    model, rows = network(), tokens()
    alone = torch.cat([model(row[None]) for row in rows])
    torch.testing.assert_close(model(rows), alone, rtol=1e-5, atol=1e-6)


def test_the_order_of_words_matters() -> None:
    model, rows = network(), tokens()
    assert (model(rows) - model(rows.flip(1).sort(1, descending=True).values)).abs().max() > 1e-3


# ---- as architectures are used


def test_it_is_found_by_its_name_and_takes_its_arguments() -> None:
    assert "gru" in architectures()
    spec = Network(architecture="gru", arguments={"vocabulary_size": 20, "embedding": 6, "hidden": 4})
    check_network(spec)
    built = build_network(spec, classes=3, seed=0)
    # Words 20·6; gates 3·4·(6 + 4) weights and two biases each; the classifier 4·3 + 3.
    assert count_parameters(built) == 120 + 3 * 4 * 10 + 2 * 12 + 15
    assert built(tokens() % 20).shape == (6, 3)


def test_the_last_layer_is_given_with_its_inputs() -> None:
    model, rows = network(), tokens()
    logits, features = last_layer_inputs(model, rows)
    assert torch.equal(logits, model(rows))
    assert torch.equal(features, model.features(rows))


def test_under_autocast_all_of_it_stays_float32() -> None:
    model, rows = network(), tokens()
    with torch.autocast("cpu", torch.bfloat16):
        logits, features = last_layer_inputs(model, rows)
    assert logits.dtype == features.dtype == torch.float32
    assert torch.equal(logits, model(rows))


def test_last_layer_cooling_takes_hold_of_it_and_the_others_say_why_not() -> None:
    model, rows = network(), tokens()
    before = model(rows).detach()
    applied = Cooling(model, mode="last_layer").cool(before, LABELS)
    torch.testing.assert_close(model(rows), before / applied)
    with pytest.raises(ValueError, match="the network's own forward has no fixed graph"):
        Cooling(network(), mode="distributed")


# ---- refusals


def test_a_text_without_tokens_is_named() -> None:
    rows = tokens()
    rows[3] = PADDING
    with pytest.raises(ValueError, match="tokens must have one in every row, got none in row 3"):
        network()(rows)


def test_a_token_beyond_the_vocabulary_is_named() -> None:
    rows = tokens()
    rows[2, 0] = VOCABULARY
    with pytest.raises(ValueError, match=f"tokens must be below the vocabulary's size {VOCABULARY}, got {VOCABULARY}"):
        network()(rows)


@pytest.mark.parametrize("name", ["vocabulary_size", "embedding", "hidden", "num_classes"])
def test_an_argument_that_is_too_small_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least ., got 0"):
        GRU(**{"vocabulary_size": 5, name: 0})
