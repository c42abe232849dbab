"""What a training needs to know of a split, whatever its samples are; and images,
augmented on the device.
"""

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
    """One split: inputs (n, ...), labels (n,) or more, and the network's form of them.

    `one_shape` says that all batches have one shape.
    """

    inputs: Tensor
    labels: Tensor
    split: SplitName
    one_shape: ClassVar[bool] = False

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """The samples of one split of a data set."""
        return cls(part.data, part.labels, part.split)

    def for_fitting(self) -> Self:
        """These samples, to fit weights or a temperature on; test data raise LeakError."""
        refuse_test(self.split, type(self).__name__)
        return self

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> Self:
        """The same where a training on a device wants it."""
        return replace(
            self, inputs=self.inputs.to(device), labels=self.labels.to(device)
        )

    def sample(self, count: int | None) -> Self:
        """`count` samples (None: all) at equal distances, which keeps classes that are
        sorted balanced.
        """
        if count is None or count >= len(self):
            return self
        rows = torch.arange(count, device=self.labels.device) * len(self) // count
        return replace(self, inputs=self.inputs[rows], labels=self.labels[rows])

    def require(self, sound: bool, form: str, *label_shapes: tuple[int, ...]) -> None:
        """Refuse inputs that have not the form, and labels that have none of the
        shapes.
        """
        if not sound:
            raise ValueError(
                f"{form}, got {tuple(self.inputs.shape)} {self.inputs.dtype}"
            )
        if (own := tuple(self.labels.shape)) not in label_shapes:
            raise ValueError(
                f"labels must have shape {' or '.join(map(str, label_shapes))}, got {own}"
            )

    def check(self, recipe: Recipe) -> None:
        """Refuse, by a ValueError, a recipe by which these samples cannot be trained:
        here one that is for images.
        """
        asked = {
            name: getattr(recipe, name)
            for name in ("crop_padding", "flip", "mean", "std")
        }
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
        """What is random about the samples of a batch, from a generator on the CPU:
        (numbers, batch_size) int64.
        """
        return torch.empty(0, batch_size, dtype=torch.int64)

    def batch(self, rows: Tensor, drawn: Tensor, recipe: Recipe) -> Tensor:  # noqa: ARG002
        """The samples `rows` (b,) as the network is trained on them; `rows` and `drawn`
        are where the inputs are.
        """
        return self.prepare(self.inputs[rows], recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:  # noqa: ARG002
        """Inputs of the same kind, from any split, as the network is evaluated on them;
        nothing is random.
        """
        return inputs


class HostSamples(Samples):
    """Samples whose sizes decide what is computed: they stay in the host's memory, and
    networks upload a batch.
    """

    def to(self, device: str) -> Self:
        """Labels move; inputs stay."""
        return replace(self, labels=self.labels.to(device))


@dataclass(frozen=True)
class ImageSet(Samples):
    """Images: inputs (n, 3, height, width) uint8; labels (n,) int64, or (n, height,
    width), one for each pixel.
    """

    one_shape: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shape, form = (
            tuple(self.inputs.shape),
            "images must be (n, 3, height, width) uint8",
        )
        self.require(
            shape[1:-2] == (3,) and self.inputs.dtype == torch.uint8,
            form,
            shape[:1],
            shape[:1] + shape[2:],
        )

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe without normalisation, or one that augments images whose
        every pixel has a label.
        """
        if recipe.mean is None or recipe.std is None:
            raise ValueError(
                f"recipe must normalise images, got {recipe.mean=}, {recipe.std=}"
            )
        if self.labels.ndim > 1 and (recipe.crop_padding or recipe.flip):
            raise ValueError(
                f"recipe must not augment pixels with labels, got {recipe.crop_padding=}, {recipe.flip=}"
            )

    def draw(
        self, batch_size: int, generator: torch.Generator, recipe: Recipe
    ) -> Tensor:
        """Vertical and horizontal shift of each image, and whether it is mirrored: (3,
        b); (0, b) if none is.
        """
        if not (recipe.crop_padding or recipe.flip):
            return super().draw(batch_size, generator, recipe)
        shifts = torch.randint(
            0, 2 * recipe.crop_padding + 1, (2, batch_size), generator=generator
        )
        mirrored = torch.rand((1, batch_size), generator=generator) < 0.5
        return torch.cat([shifts, (mirrored & recipe.flip).long()])

    def batch(self, rows: Tensor, drawn: Tensor, recipe: Recipe) -> Tensor:
        """Some images, augmented and normalised: (b, 3, height, width) float32."""
        images = self.inputs[rows]
        return self.prepare(
            augment(images, drawn, recipe.crop_padding) if len(drawn) else images,
            recipe,
        )

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Images (b, 3, height, width) uint8 as (pixel / 255 - mean) / std, float32,
        channels last in memory.
        """
        assert recipe.mean and recipe.std, "check refuses a recipe without"  # noqa: PT018
        shift, scale = (
            255 * channels(tuple(values), inputs.device)[None, :, None, None]
            for values in (recipe.mean, recipe.std)
        )
        return (
            inputs.to(torch.float32, memory_format=torch.channels_last)
            .sub_(shift)
            .div_(scale)
        )


def to_rgb(images: Tensor, size: int | None = None) -> Tensor:
    """Images (n, 1 or 3, height, width) uint8 as RGB, resized to squares of `size`
    pixels as by torchvision.
    """
    if size is not None and images.shape[2:] != (size, size):
        resized = F.interpolate(
            images.float(), (size, size), mode="bilinear", antialias=True
        )
        images = resized.round().clamp(0, 255).to(torch.uint8)
    return images.expand(-1, 3, -1, -1)


def augment(images: Tensor, drawn: Tensor, crop_padding: int) -> Tensor:
    """Pad images (n, channels, height, width), crop and mirror them as `ImageSet.draw`
    drew (focal, appendix E).
    """
    count, _, height, width = images.shape
    along = torch.arange(max(height, width, count), device=images.device)
    down, right, mirrored = drawn[:, :, None]
    columns = torch.where(mirrored > 0, width - 1 - along[:width], along[:width])
    padded = F.pad(images, (crop_padding,) * 4)
    index = (
        along[:count, None, None],
        (down + along[:height])[:, :, None],
        (right + columns)[:, None, :],
    )
    # Channels last within the gather: each pixel's channels are moved together.
    return padded.permute(0, 2, 3, 1)[index].permute(0, 3, 1, 2)
