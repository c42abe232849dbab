"""A softmax is refused even if a server passes one row per call; logits are not."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softmax_temperature import TemperatureScaler, sample_logits

LOGITS, LABELS = sample_logits()
PROBS = torch.softmax(torch.tensor(LOGITS), 1).numpy()
SCALER = TemperatureScaler().fit(LOGITS, LABELS)
INPUTS = torch.randn(16, 10, generator=torch.manual_seed(0))


class Functional(nn.Module):
    """A network that ends in a function, which no module shows."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(10, 10)
        self.function = function

    def forward(self, inputs: Tensor) -> Any:
        return self.function(self.layer(inputs))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["predict_proba", "predict", "transform"])
def test_a_row_of_probabilities_is_refused(method: str, dtype: Any) -> None:
    call = getattr(SCALER, method)
    message = r"^X are probabilities: the row lies in \[0, 1\] and sums to 1"
    for row in range(100):
        single = PROBS[row : row + 1].astype(dtype)
        for given in (single, torch.tensor(single)):
            with pytest.raises(ValueError, match=message):
                call(given)
    with pytest.raises(ValueError, match="X are probabilities"):
        call(PROBS[:2])


def test_a_row_of_many_classes_is_refused() -> None:
    generator = torch.manual_seed(0)
    logits = torch.randn(300, 5000, generator=generator)
    scaler = TemperatureScaler().fit(logits, logits.argmax(1) % 4000)
    for scale in (1, 5):
        row = torch.softmax(scale * logits[:1], 1)
        with pytest.raises(ValueError, match="the row lies"):
            scaler.predict_proba(row)


def test_one_row_of_logits_passes() -> None:
    together = SCALER.predict_proba(LOGITS)
    for row in range(len(LOGITS)):
        one = SCALER.predict_proba(LOGITS[row : row + 1])
        np.testing.assert_allclose(one[0], together[row])


@pytest.mark.parametrize(
    "row",
    [
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        [0.1] * 10,
        [0.25, 0.125, 0.625, 0, 0, 0, 0, 0, 0, 0],
        [0.2, 0.3, 0.5, 0, 0, 0, 0, 0, 0, 0],
        [0.2101, 0.3, 0.5, 0, 0, 0, 0, 0, 0, 0],
        [-0.2101, 0.7101, 0.5, 0, 0, 0, 0, 0, 0, 0],
    ],
)
def test_a_row_that_may_be_a_toy_example_passes(row: list[float]) -> None:
    for dtype in (np.float32, np.float64):
        logits = np.array([row], dtype)
        expected = torch.softmax(torch.tensor(logits) / SCALER.temperature_, 1)
        np.testing.assert_allclose(SCALER.predict_proba(logits), expected, rtol=1e-6)


def test_two_classes_pass_because_one_minus_a_logit_may_be_the_other() -> None:
    logits = LOGITS[:, :2]
    scaler = TemperatureScaler().fit(logits, (LABELS % 2).astype(int))
    np.testing.assert_array_equal(scaler.predict([[0.3017, 0.6983]]), [1])


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        lambda logits: torch.softmax(logits, 1),
        lambda logits: torch.softmax(logits, 1).clamp(1e-9).view(-1, 10)[:, :],
        lambda logits: torch.cat([torch.softmax(logits, 1)]),
    ],
)
def test_a_network_that_ends_in_a_softmax_is_refused_with_its_first_row(
    function: Any, tracked: bool
) -> None:
    wrapped = SCALER.wrap(Functional(function))
    with torch.set_grad_enabled(tracked):
        for _ in range(2):
            with pytest.raises(ValueError, match="logits are probabilities: ") as info:
                wrapped(INPUTS[:1])
            assert "Take the softmax off the end of the network." in str(info.value)


def test_the_graph_shows_a_softmax_in_half_precision() -> None:
    network = Functional(lambda logits: torch.softmax(logits, 1)).bfloat16()
    with pytest.raises(ValueError, match="they are the output of a softmax"):
        SCALER.wrap(network)(INPUTS[:1].bfloat16())


@pytest.mark.parametrize(
    "function",
    [
        lambda logits: logits,
        lambda logits: torch.log_softmax(logits, 1),
        lambda logits: torch.log(torch.softmax(logits, 1)),
        lambda logits: torch.softmax(logits, 1) @ torch.randn(10, 10),
    ],
)
def test_a_network_that_returns_logits_passes_row_by_row(function: Any) -> None:
    torch.manual_seed(0)
    network = Functional(function).eval()
    torch.manual_seed(1)
    expected = network(INPUTS[:1]) / SCALER.temperature_
    torch.manual_seed(1)
    torch.testing.assert_close(
        SCALER.wrap(network)(INPUTS[:1]), expected, rtol=1e-5, atol=1e-6
    )


def test_a_wrapped_network_can_be_exported_with_any_number_of_rows() -> None:
    network = nn.Linear(10, 10)
    wrapped = SCALER.wrap(network).eval()
    rows = {0: torch.export.Dim.DYNAMIC}
    exported = torch.export.export(wrapped, (INPUTS,), dynamic_shapes=((rows,),))
    for count in (2, 16, 40):
        inputs = torch.randn(count, 10)
        expected = network(inputs) / SCALER.temperature_
        torch.testing.assert_close(exported.module()(inputs), expected)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("rows", [1, 16, 40])
def test_a_wrapped_network_can_be_traced_without_the_check(rows: int) -> None:
    network = nn.Linear(10, 10)
    inputs = torch.randn(rows, 10)
    traced = torch.jit.trace(SCALER.wrap(network).eval(), inputs, check_trace=False)
    for given in (INPUTS, INPUTS[:1]):
        expected = network(given) / SCALER.temperature_
        torch.testing.assert_close(traced(given), expected)
