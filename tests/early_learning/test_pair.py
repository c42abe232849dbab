from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.early_learning.pair import CorrelatedPair, frozen_parameters
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training import ImageSet, Trainer, count_parameters, last_layer_inputs

MakeNetwork = Callable[..., nn.Module]
EVERY = pytest.mark.parametrize("name", ["mlp", "vgg", "wide-resnet", "wide-resnet-bn"])
RECIPE = Recipe.model_validate(
    {
        "epochs": 2,
        "planned_epochs": 2,
        "batch_size": 3,
        "optimizer": "sgd",
        "lr": 0.1,
        "momentum": 0.9,
        "weight_decay": 0.01,
        "epsilon": 1e-8,
        "schedule": {"name": "constant"},
        "reduction": "mean",
        "clip_norm": 1.0,
        "crop_padding": 0,
        "flip": False,
        "mean": [0.5, 0.5, 0.5],
        "std": [0.25, 0.25, 0.25],
        "precision": "float32",
    }
)


class Recurrent(nn.Module):
    """A recurrent network with dropout, whose weights are kept in a list beside its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(5, 4, num_layers=2, dropout=0.5, batch_first=True)
        self.dropout = nn.Dropout(0.5)
        self.classifier = nn.Linear(4, 3)

    def features(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.dropout(self.recurrent(inputs)[0][:, -1])
        return features

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(inputs))
        return logits


@pytest.fixture
def make_pair(make_network: MakeNetwork) -> Callable[..., CorrelatedPair]:
    def make(name: str = "mlp", correlation: float = 0.5) -> CorrelatedPair:
        return CorrelatedPair(make_network(name, 0), make_network(name, 1), correlation)

    return make


def norm(pair: nn.Module, inputs: Tensor) -> float:
    with torch.no_grad():
        return pair(inputs).double().norm().item()


@EVERY
@pytest.mark.parametrize("training", [True, False])
def test_with_correlation_1_logits_start_at_exactly_zero(
    make_pair: Callable[..., CorrelatedPair], images: Tensor, name: str, *, training: bool
) -> None:
    pair = make_pair(name, 1.0).train(training)
    assert (pair(images.float()) == 0).all()
    with torch.autocast("cpu", torch.bfloat16):
        logits, _ = last_layer_inputs(pair, images.float())
    assert logits.dtype == torch.float32
    assert (logits == 0).all()


@pytest.mark.parametrize("name", ["mlp", "vgg", "wide-resnet"])
def test_logits_are_the_difference_and_grow_as_the_correlation_falls(
    make_network: MakeNetwork, make_pair: Callable[..., CorrelatedPair], images: Tensor, name: str
) -> None:
    inputs = images.float()
    first, second = make_network(name, 0).eval(), make_network(name, 1).eval()
    # Nothing is common to the two draws but what both start at.
    torch.testing.assert_close(make_pair(name, 0.0).eval()(inputs), first(inputs) - second(inputs))
    norms = [norm(make_pair(name, correlation).eval(), inputs) for correlation in (1, 0.999, 0.99, 0.9, 0.5)]
    assert norms == sorted(norms)
    assert len(set(norms)) == len(norms)
    # Close to 1 in proportion to the angle: sqrt(1 - c²) is 0.0447 and 0.141.
    assert norms[2] / norms[1] == pytest.approx(0.141067 / 0.0447102, rel=0.1)


def test_frozen_parameters_by_hand() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    for network, rows, biases in ((first, [[1.0, 2.0], [3.0, 5.0]], [0.0, 1.0]), (second, [[2, 4], [-1, 5]], [0, 1])):
        network.weight.data, network.bias.data = torch.tensor(rows).float(), torch.tensor(biases).float()
    found = frozen_parameters(first, second, 0.6)
    # 0.6 a + 0.8 b, but where both draws agree nothing was drawn.
    torch.testing.assert_close(found["weight"], torch.tensor([[2.2, 4.4], [1.0, 5.0]]))
    assert found["bias"].tolist() == [0.0, 1.0]


def test_weights_keep_their_size(make_network: MakeNetwork) -> None:
    first, second = make_network("wide-resnet", 0), make_network("wide-resnet", 1)
    for name, values in frozen_parameters(first, second, 0.7).items():
        own = first.get_parameter(name).detach()
        if own.numel() > 4000:
            assert values.std().item() == pytest.approx(own.std().item(), rel=0.05)
            correlation = torch.corrcoef(torch.stack([values.flatten(), own.flatten()]))[0, 1].item()
            assert correlation == pytest.approx(0.7, abs=0.05)


def trainer(pair: nn.Module) -> Trainer:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (9, 3, 8, 8), generator=generator).to(torch.uint8)
    sets = ImageSet(images, torch.arange(9) % 4)
    return Trainer(pair, lambda logits, labels, _: F.cross_entropy(logits, labels), sets, RECIPE, seed=0, device="cpu")


@EVERY
def test_only_the_first_network_is_trained(
    make_network: MakeNetwork, make_pair: Callable[..., CorrelatedPair], name: str
) -> None:
    pair = make_pair(name)
    assert count_parameters(pair) == count_parameters(make_network(name))
    estimates = {key for key in pair.frozen.state_dict() if "running" in key or "batches" in key}
    before = copy.deepcopy(pair.state_dict())
    training = trainer(pair)
    training.epoch()
    after = pair.state_dict()
    for key, value in before.items():
        part, _, own = key.partition(".")
        # Estimates of batch normalisation follow the batches in both networks.
        assert torch.equal(value, after[key]) == (part == "frozen" and own not in estimates), key
    logits, norms = training.evaluate(training.samples.inputs)
    assert logits.dtype == torch.float32
    assert logits.shape == (9, 4)
    assert len(norms) == 9


@EVERY
def test_the_state_goes_round(make_pair: Callable[..., CorrelatedPair], images: Tensor, name: str) -> None:
    pair, other = trainer(make_pair(name)), trainer(make_pair(name, 0.1))
    pair.epoch()
    assert not torch.equal(pair.network(images.float()), other.network(images.float()))
    other.load_state_dict(copy.deepcopy(pair.state_dict()))
    for training in (pair, other):
        training.epoch()
        training.network.eval()
    assert torch.equal(pair.network(images.float()), other.network(images.float()))


def test_hooks_of_the_trained_network_act(make_pair: Callable[..., CorrelatedPair], images: Tensor) -> None:
    pair = make_pair()
    expected = pair.network(images.float()) / 2 - pair.frozen_logits(images.float())
    pair.network.register_forward_hook(lambda _, __, logits: logits / 2)
    torch.testing.assert_close(pair(images.float()), expected)
    pair.register_forward_hook(lambda _, __, logits: logits / 4)
    torch.testing.assert_close(pair(images.float()), expected / 4)


def test_a_recurrent_pair_moves_and_is_saved_with_its_frozen_weights() -> None:
    torch.manual_seed(0)
    first, second, inputs = Recurrent(), Recurrent(), torch.randn(7, 3, 5)
    frozen = copy.deepcopy(first)
    frozen.load_state_dict(frozen_parameters(first, second, 0.5))
    expected = (first.eval()(inputs) - frozen.eval()(inputs)).detach()
    pair = CorrelatedPair(first, second, 0.5).eval()
    torch.testing.assert_close(pair(inputs), expected)
    torch.testing.assert_close(copy.deepcopy(pair).double()(inputs.double()).float(), expected)
    torch.manual_seed(1)
    again = CorrelatedPair(Recurrent(), Recurrent(), 0.9).eval()
    again.load_state_dict(pair.state_dict())
    torch.testing.assert_close(again(inputs), expected)
    # Dropout is for what is trained.
    pair.train()
    assert torch.equal(pair.frozen_logits(inputs), pair.frozen_logits(inputs))
    assert not torch.equal(pair(inputs), pair(inputs))


def test_batch_normalisation_of_the_frozen_network_follows_the_mode(
    make_pair: Callable[..., CorrelatedPair], images: Tensor
) -> None:
    pair, inputs = make_pair("wide-resnet-bn", 0.5).train(), images.float()
    together = pair.frozen_logits(inputs)
    # In training a sample sees its batch; in evaluation it does not.
    assert not torch.allclose(pair.frozen_logits(inputs[:3]), together[:3])
    pair.eval()
    torch.testing.assert_close(pair.frozen_logits(inputs[:3]), pair.frozen_logits(inputs)[:3])


def test_functional_calls_reach_both_networks(make_pair: Callable[..., CorrelatedPair], images: Tensor) -> None:
    pair, other = make_pair("mlp", 0.5), make_pair("mlp", 0.0)
    values = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    found = torch.func.functional_call(pair, values, (images.float(),))
    torch.testing.assert_close(found, other(images.float()))


def test_bad_arguments_are_refused_by_name(make_network: MakeNetwork) -> None:
    for correlation in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"correlation must be in \[0, 1\], got"):
            CorrelatedPair(make_network(), make_network(), correlation)
    wider = SimpleNamespace(first=make_network("mlp"), second=make_network("vgg"))
    with pytest.raises(ValueError, match=r"other must have the parameters of network, got .* in the place of"):
        CorrelatedPair(wider.first, wider.second, 0.5)
