"""The metrics on real logits of four CIFAR-10 networks."""

from pathlib import Path

import numpy as np
import pytest
import torch

from softmax_temperature.metrics import calibration_report
from softmax_temperature.scaling import fit_temperature

pytestmark = pytest.mark.real_data("cifar10_logits")

# Accuracy, NLL, ECE, T by NLL, T by ECE on all 10,000 rows, as first found.
FOUND = {
    "densenet_BC_100_12": (0.9562, 0.20173, 0.02539, 1.93618, 2.0),
    "resnet_basic_110": (0.9406, 0.32723, 0.04126, 2.56828, 2.6),
    "resnext_29_8x64d": (0.9646, 0.12741, 0.01293, 1.30799, 1.3),
    "vgg_15_BN_64": (0.9318, 0.34386, 0.0465, 2.22485, 2.3),
}


@pytest.mark.parametrize("network", FOUND)
def test_values_are_those_first_found(network: str, project_root: Path) -> None:
    with np.load(project_root / "data" / "raw" / "cifar10_logits.npz", allow_pickle=False) as data:
        logits = torch.from_numpy(data["logits"][data["names"].tolist().index(network)].astype(np.float32))
        labels = torch.from_numpy(data["labels"])
    report = calibration_report(logits, labels)
    names = ("accuracy", "negative_log_likelihood", "expected_calibration_error")
    fits = [fit_temperature(logits, labels, criterion=criterion).temperature for criterion in ("nll", "ece")]
    assert [*(report[name] for name in names), *fits] == pytest.approx(FOUND[network], abs=5e-6)
