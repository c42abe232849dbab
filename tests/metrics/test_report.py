"""Reports equal the metrics computed one by one, and known values of real networks."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature import calibrate, metrics
from softmax_temperature.metrics.report import confident_report, resample_weights
from softmax_temperature.scaling import TEMPERATURE_GRID, fit_temperature

BINNED = [
    f"{form}_calibration_error"
    for form in ("expected", "maximum", "adaptive", "classwise")
]
SCORES = ["accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score"]


def drawn(
    samples: int = 300, classes: int = 8, *, decimals: int | None = None
) -> tuple[Tensor, Tensor]:
    """Overconfident logits, and labels drawn at temperature 2.

    If `decimals` is given, rows are repeated and logits are rounded, so that some
    confidences are equal.
    """
    generator = torch.Generator().manual_seed(2)
    logits = 3 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    if decimals is not None:
        logits = logits[torch.arange(samples) % 40].round(decimals=decimals)
    return logits, torch.multinomial(
        torch.softmax(logits / 2, dim=1), 1, generator=generator
    ).squeeze(1)


def one_by_one(logits: Tensor, labels: Tensor, bins: int = 15) -> dict[str, float]:
    """Every metric of the report, each computed with the metric's own function."""
    probs = torch.softmax(logits, dim=1)
    binned = {
        name: getattr(metrics, name)(probs, labels, bins=bins).item() for name in BINNED
    }
    return binned | {
        "accuracy": metrics.top_accuracy(logits, labels, top=1).item(),
        "top5_accuracy": metrics.top_accuracy(logits, labels).item(),
        "negative_log_likelihood": metrics.negative_log_likelihood(
            logits, labels
        ).item(),
        "brier_score": metrics.brier_score(probs, labels).item(),
    }


def resamples(
    logits: Tensor, labels: Tensor, number: int, seed: int
) -> list[tuple[Tensor, Tensor]]:
    """The logits and labels of each resample."""
    weights = torch.cat(list(resample_weights(len(labels), number, seed)))
    chosen = [
        torch.repeat_interleave(torch.arange(len(labels)), row.long())
        for row in weights
    ]
    return [(logits[rows], labels[rows]) for rows in chosen]


@pytest.mark.parametrize(
    ("samples", "classes", "bins"), [(300, 8, 15), (60, 2, 1), (31, 3, 40), (1, 2, 15)]
)
def test_report_equals_each_metric_alone(samples: int, classes: int, bins: int) -> None:
    logits, labels = drawn(samples, classes)
    report = metrics.calibration_report(logits, labels, bins=bins, seed=4)
    for name, value in one_by_one(logits, labels, bins).items():
        assert report[name] == pytest.approx(value, abs=1e-12), name
    probs = torch.softmax(logits, dim=1)
    assert (
        report["debiased_calibration_error"]
        == metrics.debiased_calibration_error(probs, labels, bins=bins).item()
    )
    assert report["noise_floor"] == metrics.noise_floor(probs, bins=bins, seed=4).item()
    assert (report["samples"], report["classes"], report["intervals"]) == (
        samples,
        classes,
        {},
    )


@pytest.mark.parametrize("decimals", [None, 0])
def test_intervals_of_scores_are_percentiles_over_the_resampled_rows(
    decimals: int | None,
) -> None:
    logits, labels = drawn(decimals=decimals)
    report = metrics.calibration_report(logits, labels, bootstrap=25, seed=3)
    slow = [one_by_one(*rows) for rows in resamples(logits, labels, 25, seed=3)]
    for name in SCORES:
        expected = np.quantile([values[name] for values in slow], [0.05, 0.95])
        assert report["intervals"][name] == pytest.approx(expected, abs=1e-12), name


def test_resamples_draw_n_of_n_rows_and_the_first_do_not_depend_on_their_number() -> (
    None
):
    weights = torch.cat(list(resample_weights(50, 200, seed=0)))
    assert weights.shape == (200, 50)
    assert (weights.sum(dim=1) == 50).all()
    # Counts are binomial with n = 50 and p = 1/50, so their variance is 0.98.
    assert weights.var().item() == pytest.approx(0.98, rel=0.05)
    assert torch.equal(torch.cat(list(resample_weights(50, 20, seed=0))), weights[:20])
    assert not torch.equal(torch.cat(list(resample_weights(50, 200, seed=1))), weights)


def test_paired_difference_equals_that_of_two_reports_on_the_same_rows() -> None:
    logits, labels = drawn()
    other = logits / 2
    found = metrics.paired_difference(logits, other, labels, bootstrap=25, seed=3)
    pairs = zip(
        resamples(logits, labels, 25, seed=3),
        resamples(other, labels, 25, seed=3),
        strict=True,
    )
    slow = [(one_by_one(*a), one_by_one(*b)) for a, b in pairs]
    reports = [metrics.calibration_report(some, labels) for some in (logits, other)]
    for name in found:
        value = reports[0][name] - reports[1][name]
        assert found[name].value == pytest.approx(value, abs=1e-12), name
    for name in SCORES:
        low, high = np.quantile([a[name] - b[name] for a, b in slow], [0.05, 0.95])
        assert found[name][1:] == pytest.approx((low, high), abs=1e-12), name
    assert metrics.paired_difference(logits, other, labels, bootstrap=0) == {}


def test_a_table_of_a_language_model_takes_little_memory(tmp_path: Path) -> None:
    # With 150 rows of 12,000 classes, an earlier version that resampled every bin of
    # every class took 3 GiB.
    program = """
import resource, torch
from softmax_temperature import calibrate
logits = torch.randn(150, 12_000, generator=torch.Generator().manual_seed(0))
labels = torch.arange(150) % 3
logits[torch.arange(150), labels] += 9
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
calibrate(logits, labels, bootstrap=1000)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # Four times the input is 0.03 GiB, and each temporary array has at most 16 MiB.
    assert float(done.stdout) < 0.3


def test_confident_predictions_are_counted_one_by_one() -> None:
    some, labels = drawn(300, 4)
    report = metrics.confident_report(some, labels, threshold=0.9, bootstrap=80, seed=4)
    kept = [
        row.argmax() == label
        for row, label in zip(some, labels, strict=True)
        if row.softmax(0).max() >= 0.9
    ]
    assert report["confident_share"] == pytest.approx(len(kept) / 300)
    assert report["confident_accuracy"] == pytest.approx(sum(kept).item() / len(kept))
    shares = [
        (rows.softmax(1).amax(1) >= 0.9).double().mean().item()
        for rows, _ in resamples(some, labels, 80, 4)
    ]
    assert report["intervals"]["confident_share"] == pytest.approx(
        tuple(np.quantile(shares, [0.05, 0.95]))
    )
    # If no prediction is confident, the share of confident predictions is zero and
    # their accuracy is undefined.
    report = metrics.confident_report(
        torch.zeros(20, 4), torch.zeros(20, dtype=torch.long), bootstrap=20
    )
    assert (report["confident_share"], report["confident_accuracy"]) == (0.0, None)
    assert report["intervals"] == {"confident_share": (0.0, 0.0)}


def test_bad_input_is_refused_by_name() -> None:
    logits, labels = drawn(10)
    for keywords, message in (
        ({"bins": 0}, "bins must be an integer of at least 1, got 0"),
        ({"bootstrap": -1}, "bootstrap must be an integer of at least 0, got -1"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.calibration_report(logits, labels, **keywords)
    for call in (
        lambda count: metrics.calibration_report(logits, labels, bootstrap=count),
        lambda count: metrics.confident_report(logits, labels, bootstrap=count),
        lambda count: metrics.paired_difference(
            logits, logits, labels, bootstrap=count
        ),
        lambda count: metrics.out_of_distribution_interval(
            logits, logits, bootstrap=count
        ),
        lambda count: calibrate(logits, labels, bootstrap=count),
    ):
        for count in (1, 18):
            with pytest.raises(
                ValueError,
                match=rf"bootstrap={count}: fewer than 19 resamples do not give a 90 % "
                "interval. Give 1000 or more",
            ):
                call(count)
    with pytest.raises(
        ValueError,
        match=r"logits_b must have shape \(10, 8\) like logits_a, got \(9, 8\)",
    ):
        metrics.paired_difference(logits, logits[:9], labels)


@pytest.mark.gpu
def test_a_gpu_gives_the_same_report() -> None:
    logits, labels = drawn()
    there, here = (
        metrics.calibration_report(logits.to(d), labels.to(d), bootstrap=50)
        for d in ("cuda", "cpu")
    )
    assert there.pop("intervals") == {
        name: pytest.approx(pair, abs=1e-9)
        for name, pair in here.pop("intervals").items()
    }
    assert there == pytest.approx(here, abs=1e-9)


# The values of our first run on all 10,000 rows: accuracy, NLL, ECE, and the
# temperatures fitted by NLL and, on the focal paper's grid, by ECE.
FOUND = {
    "densenet_BC_100_12": (0.9562, 0.20173, 0.02539, 1.93618, 2.0),
    "resnet_basic_110": (0.9406, 0.32723, 0.04126, 2.56828, 2.6),
    "resnext_29_8x64d": (0.9646, 0.12741, 0.01293, 1.30799, 1.3),
    "vgg_15_BN_64": (0.9318, 0.34386, 0.0465, 2.22485, 2.3),
}


@pytest.mark.real_data("cifar10_logits")
@pytest.mark.parametrize("network", FOUND)
def test_values_are_those_first_found(network: str, project_root: Path) -> None:
    with np.load(
        project_root / "data" / "raw" / "cifar10_logits.npz", allow_pickle=False
    ) as data:
        logits = torch.from_numpy(
            data["logits"][data["names"].tolist().index(network)].astype(np.float32)
        )
        labels = torch.from_numpy(data["labels"])
    report = metrics.calibration_report(logits, labels)
    names = ("accuracy", "negative_log_likelihood", "expected_calibration_error")
    fits = [
        fit_temperature(logits, labels),
        fit_temperature(logits, labels, criterion="ece", grid=TEMPERATURE_GRID),
    ]
    temperatures = [fit.temperature for fit in fits]
    assert [*(report[name] for name in names), *temperatures] == pytest.approx(
        FOUND[network], abs=5e-6
    )


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_labels_are_accepted(dtype: torch.dtype) -> None:
    logits, labels = drawn()
    probs = torch.softmax(logits, dim=1)
    for metric, scores in (
        (metrics.expected_calibration_error, probs),
        (metrics.adaptive_calibration_error, probs),
        (confident_report, logits),
    ):
        assert metric(scores, labels.to(dtype)) == metric(scores, labels)
