"""Noise on images has the right statistics; CIFAR-10-C is read in the right order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature.data import gaussian_noise
from softmax_temperature.data.gaussian_noise import (
    add_noise,
    archive_digest,
    read_archive,
)
from softmax_temperature.runner.errors import InputError

# Number of images per severity in the archive that the tests write.
IMAGES = 6
LABELS = np.array([3, 8, 8, 0, 6, 6])


def noisy(value: int) -> Tensor:
    return add_noise(
        torch.full((40, 3, 32, 32), value, dtype=torch.uint8), 0.1, seed=0
    ).double()


def test_noise_has_the_stated_deviation_and_is_independent_across_channels() -> None:
    noise = noisy(128) - 128
    assert noise.std().item() == pytest.approx(25.5, rel=0.01)
    # The mean of 122,880 numbers has a standard error of 0.07 levels. If pixels were
    # truncated instead of rounded, images would be half a level too dark.
    assert abs(noise.mean().item()) < 0.3
    assert abs((noise[:, 0] * noise[:, 1]).mean().item() / 25.5**2) < 0.02, (
        "channels are correlated"
    )
    # A normal distribution has 68.3 % of its mass within one standard deviation and
    # 95.4 % within two.
    assert (noise.abs() <= 25.5).double().mean().item() == pytest.approx(
        0.683, abs=0.01
    )
    assert (noise.abs() <= 51).double().mean().item() == pytest.approx(0.954, abs=0.01)


@pytest.fixture
def write_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., np.ndarray]:
    """A function that writes a small CIFAR-10-C and returns its images.

    The function's keyword arguments replace arrays.
    """

    def write(**replaced: Any) -> np.ndarray:
        images = np.random.default_rng(0).integers(
            0, 256, (5 * IMAGES, 32, 32, 3), dtype=np.uint8
        )
        (tmp_path / "CIFAR-10-C").mkdir()
        for name, content in {
            "gaussian_noise": images,
            "labels": np.tile(LABELS, 5),
            **replaced,
        }.items():
            if content is not None:
                np.save(tmp_path / "CIFAR-10-C" / f"{name}.npy", content)
        return images

    monkeypatch.setattr(gaussian_noise, "_ROWS_PER_SEVERITY", IMAGES)
    return write


def read(root: Path, rows: list[int]) -> Tensor:
    return read_archive(root, torch.tensor(rows), torch.from_numpy(LABELS[rows]))


def test_the_fifth_severity_is_read_in_the_order_asked_for(
    tmp_path: Path, write_archive: Callable[..., np.ndarray]
) -> None:
    assert archive_digest(tmp_path) is None
    images = write_archive()
    assert archive_digest(tmp_path) is not None
    assert np.array_equal(
        read(tmp_path, [4, 0, 5]).numpy().transpose(0, 2, 3, 1), images[[28, 24, 29]]
    )


@pytest.mark.parametrize(
    ("replaced", "says"),
    [
        (
            {"labels": np.tile(np.roll(LABELS, 1), 5)},
            "do not match CIFAR-10's test part",
        ),
        (
            {"gaussian_noise": np.zeros((5 * IMAGES, 3, 32, 32), np.uint8)},
            "do not match CIFAR-10's test part",
        ),
        (
            {"gaussian_noise": np.zeros((4 * IMAGES, 32, 32, 3), np.uint8)},
            "cannot be read",
        ),
        ({"labels": None}, r"cannot be read .*labels\.npy"),
    ],
)
def test_a_wrong_archive_is_named(
    tmp_path: Path,
    write_archive: Callable[..., np.ndarray],
    replaced: dict[str, Any],
    says: str,
) -> None:
    write_archive(**replaced)
    with pytest.raises(
        InputError, match=f"CIFAR-10-C: .*{says}.*Unpack CIFAR-10-C.tar"
    ):
        read(tmp_path, [1, 4])
