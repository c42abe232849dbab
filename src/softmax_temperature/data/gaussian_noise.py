"""Test images with Gaussian noise, as an out-of-distribution set.

The focal paper's Table 3 uses CIFAR-10-C with severity 5 (Hendrycks and Dietterich
2019).
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

ARCHIVE = "CIFAR-10-C"
"""The folder below data.root that holds the images."""
_FOLDER = Path(ARCHIVE)
_IMAGES = _FOLDER / "gaussian_noise.npy"
_LABELS = _FOLDER / "labels.npy"
_SEVERITY = 5
_ROWS_PER_SEVERITY = 10_000


def archive_digest(root: Path) -> str | None:
    """Compute one sha256 over the images with Gaussian noise and the labels.

    Returns None unless `root` holds both of these files of CIFAR-10-C.
    """
    files = [root / _IMAGES, root / _LABELS]
    if not all(file.is_file() for file in files):
        return None
    return digest_of_text("".join(digest_of_file(file) for file in files))


def add_noise(images: Tensor, deviation: float, *, seed: int) -> Tensor:
    """Add independent Gaussian noise to every pixel.

    Args:
        images: A uint8 tensor of shape (n, channels, height, width).
        deviation: Standard deviation for pixels on the scale 0 to 1; 0.10 is severity
            5 of CIFAR-10-C.
        seed: The seed of the noise.

    Returns:
        Noisy images, a uint8 tensor of the same shape.
    """
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(images.shape, generator=generator)
    noisy = (images / 255 + deviation * noise).clamp(0, 1)
    # Deviation: we round to the nearest level; the generator of CIFAR-10-C truncates,
    # which makes its images half a level darker on average.
    return noisy.mul(255).round().to(torch.uint8)


def read_archive(root: Path, index: Tensor, labels: Tensor) -> Tensor:
    """Read images of CIFAR-10-C with severity 5.

    Args:
        root: The folder that contains `CIFAR-10-C`.
        index: Row indices in CIFAR-10's test part, an int64 tensor of shape (n,).
        labels: The labels that those rows must have, an int64 tensor of shape (n,).

    Returns:
        Images, a uint8 tensor of shape (n, 3, 32, 32).

    Raises:
        InputError: If a file cannot be read, or images or labels do not match
            CIFAR-10's test part.
    """
    rows = (index + (_SEVERITY - 1) * _ROWS_PER_SEVERITY).numpy()
    try:
        images = _read_rows(root / _IMAGES, rows)
        archive_labels = _read_rows(root / _LABELS, rows)
    except (OSError, ValueError, EOFError, IndexError) as error:
        raise _refused(root, f"cannot be read ({error})") from error
    is_cifar = images.shape[1:] == (32, 32, 3) and images.dtype == np.uint8
    if not (is_cifar and np.array_equal(archive_labels, labels.numpy())):
        raise _refused(
            root,
            "images or labels do not match CIFAR-10's test part, in its order, once "
            "for each of five severities",
        )
    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def _read_rows(path: Path, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array[rows]


def _refused(root: Path, what: str) -> InputError:
    return InputError(
        what,
        where=str(root / _FOLDER),
        remedy="Unpack CIFAR-10-C.tar there again, or remove the folder.",
    )
