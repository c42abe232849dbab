"""Test images with Gaussian noise, as an out-of-distribution set (focal paper, Table 3:
CIFAR-10-C, severity 5).
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

# Of Hendrycks and Dietterich 2019.
_FILES = [Path("CIFAR-10-C", name) for name in ("gaussian_noise.npy", "labels.npy")]
_PER_SEVERITY = 10_000


def archive_digest(root: Path) -> str | None:
    """The sha256 of the two files of CIFAR-10-C that are read, or None when they are
    not below data.root.
    """
    files = [root / file for file in _FILES]
    return (
        digest_of_text("".join(map(digest_of_file, files)))
        if all(file.is_file() for file in files)
        else None
    )


def add_noise(images: Tensor, deviation: float, *, seed: int) -> Tensor:
    """Images (n, channels, height, width) uint8 with independent noise; `deviation` is
    for pixels from 0 to 1.
    """
    # A deviation of 0.10 is severity 5 for images of 32×32 pixels.
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(seed))
    # Deviation: rounded to the nearest level; the generator of CIFAR-10-C cuts decimals
    # off, half a level darker.
    return (
        (images / 255 + deviation * noise).clamp(0, 1).mul(255).round().to(torch.uint8)
    )


def read_archive(root: Path, index: Tensor, labels: Tensor) -> Tensor:
    """The images of CIFAR-10-C with severity 5, (n, 3, 32, 32) uint8, at `index` (n,)
    of CIFAR-10's test part.
    """
    rows = (index + 4 * _PER_SEVERITY).numpy()
    try:
        images, own = (
            np.load(root / file, mmap_mode="r", allow_pickle=False)[rows]
            for file in _FILES
        )
        if (
            images.shape[1:] == (32, 32, 3)
            and images.dtype == np.uint8
            and np.array_equal(own, labels.numpy())
        ):
            return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
        what = "images or labels are not those of CIFAR-10's test part, in its order, five severities one after another"
    except (OSError, ValueError, EOFError, IndexError) as error:
        what = f"not readable ({error})"
    remedy = "Unpack CIFAR-10-C.tar there again, or remove the folder."
    raise InputError(what, where=str(root / "CIFAR-10-C"), remedy=remedy)
