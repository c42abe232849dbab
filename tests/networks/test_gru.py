"""The GRU gives the same results as torch does for packed sequences.

Padding changes no bit.
"""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.networks.gru import GRU
from softmax_temperature.networks.layers import last_layer_inputs
from tests.networks.token_rows import (
    CLASSES,
    LENGTHS,
    VOCABULARY,
    assert_padding_changes_no_bit,
    tokens,
)


def gru() -> GRU:
    with drawn_from(0):
        return GRU(VOCABULARY, embedding=5, hidden=7, num_classes=CLASSES)


@pytest.mark.parametrize("length", [41, 400])
def test_padding_changes_no_bit_of_logits_and_gradients(length: int) -> None:
    assert_padding_changes_no_bit(gru(), length)


def test_features_are_the_last_states_of_a_packed_sequence() -> None:
    network = gru()
    packed = pack_padded_sequence(
        network.embedding(tokens()),
        torch.tensor(LENGTHS),
        batch_first=True,
        enforce_sorted=False,
    )
    _, last_states = network.recurrent(packed)
    features = network.features(tokens())
    torch.testing.assert_close(features, last_states[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(network.classifier(features), network(tokens()))


def test_under_autocast_everything_stays_float32() -> None:
    network = gru()
    with torch.autocast("cpu", torch.bfloat16):
        logits, features = last_layer_inputs(network, tokens())
    assert logits.dtype == features.dtype == torch.float32
    assert torch.equal(logits, network(tokens()))
