"""Samples of one split in the form that training needs, and augmentation of images."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.splits import Part, SplitName, refuse_test
from softmax_temperature.networks.layers import channels
from softmax_temperature.params.recipe import Recipe


@dataclass(frozen=True)
class Samples:
    """The samples of one split: inputs (n, ...), and labels (n,) or (n, ...).

    `one_shape` says whether all batches have the same shape.
    """

    inputs: Tensor
    labels: Tensor
    split: SplitName
    one_shape: ClassVar[bool] = False

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Make samples of `part`, one split of a data set."""
        return cls(part.data, part.labels, part.split)

    def for_fitting(self) -> Self:
        """Return these samples for a fit; raise LeakError for test data."""
        refuse_test(self.split, type(self).__name__)
        return self

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> Self:
        """Return the samples, moved to where training on `device` needs them."""
        inputs = self.inputs.to(device)
        labels = self.labels.to(device)
        return replace(self, inputs=inputs, labels=labels)

    def sample(self, count: int | None) -> Self:
        """Choose `count` evenly spaced samples, or all samples if `count` is None.

        Even spacing keeps classes balanced if the samples are sorted by class.
        """
        if count is None or count >= len(self):
            return self
        rows = torch.arange(count, device=self.labels.device) * len(self) // count
        return replace(self, inputs=self.inputs[rows], labels=self.labels[rows])

    def require(self, sound: bool, form: str, *label_shapes: tuple[int, ...]) -> None:
        """Raise ValueError if the inputs or the labels have a wrong form.

        `sound` says whether the inputs have the right form; `form` states that form for
        the message. The labels must have one of `label_shapes`.
        """
        if not sound:
            shape = tuple(self.inputs.shape)
            raise ValueError(f"{form}, got {shape} {self.inputs.dtype}")
        shape = tuple(self.labels.shape)
        if shape not in label_shapes:
            choices = " or ".join(map(str, label_shapes))
            raise ValueError(f"labels must have shape {choices}, got {shape}")

    def check(self, recipe: Recipe) -> None:
        """Raise ValueError for a recipe that cannot train these samples.

        Such a recipe augments or normalises images.
        """
        names = ("crop_padding", "flip", "mean", "std")
        asked = {name: getattr(recipe, name) for name in names}
        if any(asked.values()):
            raise ValueError(
                f"recipe must neither augment nor normalise texts, got {asked}"
            )

    def draw(
        self,
        batch_size: int,
        generator: torch.Generator,  # noqa: ARG002
        recipe: Recipe,  # noqa: ARG002
    ) -> Tensor:
        """Draw the random numbers of a batch, int64 of shape (numbers, batch_size).

        The generator is on the CPU. By default, no random numbers are drawn.
        """
        return torch.empty(0, batch_size, dtype=torch.int64)

    def batch(
        self,
        rows: Tensor,
        drawn: Tensor,  # noqa: ARG002
        recipe: Recipe,
    ) -> Tensor:
        """Return the samples `rows` (b,) in the form that the network is trained on.

        `rows` and `drawn` are on the device of the inputs.
        """
        return self.prepare(self.inputs[rows], recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:  # noqa: ARG002
        """Convert inputs of any split to the form that the network is evaluated on.

        The result is not random.
        """
        return inputs


class HostSamples(Samples):
    """Samples whose lengths determine the shapes of the computation's tensors.

    The inputs stay in the host's memory, and networks upload each batch.
    """

    def to(self, device: str) -> Self:
        """Return the samples with their labels, but not their inputs, on the device."""
        return replace(self, labels=self.labels.to(device))


@dataclass(frozen=True)
class ImageSet(Samples):
    """Uint8 images (n, 3, height, width), with one label per image or per pixel.

    The labels have shape (n,), in int64, or shape (n, height, width).
    """

    one_shape: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shape = tuple(self.inputs.shape)
        self.require(
            shape[1:-2] == (3,) and self.inputs.dtype == torch.uint8,
            "images must be (n, 3, height, width) uint8",
            shape[:1],
            shape[:1] + shape[2:],
        )

    def check(self, recipe: Recipe) -> None:
        """Raise ValueError for a recipe that cannot train these images.

        Such a recipe has no normalisation, or augments images with a label for every
        pixel.
        """
        if recipe.mean is None or recipe.std is None:
            raise ValueError(
                f"recipe must normalise images, got {recipe.mean=}, {recipe.std=}"
            )
        if self.labels.ndim > 1 and (recipe.crop_padding or recipe.flip):
            raise ValueError(
                "recipe must not augment pixels with labels, got "
                f"{recipe.crop_padding=}, {recipe.flip=}"
            )

    def draw(
        self, batch_size: int, generator: torch.Generator, recipe: Recipe
    ) -> Tensor:
        """Draw each image's vertical shift, horizontal shift and mirroring, (3, b).

        If the recipe does not augment images, the shape is (0, b).
        """
        if not (recipe.crop_padding or recipe.flip):
            return super().draw(batch_size, generator, recipe)
        shifts = torch.randint(
            0, 2 * recipe.crop_padding + 1, (2, batch_size), generator=generator
        )
        mirrored = torch.rand((1, batch_size), generator=generator) < 0.5
        return torch.cat([shifts, (mirrored & recipe.flip).long()])

    def batch(self, rows: Tensor, drawn: Tensor, recipe: Recipe) -> Tensor:
        """Augment and normalise the images `rows` to (b, 3, height, width) float32."""
        images = self.inputs[rows]
        if len(drawn):
            images = augment(images, drawn, recipe.crop_padding)
        return self.prepare(images, recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Normalise uint8 images (b, 3, height, width) to (pixel / 255 - mean) / std.

        The result is float32, with channels last in memory.
        """
        assert recipe.mean is not None, "check refuses a recipe without"
        assert recipe.std is not None, "check refuses a recipe without"
        shift = _per_channel(recipe.mean, inputs.device)
        scale = _per_channel(recipe.std, inputs.device)
        pixels = inputs.to(torch.float32, memory_format=torch.channels_last)
        return pixels.sub_(shift).div_(scale)


def _per_channel(values: list[float], device: torch.device) -> Tensor:
    """Scale `values` to the range of uint8 pixels; shape (1, channels, 1, 1)."""
    return 255 * channels(tuple(values), device)[None, :, None, None]


def to_rgb(images: Tensor, size: int | None = None) -> Tensor:
    """Convert uint8 images (n, 1 or 3, height, width) to RGB.

    If `size` is given, the images are resized to `size` × `size` pixels with
    torchvision's method.
    """
    if size is not None and images.shape[2:] != (size, size):
        resized = F.interpolate(
            images.float(), (size, size), mode="bilinear", antialias=True
        )
        images = resized.round().clamp(0, 255).to(torch.uint8)
    return images.expand(-1, 3, -1, -1)


def augment(images: Tensor, drawn: Tensor, crop_padding: int) -> Tensor:
    """Return images (n, channels, height, width), padded, cropped and mirrored.

    `ImageSet.draw` draws the shifts and the mirroring (focal paper, appendix E).
    """
    count, _, height, width = images.shape
    along = torch.arange(max(height, width, count), device=images.device)
    down, right, mirrored = drawn[:, :, None]
    columns = torch.where(mirrored > 0, width - 1 - along[:width], along[:width])
    padded = F.pad(images, (crop_padding,) * 4)
    image_index = along[:count, None, None]
    row_index = (down + along[:height])[:, :, None]
    column_index = (right + columns)[:, None, :]
    # Gather pixels with channels last, so that each pixel's channels are copied
    # together.
    pixels = padded.permute(0, 2, 3, 1)[image_index, row_index, column_index]
    return pixels.permute(0, 3, 1, 2)
