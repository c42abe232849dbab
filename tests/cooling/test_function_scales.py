"""Cooling divides the logits by rescaling functions that are not homogeneous.

Most activations, and normalisations of single samples, are not homogeneous.
"""

import copy
import io
from collections.abc import Callable

import pytest
import timm
import torch
from timm.models.mlp_mixer import MlpMixer
from torch import Tensor, nn

from softmax_temperature import cooling
from softmax_temperature.cooling.function_scales import RESCALED_FUNCTIONS, SAMPLE_NORMS
from softmax_temperature.cooling.redistribution import redistribute

ARGUMENTS: dict[type[nn.Module], tuple[float, ...]] = {nn.Threshold: (0.1, -0.3)}
NORMS: dict[type[nn.Module], Callable[[], nn.Module]] = {
    nn.LayerNorm: lambda: nn.LayerNorm(6, eps=0.1),
    nn.GroupNorm: lambda: nn.GroupNorm(2, 4, eps=0.1),
    nn.RMSNorm: lambda: nn.RMSNorm(6, eps=0.1),
    nn.InstanceNorm1d: lambda: nn.InstanceNorm1d(4, eps=0.1, affine=True),
    nn.InstanceNorm2d: lambda: nn.InstanceNorm2d(4, eps=0.1, affine=True),
    nn.InstanceNorm3d: lambda: nn.InstanceNorm3d(4, eps=0.1, affine=True),
}
# Some functions have no half-precision kernel on some machines.
HALVES = [torch.bfloat16, torch.float16]


def around(function: nn.Module) -> nn.Module:
    """A network made of a layer, the function, and a classifier whose width matches."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 6), function, nn.Flatten(), nn.LazyLinear(3))
    network(rows(function).float())
    return network.double()


def rows(function: nn.Module) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    middle = {nn.InstanceNorm2d: (4, 2), nn.InstanceNorm3d: (4, 2, 2)}
    shape = (9, *middle.get(type(function), (4,)), 5)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


FUNCTIONS: dict[type[nn.Module], Callable[[], nn.Module]] = {
    kind: lambda kind=kind: kind(*ARGUMENTS.get(kind, ()))  # type: ignore[misc]
    for kind in sorted(RESCALED_FUNCTIONS, key=lambda kind: kind.__name__)
} | NORMS


@pytest.fixture(params=FUNCTIONS, ids=lambda kind: kind.__name__)
def function(request: pytest.FixtureRequest) -> nn.Module:
    return FUNCTIONS[request.param]()


def test_every_normalisation_of_samples_is_tested() -> None:
    assert NORMS.keys() == SAMPLE_NORMS


def cooled(network: nn.Module, temperature: float) -> nn.Module:
    held = cooling.Cooling(network, mode="distributed")
    assert held.redistribution is not None
    redistribute(network, held.redistribution, temperature)
    return network


def test_the_cooled_network_is_the_network_divided_by_the_temperature(
    function: nn.Module,
) -> None:
    network = around(function)
    before = network(rows(function))
    # The last two temperatures are extreme; 1e-30 is below the epsilon of every
    # normalisation.
    for temperature in (7.0, 1e30, 1e-30):
        after = cooled(copy.deepcopy(network), temperature)(rows(function))
        torch.testing.assert_close(after * temperature, before, rtol=1e-12, atol=1e-13)


def test_gradients_equal_theorem_3_7(function: nn.Module) -> None:
    network = around(function)
    network(rows(function)).pow(2).sum().backward()
    twin = copy.deepcopy(network)
    twin.zero_grad()
    plan = cooling.plan_redistribution(twin)
    (7 * cooled(twin, 7.0)(rows(function))).pow(2).sum().backward()
    for name, parameter in network.named_parameters():
        expected = parameter.grad * 7 ** plan.parameters.get(name, 0.0)
        torch.testing.assert_close(
            twin.get_parameter(name).grad, expected, rtol=1e-10, atol=1e-12
        )


def test_gradients_of_rescaled_functions_equal_finite_differences() -> None:
    for kind in (nn.Tanh, nn.GELU, nn.SiLU, nn.ELU, nn.Sigmoid):
        network = cooled(around(kind()), 3.0)
        inputs = rows(network[1])[:2].requires_grad_()
        assert torch.autograd.gradcheck(network, inputs)


def test_a_tanh_is_beta_tanh_of_x_over_beta() -> None:
    network = cooled(around(nn.Tanh()), 16.0)
    # There are two layers, so each contributes β = 16^(-1/2).
    assert network[1].cooling_scale.item() == pytest.approx(1 / 4)
    torch.testing.assert_close(
        network[1](torch.tensor([0.5, -2.0])), torch.tensor([2.0, -8.0]).tanh() / 4
    )


def test_a_layer_norm_reads_x_over_beta_and_its_weight_carries_the_scale() -> None:
    network = around(nn.LayerNorm(6, eps=0.1))
    with torch.no_grad():
        network[1].weight.uniform_(0.5, 1.5)
        network[1].bias.normal_()
    plan = cooling.plan_redistribution(network)
    assert plan.layers == 2
    assert plan.functions == {"1": 0.5}
    # The layer norm removes the scale of its input, so its weight and bias alone set
    # the scale of its output.
    assert plan.parameters["1.weight"] == plan.parameters["1.bias"] == 0.5
    before = network(rows(network[1]))
    after = cooled(network, 100.0)(rows(network[1]))
    torch.testing.assert_close(after, before / 100, rtol=1e-12, atol=1e-14)


def test_homogeneous_activations_get_no_scale() -> None:
    for kind in (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.Dropout):
        network = around(kind())
        before = network.eval()(rows(network[1]))
        after = cooled(network, 7.0)(rows(network[1]))
        assert not list(network[1].buffers())
        torch.testing.assert_close(after, before / 7, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_as_exact_as_its_weights(dtype: torch.dtype) -> None:
    for kind in (nn.Tanh, nn.GELU, nn.SiLU, nn.ELU, nn.Sigmoid):
        network = around(kind()).to(dtype)
        inputs = rows(network[1]).to(dtype)
        before = network(inputs).float()
        # β = 1/4 is a power of two, so scaling by it adds no rounding error.
        after = cooled(network, 16.0)(inputs)
        assert after.dtype == dtype
        assert network[1].cooling_scale.dtype == torch.float32
        torch.testing.assert_close(after.float() * 16, before)
        with torch.autocast("cpu", dtype):
            assert network.float()(inputs.float()).dtype == dtype


def test_compiled_networks_see_each_change() -> None:
    network = around(nn.Tanh())
    inputs = rows(network[1])
    before = network(inputs)
    held = cooling.Cooling(network, mode="distributed")
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(inputs), before)
    assert held.redistribution is not None
    for period in (1, 2):
        redistribute(network, held.redistribution, 5.0)
        torch.testing.assert_close(compiled(inputs), before / 5**period)


@pytest.mark.parametrize("kind", [nn.Tanh, nn.LayerNorm])
def test_copies_and_saved_states_carry_the_scales(kind: type[nn.Module]) -> None:
    function = FUNCTIONS[kind]()
    network = around(function)
    untouched = copy.deepcopy(network)
    expected = cooled(network, 5.0)(rows(function))
    twin = copy.deepcopy(network)
    redistribute(network, cooling.plan_redistribution(network), 3.0)
    # The copy has its own scales, and a new Cooling for the copy does not divide its
    # logits again.
    cooling.Cooling(twin, mode="distributed")
    assert torch.equal(twin(rows(function)), expected)
    file = io.BytesIO()
    torch.save(twin.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    with pytest.raises(RuntimeError, match=r"1\.cooling_scale"):
        copy.deepcopy(untouched).load_state_dict(state)
    cooling.Cooling(untouched, mode="distributed")
    untouched.load_state_dict(state)
    assert torch.equal(untouched(rows(function)), expected)


def test_a_module_may_be_used_twice_only_at_the_same_scale() -> None:
    shared = nn.Tanh()
    branches = nn.Sequential(nn.Linear(5, 6), shared, nn.Identity(), shared)
    network = nn.Sequential(*branches, nn.Linear(6, 3)).double()
    inputs = torch.randn(4, 5, dtype=torch.float64)
    before = network(inputs)
    torch.testing.assert_close(cooled(network, 9.0)(inputs), before / 9)
    deep = nn.Sequential(
        nn.Linear(5, 6), shared, nn.Linear(6, 6), shared, nn.Linear(6, 3)
    )
    with pytest.raises(ValueError, match="module '1' is called at places of different"):
        cooling.Cooling(deep, mode="distributed")
    assert "cooling_temperature" not in deep.state_dict()


def test_an_in_place_function_is_refused_if_its_input_is_read_again() -> None:
    class Reread(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(5, 6)
            self.activation = nn.SiLU(inplace=True)
            self.last = nn.Linear(6, 3)

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = self.first(inputs)
            self.activation(hidden)
            logits: Tensor = self.last(hidden)
            return logits

    with pytest.raises(
        ValueError, match=r"module 'activation' \(SiLU\) works in place"
    ):
        cooling.Cooling(Reread(), mode="distributed")


def test_timms_batch_norm_with_an_inhomogeneous_activation_inside_is_scaled() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        timm.layers.BatchNormAct2d(4, act_layer=nn.SiLU),
        nn.Flatten(),
        nn.Linear(144, 3),
    ).double()
    images = torch.randn(5, 3, 8, 8, dtype=torch.float64)
    network(images)
    before = network.eval()(images)
    plan = cooling.plan_redistribution(network)
    assert plan.functions == {"1.act": 0.5}
    after = cooled(network, 50.0)(images)
    torch.testing.assert_close(after, before / 50, rtol=1e-12, atol=1e-14)


NETWORKS_OF_TIMM: dict[str, Callable[[], nn.Module]] = {
    # EfficientNet has ReLU6 inside its batch-norm modules, and depthwise convolutions.
    "efficientnet_lite0": lambda: timm.create_model(
        "efficientnet_lite0", num_classes=4
    ),
    # The mixer has layer norms and GELU in blocks that mix tokens and in blocks that
    # mix channels.
    "mixer": lambda: MlpMixer(
        num_classes=4, img_size=32, patch_size=16, num_blocks=2, embed_dim=16
    ),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("name", "functions"), [("efficientnet_lite0", 33), ("mixer", 9)]
)
def test_networks_of_timm_that_the_library_does_not_know_are_cooled(
    name: str, functions: int, training: bool
) -> None:
    torch.manual_seed(0)
    network = NETWORKS_OF_TIMM[name]().double()
    images = torch.randn(6, 3, 32, 32, dtype=torch.float64)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.3)
    network(images)
    twin = copy.deepcopy(network)
    assert len(cooling.plan_redistribution(network).functions) == functions
    after = cooled(network, 20.0).train(training)(images)
    before = twin.train(training)(images)
    torch.testing.assert_close(after, before / 20, rtol=1e-9, atol=1e-12)
