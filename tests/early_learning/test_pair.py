import copy

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.pair import (
    CorrelatedPair,
    correlation_for_norm,
    frozen_parameters,
)
from softmax_temperature.networks.layers import Classifier, last_layer_inputs

from .conftest import make_network


class Recurrent(Classifier):
    """A recurrent network with dropout.

    Its GRU keeps a list of its weights in addition to the registered parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(5, 4, num_layers=2, dropout=0.5, batch_first=True)
        self.classifier = nn.Linear(4, 3)

    def features(self, inputs: Tensor) -> Tensor:
        return self.recurrent(inputs)[0][:, -1]


def make_pair(name: str, correlation: float) -> CorrelatedPair:
    return CorrelatedPair(make_network(name, 0), make_network(name, 1), correlation)


@pytest.mark.parametrize("name", ["mlp", "vgg", "wide-resnet-bn"])
@pytest.mark.parametrize("training", [True, False])
def test_with_correlation_1_logits_start_at_exactly_zero(
    images: Tensor, name: str, *, training: bool
) -> None:
    pair = make_pair(name, 1.0).train(training)
    assert (pair(images.float()) == 0).all()
    with torch.autocast("cpu", torch.bfloat16):
        logits, _ = last_layer_inputs(pair, images.float())
    assert logits.dtype == torch.float32
    assert (logits == 0).all()


@pytest.mark.parametrize("name", ["mlp", "wide-resnet"])
def test_logits_are_the_difference_and_grow_as_the_correlation_falls(
    images: Tensor, name: str
) -> None:
    inputs = images.float()
    first = make_network(name, 0).eval()
    second = make_network(name, 1).eval()
    # At correlation 0, the frozen network has the second draw as its weights.
    torch.testing.assert_close(
        make_pair(name, 0.0).eval()(inputs), first(inputs) - second(inputs)
    )
    norms = [
        make_pair(name, c).eval()(inputs).norm().item()
        for c in (1, 0.999, 0.99, 0.9, 0.5)
    ]
    assert norms == sorted(set(norms))
    # For correlations c near 1, the norms of the pair's logits are proportional to
    # sqrt(1 - c²), which is 0.0447 for 0.999 and 0.141 for 0.99.
    assert norms[2] / norms[1] == pytest.approx(0.141067 / 0.0447102, rel=0.1)


def test_a_share_scales_the_initial_logits_and_leaves_their_gradients(
    images: Tensor,
) -> None:
    network = make_network("mlp", 0).eval()
    inputs = images.float()
    pair = CorrelatedPair(network, network, 1.0, share=-4.0).eval()
    torch.testing.assert_close(pair(inputs), 5 * network(inputs))
    gradients = [
        torch.autograd.grad(model(inputs)[0, 0], model.classifier.weight)[0]
        for model in (pair, network)
    ]
    torch.testing.assert_close(*gradients)


def test_frozen_parameters_by_hand() -> None:
    first = nn.Linear(2, 2)
    first.weight.data = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    second = nn.Linear(2, 2)
    second.weight.data = torch.tensor([[2.0, 4.0], [-1.0, 5.0]])
    first.bias.data = second.bias.data = torch.tensor([0.0, 1.0])
    frozen = frozen_parameters(first, second, 0.6)
    # The frozen weight is 0.6 a + 0.8 b. Where the draws a and b agree, the initial
    # value is not random, so the pair keeps this value.
    torch.testing.assert_close(frozen["weight"], torch.tensor([[2.2, 4.4], [1.0, 5.0]]))
    assert frozen["bias"].tolist() == [0.0, 1.0]


def test_a_recurrent_pair_moves_and_is_saved_with_its_frozen_weights() -> None:
    torch.manual_seed(0)
    first = Recurrent()
    second = Recurrent()
    inputs = torch.randn(7, 3, 5)
    frozen = copy.deepcopy(first)
    frozen.load_state_dict(frozen_parameters(first, second, 0.5))
    expected = (first.eval()(inputs) - frozen.eval()(inputs)).detach()
    pair = CorrelatedPair(first, second, 0.5).eval()
    torch.testing.assert_close(pair(inputs), expected)
    torch.testing.assert_close(
        copy.deepcopy(pair).double()(inputs.double()).float(), expected
    )
    again = CorrelatedPair(Recurrent(), Recurrent(), 0.9).eval()
    again.load_state_dict(pair.state_dict())
    torch.testing.assert_close(again(inputs), expected)
    # Dropout acts only on the trained network of the pair.
    pair.train()
    assert torch.equal(pair.frozen_logits(inputs), pair.frozen_logits(inputs))
    assert not torch.equal(pair(inputs), pair(inputs))


def test_batch_normalisation_of_the_frozen_network_follows_the_mode(
    images: Tensor,
) -> None:
    pair = make_pair("wide-resnet-bn", 0.5).train()
    inputs = images.float()
    together = pair.frozen_logits(inputs)
    # In training mode a sample's logits depend on its batch; in evaluation mode they do
    # not.
    assert not torch.allclose(pair.frozen_logits(inputs[:3]), together[:3])
    pair.eval()
    torch.testing.assert_close(
        pair.frozen_logits(inputs[:3]), pair.frozen_logits(inputs)[:3]
    )


@pytest.mark.parametrize("name", ["mlp", "convnet", "vgg", "wide-resnet"])
@pytest.mark.parametrize(
    ("factor", "wanted"), [(1.0, 0.03), (1000.0, 0.03), (1000.0, 300.0), (2.0, 0.0)]
)
def test_the_pair_starts_with_the_wanted_norm(
    images: Tensor, name: str, factor: float, wanted: float
) -> None:
    first = make_network(name, 0).double().eval()
    second = make_network(name, 1).double().eval()
    correlation = correlation_for_norm(
        first, second, images, wanted, inverse_temperature=factor
    )
    assert 0 <= correlation <= 1
    logits = CorrelatedPair(first, second, correlation)(images)
    assert factor * logits.norm().item() == pytest.approx(wanted, rel=1e-4)


def test_the_range_of_norms(images: Tensor) -> None:
    first = make_network("mlp", 0).double()
    second = make_network("mlp", 1).double()
    largest = 2 * (first(images) - second(images)).norm().item()
    assert correlation_for_norm(
        first, second, images, largest, inverse_temperature=2.0
    ) == pytest.approx(0, abs=1e-6)
    for wanted in (-1.0, 1.001 * largest):
        with pytest.raises(
            ValueError,
            match=rf"logit_norm must be in \[0, {largest:g}\] .* temperature 2, got",
        ):
            correlation_for_norm(first, second, images, wanted, inverse_temperature=2.0)
