import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from netcal.metrics import ECE, MCE
from sklearn.calibration import calibration_curve
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from softmax_temperature import metrics
from softmax_temperature.metrics.calibration import (
    equal_mass_membership,
    equal_width_bins,
)

FORMS = ("expected", "maximum", "adaptive", "classwise", "debiased")
CASES = [(400, 3, 15), (1003, 10, 10), (350, 7, 1), (97, 4, 40)]


def predictions(samples: int, classes: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Overconfident float64 probabilities, with labels drawn at temperature 2."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(
        torch.softmax(logits / 2, dim=1), 1, generator=generator
    ).squeeze(1)
    return torch.softmax(logits, dim=1), labels


def top_label(
    confidences: list[float], correct: list[bool], classes: int = 10
) -> tuple[Tensor, Tensor]:
    """Probabilities that give class 0 these confidences, and labels set by `correct`.

    The other classes share the rest of the probability evenly.
    """
    confidence = torch.tensor(confidences, dtype=torch.float64)[:, None]
    rest = ((1 - confidence) / (classes - 1)).expand(-1, classes - 1)
    return torch.cat([confidence, rest], dim=1), torch.tensor(
        [0 if right else 1 for right in correct]
    )


def slow_gaps(
    confidences: np.ndarray, correct: np.ndarray, bins: int
) -> list[tuple[float, float]]:
    """Find the share of samples and the gap of each non-empty bin (a, b] in turn."""
    found = []
    for k in range(bins):
        inside = (confidences <= (k + 1) / bins) & (
            (confidences > k / bins) | ((k == 0) & (confidences == 0))
        )
        if inside.any():
            found.append(
                (
                    float(inside.mean()),
                    float(abs(correct[inside].mean() - confidences[inside].mean())),
                )
            )
    return found


@pytest.mark.parametrize(("samples", "classes", "bins"), CASES)
def test_ece_and_mce_equal_a_slow_loop_and_two_libraries(
    samples: int, classes: int, bins: int
) -> None:
    probs, labels = predictions(samples, classes)
    gaps = slow_gaps(
        probs.max(1).values.numpy(), (probs.argmax(1) == labels).numpy(), bins
    )
    ece = metrics.expected_calibration_error(probs, labels, bins=bins).item()
    mce = metrics.maximum_calibration_error(probs, labels, bins=bins).item()
    assert ece == pytest.approx(sum(share * gap for share, gap in gaps), abs=1e-12)
    assert mce == pytest.approx(max(gap for _, gap in gaps), abs=1e-12)
    # The tolerance is this large because torchmetrics sums in float32.
    for norm, value in (("l1", ece), ("max", mce)):
        theirs = multiclass_calibration_error(
            probs, labels, classes, n_bins=bins, norm=norm
        )  # type: ignore[arg-type]
        assert value == pytest.approx(theirs.item(), abs=1e-5)
    assert ece == pytest.approx(
        ECE(bins).measure(probs.numpy(), labels.numpy()), abs=1e-9
    )
    assert mce == pytest.approx(
        MCE(bins).measure(probs.numpy(), labels.numpy()), abs=1e-9
    )


def test_reliability_bins_equal_those_of_scikit_learn() -> None:
    probs, labels = predictions(2000, 5)
    table = metrics.reliability_bins(probs, labels, bins=15)
    accuracy, confidence = calibration_curve(
        (probs.argmax(1) == labels).int(), probs.max(1).values, n_bins=15
    )
    filled = table.counts > 0
    np.testing.assert_allclose(table.accuracy[filled], accuracy, atol=1e-12)
    np.testing.assert_allclose(table.confidence[filled], confidence, atol=1e-12)
    assert table.accuracy[~filled].isnan().all()
    assert table.edges.tolist() == [k / 15 for k in range(16)]


def test_bins_are_closed_on_the_right_where_torchmetrics_closes_them_on_the_left() -> (
    None
):
    # The bin (0, 1/2] holds the confidence 0.5 (right), with a gap of 0.5. The bin
    # (1/2, 1] holds 0.75 (wrong), with a gap of 0.75. Each bin has half of the samples,
    # so the error is 0.625.
    probs, labels = (
        torch.tensor([[0.5, 0.5], [0.75, 0.25]], dtype=torch.float64),
        torch.tensor([0, 1]),
    )
    assert metrics.expected_calibration_error(probs, labels, bins=2).item() == 0.625
    # With bins closed on the left, both samples are in one bin: accuracy 0.5,
    # confidence 0.625.
    assert multiclass_calibration_error(probs, labels, 2, n_bins=2).item() == 0.125
    # Both samples are in the bin (14/15, 1], with accuracy 0.5 and confidence 0.975.
    # torchmetrics would put a confidence of 1 into a bin of its own.
    probs = torch.tensor([[1.0, 0.0], [0.95, 0.05]], dtype=torch.float64)
    assert metrics.maximum_calibration_error(probs, labels).item() == pytest.approx(
        0.475, abs=1e-12
    )
    assert multiclass_calibration_error(
        probs, labels, 2, n_bins=15, norm="max"
    ).item() == pytest.approx(0.95)


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 15, 25, 100])
def test_every_edge_belongs_to_the_bin_below_it(bins: int) -> None:
    edges = torch.tensor([k / bins for k in range(1, bins + 1)], dtype=torch.float64)
    assert equal_width_bins(edges, bins).tolist() == list(range(bins))
    above = torch.nextafter(edges[:-1], torch.ones(1, dtype=torch.float64))
    assert equal_width_bins(above, bins).tolist() == list(range(1, bins))
    assert equal_width_bins(torch.zeros(1, dtype=torch.float64), bins).tolist() == [0]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 12))
def test_equal_mass_bins_drop_nothing_and_differ_by_at_most_one(
    ties: list[int], bins: int
) -> None:
    membership = equal_mass_membership(torch.tensor(ties, dtype=torch.float64), bins)
    sizes = membership.sum(dim=0)
    torch.testing.assert_close(
        membership.sum(dim=1), torch.ones(len(ties), dtype=torch.float64)
    )
    torch.testing.assert_close(sizes, sizes.round())
    assert (sizes.max() - sizes.min()).item() <= 1 + 1e-9


@pytest.mark.parametrize(
    ("samples", "bins"), [(1000, 15), (1003, 15), (60, 4), (9, 15)]
)
def test_adaptive_error_equals_a_split_of_the_sorted_samples(
    samples: int, bins: int
) -> None:
    probs, labels = predictions(samples, 10)
    confidences, correct = (
        probs.max(1).values.numpy(),
        (probs.argmax(1) == labels).numpy(),
    )
    gaps = (correct - confidences)[confidences.argsort()]
    slow = sum(abs(part.sum()) for part in np.array_split(gaps, bins)) / samples
    ours = metrics.adaptive_calibration_error(probs, labels, bins=bins).item()
    assert ours == pytest.approx(slow, abs=1e-12)
    if samples > 10 * bins:  # With fewer samples, netcal's bins are uneven.
        assert ours == pytest.approx(
            ECE(bins, equal_intervals=False).measure(probs.numpy(), labels.numpy()),
            abs=1e-9,
        )


def test_adaptive_error_splits_a_tie_across_an_edge_in_proportion() -> None:
    # The sorted confidences 0.4 | 0.8 0.8 0.8 fill two bins of two samples. One third
    # of the tied samples, of which two of three are right, falls in the lower bin.
    probs, labels = top_label([0.8, 0.4, 0.8, 0.8], [True, True, False, True])
    lower, upper = (1 - 0.4) + (2 / 3 - 0.8), 2 * (2 / 3 - 0.8)
    assert metrics.adaptive_calibration_error(
        probs, labels, bins=2
    ).item() == pytest.approx((abs(lower) + abs(upper)) / 4, abs=1e-12)


@pytest.mark.parametrize(("samples", "classes", "bins"), CASES)
def test_classwise_error_equals_one_binary_problem_per_class(
    samples: int, classes: int, bins: int
) -> None:
    probs, labels = predictions(samples, classes)
    ours = metrics.classwise_calibration_error(probs, labels, bins=bins).item()
    each = [
        slow_gaps(probs[:, k].numpy(), (labels == k).numpy(), bins)
        for k in range(classes)
    ]
    assert ours == pytest.approx(
        np.mean([sum(share * gap for share, gap in gaps) for gaps in each]), abs=1e-12
    )
    columns = probs.t().contiguous()
    theirs = [
        binary_calibration_error(columns[k], (labels == k).int(), n_bins=bins)
        for k in range(classes)
    ]
    assert ours == pytest.approx(torch.stack(theirs).mean().item(), abs=1e-5)


def test_classwise_error_averages_over_classes_that_no_label_names() -> None:
    # The gaps are 1 - 0.5, 0.3 and 0.2, averaged over three classes. The released code
    # ignores classes 1 and 2 and gives 0.5.
    probs = torch.tensor([[0.5, 0.3, 0.2]] * 2, dtype=torch.float64)
    labels = torch.zeros(2, dtype=torch.int64)
    assert metrics.classwise_calibration_error(probs, labels).item() == pytest.approx(
        1 / 3, abs=1e-12
    )


@pytest.mark.parametrize("form", FORMS)
def test_bad_input_is_refused_by_name(form: str) -> None:
    probs, labels = predictions(5, 3)
    for some, classes, bins, message in (
        (probs * 2, labels, 15, "probs must lie in"),
        (probs * 0.9, labels, 15, "rows that sum to one, got 0.9"),
        (
            torch.where(probs == probs.max(), torch.nan, probs),
            labels,
            15,
            "probs must be finite, got nan in row",
        ),
        (probs[0], labels, 15, "probs must have shape"),
        (probs, labels + 3, 15, r"labels must be in \[0, 3\), got"),
        (probs, labels[:4], 15, r"labels must have shape \(5,\)"),
        (probs, labels.double(), 15, "labels must be integers"),
        (probs, labels, 0, "bins must be an integer of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(metrics, f"{form}_calibration_error")(some, classes, bins=bins)


def calibrated(samples: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Probabilities of ten classes, with labels drawn from them."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.softmax(
        2 * torch.randn(samples, 10, generator=generator, dtype=torch.float64), dim=1
    )
    return probs, torch.multinomial(probs, 1, generator=generator).squeeze(1)


@pytest.mark.parametrize("samples", [200, 2000])
def test_noise_floor_is_the_mean_error_of_calibrated_models(samples: int) -> None:
    errors, floors = [], []
    for seed in range(30):
        probs, labels = calibrated(samples, seed=seed)
        errors.append(metrics.expected_calibration_error(probs, labels).item())
        floors.append(metrics.noise_floor(probs).item())
    standard_error = np.std(errors) / len(errors) ** 0.5
    assert np.mean(floors) == pytest.approx(np.mean(errors), abs=3 * standard_error)
    assert np.std(floors) < np.std(errors) / 3


def test_debiased_error_equals_a_simulation_of_its_normals() -> None:
    probs, labels = calibrated(500, seed=3)
    table = metrics.reliability_bins(probs, labels)
    shares, gaps = table.shares.numpy(), table.gaps.numpy()
    accuracy, counts = (
        table.accuracy.nan_to_num(0).numpy(),
        table.counts.clamp(min=1).numpy(),
    )
    spread = np.sqrt(accuracy * (1 - accuracy) / counts)
    draws = (
        np.abs(gaps + spread * np.random.default_rng(0).normal(size=(20_000, 15)))
        @ shares
    )
    expected = 2 * (shares @ np.abs(gaps)) - draws.mean()
    error = metrics.debiased_calibration_error(probs, labels).item()
    assert error == pytest.approx(expected, abs=4 * draws.std() / 20_000**0.5)
