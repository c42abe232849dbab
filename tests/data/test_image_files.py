"""Image files of the accepted kinds become grey or RGB bytes of the recorded size."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softmax_temperature.data.image_files import inspect_image, read_image
from softmax_temperature.runner.errors import InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)


def read(path: Path, channels: int = 3, size_limit: int | None = None) -> np.ndarray:
    sha256, size = inspect_image(path, size_limit=size_limit)
    image = read_image(path, sha256=sha256, channels=channels, size_limit=size_limit)
    assert (image.dtype, image.shape) == (np.uint8, (channels, *size[:2]))
    return image


@pytest.mark.parametrize(
    ("mode", "name", "grey"),
    [
        *(
            ("L", "a.png", True),
            ("1", "a.png", True),
            ("LA", "a.png", True),
            ("L", "a.jpg", True),
        ),
        *(
            ("P", "a.png", False),
            ("RGBA", "a.png", False),
            ("CMYK", "a.jpg", False),
            ("RGB", "a.webp", False),
        ),
    ],
)
def test_any_mode_becomes_grey_or_rgb(
    tmp_path: Path, mode: str, name: str, grey: bool
) -> None:
    Image.fromarray(PIXELS).convert(mode).save(tmp_path / name)
    assert inspect_image(tmp_path / name, size_limit=None)[1] == (
        6,
        9,
        1 if grey else 3,
    )
    for channels in (1, 3):
        assert read(tmp_path / name, channels).shape == (channels, 6, 9)


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_a_large_file_is_read_at_the_size_that_was_recorded(
    tmp_path: Path, name: str
) -> None:
    slope = np.linspace(0, 255, 800).astype(np.uint8)
    Image.fromarray(np.broadcast_to(slope, (600, 800))).convert("RGB").save(
        tmp_path / name, quality=95
    )
    image = read(tmp_path / name, size_limit=60)
    assert image.shape == (3, 60, 80)
    assert np.abs(image[0, 30].astype(int) - slope.reshape(80, 10).mean(1)).max() <= 6


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp"])
@pytest.mark.parametrize("part", [0.0, 0.9])
def test_a_truncated_file_is_refused_by_name(
    tmp_path: Path, name: str, part: float
) -> None:
    Image.fromarray(np.tile(PIXELS, (10, 10, 1))).save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(part * len(content))])
    with pytest.raises(InputError, match=f"{name}: is not a readable image"):
        read(tmp_path / name)


def test_a_file_in_another_format_is_refused(tmp_path: Path) -> None:
    # Pillow can decode many more formats, for which it may start other programs: it
    # passes EPS files to Ghostscript.
    Image.fromarray(PIXELS).save(tmp_path / "a.png", format="PCX")
    with pytest.raises(InputError, match=r"a\.png: is not a readable image"):
        inspect_image(tmp_path / "a.png", size_limit=None)


@pytest.mark.parametrize("form", ["BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP"])
def test_a_file_with_another_formats_ending_is_read(tmp_path: Path, form: str) -> None:
    Image.fromarray(PIXELS).save(tmp_path / "a.jpg", format=form)
    assert read(tmp_path / "a.jpg").shape == (3, 6, 9)
