"""Test images with Gaussian noise, as an out-of-distribution set (focal paper, Table 3: CIFAR-10-C, severity 5)."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

ARCHIVE = Path("CIFAR-10-C")
"""The authors' folder (Hendrycks and Dietterich 2019), unpacked below data.root."""
_FILES = ("gaussian_noise", "labels")
_SEVERITY = 5
_PER_SEVERITY = 10_000
_REMEDY = "Unpack CIFAR-10-C.tar there again, or remove the folder."


def archive_digest(root: Path) -> str | None:
    """The sha256 of the two files of CIFAR-10-C that are read, or None when it is not below data.root."""
    files = [root / ARCHIVE / f"{name}.npy" for name in _FILES]
    if not any(file.is_file() for file in files):
        return None
    return digest_of_text("".join(digest_of_file(file) if file.is_file() else "absent" for file in files))


def add_noise(images: Tensor, deviation: float, *, seed: int) -> Tensor:
    """Add independent noise to every pixel and channel of (n, channels, height, width) uint8 images, and clip.

    `deviation` is that of the noise for pixels on the scale 0 to 1; 0.10 is severity 5 for images of 32×32 pixels.
    """
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(seed))
    # Deviation: rounded to the nearest level; the generator of CIFAR-10-C cuts decimals off, half a level darker.
    return (images / 255 + deviation * noise).clamp(0, 1).mul(255).round().to(torch.uint8)


def read_archive(root: Path, index: Tensor, labels: Tensor) -> Tensor:
    """The images of CIFAR-10-C with severity 5, (n, 3, 32, 32) uint8, at `index` (n,) of CIFAR-10's test part."""
    rows = (index + (_SEVERITY - 1) * _PER_SEVERITY).numpy()
    images, their_labels = (_rows(root / ARCHIVE / f"{name}.npy", rows) for name in _FILES)
    if images.shape[1:] != (32, 32, 3) or images.dtype != np.uint8 or not np.array_equal(their_labels, labels.numpy()):
        what = "images or labels are not those of CIFAR-10's test part, in its order, five severities one after another"
        raise InputError(what, where=str(root / ARCHIVE), remedy=_REMEDY)
    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def _rows(path: Path, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False)[rows])
    except (OSError, ValueError, EOFError, IndexError) as error:
        raise InputError(f"not readable ({error})", where=str(path), remedy=_REMEDY) from error
