"""Small data sets in every form that can be embedded in shards, and a tiny backbone."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from softmax_temperature.params import Compute
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.tools.suggest.choice import Choice

SIDE, CLASSES, DIM = 16, 4, 64
SPEC = Backbone(
    library="project",
    architecture="cifar_resnet",
    weights="untrained",
    embedding=DIM,
    arguments={"blocks": 1},
    input_size=SIDE,
    mean=[0.5, 0.5, 0.5],
    std=[0.25, 0.25, 0.25],
)
CHOICE = Choice("tiny", SPEC, Path(), 3)
PARAMS = f"seed: 0\ndata: {{root: .}}\nbackbones:\n  tiny: {SPEC.model_dump_json(exclude_none=True)}\n"


def compute(**changes: object) -> Compute:
    settings = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu", "checkpoint_seconds": 0}
    return Compute.model_validate({**settings, "ray_address": None, "gpus_per_cell": 0, **changes})


def pixels(number: int, *, side: int = SIDE) -> np.ndarray:
    """An image of class `number % CLASSES`: brighter in a quarter of its own."""
    generator = np.random.default_rng(number)
    found = generator.integers(0, 90, (side, side, 3))
    top, left = divmod(number % CLASSES, 2)
    half = side // 2
    found[top * half :, left * half :][:half, :half] += 120
    return found.astype(np.uint8)


def encoded(array: np.ndarray, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


def samples(numbers: Iterable[int]) -> dict[str, bytes]:
    """Members of a tar file, of one image after the other."""
    members = {}
    for number in numbers:
        members[f"{number:06d}.png"] = encoded(pixels(number))
        members[f"{number:06d}.cls"] = str(number % CLASSES).encode()
    return members


def write_tar(path: Path, members: Mapping[str, bytes | tarfile.TarInfo]) -> Path:
    """A tar file of these members: bytes, or what a TarInfo says without any."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


def write_tars(folder: Path, *, shards: int = 3, images: int = 40) -> Path:
    for shard in range(shards):
        write_tar(folder / f"s-{shard}.tar", samples(range(shard * images, (shard + 1) * images)))
    return folder


def write_class_folders(folder: Path, *, images: int = 120) -> Path:
    for number in range(images):
        place = folder / "abcdefgh"[number % CLASSES] / f"{number:04d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encoded(pixels(number)))
    return folder
