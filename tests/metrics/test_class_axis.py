"""The labels reveal whether the classes are in a different dimension from the assumed
one.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature import (
    Cooling,
    FocalLoss,
    TemperatureScaler,
    calibrate,
    metrics,
)
from softmax_temperature.metrics.class_axis import check_axes
from softmax_temperature.scaling import fit_temperature, temperature_interval

Drawn = tuple[Tensor, Tensor]


def drawn(*shape: int, temperature: float = 1.7, seed: int = 0) -> Drawn:
    """Logits of scale 3 with the classes last, and labels from softmax(z / T)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return logits, labels_of(logits / temperature, generator)


def labels_of(logits: Tensor, generator: torch.Generator) -> Tensor:
    uniform = torch.rand(logits.shape, generator=generator, dtype=torch.float64)
    return (logits - uniform.log().neg().log()).argmax(dim=-1)


def cooled(logits: Tensor, labels: Tensor) -> float:
    return Cooling(nn.Linear(2, logits.shape[1])).cool(logits, labels)


def scaled(logits: Tensor, labels: Tensor) -> float:
    return TemperatureScaler().fit(logits, labels).temperature_


def scaled_array(logits: Tensor, labels: Tensor) -> float:
    return TemperatureScaler().fit(logits.numpy(), labels.numpy()).temperature_


def calibrated(logits: Tensor, labels: Tensor) -> float:
    return calibrate(logits, labels, fit_on="all", bootstrap=0).temperature


FITS = [cooled, scaled, scaled_array, calibrated]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    "shape", [(500, 2, 2), (64, 3, 3), (100, 4, 4), (64, 9, 9), (30, 5, 5, 5)]
)
def test_every_fit_of_tokens_knows_the_dimension_of_the_classes(
    fit: Callable[[Tensor, Tensor], float], shape: tuple[int, ...]
) -> None:
    logits, labels = drawn(*shape)
    for dtype in (torch.int64, torch.uint8, torch.uint16):
        with pytest.raises(ValueError, match=r"in the last dimension\. Move the class"):
            fit(logits, labels.to(dtype))
    expected = fit_temperature(logits.flatten(0, -2), labels.flatten()).temperature
    found = fit(logits.movedim(-1, 1), labels)
    assert found == pytest.approx(expected, rel=1e-5)


def test_labels_that_are_no_classes_do_not_hide_the_dimension() -> None:
    logits, labels = drawn(64, 9, 9)
    labels[:, 5:] = -100
    for fit in (scaled, calibrated):
        with pytest.raises(ValueError, match="in the last dimension"):
            fit(logits, labels)


def useless(logits: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(logits.shape[-1], logits.shape[:-1], generator=generator)


def one_class_for_each_sample(logits: Tensor, generator: torch.Generator) -> Tensor:
    samples, *places, classes = logits.shape
    one = torch.randint(classes, (samples, 1), generator=generator)
    return one.expand(samples, *places).contiguous()


def least_likely(logits: Tensor, _: torch.Generator) -> Tensor:
    return logits.argmin(dim=-1)


def the_position(logits: Tensor, generator: torch.Generator) -> Tensor:
    positions = torch.arange(logits.shape[-1]).expand(logits.shape[:-1])
    rare = torch.rand(positions.shape, generator=generator) < 0.3
    return torch.where(rare, labels_of(logits, generator), positions)


def one_frequent(logits: Tensor, generator: torch.Generator) -> Tensor:
    labels = labels_of(logits, generator)
    return labels * (torch.rand(labels.shape, generator=generator) < 0.2)


@pytest.mark.parametrize(
    "labelled",
    [useless, one_class_for_each_sample, least_likely, the_position, one_frequent],
)
@pytest.mark.parametrize("classes", [2, 3, 5, 20])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bad_models_of_the_right_shape_are_not_refused(
    classes: int, labelled: Callable[[Tensor, torch.Generator], Tensor]
) -> None:
    for seed in range(3):
        logits, _ = drawn(120, classes, classes, seed=seed)
        labels = labelled(logits, torch.Generator().manual_seed(seed))
        for fit in (cooled, scaled):
            fit(logits.movedim(-1, 1), labels)


@pytest.mark.parametrize(
    "call",
    [
        fit_temperature,
        lambda logits, labels: temperature_interval(logits, labels, 1.7),
        calibrated,
        scaled,
        cooled,
        metrics.negative_log_likelihood,
        metrics.calibration_report,
    ],
)
def test_a_square_table_with_a_row_for_each_class_is_refused(
    call: Callable[[Tensor, Tensor], Any],
) -> None:
    logits, labels = drawn(60, 60)
    for dtype in (torch.int64, torch.uint8, torch.uint16):
        with pytest.raises(ValueError, match=r"a row for each class\. Transpose"):
            call(logits.T.contiguous(), labels.to(dtype))
    call(logits, labels)
    # A matrix of pairwise similarities, such as CLIP's, is valid along either axis.
    call(logits + logits.T + 20 * torch.eye(60), torch.arange(60))


def maps(images: int, classes: int, size: int, seed: int = 0) -> Drawn:
    """Smooth maps of logits z, and labels drawn from softmax(z / 1.7)."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(images, classes, 4, 4, generator=generator)
    logits = 4 * nn.functional.interpolate(coarse, size, mode="bilinear")
    labels = labels_of(logits.movedim(1, -1).double() / 1.7, generator)
    return logits, labels


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("images", "classes", "size"), [(30, 5, 16), (40, 2, 8)])
def test_label_maps_with_rows_and_columns_swapped_are_refused(
    images: int, classes: int, size: int, fit: Callable[[Tensor, Tensor], float]
) -> None:
    logits, labels = maps(images, classes, size)
    with pytest.raises(ValueError, match=r"swapped\. Swap them: labels\.transpose"):
        fit(logits, labels.transpose(1, 2).contiguous())
    found = fit(logits, labels)
    assert fit(logits.transpose(2, 3), labels.transpose(1, 2)) == pytest.approx(found)


def test_bad_models_of_square_maps_are_not_refused() -> None:
    for seed in range(20):
        logits, labels = maps(10, 3, 48, seed)
        _, others = maps(10, 3, 48, seed + 100)
        symmetric = logits + logits.transpose(2, 3)
        for model, truth in (
            (logits, others),
            (symmetric, labels),
            (logits, logits.argmin(dim=1)),
            (logits, labels * (others == 0)),
        ):
            check_axes(truth, model)


def test_labels_that_agree_with_both_readings_are_accepted() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2000, 5, 5, generator=generator, dtype=torch.float64)
    labels = labels_of(logits + 1.2 * logits.movedim(1, -1), generator)
    check_axes(labels, logits)
    check_axes(labels, logits.movedim(1, -1))


def test_losses_read_the_second_dimension_as_torch_does() -> None:
    logits, labels = drawn(64, 9, 9)
    for order in (logits, logits.movedim(-1, 1)):
        expected = nn.functional.cross_entropy(order, labels)
        torch.testing.assert_close(FocalLoss(0.0)(order, labels), expected)


@pytest.mark.parametrize("shape", [(40, 7, 5), (60, 5)])
def test_a_wrapped_network_of_tokens_must_not_end_in_a_softmax(
    shape: tuple[int, ...],
) -> None:
    scaler = TemperatureScaler().fit(*drawn(600, 5))
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))

    class Probabilities(nn.Module):
        def forward(self, logits: Tensor) -> Tensor:
            return logits.softmax(dim=-1)

    with pytest.raises(ValueError, match=r"logits are probabilities.*sum to 1"):
        scaler.wrap(Probabilities())(inputs)
    scaler.wrap(nn.Identity())(inputs)
